"""The window: rail, top bar, pages, meter bar; commands and drops reach everything from here."""

from collections.abc import Callable

from PySide6.QtCore import QEvent, QKeyCombination, Qt, Signal
from PySide6.QtGui import (
    QCloseEvent,
    QContextMenuEvent,
    QDragEnterEvent,
    QDragLeaveEvent,
    QDropEvent,
    QHideEvent,
    QKeyEvent,
    QShowEvent,
)
from PySide6.QtWidgets import QApplication, QFileDialog, QHBoxLayout, QMainWindow, QStackedWidget, QVBoxLayout, QWidget

from qwendesk.ui.bridges.chat import ChatBridge
from qwendesk.ui.bridges.engine import EngineBridge
from qwendesk.ui.chat.chat_page import ChatPage
from qwendesk.ui.chat.chat_room import ChatRoom
from qwendesk.ui.chat.last_answer import LastAnswer
from qwendesk.ui.composer.intake import OWN_DRAG, offers_files, take
from qwendesk.ui.frame.actions import COMMANDS, install
from qwendesk.ui.frame.rail import Rail
from qwendesk.ui.frame.spoken import Spoken
from qwendesk.ui.frame.top_bar import TopBar
from qwendesk.ui.kit.icons import icon
from qwendesk.ui.kit.notice import Notice
from qwendesk.ui.kit.tab_order import focus_next
from qwendesk.ui.kit.tasks import Tasks
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.theme_keeper import ThemeKeeper
from qwendesk.ui.meters.meter_bar import MeterBar

_MENU_KEY = QKeyCombination(Qt.KeyboardModifier.ShiftModifier, Qt.Key.Key_F10)


class MainWindow(QMainWindow):
    """`closed` when the app is to end, which ends the engine too."""

    closed = Signal()
    seen = Signal(bool)
    """False while the window is hidden or minimised."""
    activated = Signal()
    """The person came back to it from another window."""
    hidden_by_closing = Signal()
    """It was closed and the app goes on."""
    models_dropped = Signal(object)
    """GGUF files, as a list of Path."""

    def __init__(self, keeper: ThemeKeeper, engine: EngineBridge, chat: ChatBridge, tasks: Tasks) -> None:
        super().__init__()
        self._keeper, self._engine, self._chat = keeper, engine, chat
        self._may_hide: Callable[[], bool] = lambda: False
        self._is_ending = False
        self.setWindowTitle("QwenDesk")
        self.setWindowIcon(icon("logo", keeper.theme["accent"], 64))
        self.setAcceptDrops(True)
        self.setMinimumSize(560, 420)
        self.resize(1280, 800)
        self.top_bar = TopBar(keeper)
        self.rail = Rail(keeper)
        self.meter_bar = MeterBar(keeper)
        self.chat_page = ChatPage(keeper, engine, chat, tasks)
        self.chat_room = ChatRoom(self.chat_page)
        self._pages = QStackedWidget()
        self._page_ids: list[str] = []
        self.setCentralWidget(self._frame())
        self._notices = _Notices()
        self.add_page("chat", "chat", tr("Chat"), COMMANDS["page_chat"].shortcut, self.chat_room)
        self._place_notices()
        self.spoken = Spoken(self, chat, engine)
        tasks.refused.connect(self._on_refused)
        tasks.failed.connect(self.report)
        self._connect()
        self._on_engine()
        self.chat_page.composer.setFocus()

    def add_page(self, page: str, icon_name: str, label: str, shortcut: str, widget: QWidget) -> None:
        """A page joins the rail once it works."""
        self._page_ids.append(page)
        self._pages.addWidget(widget)
        self.rail.add_page(page, icon_name, label, shortcut)

    def add_notice(self, notice: QWidget) -> None:
        """What concerns every page stands above whichever is open; over the chat it leaves the list of chats alone."""
        is_wanted = not notice.isHidden() or not notice.testAttribute(Qt.WidgetAttribute.WA_WState_ExplicitShowHide)
        self._notices.add(notice)
        notice.setVisible(is_wanted)
        if is_wanted:
            self.spoken.say(notice.accessibleName())

    def report(self, title: str, sentence: str) -> None:
        """Show an error where the person looks: over the chat, or as the only notice of its kind above another page."""
        if self.page == "chat":
            self.chat_page.report(title, sentence)
        else:
            self._say_above(title, sentence)

    def _on_refused(self, sentence: str) -> None:
        if self.page == "chat" and not self.chat_page.composer.isHidden():
            self.chat_page.composer.say(sentence)
        else:
            self._say_above(tr("That did not work"), sentence)

    def _say_above(self, title: str, sentence: str) -> None:
        for before in self._notices.findChildren(Notice, "trouble"):
            before.end()
        notice = Notice(self._keeper, "trouble", title, sentence)
        notice.setAccessibleName(f"{title}. {sentence}")
        self.add_notice(notice)

    def show_page(self, page: str) -> None:
        """Open a page; nothing for one that has not joined."""
        if page not in self._page_ids:
            return
        self._pages.setCurrentIndex(self._page_ids.index(page))
        self._place_notices()
        self.rail.show_page(page)

    def go_to(self, page: str) -> None:
        """Open a page by its key, with the focus in it: in the question, or on the page's first control."""
        self.show_page(page)
        shown: QWidget | None = self._pages.currentWidget()
        focus: QWidget | None = self.focusWidget()
        if self.page == "chat" and self.chat_page.composer.isVisible():
            self.chat_page.composer.setFocus()
        elif shown is not None and (focus is None or not shown.isAncestorOf(focus)):
            focus_next(shown, None, forward=True)

    def _place_notices(self) -> None:
        if self._pages.currentWidget() is self.chat_room:
            self.chat_page.add_above(self._notices)
        else:
            self._above_pages.insertWidget(0, self._notices)
        self._notices.show()

    @property
    def page(self) -> str:
        """Id of the page that is shown."""
        return self._page_ids[self._pages.currentIndex()]

    @property
    def engine(self) -> EngineBridge:
        return self._engine

    def choose_model(self) -> None:
        self._choose_file(tr("Choose a model"), self._engine.load_model)

    def choose_mmproj(self) -> None:
        self._choose_file(tr("Choose the model's mmproj file"), self._engine.load_mmproj)

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

    def _connect(self) -> None:
        self._engine.changed.connect(self._on_engine)
        self._chat.turn_ended.connect(self._show_stats)
        self._chat.replaced.connect(self._show_stats)
        bar, page = self.top_bar, self.chat_page
        bar.demo_asked.connect(self._engine.load_demo)
        bar.model_asked.connect(self.choose_model)
        bar.mmproj_asked.connect(self.choose_mmproj)
        bar.cancel_asked.connect(self._engine.cancel_load)
        bar.eject_asked.connect(self._engine.eject)
        page.model_asked.connect(self.choose_model)
        page.banner.told.connect(self.spoken.say)
        page.composer.told.connect(self.spoken.say)
        page.mmproj_asked.connect(self.choose_mmproj)
        self.rail.page_chosen.connect(self.show_page)
        last = LastAnswer(self._chat)
        install(
            self,
            {
                "new_chat": page.new_chat,
                "model_menu": bar.model.open_menu,
                "eject": self._engine.eject,
                "thinking": page.toggle_thinking,
                "attach": page.choose_pictures,
                "stop": page.stop,
                "answer_now": page.answer_now,
                "regenerate": last.regenerate,
                "continue_answer": last.go_on,
                "copy_answer": last.copy,
                "model_file": self.choose_model,
                "demo": self._engine.load_demo,
                "latest": page.thread_view.follow,
                "find": page.thread_view.find_bar.open,
                "turn_before": lambda: page.thread_view.step_turn(-1),
                "turn_after": lambda: page.thread_view.step_turn(1),
                "page_chat": lambda: self.go_to("chat"),
                "page_models": lambda: self.go_to("models"),
                "page_engine": lambda: self.go_to("engine"),
                "zoom_in": lambda: self._keeper.zoom(1),
                "zoom_out": lambda: self._keeper.zoom(-1),
                "zoom_reset": lambda: self._keeper.zoom(0),
                "quit": self.end,
            },
        )

    def hide_on_close(self, may_hide: Callable[[], bool]) -> None:
        """Closing the window only hides it while `may_hide` says so; `end` always ends."""
        self._may_hide = may_hide

    def end(self) -> None:
        """Quit: also from the tray, where there is no window to close."""
        self._is_ending = True
        if not self.isHidden():
            self.close()
        else:
            self.closed.emit()

    def _on_engine(self) -> None:
        state = self._engine.state
        self.top_bar.show_state(state)
        self.meter_bar.show_state(state)

    def _show_stats(self) -> None:
        finished = [turn.answer for turn in self._chat.conversation.turns if turn.answer.stop_reason is not None]
        self.meter_bar.show_stats(finished[-1].stats if finished else None)

    def _choose_file(self, title: str, chosen: Callable[[str], None]) -> None:
        dialog = QFileDialog(self, title)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        dialog.setNameFilters([tr("GGUF files (*.gguf)"), tr("All files (*)")])
        dialog.fileSelected.connect(chosen)
        dialog.open()

    def focusNextPrevChild(self, forward: bool) -> bool:
        return focus_next(self, self.focusWidget(), forward=forward)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Shift+F10 opens the menu of what has the focus, as the menu key does: not every system sees to that."""
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
        if offers_files(mime):
            self.chat_page.drop_target.light_up()
            event.acceptProposedAction()
        elif mime.hasText():
            event.acceptProposedAction()

    def dragLeaveEvent(self, _event: QDragLeaveEvent) -> None:
        self.chat_page.drop_target.hide()

    def dropEvent(self, event: QDropEvent) -> None:
        self.chat_page.drop_target.hide()
        intake = take(event.mimeData())
        if intake.files and all(path.suffix.lower() == ".gguf" for path in intake.files):
            self.models_dropped.emit(list(intake.files))
        else:
            self.show_page("chat")
            self.chat_page.take(intake)
        event.acceptProposedAction()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.seen.emit(True)

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self.seen.emit(False)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.WindowStateChange:
            self.seen.emit(not self.isMinimized())
        elif event.type() == QEvent.Type.ActivationChange and self.isActiveWindow():
            self.activated.emit()

    def closeEvent(self, event: QCloseEvent) -> None:
        if self._may_hide() and not self._is_ending:
            event.ignore()
            self.hide()
            self.hidden_by_closing.emit()
            return
        self.closed.emit()
        super().closeEvent(event)


class _Notices(QWidget):
    """One below the other; nothing while there are none."""

    def __init__(self) -> None:
        super().__init__()
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(0)

    def add(self, notice: QWidget) -> None:
        self._column.addWidget(notice)
