"""Counts how full the context is, and says in the composer when it is full, with buttons for what helps."""

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtWidgets import QAbstractButton

from qwendesk.chat.chat_state import ChatEvent, ChatState, ConversationReplaced, TurnEnded, TurnsReplaced
from qwendesk.chat.context_fill import ContextFill, ContextGauge
from qwendesk.chat.request import TokenCount, too_large_sentence
from qwendesk.chat.service import ChatService
from qwendesk.chat.view.composer.composer import Composer
from qwendesk.chat.view.composer.composer_notice import NoticeAction
from qwendesk.core.translation import join_sentences, tr, tr_n
from qwendesk.engine.protocol import LoadReport
from qwendesk.widgets.bind import bind_field, follow
from qwendesk.widgets.display_texts import context_tone
from qwendesk.widgets.tasks import window_tasks


class ContextNotices(QObject):
    """Has the context counted after each change, so that the meter bar and the context sheet show the same number.

    Shows the notice when an answer stops because the context is full, when a message doesn't fit, and when a chat is
    opened or a model is loaded and the chat fills its context.
    """

    length_asked = Signal()
    """The user wants to load the model with a longer context."""

    def __init__(self, composer: Composer, chat: ChatService, gauge: ContextGauge) -> None:
        super().__init__(composer)
        self._composer, self._chat, self._gauge, self._tasks = composer, chat, gauge, window_tasks()
        self._report: LoadReport | None = None
        self._full_sentence = ""
        """The sentence of the notice that said last that the context is full."""
        composer.notice_action.connect(self._on_action)
        follow(self, chat.subscribe, self._on_chat_event)
        bind_field(self, chat.state, _counted_settings, lambda _settings: self._count())

    def show_report(self, report: LoadReport | None) -> None:
        """Count for the model that is now loaded; None if none is."""
        if report != self._report:
            self._report = report
            self._gauge.counted.set(None)
            self._count(says_full=True)

    def show_refusal(self, count: TokenCount) -> None:
        """Say that the message doesn't fit, with the ways to make room. Skipping turns may not be one."""
        actions = tuple(each for each in self._actions() if each != "skip" or not count.is_question_too_large)
        self._composer.show_notice(too_large_sentence(count, self._report), actions)

    def _on_chat_event(self, event: ChatEvent) -> None:
        match event:
            case TurnEnded(turn_id=turn_id):
                turn = self._chat.turn(turn_id)
                if turn is not None and turn.answer.stop_reason == "context_full":
                    self._show_full(tr("The context is full, so the answer stopped."))
                self._count()
            case ConversationReplaced():
                self._count(says_full=True)
            case TurnsReplaced() if not self._chat.busy:
                self._count()

    def _count(self, *, says_full: bool = False) -> None:
        if self._report is not None:
            self._tasks.start(self._measure(says_full=says_full))

    async def _measure(self, *, says_full: bool) -> None:
        fill = await self._gauge.measure()
        if not isinstance(fill, ContextFill) or fill != self._gauge.counted.value:
            return
        is_full = context_tone(fill.total, fill.n_ctx)[0] == "bad"
        if is_full and says_full:
            self._show_full(tr("The context is full."))
        elif not is_full and self._full_sentence and self._composer.notice == self._full_sentence:
            self._composer.show_notice("")

    def _show_full(self, sentence: str) -> None:
        actions = self._actions()
        advice = tr("Make room, then continue.") if actions else tr("Start a new chat to continue.")
        self._full_sentence = join_sentences(sentence, advice)
        self._composer.show_notice(self._full_sentence, actions, warns=False)  # the meter bar says it in red

    def _actions(self) -> tuple[NoticeAction, ...]:
        """Return what makes room: skip turns if there are several, and a longer context if the model allows one."""
        report = self._report
        skip: tuple[NoticeAction, ...] = ("skip",) if self._gauge.n_sent_turns > 1 else ()
        length: tuple[NoticeAction, ...] = ("length",) if report is None or report.can_lengthen else ()
        return (*skip, *length)

    def _on_action(self, action: NoticeAction) -> None:
        if action == "length":
            self.length_asked.emit()
        elif action == "skip":
            self._gauge.leave_out_older_half()
            n_skipped = self._chat.settings.left_out_turns
            sentence = tr_n(
                "Your next message is sent without the oldest question and its answer. Nothing is deleted.",
                "Your next message is sent without the {0} oldest questions and their answers. Nothing is deleted.",
                n_skipped,
            )
            self._composer.show_notice(sentence, warns=False)


# The text is counted when nothing was typed for this long, and not at all if it has more characters than this.
_COUNTED_AFTER_MS = 500
_MOST_COUNTED = 200_000


class TypedTokens(QObject):
    """Shows how many tokens the message has that is being typed, once the user pauses."""

    def __init__(self, composer: Composer, chat: ChatService, gauge: ContextGauge) -> None:
        super().__init__(composer)
        self._composer, self._chat, self._gauge, self._tasks = composer, chat, gauge, window_tasks()
        self._is_loaded = False
        self._timer = QTimer(self, singleShot=True, interval=_COUNTED_AFTER_MS)
        self._timer.timeout.connect(self._count)
        composer.text.textChanged.connect(self._timer.start)
        bind_field(self, chat.state, lambda state: state.busy, lambda _busy: self._timer.start())

    def show_report(self, report: LoadReport | None) -> None:
        """Count with the model that is now loaded; None if none is. A server gets no text before it is sent."""
        self._is_loaded = report is not None and report.served_by is None
        self._timer.start()

    def _count(self) -> None:
        text = self._composer.text.toPlainText()
        if not (text.strip() and self._is_loaded) or len(text) > _MOST_COUNTED:
            self._composer.show_tokens(None)
        elif not self._chat.busy:  # the engine counts after its answer
            self._tasks.start(self._show(text), self._composer)

    async def _show(self, text: str) -> None:
        counted = await self._gauge.count_text(text)
        if text == self._composer.text.toPlainText():
            self._composer.show_tokens(counted if isinstance(counted, int) else None)


def _counted_settings(state: ChatState) -> tuple[object, ...]:
    """Return the settings of the chat that change how many tokens are sent."""
    settings = state.settings
    return (
        settings.system_prompt,
        settings.thinking,
        settings.left_out_turns,
        settings.leave_out_old_pictures,
        settings.leave_out_old_documents,
        settings.leave_out_reasoning,
        settings.overrides.get("preserve_thinking"),
    )


class ContextSheetOpener(QObject):
    """Opens the sheet above a button."""

    prompt_asked = Signal()
    length_asked = Signal()

    def __init__(self, button: QAbstractButton, gauge: ContextGauge, chat: ChatService) -> None:
        super().__init__(button)
        self._button, self._gauge, self._chat = button, gauge, chat
        button.clicked.connect(self.open)

    def open(self) -> None:
        # Imported only now, because many sessions never open it.
        from qwendesk.chat.view.context_sheet import ContextSheet  # noqa: PLC0415

        sheet = ContextSheet(self._gauge, self._chat, self._button.window())
        sheet.prompt_asked.connect(self.prompt_asked)
        sheet.length_asked.connect(self.length_asked)
        sheet.show_above(self._button)
