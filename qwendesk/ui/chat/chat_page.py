"""The chat page: banner, thread or welcome, composer; joined to the two bridges."""

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QApplication, QHBoxLayout, QLineEdit, QScrollBar, QStackedWidget, QVBoxLayout, QWidget

from qwendesk.core.messages import DocumentPart, ImagePart
from qwendesk.core.presets import Style
from qwendesk.engine.state import EngineState, Phase
from qwendesk.ui.bridges.chat import ChatBridge
from qwendesk.ui.bridges.engine import EngineBridge
from qwendesk.ui.chat.attaching_part import AttachingPart
from qwendesk.ui.chat.banner import Banner
from qwendesk.ui.chat.banner_content import BannerContent, EngineStory, follow
from qwendesk.ui.chat.turns_part import TurnsPart
from qwendesk.ui.chat.undo_bar import UndoBar
from qwendesk.ui.chat.welcome import Welcome
from qwendesk.ui.composer.budget_menu import CUSTOM_BUDGET
from qwendesk.ui.composer.composer import Composer
from qwendesk.ui.composer.intake import Intake
from qwendesk.ui.composer.sampling_popover import SamplingPopover
from qwendesk.ui.kit.density import Airy
from qwendesk.ui.kit.drop_target import DropTarget
from qwendesk.ui.kit.tasks import Tasks
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.theme_keeper import ThemeKeeper
from qwendesk.ui.thread.message_assistant import AssistantMessage
from qwendesk.ui.thread.picture_viewer import PictureViewer
from qwendesk.ui.thread.thread_view import ThreadView
from qwendesk.ui.thread.thumbnails import PictureShelf

_COMPOSER_WIDTH = 820
_WITH_MODEL = (Phase.STARTING, Phase.LOADING, Phase.READY, Phase.ANSWERING)


class ChatPage(QWidget):
    """Everything of one conversation."""

    model_asked = Signal()
    mmproj_asked = Signal()

    def __init__(self, keeper: ThemeKeeper, engine: EngineBridge, chat: ChatBridge, tasks: Tasks) -> None:
        super().__init__()
        self._keeper, self._engine, self._chat, self._tasks = keeper, engine, chat, tasks
        self._story = EngineStory()
        self._first_start: QWidget | None = None
        self._shelf = PictureShelf(chat.held)
        self.setProperty("kind", "page")
        self.banner = Banner(keeper)
        self.thread_view = ThreadView(keeper, self._shelf, tasks)
        self.undo_bar = UndoBar(keeper)
        self.welcome = Welcome(keeper)
        self.composer = Composer(keeper)
        self._middle = QStackedWidget()
        self._middle.addWidget(self.welcome)
        self._middle.addWidget(self.thread_view)
        column = self._column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 16)
        column.setSpacing(0)
        Airy(keeper, column)
        column.addLayout(_centred(self.banner, _COMPOSER_WIDTH))
        column.addWidget(self._middle, 1)
        column.addLayout(_centred(self.undo_bar, _COMPOSER_WIDTH))
        column.addLayout(_centred(self.composer, _COMPOSER_WIDTH))
        self.drop_target = DropTarget(self)
        self.attaching = AttachingPart(keeper, self.composer, engine, chat, self._shelf, tasks)
        self._turns = TurnsPart(self.thread_view, chat, self.undo_bar, self.composer, self)
        self._connect()
        self._on_engine()
        self._on_options()

    def add_above(self, widget: QWidget) -> None:
        """Over everything of this page."""
        self._column.insertWidget(0, widget)

    def set_first_start(self, widget: QWidget) -> None:
        """Show `widget` in place of the welcome and the composer until a model is loaded or being loaded."""
        self._first_start = widget
        self._middle.addWidget(widget)
        self._show_empty()

    def take(self, intake: Intake) -> None:
        """What was dropped or pasted: files and pictures are attached, text goes into the question."""
        self.attaching.take(intake)

    def choose_pictures(self) -> None:
        self.attaching.choose_files()

    def ask(self, text: str, pictures: Sequence[ImagePart] = (), documents: Sequence[DocumentPart] = ()) -> None:
        """Send a question; a sentence says why when that is not possible now."""
        if not self._can_answer():
            self.composer.say(tr("No model is loaded. Choose one with the button at the top (Ctrl+L)."))
            return
        if pictures and self.attaching.refuses_pictures():
            return
        refused = next((item.refusal for item in self.composer.attachments.items if item.refusal), "")
        if refused:
            self.composer.say(refused)
            return
        if self.attaching.may_be_too_large(text, len(pictures) + len(documents)):
            self._tasks.start(self._count_and_send(text, pictures, documents))
        else:
            self._send(text, pictures, documents)

    async def _count_and_send(
        self, text: str, pictures: Sequence[ImagePart], documents: Sequence[DocumentPart]
    ) -> None:
        asked_in = self.attaching.question
        self.composer.set_sending(sending=True)
        try:
            refusal = await self.attaching.refusal_of(text, pictures, documents)
        finally:
            self.composer.set_sending(sending=False)
        if asked_in is not self.attaching.question:
            return
        if refusal:
            self.composer.say(refusal)
            return
        self._send(text, pictures, documents)

    def _send(self, text: str, pictures: Sequence[ImagePart], documents: Sequence[DocumentPart]) -> None:
        self.composer.clear()
        self._chat.send(text, pictures, documents)

    def _can_answer(self) -> bool:
        """A model is loaded or on its way; one that rests is loaded by the question."""
        state = self._engine.state
        return state.phase in _WITH_MODEL or state.resting is not None

    def stop(self) -> None:
        """Stop the answer, if one is being made."""
        if self._chat.busy:
            self._chat.stop()

    def answer_now(self) -> None:
        if self._chat.busy:
            self._chat.answer_now()

    def toggle_thinking(self) -> None:
        report = self._engine.state.report
        if report is None or report.can_think:
            self._chat.toggle_thinking()

    def new_chat(self) -> None:
        self._chat.new_chat()
        self.composer.setFocus()

    def report(self, title: str, sentence: str) -> None:
        """Show an error that belongs to no turn."""
        self.banner.show_content(BannerContent("bad", title, sentence))

    def open_picture(self, path: str) -> None:
        """In a viewer that goes on to the other pictures beside it: those of the chat, or of the composer."""
        chosen = Path(path)
        turns = self._chat.conversation.turns
        of_chat = list(dict.fromkeys(Path(image.path) for turn in turns for image in turn.question.images))
        of_composer = [Path(part.path) for part in self.composer.attachments.pictures]
        group = next((each for each in (of_composer, of_chat) if chosen in each), [chosen])
        chat_held = self._chat.held
        PictureViewer(self._keeper, group, group.index(chosen), self._tasks, self, chat_held).open()

    def _connect(self) -> None:
        self._engine.changed.connect(self._on_engine)
        chat = self._chat
        chat.turn_started.connect(self._on_turn_started)
        chat.prompt_read.connect(self._on_prompt_read)
        chat.wrote.connect(self._on_wrote)
        chat.turn_ended.connect(self._on_turn_ended)
        chat.replaced.connect(self._on_replaced)
        chat.options_changed.connect(self._on_options)
        composer = self.composer
        composer.submitted.connect(self.ask)
        composer.text.page_asked.connect(self._on_page_key)
        composer.stop_asked.connect(self.stop)
        composer.answer_now_asked.connect(self.answer_now)
        composer.thinking_toggled.connect(self.toggle_thinking)
        composer.style_chosen.connect(self._on_style)
        composer.budget_chosen.connect(self._on_budget)
        composer.mmproj_asked.connect(self.mmproj_asked)
        composer.attachments.opened.connect(self.open_picture)
        self.thread_view.picture_opened.connect(self.open_picture)
        self.thread_view.try_again.connect(self._on_try_again)
        self.welcome.asked.connect(self.ask)
        self.welcome.model_asked.connect(self.model_asked)
        self.banner.chosen.connect(self._on_banner)

    def _on_engine(self) -> None:
        state = self._engine.state
        story = follow(self._story, state, self._engine.safer)
        if story.content != self._story.content:
            self.banner.show_content(story.content)
        self._story = story
        self.welcome.show_state(state)
        self._show_empty()
        self._on_options()
        self._show_waiting(state)

    def _on_options(self) -> None:
        report = self._engine.state.report
        self.composer.show_thinking(on=self._chat.thinking, report=report, budget=self._chat.thinking_budget)
        thinks = self._chat.thinking and (report is None or report.can_think)
        self.composer.show_style(
            self._chat.style, thinking=thinks, preset=self._chat.preset_name, changed=self._chat.is_preset_changed
        )

    def _show_waiting(self, state: EngineState) -> None:
        """While a model loads, an asked question says so."""
        answer = self._open_answer()
        if answer is None or answer.has_words:
            return
        if state.phase in (Phase.STARTING, Phase.LOADING):
            answer.show_status(tr("Waiting for the model · {0}%", round(100 * state.load_fraction)))

    def _show_empty(self) -> None:
        """Without a turn: the first start as long as no model was asked for, or the only load failed."""
        if self._first_start is None:
            return
        state = self._engine.state
        is_first = state.report is None and (state.wanted is None or state.failure is not None)
        is_empty = not self._chat.conversation.turns
        self.composer.setVisible(not (is_first and is_empty))
        if self.composer.isHidden():
            self.composer.text.clearFocus()  # Qt would bring it back with the window, and keys would be typed unseen
        if is_empty:
            self._show_middle(self._first_start if is_first else self.welcome)

    def _show_middle(self, widget: QWidget) -> None:
        """Who was on a button of what goes away, or writing nowhere at a first start, goes on in the composer."""
        before, focus = self._middle.currentWidget(), QApplication.focusWidget()
        leaves = before not in (None, widget)
        was_inside = focus is not None and self._middle.isAncestorOf(focus)
        was_first = before is self._first_start and not isinstance(focus, QLineEdit)
        self._middle.setCurrentWidget(widget)
        if leaves and (was_inside or was_first) and not self.composer.isHidden():
            self.composer.setFocus()

    def _open_answer(self) -> AssistantMessage | None:
        turns = self._chat.conversation.turns
        return self.thread_view.answer(turns[-1].id) if turns and self._chat.busy else None

    def _on_turn_started(self, turn_id: int) -> None:
        turn = self._chat.turn(turn_id)
        if turn is None:
            return
        self.thread_view.add_turn(turn)
        self._show_middle(self.thread_view)
        self.composer.set_busy(busy=True)
        answer = self.thread_view.answer(turn_id)
        if answer is not None and not answer.has_words:
            answer.show_status(tr("Reading…"))
        self._show_waiting(self._engine.state)

    def _on_prompt_read(self, turn_id: int, done: int, total: int) -> None:
        answer = self.thread_view.answer(turn_id)
        if answer is not None:
            answer.show_read(done, total)

    def _on_wrote(self, turn_id: int, kind: str, text: str) -> None:
        answer = self.thread_view.answer(turn_id)
        if answer is not None:
            answer.write(kind, text)
            self.composer.show_answer_now(visible=answer.is_thinking)

    def _on_turn_ended(self, turn_id: int) -> None:
        turn = self._chat.turn(turn_id)
        if turn is not None:
            self.thread_view.end_turn(turn)
        self.composer.set_busy(busy=False)

    def _on_replaced(self) -> None:
        conversation = self._chat.conversation
        self._middle.setCurrentWidget(self.thread_view if conversation.turns else self.welcome)
        self.thread_view.show_conversation(conversation)  # once it has its size, or all is laid out twice
        self._show_empty()
        self.composer.set_busy(busy=self._chat.busy)
        self.attaching.forget()
        self._shelf.forget_held()
        self.composer.clear()

    def _on_try_again(self, turn_id: int) -> None:
        """The same question gets another answer; it is not asked a second time."""
        if self._can_answer():
            self._chat.regenerate(turn_id)
        else:
            self.composer.say(tr("No model is loaded. Choose one with the button at the top (Ctrl+L)."))

    def _on_page_key(self, step: int) -> None:
        """A page up (-1) or down (1) in the conversation."""
        action = QScrollBar.SliderAction.SliderPageStepAdd if step > 0 else QScrollBar.SliderAction.SliderPageStepSub
        self.thread_view.verticalScrollBar().triggerAction(action)

    def _on_style(self, style: Style) -> None:
        if style != "custom":
            self._chat.choose_style(style)
            return
        popover = SamplingPopover(self._keeper, self._chat.sampling(), self)
        popover.applied.connect(self._chat.choose_custom)
        popover.show_above(self.composer.style_button)
        self._on_options()

    def _on_budget(self, tokens: int) -> None:
        if tokens != CUSTOM_BUDGET:
            self._chat.choose_budget(tokens)
            return
        now = max(0, self._chat.thinking_budget)
        popover = SamplingPopover(self._keeper, {"thinking_budget": now or 1024}, self, tr("Thinking budget"))
        popover.applied.connect(lambda texts: self._chat.choose_budget(int(texts["thinking_budget"])))
        popover.show_above(self.composer.budget_button)
        self._on_options()

    def _on_banner(self, action: str) -> None:
        self._story = EngineStory()
        self.banner.show_content(None)
        match action:
            case "safer":
                self._engine.load_safer()
            case "restart":
                self._engine.restart()
            case "demo":
                self._engine.load_demo()
            case "choose":
                self.model_asked.emit()


def _centred(widget: QWidget, widest: int) -> QHBoxLayout:
    widget.setMaximumWidth(widest)
    row = QHBoxLayout()
    row.setContentsMargins(24, 0, 24, 0)
    row.addStretch(1)
    row.addWidget(widget, 1000)
    row.addStretch(1)
    return row
