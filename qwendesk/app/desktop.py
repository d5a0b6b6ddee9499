"""Connects the window to the desktop: files from outside, the tray, alerts, reduced motion, metered connections."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from PySide6.QtCore import QObject, Signal
from PySide6.QtNetwork import QNetworkInformation
from PySide6.QtWidgets import QApplication, QWidget

from qwendesk.app.window.command_menus import CommandMenus
from qwendesk.app.window.file_opener import FileOpener
from qwendesk.app.window.main_window import MainWindow
from qwendesk.app.window.single_instance import Handover
from qwendesk.app.window.tray import Tray
from qwendesk.chat.chat_state import ChatEvent, TurnEnded, TurnStarted
from qwendesk.chat.service import ChatService
from qwendesk.chat.view.wiring import ChatView
from qwendesk.core.translation import tr
from qwendesk.hub.download_queue import DownloadItem
from qwendesk.services import App
from qwendesk.widgets.bind import follow
from qwendesk.widgets.tasks import window_tasks
from qwendesk.widgets.theme_keeper import app_theme

_LONGEST_S = 5.0
# From winuser.h: "Animation effects" in the accessibility settings of Windows.
_SPI_GETCLIENTAREAANIMATION = 0x1042
_GNOME = ("gsettings", "get", "org.gnome.desktop.interface", "enable-animations")
_MACOS = ("defaults", "read", "com.apple.universalaccess", "reduceMotion")


def motion_is_reduced() -> bool | None:
    """Return whether animations are reduced; None if unknown.

    May run a small system program, so don't call it on the window's thread.
    """
    if sys.platform == "win32":
        return _on_windows()
    elif sys.platform == "darwin":  # noqa: RET505 - mypy reads only the branch of its own system
        return {"1": True, "0": False}.get(_output(_MACOS))
    elif "KDE" in os.environ.get("XDG_CURRENT_DESKTOP", "").upper().split(":"):
        return _on_kde()
    else:
        return {"true": False, "false": True}.get(_output(_GNOME))


def _on_windows() -> bool | None:
    import ctypes  # noqa: PLC0415 - `windll` is only there on Windows

    is_animated = ctypes.c_int()
    system = getattr(ctypes, "windll").user32  # noqa: B009 - the other systems' type stubs lack it
    is_known = system.SystemParametersInfoW(_SPI_GETCLIENTAREAANIMATION, 0, ctypes.byref(is_animated), 0)
    return not is_animated.value if is_known else None


def _on_kde() -> bool | None:
    """Return whether Plasma's animation speed is "Instant", which it stores as a duration factor of 0."""
    import configparser  # noqa: PLC0415 - only Plasma needs it

    folder = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    # The file may contain duplicate keys and "%", so parse it without strict mode and interpolation.
    settings = configparser.RawConfigParser(strict=False, allow_no_value=True)
    try:
        settings.read(Path(folder) / "kdeglobals", encoding="utf-8")
        return settings.getfloat("KDE", "AnimationDurationFactor", fallback=1.0) == 0
    except (OSError, ValueError, configparser.Error):
        return None


def _output(command: tuple[str, ...]) -> str:
    """Return what a program prints; "" if it does not exist, fails or takes too long."""
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=_LONGEST_S, check=False)
    except (OSError, subprocess.SubprocessError):
        return ""
    return result.stdout.strip() if result.returncode == 0 else ""


# Seconds. After a shorter answer the user is probably still looking at the window.
LONG_S = 10.0


def _alert(window: QWidget) -> None:
    QApplication.alert(window)


class AnswerAlert(QObject):
    """Flashes the window's icon in the task bar, and emits `ended` for other kinds of alerts, such as the tray's."""

    ended = Signal()
    """A long answer ended while the window was not active."""

    def __init__(
        self,
        chat: ChatService,
        window: QWidget,
        now: Callable[[], float] = time.monotonic,
        alert: Callable[[QWidget], None] = _alert,
    ) -> None:
        super().__init__(window)
        self._chat, self._window, self._now, self._alert = chat, window, now, alert
        self._begun: dict[int, float] = {}
        follow(self, chat.subscribe, self._on_chat_event)

    def _on_chat_event(self, event: ChatEvent) -> None:
        match event:
            case TurnStarted(turn_id=turn_id):
                self._begun[turn_id] = self._now()
            case TurnEnded(turn_id=turn_id):
                self._on_ended(turn_id)

    def _on_ended(self, turn_id: int) -> None:
        begun = self._begun.pop(turn_id, None)
        turn = self._chat.turn(turn_id)
        if turn is None or turn.answer.stop_reason == "cancelled":
            return  # stopped by the user, or because the app quits
        if begun is not None and self._now() - begun >= LONG_S and not self._window.isActiveWindow():
            self._alert(self._window)
            self.ended.emit()


class DesktopIntegration:
    """Connects what the desktop reports with the window."""

    def __init__(self, app: App, window: MainWindow, chats: ChatView) -> None:
        """Nothing runs before `start`."""
        self._app, self._chats = app, chats
        self.file_opener, self.menus = FileOpener(window), CommandMenus(window)
        self.tray = tray = Tray(window, app.settings)
        tray.open_asked.connect(self.file_opener.bring_to_front)
        AnswerAlert(app.chat.chat, window).ended.connect(lambda: tray.tell(tr("Your answer is ready.")))

        def announce_download(item: DownloadItem) -> None:
            name = Path(item.saved.files[0].target).name
            window.announcer.announce(tr("Download finished: {0}", name))
            tray.tell(tr("{0} is downloaded.", name))

        app.at_close(app.models.downloads.subscribe_finished(announce_download))
        if app.app_updates is not None:
            from qwendesk.help.view.app_updates import announce_updates  # noqa: PLC0415 - there may be no releases

            announce_updates(window, app.app_updates, window.add_notice)

    def start(self) -> None:
        """Apply the system's setting for animations, tell about a metered connection, and look for newer versions."""
        window_tasks().start(self._follow_motion())
        if self._app.app_updates is not None:
            self._app.app_updates.start()
        if self._app.installed is not None and self._app.settings.options.look_up_weekly:
            self._app.installed.updates.start()
        follow_metered(self._show_metered)

    def _show_metered(self, is_metered: bool) -> None:
        app = self._app
        app.models.first_start.set_metered(is_metered)
        app.models.catalog.set_metered(is_metered)
        if app.app_updates is not None:
            app.app_updates.set_metered(is_metered)
        if app.installed is not None:
            app.installed.set_metered(is_metered)

    async def _follow_motion(self) -> None:
        app_theme().motion.set_system(await asyncio.to_thread(motion_is_reduced))

    def handed_over(self, handover: Handover) -> None:
        """Bring the window to the front and open the files that another start handed over."""
        self.file_opener.bring_to_front()
        self.open_files(handover.paths)

    def open_files(self, files: Sequence[Path]) -> None:
        """Open these files once the last chat is open, because opening a chat empties the composer."""
        if files:
            window_tasks().start(self._open_files(files))

    async def _open_files(self, files: Sequence[Path]) -> None:
        await self._chats.opened()
        self.file_opener.open(files)


def follow_metered(tell: Callable[[bool], None]) -> None:
    """Call `tell` now and after each change. Never, if the system doesn't know.

    If `tell` is a method, its object must allow weak references. It is called as long as that object exists.
    """
    if not QNetworkInformation.loadBackendByFeatures(QNetworkInformation.Feature.Metered):
        return
    network = QNetworkInformation.instance()
    network.isMeteredChanged.connect(tell)
    tell(network.isMetered())
