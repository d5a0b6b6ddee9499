"""Shows the events of the chat in the thread, and performs the user's actions on messages."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal, cast

from PySide6.QtCore import QObject, Qt, QTimer, Signal
from PySide6.QtWidgets import QAbstractButton, QApplication, QFrame, QHBoxLayout, QLabel, QWidget

from qwendesk.chat.chat_settings import with_next_format
from qwendesk.chat.chat_state import (
    CallsChanged,
    ChatEvent,
    ConversationReplaced,
    MessagesDeleted,
    PromptProcessed,
    TextAdded,
    TurnEnded,
    TurnsReplaced,
    TurnStarted,
)
from qwendesk.chat.open_chat import Part
from qwendesk.chat.service import ChatService
from qwendesk.chat.view.composer.composer import Composer
from qwendesk.chat.view.thread.thread_view import ThreadView
from qwendesk.core.number_format import show_count
from qwendesk.core.translation import tr, tr_n
from qwendesk.engine.protocol import WaitsFor
from qwendesk.engine.state import EngineState, Phase
from qwendesk.widgets.bind import REPAINT_EVERY_MS, follow
from qwendesk.widgets.buttons import IconButton, TextButton, describe
from qwendesk.widgets.display_texts import continue_reason
from qwendesk.widgets.tasks import window_tasks

if TYPE_CHECKING:
    from qwendesk.chat.view.thread.assistant_message import AssistantMessage

# Names of the two arrows between versions, each with the other one: at the first and last version one is disabled.
_OPPOSITE_ARROW: Final[Mapping[str, str]] = MappingProxyType(
    {
        f"thread.{part}{one}": f"thread.{part}{other}"
        for part in ("", "question.")
        for one, other in (("earlier", "later"), ("later", "earlier"))
    }
)


def waiting_text(first: WaitsFor) -> str:
    """Return whose answer comes before the window's question, and how far it is."""
    name = first.program or tr("Another program")
    if first.done < first.prompt_tokens:
        return tr("{0} comes first: {1}% of its prompt is processed", name, 100 * first.done // first.prompt_tokens)
    n_written = show_count(first.done - first.prompt_tokens + 1)
    if first.max_tokens < 0:
        return tr("{0} comes first: its answer is at token {1}", name, n_written)
    most = show_count(first.max_tokens)
    return tr("{0} comes first: its answer is at token {1} of at most {2}", name, n_written, most)


class UndoBar(QFrame):
    """Offers to undo a deletion until it is used or dismissed, or the chat changes."""

    undo_asked = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setProperty("kind", "attachment")
        self.setObjectName("chat.undobar")
        self._label = QLabel()
        self._label.setObjectName("chat.undobar.words")
        self._label.setProperty("kind", "dim")
        undo = TextButton(tr("Undo"), kind="link")
        describe(undo, "chat.undo", tr("Undo"), tr("Restore the deleted messages"))
        undo.clicked.connect(self.undo_asked)
        close = IconButton("close", size=14, side=26)
        describe(close, "chat.undobar.dismiss", tr("Dismiss"))
        close.clicked.connect(self.hide)
        row = QHBoxLayout(self)
        row.setContentsMargins(14, 4, 6, 4)
        row.setSpacing(8)
        row.addWidget(self._label, 1)
        row.addWidget(undo)
        row.addWidget(close)
        self.hide()

    def show_deleted(self, messages: int) -> None:
        self._label.setText(tr_n("{0} message deleted", "{0} messages deleted", messages))
        self.show()


class ThreadController(QObject):
    """Connects the chat service with the thread.

    Text of an answer is drawn at most every `REPAINT_EVERY_MS`; every other event at once, after pending text.
    """

    turn_added = Signal()
    """The thread has a new turn, whose answer is being generated."""
    branched = Signal()
    """A branch was created and opened."""
    replaced = Signal()
    """Another conversation was opened. The thread doesn't show it yet."""

    def __init__(
        self,
        thread: ThreadView,
        chat: ChatService,
        composer: Composer,
        undo_bar: UndoBar,
        begin_answer: Callable[[Callable[[], object]], None],
    ) -> None:
        """`begin_answer` calls what it gets, which has the model answer, or asks the user first."""
        super().__init__(thread)
        self._thread, self._chat, self._composer, self._undo_bar = thread, chat, composer, undo_bar
        self._begin_answer = begin_answer
        self._tasks = window_tasks()
        self._engine = EngineState()
        self._pending_text: list[TextAdded] = []
        self._pending_calls: int | None = None
        """The turn whose calls have changed since they were shown."""
        self._timer = QTimer(self, singleShot=True, interval=REPAINT_EVERY_MS)
        self._timer.timeout.connect(self.show_pending)
        intents = thread.intents
        intents.is_last = self._is_last
        intents.is_busy = lambda: chat.busy
        intents.template_notice = self._template_notice
        intents.continue_reason = lambda: continue_reason(self._engine.report)
        # Queued, because the action may remove the message, and its button must exist until its click is handled.
        queued = Qt.ConnectionType.QueuedConnection
        intents.question_edited.connect(self._edit_question, queued)
        intents.answer_edited.connect(self._edit_answer, queued)
        intents.regenerate.connect(self._regenerate, queued)
        intents.regenerate_varied.connect(self._regenerate_varied, queued)
        intents.other_template.connect(self._try_other_template, queued)
        intents.resume.connect(self._resume, queued)
        intents.continue_thinking.connect(self._continue_thinking, queued)
        intents.branch.connect(self._branch, queued)
        intents.delete.connect(self._delete, queued)
        intents.version.connect(self._show_version, queued)
        undo_bar.undo_asked.connect(lambda: self._tasks.run(chat.undo_delete))
        follow(self, chat.subscribe, self._on_event)

    def show_engine(self, state: EngineState) -> None:
        """Show the progress of loading the model in the answer that waits for it, or why it isn't loaded."""
        before, self._engine = self._engine, state
        if continue_reason(before.report) != continue_reason(state.report):
            self._thread.intents.busy_changed.emit()
        turns = self._chat.conversation.turns
        answer = self._thread.answer(turns[-1].id) if turns and self._chat.busy else None
        if answer is not None:
            self._show_load_progress(answer)

    def _on_event(self, event: ChatEvent) -> None:
        if isinstance(event, TextAdded | CallsChanged):
            if isinstance(event, CallsChanged):
                self._show_pending_text()  # it came before the call
                self._pending_calls = event.turn_id
            else:
                self._show_pending_calls()
                self._pending_text.append(event)
            if not self._timer.isActive():
                self._timer.start()
            return
        if isinstance(event, ConversationReplaced):
            self._pending_text.clear()
            self._pending_calls = None
        self.show_pending()
        match event:
            case TurnStarted(turn_id=turn_id):
                self._on_turn_started(turn_id)
            case PromptProcessed(turn_id=turn_id, done=done, total=total):
                answer = self._thread.answer(turn_id)
                if answer is not None:
                    answer.show_prompt_progress(done, total)
            case TurnEnded(turn_id=turn_id):
                self._on_turn_ended(turn_id)
            case TurnsReplaced(kept=kept):
                self._on_turns_replaced(kept)
            case MessagesDeleted(messages=messages):
                self._undo_bar.show_deleted(messages)
            case ConversationReplaced():
                self._undo_bar.hide()
                self.replaced.emit()

    def _show_pending_text(self) -> None:
        """Show the text that has arrived: first all reasoning, which always precedes the answer, then the answer."""
        self._timer.stop()
        joined: dict[tuple[int, str], list[str]] = {}
        for event in self._pending_text:
            joined.setdefault((event.turn_id, event.kind), []).append(event.text)
        self._pending_text.clear()
        for (turn_id, kind), texts in joined.items():
            answer = self._thread.answer(turn_id)
            if answer is not None:
                answer.write(kind, "".join(texts))
                self._composer.show_answer_now(visible=answer.is_thinking)

    def show_pending(self) -> None:
        """Show at once what has arrived."""
        self._show_pending_text()
        self._show_pending_calls()

    def _show_pending_calls(self) -> None:
        turn_id, self._pending_calls = self._pending_calls, None
        if turn_id is None:
            return
        answer, turn = self._thread.answer(turn_id), self._chat.turn(turn_id)
        if answer is not None and turn is not None:
            answer.show_steps(turn.answer.steps)
            self._composer.show_answer_now(visible=True)

    def _on_turn_started(self, turn_id: int) -> None:
        self._thread.intents.busy_changed.emit()
        self._undo_bar.hide()
        turn = self._chat.turn(turn_id)
        if turn is None:
            return
        self._thread.add_turn(turn)
        self.turn_added.emit()
        self._composer.set_busy(busy=True)
        answer = self._thread.answer(turn_id)
        if answer is not None and not answer.has_text:
            answer.show_status(tr("Processing your message…"))
            self._show_load_progress(answer)

    def _show_load_progress(self, answer: "AssistantMessage") -> None:
        if answer.has_text:
            return
        if self._engine.phase in (Phase.STARTING, Phase.LOADING):
            answer.show_status(tr("Loading the model · {0}%", round(100 * self._engine.load_fraction)))
        elif self._engine.questions_held:
            answer.show_status(tr("Waiting until the other program has ended…"))
        elif self._engine.waits_for is not None:
            answer.show_status(waiting_text(self._engine.waits_for))

    def _on_turn_ended(self, turn_id: int) -> None:
        self._thread.intents.busy_changed.emit()
        turn = self._chat.turn(turn_id)
        if turn is not None:
            self._thread.end_turn(turn)
        self._composer.set_busy(busy=False)

    def _is_last(self, turn_id: int) -> bool:
        turns = self._chat.conversation.turns
        return bool(turns) and turns[-1].id == turn_id

    def _edit_question(self, turn_id: int, text: str) -> None:
        def edit() -> None:
            turn = self._chat.turn(turn_id)
            if turn is not None and not self._chat.busy:
                self._thread.intents.drop_edit(turn.question_id)
            self._tasks.start(self._chat.edit_question(turn_id, text))

        self._begin_answer(edit)

    def _edit_answer(self, turn_id: int, text: str, reasoning: str) -> None:
        self._tasks.run(lambda: self._chat.edit_answer(turn_id, text=text, reasoning=reasoning))

    def _regenerate(self, turn_id: int) -> None:
        self._begin_answer(lambda: self._tasks.start(self._chat.regenerate(turn_id)))

    def _regenerate_varied(self, turn_id: int) -> None:
        self._begin_answer(lambda: self._tasks.start(self._chat.regenerate(turn_id, varied=True)))

    def _try_other_template(self, turn_id: int) -> None:
        report = self._engine.report
        if report is not None and report.template.formats:
            self._chat.change_settings(with_next_format(self._chat.settings, report.template.formats))
        self._regenerate(turn_id)

    def _template_notice(self) -> str:
        report = self._engine.report
        return report.template.notice if report is not None and report.template.formats else ""

    def _resume(self, turn_id: int) -> None:
        self._begin_answer(lambda: self._tasks.start(self._chat.resume(turn_id)))

    def _continue_thinking(self, turn_id: int) -> None:
        self._begin_answer(lambda: self._tasks.start(self._chat.continue_thinking(turn_id)))

    def _branch(self, turn_id: int) -> None:
        def branch() -> None:
            self._chat.branch(turn_id)
            self.branched.emit()

        self._tasks.run(branch)
        self._composer.setFocus()

    def _delete(self, turn_id: int, part: str) -> None:
        self._tasks.run(lambda: self._chat.delete(turn_id, cast(Part, part)))

    def _show_version(self, turn_id: int, part: str, step: int) -> None:
        self._tasks.run(lambda: self._chat.show_version(turn_id, cast(Part, part), cast(Literal[-1, 1], step)))

    def _on_turns_replaced(self, kept: int) -> None:
        """Replace all turns after the first `kept`. A turn that is being answered is added when it starts."""
        turns = self._chat.conversation.turns
        focus = QApplication.focusWidget()
        row = _row_with(self._thread, focus)
        self._thread.replace_from(kept, turns[kept : len(turns) - 1] if self._chat.busy else turns[kept:])
        self._thread.intents.turns_changed.emit()
        self._undo_bar.hide()
        if focus is not None and row >= 2 * kept:
            self._restore_focus(row, focus.objectName().rpartition(".")[0])

    def _restore_focus(self, row: int, action: str) -> None:
        """Focus the same button of the message that is now at `row`, or the composer if there is none."""
        if row < len(self._thread.rows):
            message, turn = self._thread.row_widget(row), self._thread.rows[row].turn.id
            for each in (action, _OPPOSITE_ARROW.get(action, action)):
                button = message.findChild(QAbstractButton, f"{each}.{turn}")
                if button is not None and button.isEnabled():
                    button.setFocus(Qt.FocusReason.TabFocusReason)
                    return
        self._composer.setFocus()


def _row_with(thread: ThreadView, focus: QWidget | None) -> int:
    """Return the row that contains the focus; -1 if none does."""
    for index in thread.live_rows():
        widget = thread.rows[index].widget
        if widget is not None and focus is not None and widget.isAncestorOf(focus):
            return index
    return -1
