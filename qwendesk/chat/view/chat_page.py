"""The chat page: banner, thread or welcome page, and composer."""

from collections.abc import Callable, Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QApplication, QLineEdit, QScrollBar, QStackedWidget, QVBoxLayout, QWidget

from qwendesk.chat.chat_settings import is_preset_changed, reasoning_effort, thinking_budget
from qwendesk.chat.context_fill import ContextGauge
from qwendesk.chat.presets import PresetsService
from qwendesk.chat.service import ChatService
from qwendesk.chat.view.banner import Banner, BannerContent, BannerState, next_banner
from qwendesk.chat.view.composer.attachment_loader import AttachmentLoader
from qwendesk.chat.view.composer.composer import Composer
from qwendesk.chat.view.composer.context_notices import ContextNotices, TypedTokens
from qwendesk.chat.view.composer.folder_view import FolderView
from qwendesk.chat.view.composer.thinking_menu import CUSTOM_BUDGET
from qwendesk.chat.view.composer.tool_picker import ToolPicker
from qwendesk.chat.view.thread.pictures.thumbnails import PreviewCache
from qwendesk.chat.view.thread.thread_controller import ThreadController, UndoBar
from qwendesk.chat.view.thread.thread_view import ThreadView
from qwendesk.chat.view.thread.tools.call_actions import CallActions, ConsentView, ProgressView
from qwendesk.chat.view.welcome import WelcomePage
from qwendesk.core.chats import ChatSettings
from qwendesk.core.messages import ClipFrame, DocumentPart, ImagePart
from qwendesk.core.observed import Observed
from qwendesk.core.presets import Style
from qwendesk.core.tool_context import CallProgress, ConsentRequest, Decision
from qwendesk.core.translation import tr
from qwendesk.engine.protocol import LoadReport
from qwendesk.engine.state import EngineState, Phase
from qwendesk.hardware.ladder import StepDown
from qwendesk.widgets.bind import bind, bind_field
from qwendesk.widgets.display_texts import answer_now_reason, continue_reason
from qwendesk.widgets.kit import MARGIN, READING_WIDTH, centred
from qwendesk.widgets.layouts import DensitySpacing
from qwendesk.widgets.tasks import window_tasks

_PHASES_WITH_MODEL = (Phase.STARTING, Phase.LOADING, Phase.READY, Phase.ANSWERING)
_DEFAULT_CUSTOM_BUDGET = 1024
_SAMPLING_KEYS = ("temperature", "top_p", "top_k", "presence_penalty")


class ChatPage(QWidget):
    """Shows the open chat, and sends messages from the composer."""

    model_asked = Signal()
    """The user wants to choose a model file."""
    last_model_asked = Signal()
    """The user wants to load the model that was used last."""
    picker_asked = Signal()
    """Asks to show the model picker."""
    offers_asked = Signal()
    """Asks to show the models that fit this PC."""
    mmproj_asked = Signal()
    branched = Signal()
    """The user continued a chat in a new one, which is now open."""
    engine_action_asked = Signal(str)
    """A BannerAction for the engine: any but "choose"."""
    first_start_shown = Signal(bool)
    """Whether the first start is shown instead of a chat."""

    def __init__(self, chat: ChatService, gauge: ContextGauge, presets: PresetsService) -> None:
        super().__init__()
        self._chat, self._presets, self._tasks = chat, presets, window_tasks()
        self._engine = EngineState()
        self._last_report: LoadReport | None = None
        """The loaded model or the last one: the composer doesn't change while a model is being loaded."""
        self._banner_state = BannerState()
        self._first_start: QWidget | None = None
        self._last_model = ""
        self._previews = PreviewCache(chat.incognito_images)
        self.setProperty("kind", "page")
        self.banner = Banner()
        self.thread_view = ThreadView(self._previews)
        self.undo_bar = UndoBar()
        self.welcome = WelcomePage()
        self.composer = Composer()
        self._middle = QStackedWidget()
        self._middle.addWidget(self.welcome)
        self._middle.addWidget(self.thread_view)
        column = self._column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 16)
        column.setSpacing(0)
        DensitySpacing(column)
        column.addLayout(centred(self.banner, READING_WIDTH, margin=MARGIN))
        column.addWidget(self._middle, 1)
        column.addLayout(centred(self.undo_bar, READING_WIDTH, margin=MARGIN))
        column.addLayout(centred(self.composer, READING_WIDTH, margin=MARGIN))
        self.attachments = AttachmentLoader(self.composer, chat, gauge, self._previews)
        self.context_notices = ContextNotices(self.composer, chat, gauge)
        self._typed_tokens = TypedTokens(self.composer, chat, gauge)
        self._thread_controller = ThreadController(
            self.thread_view, chat, self.composer, self.undo_bar, self.begin_answer
        )
        self.tool_picker = ToolPicker(self.composer, chat, gauge)
        self.folders = FolderView(self.composer, chat)
        self.call_actions = CallActions(self.thread_view.intents.calls, chat)
        self._measuring, self._may_interrupt = Observed(""), False
        self._waiting: Callable[[], object] | None = None
        """What the user asked for, and may stop the measurement for."""
        self._connect()
        self.show_engine(self._engine)
        bind_field(self, chat.state, lambda state: state.settings, self._show_settings)
        bind(self, presets.state, lambda state: self.composer.show_presets(state.names))

    def ask_for_consent(
        self, waiting: Observed[ConsentRequest | None], decide: Callable[[ConsentRequest, Decision], None]
    ) -> None:
        """Show in its row the tool call that waits for the user, and pass the decision to `decide`."""
        ConsentView(self.thread_view, self._chat, waiting, decide, self._thread_controller.show_pending)

    def show_progress(self, progress: Observed[CallProgress | None]) -> None:
        """Show in its row how far the running tool call is."""
        ProgressView(self.thread_view, self._chat, progress, self._thread_controller.show_pending)

    def ask_before_interrupting(self, measuring: Observed[str]) -> None:
        """Ask before an answer stops the measurement whose name `measuring` has; "" while none runs."""
        self._measuring = measuring
        self.thread_view.intents.asks_first = lambda: bool(measuring.value)

    def begin_answer(self, start: Callable[[], object]) -> None:
        """Call `start`, which has the model answer. Ask first if that would stop a measurement."""
        if self._measuring.value and not self._may_interrupt:
            self._waiting = start
            sentence = tr("A measurement is running. An answer would stop it.")
            self.composer.show_notice(sentence, ("interrupt",))
        else:
            start()

    def add_above(self, widget: QWidget) -> None:
        """Put `widget` above everything else on this page."""
        self._column.insertWidget(0, widget)

    def show_engine(self, state: EngineState, retry: StepDown | None = None) -> None:
        """Show the engine's state; `retry` is the step to offer after a failed load."""
        is_new_report = state.report is not self._engine.report
        self._engine = state
        if is_new_report:  # a load has many states, for its progress
            self._last_report = state.report or self._last_report
            self.attachments.show_report(state.report)
            self.context_notices.show_report(state.report)
            self._typed_tokens.show_report(state.report)
            self.tool_picker.show_report(state.report)
            self._show_settings()
        banner = next_banner(self._banner_state, state, retry)
        if banner.content != self._banner_state.content:
            self.banner.show_content(banner.content)
        self._banner_state = banner
        self.welcome.show_state(state)
        self._show_first_start()
        self._thread_controller.show_engine(state)

    def set_first_start(self, widget: QWidget) -> None:
        """Show `widget` instead of the welcome page and the composer while no model is loaded and none was used."""
        self._first_start = widget
        self._middle.addWidget(widget)
        self._show_first_start()

    def show_last_model(self, model: str) -> None:
        """Offer to load the model that was used last, as in `LoadOptions.model`; "" if there is none."""
        self._last_model = model
        self.welcome.show_last_model(model)
        self._show_first_start()

    def ask(self, text: str, pictures: Sequence[ImagePart] = (), documents: Sequence[DocumentPart] = ()) -> None:
        """Send a message, or show in the composer why it can't be sent now."""
        if not self._may_answer():
            return
        if self._measuring.value and not self._may_interrupt:
            if not self.composer.text.toPlainText():
                self.composer.text.setPlainText(text)  # of a suggestion
            self.begin_answer(self.composer.text.submitted.emit)
            return
        if pictures and self.attachments.refuses_pictures():
            return
        refused = next((item.refusal for item in self.composer.attachments.items if item.refusal), "")
        if refused:
            self.composer.show_notice(refused)
            return
        if self.attachments.may_be_too_large(text, len(pictures) + len(documents)):
            self._tasks.start(self._count_and_send(text, pictures, documents))
        else:
            self._send(text, pictures, documents)

    async def _count_and_send(
        self, text: str, pictures: Sequence[ImagePart], documents: Sequence[DocumentPart]
    ) -> None:
        asked_in = self.attachments.message
        self.composer.set_sending(sending=True)
        try:
            too_large = await self.attachments.count_if_too_large(text, pictures, documents)
        finally:
            self.composer.set_sending(sending=False)
        if asked_in is not self.attachments.message:
            return
        if too_large is not None:
            self.context_notices.show_refusal(too_large)
            return
        self._send(text, pictures, documents)

    def _send(self, text: str, pictures: Sequence[ImagePart], documents: Sequence[DocumentPart]) -> None:
        self.composer.clear()
        self._tasks.start(self._chat.send(text, pictures, documents))

    def _can_answer(self) -> bool:
        """Return True if a model is loaded, being loaded, or idle and about to be loaded by the message."""
        return self._engine.phase in _PHASES_WITH_MODEL or self._engine.idle_unloaded is not None

    def _may_answer(self) -> bool:
        """Return whether an answer can be generated now. If not, say why."""
        if not self._can_answer():
            self._show_no_model_notice()
        return self._can_answer()

    def _call_again(self, turn_id: int, number: int) -> None:
        if self._may_answer():
            self.begin_answer(lambda: self._tasks.start(self._chat.call_again(turn_id, number)))

    def _has_model(self) -> bool:
        """Return True if a model is loaded, being loaded, or unloaded because it was idle."""
        state = self._engine
        return state.report is not None or state.is_loading or state.idle_unloaded is not None

    def _show_no_model_notice(self) -> None:
        sentence = tr("No model is loaded. Choose one with the button at the top (Ctrl+L).")
        self.composer.show_notice(sentence, ("last",) if self._last_model else ())

    def stop(self) -> None:
        """Stop the answer, if one is being generated."""
        if self._chat.busy and not self.composer.is_stopping:
            self.composer.show_stopping()
            self._tasks.start(self._chat.stop())

    def answer_now(self) -> None:
        """End the model's thinking, if it is thinking."""
        reason = answer_now_reason(self._engine.report)
        if self._chat.busy and reason:
            self.composer.show_remark(reason)
        elif self._chat.busy:
            self._tasks.start(self._chat.answer_now())

    @property
    def continue_reason(self) -> str:
        """Why the loaded model can't continue an answer; "" if it can."""
        return continue_reason(self._engine.report)

    def toggle_thinking(self) -> None:
        report = self._engine.report
        if report is None or report.can_think:
            self._chat.set_thinking(not self._chat.thinking)

    def say_thinking(self) -> None:
        """Say above the message field whether the model thinks before it answers."""
        report = self._engine.report
        if report is not None and not report.can_think:
            self.composer.show_remark(tr("This model can't think before it answers."))
        else:
            self.composer.show_remark(tr("Thinking is on.") if self._chat.thinking else tr("Thinking is off."))

    def new_chat(self) -> None:
        self._chat.new_chat()
        self.composer.setFocus()

    def report(self, title: str, sentence: str) -> None:
        """Show an error that doesn't belong to a turn."""
        self.banner.show_content(BannerContent("bad", title, sentence))

    def withdraw_report(self, title: str, sentence: str) -> None:
        """Hide this error if it is shown, because what failed has succeeded since."""
        if self.banner.content == BannerContent("bad", title, sentence):
            self.banner.show_content(None)

    def open_picture(self, path: str, frame: ClipFrame | None = None) -> None:
        """Open a viewer for this picture, or frame of a clip, and the others of the chat or the composer."""
        # Imported only now, like the popovers below: few sessions open them.
        from qwendesk.chat.view.thread.pictures.picture_viewer import PictureViewer  # noqa: PLC0415

        chosen = ImagePart(path, "", frame=frame)
        sent = [image for turn in self._chat.conversation.turns for image in turn.question.images]
        groups = (_shown_once(images) for images in (self.composer.attachments.pictures, sent))
        group = next((each for each in groups if chosen in each), [chosen])
        PictureViewer(group, group.index(chosen), self, self._chat.incognito_images).open()

    def _connect(self) -> None:
        self._thread_controller.turn_added.connect(lambda: self._show_middle(self.thread_view))
        self._thread_controller.branched.connect(self.branched)
        self._thread_controller.replaced.connect(self._on_replaced)
        composer = self.composer
        composer.submitted.connect(self.ask)
        # Queued, because it may remove the row whose button was clicked.
        queued = Qt.ConnectionType.QueuedConnection
        self.thread_view.intents.calls.retry.connect(self._call_again, queued)
        composer.text.page_asked.connect(self._on_page_key)
        composer.stop_asked.connect(self.stop)
        composer.answer_now_asked.connect(self.answer_now)
        composer.thinking_toggled.connect(self.toggle_thinking)
        composer.style_chosen.connect(self._on_style)
        composer.preset_chosen.connect(lambda name: self._tasks.run(lambda: self._presets.use(name)))
        composer.budget_chosen.connect(self._on_budget)
        composer.effort_chosen.connect(self._chat.set_reasoning_effort)
        composer.notice_action.connect(self._on_notice_action)
        composer.attachments.opened.connect(self.open_picture)
        # Queued, because what is attached with a folder removes the notice that it may show.
        self.attachments.folder_dropped.connect(self.tool_picker.add_folder, queued)
        composer.tools.choice.models_asked.connect(self.offers_asked)
        self.thread_view.picture_opened.connect(self.open_picture)
        self.thread_view.try_again.connect(self._on_try_again)
        self.welcome.asked.connect(self.ask)
        self.welcome.last_asked.connect(self.last_model_asked)
        self.welcome.picker_asked.connect(self.picker_asked)
        self.welcome.offers_asked.connect(self.offers_asked)
        self.welcome.demo_asked.connect(lambda: self.engine_action_asked.emit("demo"))
        self.banner.chosen.connect(self._on_banner)

    def _show_settings(self, _settings: ChatSettings | None = None) -> None:
        report, settings = self._last_report, self._chat.settings
        self.composer.show_vision(can_see=report is None or report.can_see)
        self.welcome.show_tools(on=bool(settings.tools))
        self.composer.show_answer_now_reason(answer_now_reason(report))
        self.composer.show_thinking(on=self._chat.thinking, report=report, budget=thinking_budget(settings))
        thinks = self._chat.thinking and (report is None or report.can_think)
        self.composer.show_effort(report.template if report and thinks else None, reasoning_effort(settings))
        self.composer.show_style(
            self._chat.style, thinking=thinks, preset=settings.preset_name, changed=is_preset_changed(settings)
        )

    def _show_first_start(self) -> None:
        """In an empty chat, show the first start while no model is loaded and none was used before."""
        if self._first_start is None:
            return
        is_first = not self._last_model and not self._has_model()
        is_empty = not self._chat.conversation.turns
        is_hidden = is_first and is_empty
        if is_hidden:
            # Otherwise Qt restores the focus with the window, and typing is invisible. Before the composer hides,
            # so that no button gets its focus: a newcomer would take that one for the recommended one.
            self.composer.text.clearFocus()
        self.composer.setHidden(is_hidden)
        self.first_start_shown.emit(is_hidden)
        if is_empty:
            self._show_middle(self._first_start if is_first else self.welcome)

    def _show_middle(self, widget: QWidget) -> None:
        """Show `widget`. Focus the composer if the focus was in the widget that is hidden, or after the first start."""
        before, focus = self._middle.currentWidget(), QApplication.focusWidget()
        leaves = before not in (None, widget)
        was_inside = focus is not None and self._middle.isAncestorOf(focus)
        was_first = before is self._first_start and not isinstance(focus, QLineEdit)
        self._middle.setCurrentWidget(widget)
        if leaves and (was_inside or was_first) and not self.composer.isHidden():
            self.composer.setFocus()

    def _on_replaced(self) -> None:
        conversation = self._chat.conversation
        self._middle.setCurrentWidget(self.thread_view if conversation.turns else self.welcome)
        # Shown before it is filled, so that it has its final size and everything is laid out only once.
        self.thread_view.show_conversation(conversation)
        self._show_first_start()
        self.composer.set_busy(busy=self._chat.busy)
        self.attachments.begin_message()
        self._previews.forget_incognito()
        self.composer.clear()

    def _on_notice_action(self, action: str) -> None:
        if action == "mmproj":
            self.mmproj_asked.emit()
        elif action == "last":
            self.composer.show_notice("")
            self.last_model_asked.emit()
        elif action == "models":
            self.composer.show_notice("")
            self.offers_asked.emit()
        elif action == "interrupt":
            self.composer.show_notice("")
            start, self._waiting = self._waiting, None
            self._may_interrupt = True
            if start is not None:
                start()
            self._may_interrupt = False

    def _on_try_again(self, turn_id: int) -> None:
        """Answer the same question again, without adding it to the chat a second time."""
        if self._may_answer():
            self.begin_answer(lambda: self._tasks.start(self._chat.regenerate(turn_id)))

    def _on_page_key(self, step: int) -> None:
        """Scroll the conversation by one page, up (-1) or down (1)."""
        action = QScrollBar.SliderAction.SliderPageStepAdd if step > 0 else QScrollBar.SliderAction.SliderPageStepSub
        self.thread_view.verticalScrollBar().triggerAction(action)

    def _on_style(self, style: Style) -> None:
        if style != "custom":
            self._chat.set_style(style)
            return
        from qwendesk.chat.view.composer.sampling_popover import SamplingPopover  # noqa: PLC0415

        options = self._chat.options()
        popover = SamplingPopover({key: float(getattr(options, key)) for key in _SAMPLING_KEYS}, self)
        popover.applied.connect(self._chat.set_sampling)
        popover.show_above(self.composer.style_button)
        self._show_settings()

    def _on_budget(self, tokens: int) -> None:
        if tokens != CUSTOM_BUDGET:
            self._chat.set_thinking_budget(tokens)
            return
        from qwendesk.chat.view.composer.sampling_popover import SamplingPopover  # noqa: PLC0415

        shown = max(0, thinking_budget(self._chat.settings)) or _DEFAULT_CUSTOM_BUDGET
        popover = SamplingPopover({"thinking_budget": shown}, self, tr("Thinking budget"))
        popover.applied.connect(lambda texts: self._chat.set_thinking_budget(int(texts["thinking_budget"])))
        popover.show_above(self.composer.budget_button)
        self._show_settings()

    def _on_banner(self, action: str) -> None:
        if action == "engine":  # nothing is mended yet, so the banner stays
            self.engine_action_asked.emit(action)
            return
        self._banner_state = BannerState()
        self.banner.show_content(None)
        if action == "choose":
            self.model_asked.emit()
        else:
            self.engine_action_asked.emit(action)


def _shown_once(images: Sequence[ImagePart]) -> list[ImagePart]:
    """Return each picture or frame once, as a path and its frame alone."""
    return list(dict.fromkeys(ImagePart(image.path, "", frame=image.frame) for image in images))
