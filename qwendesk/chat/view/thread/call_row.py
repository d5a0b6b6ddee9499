"""A tool call in an answer: its tool, its arguments in short, and what came of it; all of it when it is opened."""

import json
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QTextCharFormat, QTextCursor
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QSizePolicy, QVBoxLayout, QWidget

from qwendesk.core.messages import CallRecord
from qwendesk.core.tool_context import ConsentRequest, Decision
from qwendesk.core.translation import tr, tr_n
from qwendesk.core.units import show_duration
from qwendesk.widgets.buttons import ChevronButton, TextButton, describe, restyle
from qwendesk.widgets.text_pane import TextPane
from qwendesk.widgets.theme_keeper import app_theme, current_theme

_INSET = 14
_BESIDE_ICON, _BESIDE_CHEVRON = 40, 34
"""Pixels that the header's icon and chevron take at its two ends."""
_MOST_SHORT = 60
"""Characters of the arguments in the header."""
_MOST_RESULT = 48
"""Characters of a result that is shown in the header as it is."""
_ROLES = {"+": "text_good", "-": "text_bad"}
"""Colours of the lines of a difference by their first character, after the two lines of its head."""
_MOST_OPENED = 20_000
"""Characters of a result that is opened."""


class CallRow(QFrame):
    """One call, from the first word of it that the model writes."""

    decided = Signal(str)
    """The user's Decision about a call that asks."""

    def __init__(self, turn_id: int, number: int, title: str) -> None:
        """`title` is what the tool is called; "" shows the name by which the model calls it."""
        super().__init__()
        self._title = title
        self._record: CallRecord | None = None
        self._request: ConsentRequest | None = None
        self._question: QWidget | None = None
        self._has_ended = False
        self.setProperty("kind", "thought")
        self.setObjectName(f"thread.call.{turn_id}.{number}")
        self._header = ChevronButton(kind="thought", icon_name="tool", size=18)
        self._header.setCheckable(True)
        self._header.setCursor(Qt.CursorShape.PointingHandCursor)
        describe(self._header, f"thread.call.open.{turn_id}.{number}", tr("Tool call"), tr("Show or hide the call"))
        self._header.toggled.connect(self._arrange)
        self._name, self._arguments, self._outcome = QLabel(), QLabel(), QLabel()
        self._arguments.setProperty("kind", "dim")
        self._outcome.setObjectName(f"thread.call.outcome.{turn_id}.{number}")
        self._outcome.setProperty("kind", "dim")
        self._body = TextPane()
        self._body.setObjectName(f"thread.call.text.{turn_id}.{number}")
        self._body.setAccessibleName(tr("Call and result"))
        self._body_box = QWidget()
        box = QVBoxLayout(self._body_box)
        box.setContentsMargins(_INSET, 0, _INSET, 14)
        box.addWidget(self._body)
        column = self._column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self._header)
        column.addWidget(self._body_box)
        inside = QHBoxLayout(self._header)
        inside.setContentsMargins(_BESIDE_ICON, 0, _BESIDE_CHEVRON, 0)
        inside.setSpacing(10)
        for label, stretch in ((self._name, 0), (self._arguments, 1), (self._outcome, 0)):
            label.setTextFormat(Qt.TextFormat.PlainText)
            label.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
            inside.addWidget(label, stretch)
        self._arguments.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        app_theme().changed.connect(self._arrange)
        self._arrange()

    @property
    def record(self) -> CallRecord | None:
        return self._record

    def set_open(self, *, opened: bool) -> None:
        self._header.setChecked(opened)

    def end(self) -> None:
        """The answer has ended, so a call that is not done never will be."""
        self._has_ended = True
        self._show_outcome()

    def show_request(self, request: ConsentRequest | None) -> None:
        """Show what the call would do and what the user may decide; None: the call asks no more."""
        if self._question is not None:
            self._question.hide()
            self._question.deleteLater()
            self._question = None
        self._request = request
        if request is not None:
            self._question = self._make_question(request)
            self._column.addWidget(self._question)
            self._header.setChecked(True)
        self._show_outcome()
        self._arrange()

    def _make_question(self, request: ConsentRequest) -> QWidget:
        question = QWidget()
        row = QHBoxLayout(question)
        row.setContentsMargins(_INSET, 0, _INSET, 14)
        row.setSpacing(8)
        for decision in request.choices:
            kind = "primary" if decision == "once" else "text" if decision == "refuse" else ""
            button = TextButton(decision_text(decision), kind=kind)
            describe(button, f"{self.objectName()}.{decision}", decision_text(decision), request.sentence)
            button.clicked.connect(lambda _checked=False, decision=decision: self.decided.emit(decision))
            row.addWidget(button)
        row.addStretch(1)
        return question

    def _show_outcome(self) -> None:
        if self._record is None:
            return
        waits = self._request is not None
        is_interrupted = self._has_ended and not self._record.is_done
        outcome = tr("waits for you") if waits else tr("Interrupted") if is_interrupted else outcome_text(self._record)
        self._outcome.setText(outcome)
        restyle(self._outcome, "tone", "bad" if self._record.error else "warn" if waits else "")
        self._header.setAccessibleName(f"{self._name.text()} {self._arguments.text()}: {outcome}")

    def show_record(self, record: CallRecord) -> None:
        """Show the call as it is now."""
        if record == self._record:
            return
        self._record = record
        title = self._title or record.call.name or tr("Unreadable call")
        short = short_arguments(record.call.arguments_json)
        self._name.setText(title)
        self._arguments.setText(short)
        self._show_outcome()
        self._arrange()

    def _arrange(self) -> None:
        is_open = self._header.isChecked()
        font = current_theme().font(13)
        font.setBold(True)
        self._name.setFont(font)
        self._header.show_chevron("down" if is_open else "right")
        self._body_box.setVisible(is_open)
        if is_open and self._record is not None:
            self._show_body(self._request.details if self._request else opened_text(self._record))

    def _show_body(self, text: str) -> None:
        """Show a text; the lines of a difference in the colours that they usually have."""
        theme, is_difference = current_theme(), self._request is not None
        self._body.clear()
        self._body.document().setDefaultFont(theme.mono_font(12) if is_difference else theme.font(13))
        cursor = QTextCursor(self._body.document())
        for number, line in enumerate(text.split("\n")):
            role = _ROLES.get(line[:1], "text_dim") if is_difference and number > 1 else "text_dim"
            form = QTextCharFormat()
            form.setForeground(theme.color(role))
            cursor.insertText(("\n" if number else "") + line, form)
        self._body.fit_height()


def decision_text(decision: Decision) -> str:
    """Return the words of a button."""
    match decision:
        case "once":
            return tr("Allow")
        case "chat":
            return tr("Allow in this chat")
        case "always":
            return tr("Always in this folder")
        case "refuse":
            return tr("Refuse")


def short_arguments(arguments_json: str) -> str:
    """Return the values of the arguments on one line. The JSON may be incomplete."""
    arguments = _decoded(arguments_json)
    values = [value if isinstance(value, str) else json.dumps(value) for value in arguments.values()]
    line = " ".join(", ".join(values).split())
    return line if len(line) <= _MOST_SHORT else f"{line[:_MOST_SHORT]}…"


def outcome_text(record: CallRecord) -> str:
    """Return what came of a call in a few words, with how long it took."""
    if not record.is_done:
        return tr("Running…")
    if record.error:
        return tr("Failed")
    lines = record.result.splitlines()
    is_short = len(lines) == 1 and len(lines[0]) <= _MOST_RESULT
    text = lines[0] if is_short else tr_n("{0} line", "{0} lines", len(lines))
    return f"{text}   {_seconds(record.elapsed_s)}"


def opened_text(record: CallRecord) -> str:
    """Return the arguments, each on its line, then the result or the error."""
    arguments = _decoded(record.call.arguments_json)
    lines = [f"{name}: {value if isinstance(value, str) else json.dumps(value)}" for name, value in arguments.items()]
    outcome = record.error or record.result
    if len(outcome) > _MOST_OPENED:
        outcome = f"{outcome[:_MOST_OPENED]}…"
    return "\n".join(lines) + ("\n\n" if lines and outcome else "") + outcome


def _seconds(seconds: float) -> str:
    return show_duration(seconds) if seconds >= 10 else f"{seconds:.1f} s"


def _decoded(arguments_json: str) -> dict[str, Any]:
    try:
        arguments = json.loads(arguments_json or "{}")
    except (ValueError, RecursionError):
        return {"": arguments_json}
    return arguments if isinstance(arguments, dict) else {"": arguments}
