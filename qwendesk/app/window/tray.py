"""The tray icon, for users who keep the app running when they close the window."""

from collections.abc import Callable

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QAction, QIcon, QPainter, QPixmap
from PySide6.QtWidgets import QApplication, QMenu, QSystemTrayIcon

from qwendesk.app.window.main_window import MainWindow
from qwendesk.core.app_options import AppOptions
from qwendesk.core.translation import tr
from qwendesk.engine.state import EngineState
from qwendesk.settings.service import SettingsService
from qwendesk.widgets.bind import bind, bind_field
from qwendesk.widgets.icons import icon
from qwendesk.widgets.theme import Theme
from qwendesk.widgets.theme_keeper import app_theme, current_theme

_SHOWN_MS = 8_000
_ICON_SIDE = 64


def missing_tray_remark(options: AppOptions) -> dict[str, str]:
    """Return why "Stay in the tray" has no effect, by the option's key; an empty dict if it works or is off."""
    if not options.keep_in_tray or QSystemTrayIcon.isSystemTrayAvailable():
        return {}
    return {"keep_in_tray": tr("This desktop has no tray, so closing the window quits QwenDesk.")}


class Tray(QObject):
    """Makes closing the window only hide it, as long as the option is on and the desktop has a tray.

    Its messages never contain chat text, because other people may read them on the screen and desktops keep them.
    """

    open_asked = Signal()

    def __init__(self, window: MainWindow, settings: SettingsService) -> None:
        super().__init__(window)
        self._window, self._settings = window, settings
        self.is_known = False
        """Whether the user has been told that closing only hides the window."""
        self.icon = QSystemTrayIcon(self)
        self._show_icon()
        self.icon.setToolTip("QwenDesk")
        self._menu = QMenu(window)
        self._eject = self._fill_menu()
        self.icon.setContextMenu(self._menu)
        self.icon.activated.connect(self._on_activated)
        self.icon.messageClicked.connect(self.open_asked)
        app_theme().changed.connect(self._show_icon)
        bind(self, window.engine.observed, self._show_eject)
        window.hide_on_close(lambda: self.keeps)
        window.hidden_by_closing.connect(self._tell_once)
        _app().commitDataRequest.connect(self.end_of_session)
        bind_field(self, settings.state, lambda options: options.keep_in_tray, self.icon.setVisible)

    @property
    def keeps(self) -> bool:
        """Return whether the app keeps running when the window is closed."""
        return self._settings.options.keep_in_tray and QSystemTrayIcon.isSystemTrayAvailable()

    def tell(self, sentence: str) -> bool:
        """Show a message at the icon unless the window is active. Return True if the message was shown."""
        if not self.keeps or self._window.isActiveWindow():
            return False
        self.icon.showMessage("QwenDesk", sentence, self.icon.icon(), _SHOWN_MS)
        return True

    def close(self) -> None:
        """Hide the icon; some systems show it after the program has exited until the mouse moves over it."""
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
            ("eject", eject, window.eject),
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
        self.icon.setIcon(tray_icon(current_theme()))

    def _show_eject(self, _state: EngineState) -> None:
        self._eject.setEnabled(self._window.engine.state.report is not None)

    def _on_activated(self, reason: QSystemTrayIcon.ActivationReason) -> None:
        if reason in (QSystemTrayIcon.ActivationReason.Trigger, QSystemTrayIcon.ActivationReason.DoubleClick):
            self.open_asked.emit()

    def _tell_once(self) -> None:
        """Tell the user, only once, where the hidden window is."""
        if not self.is_known:
            sentence = tr("QwenDesk keeps running. To close it, choose Quit in this icon's menu.")
            if self._window.engine.state.report is not None:
                sentence = tr(
                    "QwenDesk keeps running, and the model stays loaded. To close it, choose Quit in this icon's menu."
                )
            self.is_known = self.tell(sentence)

    def end_of_session(self) -> None:
        """Quit because the system shuts down or the user logs out, which a window that only hides would delay."""
        self._window.end()


def tray_icon(theme: Theme) -> QIcon:
    """Return the logo on a tile of its own, since panels are as dark or light as the system has them."""
    tile = QPixmap(_ICON_SIDE, _ICON_SIDE)
    tile.fill(Qt.GlobalColor.transparent)
    painter = QPainter(tile)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(theme.color("fill"))
    painter.drawRoundedRect(tile.rect(), _ICON_SIDE / 4, _ICON_SIDE / 4)
    logo = icon("logo", theme["on_fill"], _ICON_SIDE)
    edge = _ICON_SIDE // 8
    logo.paint(painter, tile.rect().adjusted(edge, edge, -edge, -edge))
    painter.end()
    return QIcon(tile)


def _app() -> QApplication:
    app = QApplication.instance()
    assert isinstance(app, QApplication)
    return app
