"""Builds what stands around the pages: files from outside, and what each part of the window has for all of them."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import msgspec

from qwendesk.app.chats_part import ChatsPart
from qwendesk.app.models_part import ModelsPart
from qwendesk.app.settings_part import SettingsPart
from qwendesk.services.system_motion import motion_is_reduced
from qwendesk.ui.bridges.privacy import PrivacyBridge
from qwendesk.ui.frame.actions import install
from qwendesk.ui.frame.finder import Finder
from qwendesk.ui.frame.main_window import MainWindow
from qwendesk.ui.frame.opening import Opening
from qwendesk.ui.frame.single_instance import Handover
from qwendesk.ui.frame.tray import Tray, no_tray_sentence
from qwendesk.ui.kit.tasks import Tasks
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.theme_keeper import ThemeKeeper
from qwendesk.ui.settings.privacy_section import PrivacySection


class AroundPart(msgspec.Struct):
    """Lives as long as the window."""

    opening: Opening
    finder: Finder
    chats: ChatsPart
    tasks: Tasks
    privacy: PrivacyBridge
    keeper: ThemeKeeper
    tray: Tray

    def start(self) -> None:
        """Ask the system what it wants of us."""
        self.tasks.start(self._follow_motion())

    def close(self) -> None:
        """No icon stays behind."""
        self.tray.close()

    async def _follow_motion(self) -> None:
        self.keeper.motion.set_system(await asyncio.to_thread(motion_is_reduced))

    def handed_over(self, handover: Handover) -> None:
        """Another start wants this window in front, and its files in it."""
        self.opening.bring_to_front()
        self.open_files([Path(file) for file in handover.files])

    def open_files(self, files: Sequence[Path]) -> None:
        """Once the last chat is open: opening it empties the composer."""
        if files:
            self.tasks.start(self._open_files(files))

    async def _open_files(self, files: Sequence[Path]) -> None:
        await self.chats.opened()
        self.opening.open(files)


def build_around(
    keeper: ThemeKeeper,
    tasks: Tasks,
    window: MainWindow,
    chats: ChatsPart,
    settings_part: SettingsPart,
    models: ModelsPart,
) -> AroundPart:
    """Everything is in the window afterwards; nothing runs."""
    settings = settings_part.page
    privacy = PrivacyBridge(tasks, window)
    settings.add_privacy(PrivacySection(keeper, privacy))
    privacy.deletion_wanted.connect(window.end)
    models.fetching.finished.connect(lambda path: window.spoken.say(tr("Download finished: {0}", Path(path).name)))
    models.fetching.refused.connect(lambda refusal: window.spoken.say(f"{refusal.title}. {refusal.sentence}"))

    def open_privacy() -> None:
        window.show_page("settings")
        settings.open_at("privacy")

    install(window, {"privacy": open_privacy})
    opening, tray = Opening(keeper, window), Tray(keeper, window, settings_part.bridge)
    _connect_tray(tray, opening, chats, settings_part, models)
    return AroundPart(opening, Finder(keeper, window), chats, tasks, privacy, keeper, tray)


def _connect_tray(tray: Tray, opening: Opening, chats: ChatsPart, settings: SettingsPart, models: ModelsPart) -> None:
    def say_if_missing() -> None:
        if tray.is_missing:
            settings.page.remark("keep_in_tray", no_tray_sentence())

    tray.open_asked.connect(opening.bring_to_front)
    chats.done_alert.ended.connect(lambda: tray.tell(tr("An answer has ended.")))
    models.fetching.finished.connect(lambda file: tray.tell(tr("{0} is downloaded.", Path(file).name)))
    settings.bridge.changed.connect(say_if_missing)
    say_if_missing()
