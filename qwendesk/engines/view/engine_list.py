"""A card with the engines of this PC, why some can't be used, and the packs that can be downloaded."""

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QLabel, QVBoxLayout, QWidget

from qwendesk.core.translation import tr
from qwendesk.engines.view.engine_row import EngineRow
from qwendesk.engines.view.pack_row import PackRow
from qwendesk.engines.view.row_texts import EngineLine, PackLine
from qwendesk.widgets.buttons import TextButton, describe
from qwendesk.widgets.layouts import DensitySpacing, FlowLayout


class EngineList(QFrame):
    """Shows lines, and emits what the user wants. Engines are identified by name; "" is the best one that runs."""

    use_asked = Signal(str)
    try_asked = Signal(str)
    delete_asked = Signal(str)
    pack_asked = Signal(str, str)
    """Name of the pack, and get, online, pause or discard."""
    add_asked = Signal()
    folder_asked = Signal()
    help_asked = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("engine.list")
        self.setProperty("kind", "modelcard")
        self._engines: dict[str, EngineRow] = {}
        self._packs: dict[str, PackRow] = {}
        heading = QLabel(tr("Choose an engine"))
        heading.setProperty("kind", "heading")
        self._note = _words("engine.note", "notice")
        self._best = EngineRow("")
        self._best.use_asked.connect(lambda: self.use_asked.emit(""))
        self._rows = QVBoxLayout()
        self._rows.setSpacing(0)
        self._packs_title = QLabel(tr("Available to download"))
        self._packs_title.setProperty("kind", "dim")
        self._pack_rows = QVBoxLayout()
        self._pack_rows.setSpacing(0)
        self._unserved = _words("engine.unserved", "")
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 12, 16, 14)
        column.setSpacing(8)
        DensitySpacing(column)
        column.addWidget(heading)
        column.addWidget(self._note)
        column.addWidget(self._best)
        column.addLayout(self._rows)
        column.addWidget(_rule())
        column.addWidget(self._packs_title)
        column.addLayout(self._pack_rows)
        column.addWidget(self._unserved)
        column.addLayout(self._foot())

    def show_engines(self, lines: Sequence[EngineLine], best: str, note: str, *, is_best: bool, is_busy: bool) -> None:
        """Show the engines. `best` tells which one is the best that runs, and `note` is "" if there is nothing to note.

        `is_best` tells that the user chose the best one instead of a certain engine. While `is_busy`, an engine is
        being tried or changed, and the user can't choose.
        """
        self._add.setEnabled(not is_busy)
        self._best.show_best(best, is_wanted=is_best, can_choose=not is_busy)
        self._note.setText(note)
        self._note.setVisible(bool(note))
        self._forget(self._engines, {line.name for line in lines})
        for place, line in enumerate(lines):
            row = self._engines.get(line.name) or self._new_engine(line.name)
            if self._rows.indexOf(row) != place:
                self._rows.insertWidget(place, row)
            row.show_line(line, can_choose=not is_busy)

    def show_packs(self, lines: Sequence[PackLine], unserved: str) -> None:
        """Show the packs. `unserved` tells what to do about a graphics card without an engine; "" if there is none."""
        self._packs_title.setVisible(bool(lines))
        self._unserved.setText(unserved)
        self._unserved.setVisible(bool(unserved))
        self._help.setVisible(bool(unserved))
        self._forget(self._packs, {line.name for line in lines})
        for line in lines:
            row = self._packs.get(line.name) or self._new_pack(line.name)
            row.show_line(line, is_main=True)

    def _new_engine(self, name: str) -> EngineRow:
        row = self._engines[name] = EngineRow(name)
        row.use_asked.connect(lambda: self.use_asked.emit(name))
        row.try_asked.connect(lambda: self.try_asked.emit(name))
        row.delete_asked.connect(lambda: self.delete_asked.emit(name))
        return row

    def _new_pack(self, name: str) -> PackRow:
        row = self._packs[name] = PackRow(f"engine.pack.{name}")
        row.asked.connect(lambda what: self.pack_asked.emit(name, what))
        self._pack_rows.addWidget(row)
        return row

    def _forget(self, rows: dict[str, EngineRow] | dict[str, PackRow], names: set[str]) -> None:
        for name in set(rows) - names:
            row: QWidget = rows.pop(name)
            row.hide()
            row.deleteLater()

    def _foot(self) -> FlowLayout:
        self._add = TextButton(" " + tr("Add engine from file…"), kind="link", icon_name="new")
        describe(
            self._add,
            "engine.add",
            tr("Add engine from file…"),
            tr("Add an engine that you have as a zip file or folder"),
        )
        self._add.clicked.connect(self.add_asked)
        folder = TextButton(" " + tr("Open engines folder"), kind="link", icon_name="folder")
        tip = tr("Open your engines folder. An engine that you put there is found after a restart.")
        describe(folder, "engine.folder", tr("Open engines folder"), tip)
        folder.clicked.connect(self.folder_asked)
        self._help = TextButton(tr("How to use your GPU"), kind="link")
        describe(self._help, "engine.help", tr("How to use your GPU"), tr("Open this part of the guide"))
        self._help.clicked.connect(self.help_asked)
        row = FlowLayout()
        for link in (self._add, folder, self._help):
            row.addWidget(link)
        return row


def _words(name: str, kind: str) -> QLabel:
    label = QLabel()
    label.setObjectName(name)
    label.setWordWrap(True)
    if kind:
        label.setProperty("kind", kind)
    label.hide()
    return label


def _rule() -> QFrame:
    rule = QFrame()
    rule.setProperty("kind", "rule")
    rule.setFixedHeight(1)
    return rule
