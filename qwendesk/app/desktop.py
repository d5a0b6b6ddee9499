"""Connects the window to the desktop: files from outside, the tray, screen readers, reduced motion, metered
connections.
"""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from PySide6.QtNetwork import QNetworkInformation

from qwendesk.app.window.answer_alert import AnswerAlert
from qwendesk.app.window.command_menus import CommandMenus
from qwendesk.app.window.file_opener import FileOpener
from qwendesk.app.window.main_window import MainWindow
from qwendesk.app.window.single_instance import Handover
from qwendesk.app.window.system_motion import motion_is_reduced
from qwendesk.app.window.tray import Tray
from qwendesk.chat.view.wiring import ChatView
from qwendesk.core.translation import tr
from qwendesk.hub.download_queue import DownloadItem
from qwendesk.services import App
from qwendesk.widgets.tasks import window_tasks
from qwendesk.widgets.theme_keeper import app_theme


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
        follow_metered(self._show_metered)

    def _show_metered(self, is_metered: bool) -> None:
        app = self._app
        app.models.first_start.set_metered(is_metered)
        app.models.catalog.set_metered(is_metered)
        if app.app_updates is not None:
            app.app_updates.set_metered(is_metered)
        if app.installed is not None:
            app.installed.gpu_engine.set_metered(is_metered)

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
