"""A tool call in an answer: its tool, its arguments in short, and what came of it; all of it when it is opened."""

from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QSizePolicy, QVBoxLayout, QWidget

from qwendesk.chat.view.thread.tools.call_body import (
    CallBody,
    CallPictures,
    decision_text,
    outcome_text,
    short_arguments,
    time_text,
)
from qwendesk.chat.view.thread.turn_intents import CallIntents
from qwendesk.core.messages import CallRecord
from qwendesk.core.tool_context import ConsentRequest
from qwendesk.core.translation import tr
from qwendesk.toolbox.edit_history import EditState, EditStatus
from qwendesk.widgets.buttons import ChevronButton, TextButton, describe, restyle
from qwendesk.widgets.layouts import FlowLayout
from qwendesk.widgets.theme_keeper import app_theme, current_theme

_INSET = 14
# Pixels that the header's icon and chevron take at its two ends.
_BESIDE_ICON, _BESIDE_CHEVRON = 40, 34


class CallRow(QFrame):
    """One call, from the first word of it that the model writes."""

    decided = Signal(str)
    """The user's Decision about a call that asks."""

    def __init__(self, turn_id: int, number: int, intents: CallIntents) -> None:
        super().__init__()
        self._turn_id, self._number, self._intents = turn_id, number, intents
        self._record: CallRecord | None = None
        self._request: ConsentRequest | None = None
        self._edit: EditStatus | None = None
        self._progress = ""
        self._question: QWidget | None = None
        self._has_ended = self._can_retry = False
        self.setProperty("kind", "thought")
        self.setObjectName(f"thread.call.{turn_id}.{number}")
        self._header = ChevronButton(kind="thought", icon_name="tool", size=18)
        self._header.setCheckable(True)
        self._header.setCursor(Qt.CursorShape.PointingHandCursor)
        describe(self._header, f"thread.call.open.{turn_id}.{number}", tr("Tool call"), tr("Show or hide the call"))
        self._header.toggled.connect(self._on_toggled)
        self._name, self._arguments, self._outcome, self._time = QLabel(), QLabel(), QLabel(), QLabel()
        self._outcome.setObjectName(f"thread.call.outcome.{turn_id}.{number}")
        self._time.setObjectName(f"thread.call.time.{turn_id}.{number}")
        self._action = TextButton(kind="size")
        self._action.clicked.connect(self._on_action)
        self._action.hide()
        self._body = CallBody()
        self._body.setObjectName(f"thread.call.text.{turn_id}.{number}")
        self._body.setAccessibleName(tr("Call and result"))
        self._bar = EditBar(f"{self.objectName()}.edit")
        self._bar.folder_asked.connect(intents.folder_opened)
        self._bar.difference_asked.connect(lambda: intents.difference.emit(self))
        self._body_box = QWidget()
        box = QVBoxLayout(self._body_box)
        box.setContentsMargins(_INSET, 0, _INSET, 14)
        box.addWidget(self._body)
        self._pictures = CallPictures(f"thread.call.picture.{turn_id}.{number}", intents)
        box.addWidget(self._pictures)
        column = self._column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        for widget in (self._header, self._body_box, self._bar):
            column.addWidget(widget)
        self._fill_header()
        app_theme().follow(self, self._arrange)
        intents.edits_changed.connect(self._ask_for_status)
        self._arrange()

    @property
    def record(self) -> CallRecord | None:
        return self._record

    def set_open(self, *, opened: bool) -> None:
        self._header.setChecked(opened)

    def end(self, *, can_retry: bool = True) -> None:
        """The answer has ended, so a call that is not done never will be."""
        self._has_ended, self._can_retry = True, can_retry
        self._show_outcome()

    def show_request(self, request: ConsentRequest | None) -> None:
        """Show what the call would do and what the user may decide; None: the call asks no more."""
        if self._question is not None:
            if self._question.isAncestorOf(self.window().focusWidget()):
                self._header.setFocus()  # else Qt would choose some button of the window
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

    def show_record(self, record: CallRecord) -> None:
        """Show the call as it is now."""
        if record == self._record:
            return
        self._record = record
        look = self._intents.look(record.call.name)
        self._header.themed.show(look.icon, "text_link")
        self._name.setText(look.title or tr("Unreadable call"))
        self._arguments.setText(short_arguments(record.call.arguments_json))
        self._show_outcome()
        self._arrange()
        if record.is_done:
            self._ask_for_status()

    def show_progress(self, text: str) -> None:
        """Show how far the running call is, in a few words."""
        self._progress = text
        self._show_outcome()

    def show_edit(self, status: EditStatus) -> None:
        """Show how the file is now that the call has changed. A call that failed may have changed none."""
        failed = self._record is not None and bool(self._record.error)
        self._edit = None if failed and status.state == "forgotten" else status
        self._bar.show_status(status)
        self._show_outcome()
        self._arrange()

    def show_difference(self, text: str) -> None:
        """Show what has changed in the file since, instead of the change."""
        self._body.show_difference(text) if text else self._body.show_text(tr("Nothing has changed."))

    def _fill_header(self) -> None:
        inside = QHBoxLayout(self._header)
        inside.setContentsMargins(_BESIDE_ICON, 0, _BESIDE_CHEVRON, 0)
        inside.setSpacing(10)
        for label, stretch in ((self._name, 0), (self._arguments, 1), (self._outcome, 0), (self._time, 0)):
            label.setTextFormat(Qt.TextFormat.PlainText)
            label.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
            inside.addWidget(label, stretch)
        inside.addWidget(self._action)
        for label in (self._arguments, self._outcome, self._time):
            label.setProperty("kind", "dim")
        self._arguments.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)

    def _make_question(self, request: ConsentRequest) -> QWidget:
        question, row = QWidget(), FlowLayout()
        column = QVBoxLayout(question)
        column.setContentsMargins(_INSET, 0, _INSET, 14)
        column.addLayout(row)
        for decision in request.choices:
            kind = "primary" if decision == "once" else "text" if decision == "refuse" else ""
            button = TextButton(decision_text(decision), kind=kind)
            describe(button, f"{self.objectName()}.{decision}", decision_text(decision), request.sentence)
            button.clicked.connect(lambda _checked=False, decision=decision: self.decided.emit(decision))
            row.addWidget(button)
        return question

    def _show_outcome(self) -> None:
        record = self._record
        if record is None:
            return
        waits = self._request is not None
        is_interrupted = self._has_ended and not record.is_done
        outcome = tr("Interrupted") if is_interrupted else outcome_text(record, self._progress)
        outcome = tr("waits for you") if waits else outcome
        if self._edit is not None:
            outcome = state_text(self._edit.state) or outcome
        self._outcome.setText(outcome)
        self._time.setText(time_text(record))
        self._time.setVisible(bool(self._time.text()))
        restyle(self._outcome, "tone", "bad" if record.error else "warn" if waits else "")
        self._header.setAccessibleName(f"{self._name.text()} {self._arguments.text()}: {outcome}")
        self._show_action()

    def _show_action(self) -> None:
        action, text, tip = self._offered()
        self._action.setText(text)
        self._action.setVisible(bool(action))
        describe(self._action, f"{self.objectName()}.{action or 'none'}", text, tip)

    def _offered(self) -> tuple[str, str, str]:
        """Return the name, the text and the tooltip of what can be done with the call now; "" for nothing."""
        record = self._record
        if record is None or self._request is not None:
            return "", "", ""
        if not record.is_done and record.began_s and not self._has_ended:
            return "stop", tr("Stop"), tr("Stop this call; the answer goes on without it")
        if self._edit is not None and self._edit.state == "applied":
            tip = tr("Remove the file again") if self._edit.is_new else tr("Make the file as it was before")
            return "undo", tr("Undo"), tip
        if self._edit is not None and self._edit.state == "undone":
            return "redo", tr("Redo"), tr("Make the change again")
        if self._can_retry and record.call.name and (record.error or not record.is_done):
            return "retry", tr("Retry"), tr("Run this call again, and answer anew from here")
        return "", "", ""

    def _on_action(self) -> None:
        if self._record is None:
            return
        match self._offered()[0]:
            case "stop":
                self._intents.stop.emit(self._record.id)
            case "undo":
                self._intents.undo.emit(self._record.id)
            case "redo":
                self._intents.redo.emit(self._record.id)
            case "retry":
                self._intents.retry.emit(self._turn_id, self._number)

    def _ask_for_status(self) -> None:
        record = self._record
        if record is not None and record.is_done and record.id and self._changes_files:
            self._intents.edit_shown.emit(self)

    @property
    def _changes_files(self) -> bool:
        return self._record is not None and self._intents.look(self._record.call.name).changes_files

    def _on_toggled(self, is_open: bool) -> None:
        self._arrange()
        if is_open:
            self._ask_for_status()

    def _arrange(self) -> None:
        is_open = self._header.isChecked()
        font = current_theme().font(13)
        font.setBold(True)
        self._name.setFont(font)
        self._header.show_chevron("down" if is_open else "right")
        self._body_box.setVisible(is_open)
        self._bar.setVisible(is_open and self._edit is not None and bool(obstacle_text(self._edit)))
        if not is_open or self._record is None:
            return
        look = self._intents.look(self._record.call.name)
        if self._request is None:
            self._pictures.show_images(self._record.images)
            self._body.show_record(self._record, is_change=look.changes_files, is_code=look.shows_code)
        elif look.changes_files:
            self._body.show_difference(self._request.details)
        else:
            self._body.show_details(self._request.details)


class EditBar(QWidget):
    folder_asked = Signal(str)
    """Path of the file's folder. The file itself is not opened: what a tool wrote could run."""
    difference_asked = Signal()

    def __init__(self, name: str) -> None:
        super().__init__()
        self._path = ""
        self._note = QLabel()
        self._note.setObjectName(f"{name}.note")
        self._note.setProperty("kind", "dim")
        self._note.setTextFormat(Qt.TextFormat.PlainText)
        self._note.setWordWrap(True)
        self._folder = TextButton(tr("Show in folder"))
        describe(self._folder, f"{name}.folder", tr("Show in folder"), tr("Open the folder with the file"))
        self._folder.clicked.connect(lambda: self.folder_asked.emit(str(Path(self._path).parent)))
        self._compare = TextButton(tr("Show difference"))
        tip = tr("Show what has changed in the file since then")
        describe(self._compare, f"{name}.difference", tr("Show difference"), tip)
        self._compare.clicked.connect(self.difference_asked)
        buttons = FlowLayout()
        for button in (self._folder, self._compare):
            buttons.addWidget(button)
        column = QVBoxLayout(self)
        column.setContentsMargins(14, 0, 14, 14)
        column.setSpacing(8)
        column.addWidget(self._note)
        column.addLayout(buttons)
        self.hide()

    def show_status(self, status: EditStatus) -> None:
        self._path = status.path
        self._note.setText(obstacle_text(status))
        self._folder.setVisible(status.state == "changed")
        self._compare.setVisible(status.state == "changed")


def obstacle_text(status: EditStatus) -> str:
    """Return why a change can be neither undone nor redone; "" if it can."""
    match status.state:
        case "changed":
            return tr("Can't be undone: {0} has changed since.", status.name)
        case "missing":
            return tr("Can't be undone: {0} is no longer there.", status.name)
        case "replaced":
            return tr("Can't be undone: a link or a folder stands in the place of {0}.", status.name)
        case "forgotten":
            return tr("Can't be undone: how the file was before isn't kept any more.")
        case "applied" | "undone":
            return ""


def state_text(state: EditState) -> str:
    """Return the state of a change in a few words; "" if it is as the change left it, or unknown."""
    match state:
        case "undone":
            return tr("Undone")
        case "changed" | "missing" | "replaced":
            return tr("Changed since")
        case "applied" | "forgotten":
            return ""
