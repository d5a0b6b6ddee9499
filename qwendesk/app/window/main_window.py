"""The main window: rail, top bar, pages and meter bar. It handles commands and dropped files."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path

from PySide6.QtCore import QEvent, QKeyCombination, Qt, Signal
from PySide6.QtGui import (
    QCloseEvent,
    QContextMenuEvent,
    QDragEnterEvent,
    QDragLeaveEvent,
    QDropEvent,
    QHideEvent,
    QKeyEvent,
    QPaintEvent,
    QShowEvent,
)
from PySide6.QtWidgets import QApplication, QHBoxLayout, QMainWindow, QStackedWidget, QVBoxLayout, QWidget

from qwendesk.app.window.announcer import Announcer
from qwendesk.app.window.composer_focus import ComposerFocus
from qwendesk.app.window.top_bar import Rail, TopBar
from qwendesk.chat.chat_state import ChatEvent, ConversationReplaced, PromptProcessed, TextAdded, TurnEnded
from qwendesk.chat.context_fill import ContextFill
from qwendesk.chat.view.composer.pasted_content import OWN_DRAG, has_files, read_mime
from qwendesk.chat.view.wiring import ChatView
from qwendesk.core.options import LoadOptions
from qwendesk.core.paths import is_demo
from qwendesk.core.served_model import is_served
from qwendesk.core.translation import tr
from qwendesk.engine.state import EngineState
from qwendesk.engines.engine_service import EngineService
from qwendesk.meters.services import MeterServices
from qwendesk.meters.view.meter_bar import MeterBar
from qwendesk.widgets.actions import COMMANDS, install
from qwendesk.widgets.bind import bind, bind_field, follow
from qwendesk.widgets.buttons import press_by_enter
from qwendesk.widgets.drag_and_drop import DropTarget
from qwendesk.widgets.file_dialogs import ask_for_file
from qwendesk.widgets.icons import icon
from qwendesk.widgets.input_method import CompositionGuard
from qwendesk.widgets.navigation import Navigation
from qwendesk.widgets.notice import Notice
from qwendesk.widgets.tab_order import focus_nearby, focus_next, lost_focus
from qwendesk.widgets.tasks import window_tasks
from qwendesk.widgets.theme_keeper import WheelZoom, app_theme, current_theme

# Longer than drawing takes on a slow PC.
_DRAWN_WITHIN_S = 1.0
_MENU_KEY = QKeyCombination(Qt.KeyboardModifier.ShiftModifier, Qt.Key.Key_F10)


class MainWindow(QMainWindow):
    """The main window. `closed` is emitted when the app is to quit, which also stops the engine."""

    closed = Signal()
    seen = Signal(bool)
    """Carries whether the window can be seen: False while it is hidden or minimised."""
    activated = Signal()
    """The user returned to the window from another one."""
    hidden_by_closing = Signal()
    """The window was closed, but the app keeps running."""
    models_dropped = Signal(object)
    """GGUF files, as a list of Path."""

    def __init__(self, engine: EngineService, chat: ChatView, meters: MeterServices, navigation: Navigation) -> None:
        super().__init__()
        self._engine, self._chat, self._tasks = engine, chat.services.chat, window_tasks()
        self._may_hide: Callable[[], bool] = lambda: False
        self._is_ending = False
        self._drawn = asyncio.Event()
        self._wheel_zoom: WheelZoom | None = None
        self.wants_restart = False
        """Whether QwenDesk should start again once it has quit."""
        self.setWindowTitle("QwenDesk")
        self.setWindowIcon(icon("logo", current_theme()["accent"], 64))
        self.setAcceptDrops(True)
        self.setMinimumSize(560, 420)
        self.resize(1280, 800)
        self.top_bar = TopBar(navigation)
        self.rail = Rail()
        self.meter_bar = MeterBar(meters, navigation)
        self.chat_page, self.chat_area = chat.page, chat.area
        bind(self, engine.observed, lambda state: chat.show_engine(state, engine.retry.value))
        bind(self, engine.retry, lambda step: chat.show_engine(engine.state, step))
        self._pages = QStackedWidget()
        self.drop_target = DropTarget(self._pages)
        self._page_ids: list[str] = []
        self.setCentralWidget(self._frame())
        self._notices = _Notices()
        self.add_page("chat", "chat", tr("Chat"), COMMANDS["page_chat"].shortcut, self.chat_area)
        self._place_notices()
        self.announcer = Announcer(self, chat.services.chat, engine)
        self._tasks.refused.connect(self._on_refused)
        self._tasks.failed.connect(self.report)
        self._connect(navigation)
        self._connect_chat(chat)
        self._measuring = meters.measuring
        bind(self, engine.observed, self._on_engine)
        bind(self, meters.measuring, lambda _name: self._on_engine(engine.state))
        if isinstance(app := QApplication.instance(), QApplication):
            CompositionGuard(app, self)
        self._composer_focus = ComposerFocus(self, self.chat_page.composer, engine)
        self.chat_page.composer.setFocus()

    async def drawn(self) -> None:
        """Wait until the window was drawn for the first time; not long, as one behind others may not be drawn."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._drawn.wait(), _DRAWN_WITHIN_S)

    def add_page(self, page: str, icon_name: str, label: str, shortcut: str, widget: QWidget) -> None:
        """Add a page and its button on the rail."""
        self._page_ids.append(page)
        self._pages.addWidget(widget)
        self.rail.add_page(page, icon_name, label, shortcut)

    def add_notice(self, notice: QWidget) -> None:
        """Show a notice above the current page, whichever it is. A notice that was hidden stays hidden.

        On the chat page it is only above the chat, not above the chat list.
        """
        is_wanted = not notice.isHidden() or not notice.testAttribute(Qt.WidgetAttribute.WA_WState_ExplicitShowHide)
        self._notices.add(notice)
        notice.setVisible(is_wanted)
        if is_wanted:
            self.announcer.announce(notice.accessibleName())

    def report(self, title: str, sentence: str) -> None:
        """Show an error on the chat page; on other pages, as a notice that replaces that of the previous error."""
        if self.page == "chat":
            self.chat_page.report(title, sentence)
        else:
            self._show_error_notice(title, sentence)

    def _on_refused(self, sentence: str) -> None:
        if self.page == "chat" and not self.chat_page.composer.isHidden():
            self.chat_page.composer.show_notice(sentence)
        else:
            self._show_error_notice(tr("That didn't work"), sentence)

    def _show_error_notice(self, title: str, sentence: str) -> None:
        for before in self._notices.findChildren(Notice, "trouble"):
            before.end()
        notice = Notice("trouble", title, sentence)
        notice.setAccessibleName(f"{title}. {sentence}")
        self.add_notice(notice)

    def show_page(self, page: str) -> None:
        """Open a page; do nothing if it was not added."""
        if page not in self._page_ids:
            return
        self._pages.setCurrentIndex(self._page_ids.index(page))
        self._place_notices()
        self.rail.show_page(page)

    def go_to(self, page: str) -> None:
        """Open a page and move the focus into it: to the message field of the chat, or to the page's first control."""
        self.show_page(page)
        shown: QWidget | None = self._pages.currentWidget()
        focus: QWidget | None = self.focusWidget()
        if self.page == "chat" and self.chat_page.composer.isVisible():
            self.chat_page.composer.setFocus()
        elif shown is None or (focus is not None and shown.isAncestorOf(focus)):
            return
        elif not focus_next(shown, None, forward=True):
            shown.setFocus()  # it is still being built, and passes the focus on

    def _place_notices(self) -> None:
        if self._pages.currentWidget() is self.chat_area:
            self.chat_page.add_above(self._notices)
        else:
            self._above_pages.insertWidget(0, self._notices)
        self._notices.show()

    @property
    def page(self) -> str:
        """Id of the current page."""
        return self._page_ids[self._pages.currentIndex()]

    @property
    def engine(self) -> EngineService:
        return self._engine

    def load_demo(self) -> None:
        self._tasks.start(self._engine.load_demo())

    def load_model(self, path: str) -> None:
        self._tasks.start(self._engine.load_file(Path(path)))

    def _load_for_chat(self, options: LoadOptions) -> None:
        """Load a model that the user chose, and open the chat with the focus in its message field."""
        self._tasks.start(self._engine.load(options))
        self.go_to("chat")

    def load_served(self, model: str) -> None:
        """Use a model of a server, as `LoadOptions.model` has it."""
        self._tasks.start(self._engine.load(LoadOptions(model=model)))

    def load_mmproj(self, path: str) -> None:
        self._tasks.start(self._engine.load_mmproj(Path(path)))

    def eject(self) -> None:
        self._tasks.start(self._engine.eject())

    def choose_model(self) -> None:
        self._choose_file(tr("Choose a model"), self.load_model)

    def choose_mmproj(self) -> None:
        self._choose_file(tr("Choose the model's mmproj file"), self.load_mmproj)

    def _frame(self) -> QWidget:
        body = QHBoxLayout()
        body.setSpacing(0)
        body.addWidget(self.rail)
        self._above_pages = QVBoxLayout()
        self._above_pages.addWidget(self._pages, 1)
        body.addLayout(self._above_pages, 1)
        frame = QWidget()
        column = QVBoxLayout(frame)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.top_bar)
        column.addLayout(body, 1)
        column.addWidget(self.meter_bar)
        return frame

    def _connect(self, navigation: Navigation) -> None:
        follow(self, self._chat.subscribe, self._on_chat_event)
        navigation.page_asked.connect(self.show_page)
        navigation.notice_made.connect(self.add_notice)
        navigation.error_found.connect(self.report)
        navigation.announced.connect(self.announcer.announce)
        navigation.restart_asked.connect(self.restart)
        navigation.load_asked.connect(self._load_for_chat)
        navigation.demo_asked.connect(self.load_demo)
        for asked in (navigation.demo_asked, navigation.chat_asked):
            asked.connect(lambda: self.go_to("chat"))
        navigation.model_file_asked.connect(self.choose_model)
        navigation.mmproj_file_asked.connect(self.choose_mmproj)
        self.top_bar.eject_asked.connect(self.eject)
        self.chat_page.engine_action_asked.connect(self._on_engine_action)
        self.rail.page_chosen.connect(self.show_page)
        install(
            self,
            {
                "model_menu": navigation.picker_asked.emit,
                "eject": self.eject,
                "model_file": self.choose_model,
                "demo": self.load_demo,
                "page_chat": lambda: self.go_to("chat"),
                "page_models": lambda: self.go_to("models"),
                "page_engine": lambda: self.go_to("engine"),
                "page_bench": lambda: self.go_to("bench"),
                "page_server": lambda: self.go_to("server"),
                "page_settings": lambda: self.go_to("settings"),
                "privacy": lambda: navigation.settings_asked.emit("privacy"),
                "downloads": lambda: navigation.models_tab_asked.emit("downloads"),
                "guide": lambda: navigation.help_asked.emit("", ""),
                "zoom_in": lambda: app_theme().zoom(1),
                "zoom_out": lambda: app_theme().zoom(-1),
                "zoom_reset": lambda: app_theme().zoom(0),
                "quit": self.end,
            },
        )

    def _connect_chat(self, chat: ChatView) -> None:
        install(self, {**chat.commands.handlers(), **chat.add_context_button(self.meter_bar.context)})
        chat.offer.load_asked.connect(self._load_offered)
        self.top_bar.sidebar_asked.connect(chat.commands.handlers()["sidebar"])
        self.top_bar.inspector_asked.connect(chat.commands.handlers()["inspector"])
        bind(
            self,
            chat.services.context.counted,
            lambda fill: self.meter_bar.show_counted_tokens(fill.total if isinstance(fill, ContextFill) else None),
        )
        bind_field(
            self, self._chat.state, lambda state: state.is_incognito, lambda on: self.top_bar.show_incognito(on=on)
        )

    def _on_chat_event(self, event: ChatEvent) -> None:
        match event:
            case PromptProcessed(done=tokens) | TextAdded(context_tokens=tokens):
                self.meter_bar.show_live_tokens(tokens)
            case TurnEnded() | ConversationReplaced():
                self._show_last_answer()

    def _load_offered(self, model: str) -> None:
        if is_demo(model):
            self.load_demo()
        elif is_served(model):
            self.load_served(model)
        else:
            self.load_model(model)

    def _on_engine_action(self, action: str) -> None:
        """Run the action that the banner offered."""
        if action == "engine":
            self.go_to("engine")
            return
        actions = {
            "retry": self._engine.load_retry,
            "restart": self._engine.reload,
            "again": self._engine.reload,
            "demo": self._engine.load_demo,
        }
        self._tasks.start(actions[action]())

    def hide_on_close(self, may_hide: Callable[[], bool]) -> None:
        """Make closing the window only hide it as long as `may_hide` returns True; `end` always quits."""
        self._may_hide = may_hide

    def end(self) -> None:
        """Quit the app, even while the window is hidden in the tray."""
        self._is_ending = True
        if not self.isHidden():
            self.close()
        else:
            self.closed.emit()

    def restart(self) -> None:
        """Quit, and ask the application to start QwenDesk again."""
        self.wants_restart = True
        self.end()

    def _on_engine(self, state: EngineState) -> None:
        self.top_bar.show_state(state, is_measuring=bool(self._measuring.value))
        self.meter_bar.show_state(state)

    def _show_last_answer(self) -> None:
        finished = [turn.answer for turn in self._chat.conversation.turns if turn.answer.stop_reason is not None]
        self.meter_bar.show_answer(finished[-1] if finished else None)

    def _choose_file(self, title: str, chosen: Callable[[str], None]) -> None:
        filters = [tr("GGUF files (*.gguf)"), tr("All files (*)")]
        ask_for_file(self, "model.file_dialog", title, filters, chosen, kind="models")

    def focusNextPrevChild(self, forward: bool) -> bool:
        """Move the focus in reading order. Qt also calls this after it has hidden or disabled the focused widget."""
        lost = lost_focus(self)
        if lost is None:
            return focus_next(self, self.focusWidget(), forward=forward)
        panel = self.chat_area.panel_with(lost)
        if panel is not None:
            return focus_nearby(panel, lost)
        return self._composer_focus.take() or focus_nearby(self, lost)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Press the focused button on Enter, and open its context menu on Shift+F10: not every system does so."""
        if press_by_enter(self, event):
            return
        focus: QWidget | None = self.focusWidget()
        if focus is None or event.keyCombination() != _MENU_KEY:
            super().keyPressEvent(event)
            return
        corner = focus.rect().center()
        asked = QContextMenuEvent(QContextMenuEvent.Reason.Keyboard, corner, focus.mapToGlobal(corner))
        QApplication.sendEvent(focus, asked)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        mime = event.mimeData()
        if mime.hasFormat(OWN_DRAG):
            return
        if has_files(mime):
            files = [Path(url.toLocalFile()) for url in mime.urls() if url.isLocalFile()]
            self.drop_target.show_over_page(drop_text(files, self._engine.state))
            event.acceptProposedAction()
        elif mime.hasText():
            event.acceptProposedAction()

    def dragLeaveEvent(self, _event: QDragLeaveEvent) -> None:
        self.drop_target.hide()

    def dropEvent(self, event: QDropEvent) -> None:
        self.drop_target.hide()
        content = read_mime(event.mimeData())
        if content.files and all(map(is_model, content.files)):
            self.models_dropped.emit(list(content.files))
        else:
            self.show_page("chat")
            self.chat_page.attachments.attach(content)
        event.acceptProposedAction()

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        self._drawn.set()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if self._wheel_zoom is None:
            self._wheel_zoom = WheelZoom(self.windowHandle())
        self.seen.emit(not self.isMinimized())

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self.seen.emit(False)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.WindowStateChange:
            self.seen.emit(self.isVisible() and not self.isMinimized())
        elif event.type() == QEvent.Type.ActivationChange and self.isActiveWindow() and self.isVisible():
            # Hidden, it may be ending: the system still reports the end of a dialog, but widgets are deleted already.
            self.activated.emit()

    def closeEvent(self, event: QCloseEvent) -> None:
        if self._may_hide() and not self._is_ending:
            event.ignore()
            self.hide()
            self.hidden_by_closing.emit()
            return
        self.closed.emit()
        super().closeEvent(event)


def is_model(path: Path) -> bool:
    return path.suffix.lower() == ".gguf"


def loads_at_once(path: Path, engine: EngineState) -> bool:
    """Return whether a model file that was opened is loaded without a question, because it replaces none."""
    return not engine.model and "mmproj" not in path.name.lower()


def drop_text(files: Sequence[Path], engine: EngineState) -> str:
    """Return what happens with files that are dropped."""
    models = sorted(path for path in files if is_model(path))
    if models and loads_at_once(models[0], engine):
        return tr("Drop to load {0}", models[0].name)
    if models:
        return tr("Drop to choose what to do with {0}", models[0].name)
    if engine.report is not None and not engine.report.can_see:
        return tr("Drop PDF, text or code to attach them")
    return tr("Drop pictures, clips, PDF, text or code to attach them")


class _Notices(QWidget):
    """A column of notices; takes no space while it is empty."""

    def __init__(self) -> None:
        super().__init__()
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(0)

    def add(self, notice: QWidget) -> None:
        self._column.addWidget(notice)
