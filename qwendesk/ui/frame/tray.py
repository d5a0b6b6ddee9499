"""An icon in the system's tray, for those who keep the app there when they close the window."""

from collections.abc import Callable

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QApplication, QMenu, QSystemTrayIcon

from qwendesk.ui.bridges.settings import SettingsBridge
from qwendesk.ui.frame.main_window import MainWindow
from qwendesk.ui.kit.icons import icon
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.theme_keeper import ThemeKeeper

_SHOWN_MS = 8_000


def no_tray_sentence() -> str:
    """For the option that is on and cannot hold."""
    return tr("This desktop has no tray: closing the window ends the app.")


class Tray(QObject):
    """Closing hides the window while the option is on and there is a tray to find it in again.

    What it says never holds text of a chat: a message of the tray is read by who stands behind, and kept by desktops.
    """

    open_asked = Signal()

    def __init__(self, keeper: ThemeKeeper, window: MainWindow, settings: SettingsBridge) -> None:
        super().__init__(window)
        self._keeper, self._window, self._settings = keeper, window, settings
        self.is_known = False
        """The person has been told that the window is only hidden."""
        self.icon = QSystemTrayIcon(self)
        self._show_icon()
        self.icon.setToolTip("QwenDesk")
        self._menu = QMenu(window)
        self._eject = self._fill_menu()
        self.icon.setContextMenu(self._menu)
        self.icon.activated.connect(self._on_activated)
        self.icon.messageClicked.connect(self.open_asked)
        keeper.changed.connect(self._show_icon)
        settings.changed.connect(self._show_or_hide)
        window.engine.changed.connect(self._show_eject)
        window.hide_on_close(lambda: self.keeps)
        window.hidden_by_closing.connect(self._tell_once)
        _app().commitDataRequest.connect(self.end_of_session)
        self._show_or_hide()
        self._show_eject()

    @property
    def keeps(self) -> bool:
        """Whether closing the window leaves the app running."""
        return self._settings.options.keep_in_tray and QSystemTrayIcon.isSystemTrayAvailable()

    @property
    def is_missing(self) -> bool:
        """The option is on, and this desktop has no tray now."""
        return self._settings.options.keep_in_tray and not QSystemTrayIcon.isSystemTrayAvailable()

    def tell(self, sentence: str) -> bool:
        """Say it beside the icon, if the person is not looking at the window. True when it was said."""
        if not self.keeps or self._window.isActiveWindow():
            return False
        self.icon.showMessage("QwenDesk", sentence, self.icon.icon(), _SHOWN_MS)
        return True

    def close(self) -> None:
        """The icon is gone at once; some systems leave one of an ended program until the mouse passes over it."""
        self.icon.hide()
        self._window.hide_on_close(lambda: False)
        _app().commitDataRequest.disconnect(self.end_of_session)

    def _fill_menu(self) -> QAction:
        self._menu.setObjectName("tray.menu")
        window = self._window

        def new_chat() -> None:
            self.open_asked.emit()
            window.show_page("chat")
            window.chat_page.new_chat()

        eject = QAction(tr("Eject the model"), self._menu)
        entries: tuple[tuple[str, QAction, Callable[[], None]], ...] = (
            ("open", QAction(tr("Open QwenDesk"), self._menu), self.open_asked.emit),
            ("new", QAction(tr("New chat"), self._menu), new_chat),
            ("eject", eject, window.engine.eject),
            ("quit", QAction(tr("Quit"), self._menu), window.end),
        )
        for name, action, run in entries:
            if name == "quit":
                self._menu.addSeparator()
            action.setObjectName(f"tray.{name}")
            action.triggered.connect(lambda _checked=False, run=run: run())
            self._menu.addAction(action)
        return eject

    def _show_icon(self) -> None:
        self.icon.setIcon(icon("logo", self._keeper.theme["accent"], 32))

    def _show_or_hide(self) -> None:
        self.icon.setVisible(self._settings.options.keep_in_tray)

    def _show_eject(self) -> None:
        self._eject.setEnabled(self._window.engine.state.report is not None)

    def _on_activated(self, reason: QSystemTrayIcon.ActivationReason) -> None:
        if reason in (QSystemTrayIcon.ActivationReason.Trigger, QSystemTrayIcon.ActivationReason.DoubleClick):
            self.open_asked.emit()

    def _tell_once(self) -> None:
        """Where the window is now."""
        if not self.is_known:
            sentence = tr("QwenDesk goes on in the tray; the model stays loaded. Quit in this icon's menu ends it.")
            self.is_known = self.tell(sentence)

    def end_of_session(self) -> None:
        """The system shuts down or the person logs out: a window that only hides would keep them waiting."""
        self._window.end()


def _app() -> QApplication:
    app = QApplication.instance()
    assert isinstance(app, QApplication)
    return app
