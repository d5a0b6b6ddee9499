"""The engines of this PC in one card: which is used, why others are not, and those that can be fetched."""

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from qwendesk.ui.engine.engine_row import EngineRow
from qwendesk.ui.engine.pack_row import PackRow
from qwendesk.ui.engine.row_texts import EngineLine, PackLine
from qwendesk.ui.kit.buttons import TextButton, describe
from qwendesk.ui.kit.density import Airy
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.theme_keeper import ThemeKeeper


class EngineList(QFrame):
    """Shows lines; asks for what a person wants. Engines are named by their folders, "" is the best one."""

    use_asked = Signal(str)
    try_asked = Signal(str)
    delete_asked = Signal(str)
    pack_asked = Signal(str, str)
    """A pack's name, and what: get, online, pause or discard."""
    folder_asked = Signal()
    help_asked = Signal()

    def __init__(self, keeper: ThemeKeeper) -> None:
        super().__init__()
        self._keeper = keeper
        self.setObjectName("engine.list")
        self.setProperty("kind", "modelcard")
        self._engines: dict[str, EngineRow] = {}
        self._packs: dict[str, PackRow] = {}
        heading = QLabel(tr("Choose an engine"))
        heading.setProperty("kind", "heading")
        self._note = _words("engine.note", "notice")
        self._best = EngineRow(keeper, "")
        self._best.use_asked.connect(lambda: self.use_asked.emit(""))
        self._rows = QVBoxLayout()
        self._rows.setSpacing(0)
        self._packs_title = QLabel(tr("To fetch"))
        self._packs_title.setProperty("kind", "dim")
        self._pack_rows = QVBoxLayout()
        self._pack_rows.setSpacing(0)
        self._unserved = _words("engine.unserved", "")
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 12, 16, 14)
        column.setSpacing(8)
        Airy(keeper, column)
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
        """`best` says which one that is now; `is_best`: it is what the person wants. `is_busy`: one is being tried."""
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
        """`unserved`: that a card here has no engine and what can be done; "" for nothing."""
        self._packs_title.setVisible(bool(lines))
        self._unserved.setText(unserved)
        self._unserved.setVisible(bool(unserved))
        self._help.setVisible(bool(unserved))
        self._forget(self._packs, {line.name for line in lines})
        for line in lines:
            row = self._packs.get(line.name) or self._new_pack(line.name)
            row.show_line(line, is_main=True)

    def _new_engine(self, name: str) -> EngineRow:
        row = self._engines[name] = EngineRow(self._keeper, name)
        row.use_asked.connect(lambda: self.use_asked.emit(name))
        row.try_asked.connect(lambda: self.try_asked.emit(name))
        row.delete_asked.connect(lambda: self.delete_asked.emit(name))
        return row

    def _new_pack(self, name: str) -> PackRow:
        row = self._packs[name] = PackRow(self._keeper, f"engine.pack.{name}")
        row.asked.connect(lambda what: self.pack_asked.emit(name, what))
        self._pack_rows.addWidget(row)
        return row

    def _forget(self, rows: dict[str, EngineRow] | dict[str, PackRow], names: set[str]) -> None:
        for name in set(rows) - names:
            row: QWidget = rows.pop(name)
            row.hide()
            row.deleteLater()

    def _foot(self) -> QHBoxLayout:
        folder = TextButton(self._keeper, " " + tr("Open the folder of engines"), kind="link", icon_name="folder")
        tip = tr("Open your folder of engines: a folder with an engine that is put there is found at the next start")
        describe(folder, "engine.folder", tr("Open the folder of engines"), tip)
        folder.clicked.connect(self.folder_asked)
        self._help = TextButton(self._keeper, tr("How to use the card"), kind="link")
        describe(self._help, "engine.help", tr("How to use the card"), tr("Open the guide where it says how"))
        self._help.clicked.connect(self.help_asked)
        row = QHBoxLayout()
        row.setSpacing(12)
        row.addWidget(folder)
        row.addWidget(self._help)
        row.addStretch(1)
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
