"""Builds the meters: the service that looks, the bar, the history, the spill banner; starts and ends them."""

import sys

import msgspec

from qwendesk.core.units import GIB
from qwendesk.hardware.looking import Looking
from qwendesk.services.engine.deciding import facts_for
from qwendesk.services.engine.measured import MeasuredLoads
from qwendesk.services.engine.service import EngineService
from qwendesk.services.meters.answers import AnswerMeter
from qwendesk.services.meters.measuring import FilesOf, LoadMeasuring
from qwendesk.services.meters.meters import MeterService
from qwendesk.services.meters.pricing import prices_of
from qwendesk.services.meters.relief import PriceOf, ReliefService
from qwendesk.services.meters.speeds import SpeedBook
from qwendesk.services.settings import SettingsService
from qwendesk.ui.bridges.meters import MeterBridge
from qwendesk.ui.frame.main_window import MainWindow
from qwendesk.ui.kit.tasks import Tasks
from qwendesk.ui.kit.theme_keeper import ThemeKeeper
from qwendesk.ui.meters.history_popup import HistoryPopup
from qwendesk.ui.meters.spill_banner import SpillBanner
from qwendesk.ui.meters.spill_text import story_of


class MeterSource(msgspec.Struct, frozen=True):
    """Where the meters take their values from, for a test that writes them down; None is the real one."""

    looking: Looking | None = None
    speeds: SpeedBook | None = None
    price_of: PriceOf | None = None
    files_of: FilesOf = facts_for
    platform: str = sys.platform


class MetersPart(msgspec.Struct):
    bridge: MeterBridge
    banner: SpillBanner
    history: HistoryPopup
    measuring: LoadMeasuring

    def start(self) -> None:
        """Begin to look once a second."""
        self.bridge.start()

    async def close(self) -> None:
        await self.bridge.close()
        await self.measuring.close()


def build_meters(
    keeper: ThemeKeeper,
    tasks: Tasks,
    settings: SettingsService,
    engine: EngineService,
    answers: AnswerMeter,
    window: MainWindow,
    source: MeterSource,
    measured: MeasuredLoads,
) -> MetersPart:
    """Services, bridge and widgets, joined to the window; nothing is looked at yet. Needs a running event loop."""
    relief = ReliefService(
        engine, answers, source.price_of or prices_of(lambda: engine.state, lambda: answers.context_tokens)
    )
    service = MeterService(
        engine,
        answers,
        relief,
        looking=source.looking,
        speeds=source.speeds,
        reserve_bytes=lambda: round(settings.options.reserve_gb * GIB),
    )
    bridge = MeterBridge(service, tasks)
    measuring = LoadMeasuring(engine, service, measured, files_of=source.files_of)
    banner, history, bar = SpillBanner(keeper), HistoryPopup(keeper, window), window.meter_bar

    def show() -> None:
        bar.show_meters(bridge.meters, bridge.history, measuring.latest)
        banner.show_story(story_of(bridge.meters, bridge.relief, on_windows=source.platform == "win32"))
        if history.isVisible():
            history.show_history(bridge.history, bridge.meters, measuring.latest)

    def open_history() -> None:
        history.show_history(bridge.history, bridge.meters, measuring.latest)
        history.show_above(bar.memory)

    bridge.changed.connect(show)
    banner.chosen.connect(bridge.choose)
    bar.history_asked.connect(open_history)
    window.seen.connect(bridge.set_visible)
    window.add_notice(banner)
    measuring.subscribe(lambda _compared: show())
    return MetersPart(bridge, banner, history, measuring)
