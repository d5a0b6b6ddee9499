"""Builds the engine page: joined to the engine, to the meters' snapshots and to the self-test."""

from collections.abc import Callable

import msgspec

from qwendesk.app.engines_part import EnginesPart
from qwendesk.engine.contract import EngineClient
from qwendesk.services.engine.engines import EnginesService
from qwendesk.services.engine.service import Decide, EngineService
from qwendesk.services.engine.testing import Diagnosis, examine, versions
from qwendesk.ui.bridges.engine import EngineBridge
from qwendesk.ui.bridges.meters import MeterBridge
from qwendesk.ui.bridges.testing import TestingBridge
from qwendesk.ui.engine.engine_page import EnginePage
from qwendesk.ui.frame.actions import COMMANDS, install
from qwendesk.ui.frame.main_window import MainWindow
from qwendesk.ui.kit.tasks import Tasks
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.theme_keeper import ThemeKeeper

MakeClient = Callable[[], EngineClient]


class EnginePart(msgspec.Struct):
    page: EnginePage
    testing: TestingBridge
    engines: EnginesPart | None = None
    """None where there is no choice: a window on a made-up engine."""
    stop_listening: Callable[[], None] = lambda: None

    async def close(self) -> None:
        self.stop_listening()
        if self.engines is not None:
            await self.engines.close()


def build_engine_page(
    keeper: ThemeKeeper,
    tasks: Tasks,
    engine: EngineBridge,
    meters: MeterBridge,
    window: MainWindow,
    make_client: MakeClient,
    engines: EnginesService | None,
    engines_part: EnginesPart | None,
    decide: Decide | None,
) -> EnginePart:
    """The page in the window's rail. `make_client` starts the worker of a test, whose loads `decide` decides
    where it is given; `engines` are those of this PC."""
    testing = TestingBridge(lambda: _examined(make_client, decide), tasks)
    page = EnginePage(keeper, versions)
    page.test_asked.connect(testing.run)
    engine.changed.connect(lambda: page.show_state(engine.state))
    meters.changed.connect(lambda: page.show_snapshot(meters.meters.snapshot))
    testing.changed.connect(lambda: page.show_test(testing.diagnosis, running=testing.running))
    window.add_page("engine", "engine", tr("Engine"), COMMANDS["page_engine"].shortcut, page)
    install(window, {"test_engine": lambda: _test(window, testing), "copy_diagnostics": page.copy_all})
    if engines is None or engines_part is None:
        return EnginePart(page, testing)
    page.put_list(engines_part.view)
    page.show_engines(engines.engines)
    return EnginePart(page, testing, engines_part, engines.subscribe(page.show_engines))


def _test(window: MainWindow, testing: TestingBridge) -> None:
    window.show_page("engine")
    testing.run()


async def _examined(make_client: MakeClient, decide: Decide | None) -> Diagnosis:
    """A test on a worker of its own, which is gone afterwards."""
    client = make_client()
    service = EngineService(client) if decide is None else EngineService(client, decide=decide)
    try:
        return await examine(client, service)
    finally:
        await service.close()
