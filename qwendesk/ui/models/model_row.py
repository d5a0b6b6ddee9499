"""One model of the list: what it is, how it is, and what can be done with it."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QSizePolicy, QVBoxLayout, QWidget

from qwendesk.hub.findings import Fix
from qwendesk.ui.bridges.models import ModelEntry
from qwendesk.ui.kit.beside import BesideOrBelow, in_a_row
from qwendesk.ui.kit.buttons import IconButton, TextButton, describe, restyle
from qwendesk.ui.kit.density import Airy
from qwendesk.ui.kit.shortened_label import ShortenedLabel
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.theme_keeper import ThemeKeeper
from qwendesk.ui.models.model_note import ModelNote
from qwendesk.ui.models.model_texts import button_text, details, fix_hint, place, place_hint
from qwendesk.ui.models.state_chip import StateChip
from qwendesk.ui.models.work_bar import WorkBar

_LEAST_WORDS = 240
"""Pixels that a name, or a sentence, has beside what stands at the right."""


class ModelRow(QFrame):
    """Shows one ModelEntry. `number` makes its controls' names: "models.my.3.load"."""

    load_asked = Signal()
    verify_asked = Signal()
    cancel_asked = Signal()
    fix_asked = Signal(object)
    """A Fix."""
    menu_asked = Signal(QWidget)
    """The button that the menu belongs to."""

    def __init__(self, keeper: ThemeKeeper, number: int) -> None:
        super().__init__()
        self._keeper, self._prefix = keeper, f"models.my.{number}"
        self.number = number
        self._entry: ModelEntry | None = None
        self._notes: list[ModelNote] = []
        self.setObjectName(self._prefix)
        self.setProperty("kind", "modelcard")
        self._chip = StateChip(f"{self._prefix}.state")
        self._name = ShortenedLabel(f"{self._prefix}.name", kind="heading")
        self._name.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._details = _label("dim", f"{self._prefix}.details")
        self._place = _label("", f"{self._prefix}.place")
        self._place.setProperty("chip", "info")
        self._place.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self._sentence = _label("", f"{self._prefix}.sentence")
        self._sentence.setWordWrap(True)
        self._work = WorkBar(keeper, self._prefix)
        self._work.cancelled.connect(self.cancel_asked)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 12, 12, 12)
        column.setSpacing(8)
        Airy(keeper, column)
        column.addLayout(self._first_line())
        column.addLayout(self._second_line())
        self._more_lines = QVBoxLayout()
        self._more_lines.setSpacing(4)
        column.addLayout(self._more_lines)
        column.addWidget(self._work)

    @property
    def entry(self) -> ModelEntry | None:
        return self._entry

    def show_entry(self, entry: ModelEntry, *, is_loaded: bool = False) -> None:
        self._show_load(entry, is_loaded=is_loaded)
        if entry == self._entry:
            return
        before, self._entry = self._entry, entry
        self._work.show_work(entry.work)
        self._show_fix(entry)
        if before is not None and (before.model, before.state) == (entry.model, entry.state):
            return
        model, state = entry.model, entry.state
        self._chip.show_state(state)
        self._name.setText(model.name)
        self._name.setToolTip(model.path)
        self._details.setText(details(model))
        self._place.setText(place(model))
        self._place.setToolTip(place_hint(model) if place(model) else "")
        self._place.setVisible(bool(place(model)))
        self._sentence.setText(state.sentence)
        self._sentence.setToolTip(state.evidence)
        restyle(self._sentence, "kind", "" if state.tone in ("bad", "warn") else "dim")
        self._show_notes(entry)

    def _first_line(self) -> QHBoxLayout:
        self._load = TextButton(self._keeper, tr("Load"))
        describe(self._load, f"{self._prefix}.load", tr("Load"), tr("Load this model"))
        self._load.clicked.connect(self.load_asked)
        self._menu = IconButton(self._keeper, "more")
        describe(self._menu, f"{self._prefix}.menu", tr("More"), tr("Verify, show in folder, move, delete"))
        self._menu.clicked.connect(lambda: self.menu_asked.emit(self._menu))
        name = in_a_row(self._chip, self._name, spacing=10)
        facts = in_a_row(self._place, self._details, spacing=10)
        row = QHBoxLayout()
        row.setSpacing(10)
        row.addLayout(BesideOrBelow(name, facts, least=_LEAST_WORDS, spacing=10), 1)
        row.addWidget(self._load, 0, Qt.AlignmentFlag.AlignTop)
        row.addWidget(self._menu, 0, Qt.AlignmentFlag.AlignTop)
        return row

    def _second_line(self) -> BesideOrBelow:
        self._fix = TextButton(self._keeper)
        describe(self._fix, f"{self._prefix}.fix", tr("Put it right"))
        self._fix.clicked.connect(self._on_fix)
        return BesideOrBelow(self._sentence, self._fix, least=_LEAST_WORDS, spacing=16)

    def _show_load(self, entry: ModelEntry, *, is_loaded: bool) -> None:
        self._load.setVisible(not entry.is_companion)
        self._load.setEnabled(not entry.model.problem and not is_loaded)
        self._load.setText(tr("Loaded") if is_loaded else tr("Load"))
        self._load.setToolTip(entry.model.problem or (tr("It is loaded") if is_loaded else tr("Load this model")))

    def _show_fix(self, entry: ModelEntry) -> None:
        text = button_text(entry)
        self._fix.setVisible(bool(text) and entry.work is None)
        self._fix.setText(text)
        self._fix.setAccessibleName(text)
        fix = entry.state.fix
        self._fix.setToolTip(fix_hint(fix) if fix is not None else tr("Read every byte and compare its SHA-256"))
        restyle(self._fix, "kind", "primary" if entry.state.is_alert else "")

    def _show_notes(self, entry: ModelEntry) -> None:
        for note in self._notes:
            self._more_lines.removeWidget(note)
            note.deleteLater()
        self._notes = []
        for index, finding in enumerate(entry.state.notes, 1):
            note = ModelNote(self._keeper, finding, f"{self._prefix}.note.{index}")
            note.fix_asked.connect(self.fix_asked)
            self._more_lines.addWidget(note)
            self._notes.append(note)

    def _on_fix(self) -> None:
        if self._entry is None:
            return
        if self._entry.state.action == "verify":
            self.verify_asked.emit()
        elif isinstance(self._entry.state.fix, Fix):
            self.fix_asked.emit(self._entry.state.fix)


def _label(kind: str, name: str) -> QLabel:
    label = QLabel()
    label.setObjectName(name)
    label.setTextFormat(Qt.TextFormat.PlainText)
    if kind:
        label.setProperty("kind", kind)
    return label
