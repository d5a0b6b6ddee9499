"""A card with the engines of this PC, why some can't be used, and the packs that can be downloaded."""

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QProgressBar, QRadioButton, QSizePolicy, QVBoxLayout, QWidget

from qwendesk.core.translation import tr
from qwendesk.engines.view.row_texts import EngineLine, PackLine
from qwendesk.widgets.buttons import TextButton, describe, restyle
from qwendesk.widgets.kit import paragraph, rule
from qwendesk.widgets.layouts import DensitySpacing, FlowLayout

_STEPS = 1000


class PackRow(QWidget):
    """Shows a PackLine. Names of its controls begin with `prefix`, such as "engine.pack.cuda-12.get"."""

    asked = Signal(str)
    """Emitted when a button is clicked, with get, online, pause or discard."""

    def __init__(self, prefix: str) -> None:
        super().__init__()
        self._prefix = prefix
        self.setObjectName(prefix)
        self._title = paragraph(kind="strong", name=f"{self._prefix}.title")
        self._chip = paragraph(name=f"{self._prefix}.state")
        self._chip.setProperty("chip", "plain")
        self._chip.setWordWrap(False)
        self._chip.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self._details = paragraph(kind="small", name=f"{self._prefix}.details")
        self._hint = paragraph(kind="notice", name=f"{self._prefix}.hint")
        self._problem = paragraph(kind="error", name=f"{self._prefix}.problem")
        self._progress = paragraph(kind="small", name=f"{self._prefix}.progress")
        self._bar = QProgressBar()
        self._bar.setObjectName(f"{prefix}.bar")
        self._bar.setRange(0, _STEPS)
        self._bar.setTextVisible(False)
        self._bar.setFixedHeight(6)
        self._get = self._button("get", tr("Download"), tr("Download, verify and try this engine"))
        self._online = self._button("online", tr("Go online"), tr("Turn off Offline and download it"))
        self._pause = self._button("pause", tr("Pause"), tr("Pause the download and keep what is downloaded"))
        self._discard = self._button("discard", tr("Delete download"), tr("Delete the unfinished download"))
        first = QHBoxLayout()
        first.setSpacing(8)
        first.addWidget(self._title, 1)
        for button in (self._discard, self._pause, self._online, self._get):
            first.addWidget(button)
        first.addWidget(self._chip)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 6, 0, 6)
        column.setSpacing(4)
        column.addLayout(first)
        for part in (self._details, self._hint, self._bar, self._progress, self._problem):
            column.addWidget(part)

    def show_line(self, line: PackLine, *, is_main: bool = False) -> None:
        """Show a pack. `is_main` makes the download the primary button, unless a hint advises against it."""
        self._title.setText(line.title)
        self._chip.setText(line.chip)
        self._chip.setAccessibleName(tr("State: {0}", line.chip))
        restyle(self._chip, "chip", line.tone)
        for label, text in (
            (self._details, line.details), (self._hint, line.hint), (self._progress, line.progress),
            (self._problem, line.problem),
        ):  # fmt: skip
            label.setText(text)
            label.setVisible(bool(text))
        self._bar.setVisible(line.fraction is not None)
        self._bar.setValue(round(_STEPS * (line.fraction or 0.0)))
        self._bar.setAccessibleName(tr("Progress of {0}", line.title))
        self._get.setVisible(bool(line.get_text) and not line.is_offline)
        self._get.setText(line.get_text)
        self._get.setAccessibleName(tr("{0}: {1}", line.get_text, line.title))
        restyle(self._get, "kind", "primary" if is_main and not line.hint else "")
        self._online.setVisible(line.is_offline)
        self._pause.setVisible(line.is_running)
        self._discard.setVisible(line.can_discard)

    def _button(self, what: str, text: str, tip: str) -> TextButton:
        button = TextButton(text)
        restyle(button, "compact", "true")
        describe(button, f"{self._prefix}.{what}", text, tip)
        button.clicked.connect(lambda: self.asked.emit(what))
        return button


# Indentation that aligns text with the title of the radio button above it.
_INDENT = 25


class EngineRow(QWidget):
    """Shows an EngineLine. `name` is the engine's name; "" is the row of the best one that runs.

    Controls have names such as "engine.list.NAME.try".
    """

    use_asked = Signal()
    try_asked = Signal()
    delete_asked = Signal()

    def __init__(self, name: str) -> None:
        super().__init__()
        prefix = f"engine.list.{name or 'best'}"
        self.setObjectName(prefix)
        self._radio = QRadioButton()
        # Arrow keys must not change the engine, only a click or the space bar.
        self._radio.setAutoExclusive(False)
        describe(self._radio, f"{prefix}.use", "")
        self._radio.clicked.connect(self._on_clicked)
        self._is_wanted = False
        self._chip = QLabel()
        self._chip.setObjectName(f"{prefix}.state")
        self._chip.setProperty("chip", "plain")
        self._chip.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self._details = paragraph(kind="small", name=f"{prefix}.details", selectable=True)
        self._sentence = paragraph(kind="small", name=f"{prefix}.sentence", selectable=True)
        self._try = TextButton(tr("Try again"))
        restyle(self._try, "compact", "true")
        describe(self._try, f"{prefix}.try", tr("Try again"))
        self._try.clicked.connect(self.try_asked)
        self._delete = TextButton(tr("Delete…"))
        restyle(self._delete, "compact", "true")
        describe(self._delete, f"{prefix}.delete", tr("Delete…"))
        self._delete.clicked.connect(self.delete_asked)
        first = QHBoxLayout()
        first.setSpacing(8)
        first.addWidget(self._radio)
        first.addStretch(1)
        first.addWidget(self._try)
        first.addWidget(self._delete)
        first.addWidget(self._chip)
        below = QVBoxLayout()
        below.setContentsMargins(_INDENT, 0, 0, 0)
        below.setSpacing(2)
        below.addWidget(self._details)
        below.addWidget(self._sentence)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 6, 0, 6)
        column.setSpacing(2)
        DensitySpacing(column)
        column.addLayout(first)
        column.addLayout(below)

    def show_line(self, line: EngineLine, *, can_choose: bool) -> None:
        """Show an engine. `can_choose` is False while another change is in progress."""
        self._show_radio(line.title, is_wanted=line.is_wanted, can_use=line.can_use and can_choose)
        self._radio.setToolTip(line.sentence if not line.can_use else tr("Use this engine"))
        self._chip.setText(line.chip)
        self._chip.setAccessibleName(tr("State: {0}", line.chip))
        restyle(self._chip, "chip", line.tone)
        _show(self._details, line.details)
        _show(self._sentence, line.sentence)
        restyle(self._sentence, "kind", "notice" if line.tone == "warn" else "small")
        self._try.setVisible(bool(line.try_text))
        self._try.setEnabled(can_choose)
        self._try.setText(line.try_text)
        self._try.setAccessibleName(tr("{0}: {1}", line.try_text, line.title))
        self._try.setToolTip(tr("Start it in a separate process, even if it crashed before"))
        self._delete.setVisible(line.can_delete)
        self._delete.setAccessibleName(tr("Delete {0}", line.title))
        self._delete.setToolTip(tr("Delete this engine's folder"))

    def show_best(self, text: str, *, is_wanted: bool, can_choose: bool) -> None:
        """Show the row of the best one that runs; `text` tells which one that is."""
        self._show_radio(tr("Automatic (recommended)"), is_wanted=is_wanted, can_use=can_choose)
        self._radio.setToolTip(tr("Always use the best engine that runs on this PC"))
        _show(self._details, text)
        for part in (self._chip, self._sentence, self._try, self._delete):
            part.hide()

    def _show_radio(self, title: str, *, is_wanted: bool, can_use: bool) -> None:
        self._is_wanted = is_wanted
        self._radio.setText(title)
        self._radio.setAccessibleName(title)
        self._radio.setChecked(is_wanted)
        self._radio.setEnabled(can_use)

    def _on_clicked(self) -> None:
        # Show the new choice only after it has been made.
        self._radio.setChecked(self._is_wanted)
        if not self._is_wanted:
            self.use_asked.emit()


def _show(label: QLabel, text: str) -> None:
    label.setText(text)
    label.setVisible(bool(text))


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
        column.addWidget(rule())
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
        self._add = TextButton(tr("Add engine from file…"), kind="link", icon_name="new")
        describe(
            self._add,
            "engine.add",
            tr("Add engine from file…"),
            tr("Add an engine that you have as a zip file or folder"),
        )
        self._add.clicked.connect(self.add_asked)
        folder = TextButton(tr("Open engines folder"), kind="link", icon_name="folder")
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
