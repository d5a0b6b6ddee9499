"""One row of the list of models: its properties, its state, and buttons for what can be done with it."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QProgressBar, QSizePolicy, QVBoxLayout, QWidget

from qwendesk.core.translation import tr
from qwendesk.hub.finding_texts import CHIPS
from qwendesk.hub.findings import Finding, FindingFix
from qwendesk.models.fit import FitLabel
from qwendesk.models.model_list import ModelEntry, ModelProgress
from qwendesk.models.model_state import ModelState
from qwendesk.models.view.model_texts import button_text, details_text, fix_hint, owner_hint, owner_text, progress_text
from qwendesk.models.view.offer_texts import fit_details, fit_word
from qwendesk.models.view.speed_texts import measured_text
from qwendesk.widgets.buttons import IconButton, TextButton, describe, restyle
from qwendesk.widgets.kit import label
from qwendesk.widgets.layouts import DensitySpacing, FlowLayout, ResponsivePairLayout, horizontal_group, widget_with
from qwendesk.widgets.text_layout import ElidedLabel

_STEPS = 1000
# Minimum width in pixels of a name with its state, and of a sentence, next to the widgets on the right.
_LEAST_NAME, _LEAST_WORDS = 400, 240


class ModelRow(QFrame):
    """Shows one ModelEntry. The object names of its controls contain `number`: "models.my.3.load"."""

    load_asked = Signal()
    chat_asked = Signal()
    """The model is loaded, and the user wants to chat with it."""
    verify_asked = Signal()
    cancel_asked = Signal()
    fix_asked = Signal(object)
    """A FindingFix."""
    menu_asked = Signal(QWidget)
    """The button that the menu belongs to."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self._prefix = f"models.my.{number}"
        self.number = number
        self._entry: ModelEntry | None = None
        self._is_loaded = False
        self._notes: list[ModelNote] = []
        self.setObjectName(self._prefix)
        self.setProperty("kind", "modelcard")
        self._chip = StateChip(f"{self._prefix}.state")
        self._name = ElidedLabel(f"{self._prefix}.name", kind="heading")
        self._name.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._details = label(kind="dim", name=f"{self._prefix}.details")
        self._place = label(name=f"{self._prefix}.place")
        self._place.setProperty("chip", "info")
        self._place.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self._fit = FitChip(f"{self._prefix}.fit")
        self._speed = label(kind="dim", name=f"{self._prefix}.speed")
        self._speed.setToolTip(tr("Speed of the model's answers on this PC"))
        self._speed.hide()
        self._sentence = label(name=f"{self._prefix}.sentence")
        self._sentence.setWordWrap(True)
        self._progress = ProgressLine(self._prefix)
        self._progress.cancelled.connect(self.cancel_asked)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 12, 12, 12)
        column.setSpacing(8)
        DensitySpacing(column)
        column.addLayout(self._first_line())
        column.addLayout(self._second_line())
        self._more_lines = QVBoxLayout()
        self._more_lines.setSpacing(4)
        column.addLayout(self._more_lines)
        column.addWidget(self._progress)

    @property
    def entry(self) -> ModelEntry | None:
        return self._entry

    def show_entry(self, entry: ModelEntry, *, is_loaded: bool = False) -> None:
        self._show_load(entry, is_loaded=is_loaded)
        if entry == self._entry:
            return
        before, self._entry = self._entry, entry
        self._progress.show_progress(entry.progress)
        self._show_fix(entry)
        if before is not None and (before.model, before.state) == (entry.model, entry.state):
            return
        model, state = entry.model, entry.state
        self._chip.show_state(state)
        self._name.setText(model.name)
        self._name.setToolTip(model.path)
        self._details.setText(details_text(model))
        self._place.setText(owner_text(model))
        self._place.setToolTip(owner_hint(model) if owner_text(model) else "")
        self._place.setVisible(bool(owner_text(model)))
        self._sentence.setText(state.sentence)
        self._sentence.setToolTip(state.evidence)
        restyle(self._sentence, "kind", "" if state.tone in ("bad", "warn") else "dim")
        self._show_notes(entry)

    def show_fit(self, fit: FitLabel | None) -> None:
        """Show how the model would run on this PC; None while that isn't known."""
        self._fit.show_fit(fit)

    def show_speed(self, tok_s: float | None) -> None:
        """Show the speed that was measured on this PC; None if it wasn't."""
        self._speed.setText(measured_text(tok_s) if tok_s is not None else "")
        self._speed.setVisible(tok_s is not None)

    def _first_line(self) -> QHBoxLayout:
        self._load = TextButton(tr("Load"))
        describe(self._load, f"{self._prefix}.load", tr("Load"), tr("Load this model"))
        self._load.clicked.connect(self._on_load)
        self._menu = IconButton("more")
        describe(
            self._menu, f"{self._prefix}.menu", tr("More"), tr("Load options, verify, show in folder, move, delete")
        )
        self._menu.clicked.connect(lambda: self.menu_asked.emit(self._menu))
        name = horizontal_group(self._chip, self._name, spacing=10)
        facts = FlowLayout(spacing=10)
        for widget in (self._fit, self._place, self._speed, self._details):
            facts.addWidget(widget)
        row = QHBoxLayout()
        row.setSpacing(10)
        row.addLayout(ResponsivePairLayout(name, widget_with(facts), least=_LEAST_NAME, spacing=10), 1)
        row.addWidget(self._load, 0, Qt.AlignmentFlag.AlignTop)
        row.addWidget(self._menu, 0, Qt.AlignmentFlag.AlignTop)
        return row

    def _second_line(self) -> ResponsivePairLayout:
        self._fix = TextButton()
        describe(self._fix, f"{self._prefix}.fix", tr("Fix"))
        self._fix.clicked.connect(self._on_fix)
        return ResponsivePairLayout(self._sentence, self._fix, least=_LEAST_WORDS, spacing=16)

    def _show_load(self, entry: ModelEntry, *, is_loaded: bool) -> None:
        self._is_loaded = is_loaded
        self._load.setVisible(not entry.is_companion)
        self._load.setEnabled(not entry.model.problem)
        text = tr("Chat") if is_loaded else tr("Load")
        self._load.setText(text)
        tip = tr("Chat with {0}", entry.model.name) if is_loaded else tr("Load this model")
        describe(self._load, self._load.objectName(), text, entry.model.problem or tip)

    def _show_fix(self, entry: ModelEntry) -> None:
        text = button_text(entry)
        self._fix.setVisible(bool(text) and entry.progress is None)
        self._fix.setText(text)
        self._fix.setAccessibleName(text)
        fix = entry.state.fix
        self._fix.setToolTip(fix_hint(fix) if fix is not None else tr("Check the whole file and compare its SHA-256"))

    def _show_notes(self, entry: ModelEntry) -> None:
        for note in self._notes:
            self._more_lines.removeWidget(note)
            note.deleteLater()
        self._notes = []
        for index, finding in enumerate(entry.state.notes, 1):
            note = ModelNote(finding, f"{self._prefix}.note.{index}", has_fix=_differs(finding.fix, entry.state.fix))
            note.fix_asked.connect(self.fix_asked)
            self._more_lines.addWidget(note)
            self._notes.append(note)

    def _on_load(self) -> None:
        (self.chat_asked if self._is_loaded else self.load_asked).emit()

    def _on_fix(self) -> None:
        if self._entry is None:
            return
        if self._entry.state.action == "verify":
            self.verify_asked.emit()
        elif isinstance(self._entry.state.fix, FindingFix):
            self.fix_asked.emit(self._entry.state.fix)


def _differs(fix: FindingFix | None, other: object) -> bool:
    return fix is not None and fix != other


class StateChip(QLabel):
    """Shows the state of a model file in one word, with its evidence in the tooltip."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.setObjectName(name)
        self.setProperty("chip", "plain")
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)

    def show_state(self, state: ModelState) -> None:
        restyle(self, "chip", state.tone)
        text = tr(CHIPS[state.kind])
        self.setText(text)
        self.setAccessibleName(tr("State: {0}", text))
        self.setToolTip(state.evidence)


class FitChip(QLabel):
    """Shows in a word or two how a model would run on this PC, with all numbers in its tooltip."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.setObjectName(name)
        self.setProperty("kind", "fit")
        self.setProperty("chip", "plain")
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.hide()

    def show_fit(self, fit: FitLabel | None) -> None:
        if fit is None or fit.kind == "unknown":
            self.hide()
            return
        text, tone = fit_word(fit)
        restyle(self, "chip", tone)
        self.setText(text)
        self.setToolTip(fit_details(fit))
        self.show()


class ProgressLine(QWidget):
    """Shows a ModelProgress. A download has no Cancel button here; it is cancelled on the Downloads tab."""

    cancelled = Signal()

    def __init__(self, prefix: str) -> None:
        super().__init__()
        self._text = QLabel()
        self._text.setObjectName(f"{prefix}.work")
        self._text.setProperty("kind", "small")
        self._text.setTextFormat(Qt.TextFormat.PlainText)
        self._bar = QProgressBar()
        self._bar.setObjectName(f"{prefix}.progress")
        self._bar.setAccessibleName(tr("Progress"))
        self._bar.setRange(0, _STEPS)
        self._bar.setTextVisible(False)
        self._bar.setFixedHeight(6)
        self._cancel = TextButton(tr("Cancel"), kind="quiet")
        describe(self._cancel, f"{prefix}.cancel", tr("Cancel"), tr("Stop. Your files stay unchanged."))
        self._cancel.clicked.connect(self.cancelled)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(12)
        row.addWidget(self._text)
        row.addWidget(self._bar, 1)
        row.addWidget(self._cancel)
        self.hide()

    def show_progress(self, progress: ModelProgress | None) -> None:
        self.setVisible(progress is not None)
        if progress is not None:
            self._text.setText(progress_text(progress))
            self._bar.setValue(round(_STEPS * progress.n_done / progress.n_bytes) if progress.n_bytes else 0)
            self._cancel.setVisible(progress.kind != "download")


class ModelNote(QWidget):
    """Shows one Finding below the state."""

    fix_asked = Signal(object)
    """Its FindingFix."""

    def __init__(self, finding: Finding, name: str, *, has_fix: bool) -> None:
        """`has_fix` is False if the button of the row does the same."""
        super().__init__()
        self.setObjectName(name)
        text = QLabel(finding.message)
        text.setObjectName(f"{name}.text")
        text.setTextFormat(Qt.TextFormat.PlainText)
        text.setProperty("kind", "small")
        text.setWordWrap(True)
        text.setToolTip(finding.evidence)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        if finding.fix is None or not has_fix:
            column.addWidget(text)
        else:
            button = self._button(finding.fix, f"{name}.fix")
            column.addLayout(ResponsivePairLayout(text, button, least=_LEAST_WORDS, spacing=16))

    def _button(self, fix: FindingFix, name: str) -> TextButton:
        button = TextButton(fix.label, kind="link")
        describe(button, name, fix.label, fix_hint(fix))
        button.clicked.connect(lambda: self.fix_asked.emit(fix))
        return button
