"""The card "Why this speed?" of the Engine page: the last answer's time by cause, and what to change first."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QGridLayout, QHBoxLayout, QLabel, QVBoxLayout

from qwendesk.core.translation import tr
from qwendesk.meters.why_service import WhyService, WhyState
from qwendesk.meters.why_text import OptionChange, WhyRow, option_change, why_rows, why_sentence
from qwendesk.widgets.bind import bind
from qwendesk.widgets.buttons import TextButton, describe
from qwendesk.widgets.kit import PADDING, STRETCH, button, paragraph, row
from qwendesk.widgets.tasks import window_tasks


class WhyCard(QFrame):
    """Explains the last answer of the loaded model."""

    change_asked = Signal(object)
    """The user wants what the sentence says: an OptionChange."""

    def __init__(self, service: WhyService) -> None:
        super().__init__()
        self._service, self._tasks = service, window_tasks()
        self.setProperty("kind", "modelcard")
        self.setObjectName("why")
        heading = QLabel(tr("Why this speed?"))
        heading.setProperty("kind", "heading")
        self._measure = TextButton(tr("Measure"))
        describe(
            self._measure,
            "why.measure",
            tr("Measure"),
            tr("Measure what this PC could do: a few seconds, while nothing else runs"),
        )
        self._measure.clicked.connect(lambda: self._tasks.start(service.measure()))
        self._change = button("", "why.change")
        self._change.clicked.connect(self._on_change)
        self._sentence = QLabel()
        self._sentence.setObjectName("why.sentence")
        self._sentence.setWordWrap(True)
        self._sentence.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._note = paragraph(kind="small", name="why.note")
        head = QHBoxLayout()
        head.addWidget(heading, 1)
        head.addWidget(self._measure)
        self._rows: list[tuple[QLabel, QLabel, QLabel]] = []
        self._grid = QGridLayout()
        self._grid.setHorizontalSpacing(24)
        self._grid.setVerticalSpacing(8)
        self._grid.setColumnMinimumWidth(0, 200)
        self._grid.setColumnStretch(2, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(PADDING, PADDING, PADDING, PADDING)
        column.setSpacing(8)
        column.addLayout(head)
        column.addWidget(self._note)
        column.addWidget(self._sentence)
        column.addLayout(row(self._change, STRETCH))
        column.addLayout(self._grid)
        self.setFocusProxy(self._measure)
        bind(self, service.state, self._show)

    def _show(self, state: WhyState) -> None:
        self._note.setText(state.note)
        self._note.setVisible(bool(state.note))
        self._sentence.setText(_words(state))
        self._measure.setEnabled(state.why is not None and not state.is_measuring)
        self._show_change(option_change(state.why) if state.why is not None and not state.problem else None)
        rows = why_rows(state.why) if state.why is not None else ()
        while len(self._rows) < len(rows):
            self._add_row()
        for index, labels in enumerate(self._rows):
            shown = rows[index] if index < len(rows) else None
            for label, text in zip(labels, _texts(shown), strict=True):
                label.setText(text)
                label.setVisible(shown is not None)

    def _show_change(self, change: OptionChange | None) -> None:
        self._change.setVisible(change is not None)
        if change is not None:
            self._change.setText(change.text)
            for_model = tr("Set it for this model. Takes effect when you reload the model.")
            tip = for_model if change.load_options else tr("Open the sampling options")
            describe(self._change, "why.change", change.text, tip)

    def _on_change(self) -> None:
        why = self._service.state.value.why
        if why is not None:
            self.change_asked.emit(option_change(why))

    def _add_row(self) -> None:
        labels = QLabel(), QLabel(), QLabel()
        labels[0].setProperty("kind", "dim")
        labels[1].setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        labels[2].setProperty("kind", "dim")
        labels[2].setWordWrap(True)
        for column, label in enumerate(labels):
            self._grid.addWidget(label, len(self._rows), column)
        self._rows.append(labels)


def _words(state: WhyState) -> str:
    if state.is_measuring:
        return tr("Measuring…")
    if state.problem:
        return state.problem
    if state.why is None:
        return tr("Ask the model something: its next answer of a sentence or more is explained here.")
    return why_sentence(state.why)


def _texts(shown: WhyRow | None) -> tuple[str, str, str]:
    return (shown.name, tr("{0} ms", shown.ms), shown.note) if shown is not None else ("", "", "")
