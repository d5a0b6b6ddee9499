"""Builds the engine page: joined to the engine, to the meters' snapshots and to the self-test."""

from collections.abc import Awaitable, Callable

import msgspec

from qwendesk.engine.contract import EngineClient
from qwendesk.services.engine.service import EngineService
from qwendesk.services.engine.testing import Diagnosis, examine, versions
from qwendesk.ui.bridges.engine import EngineBridge
from qwendesk.ui.bridges.meters import MeterBridge
from qwendesk.ui.bridges.testing import TestingBridge
from qwendesk.ui.engine.engine_page import EnginePage
from qwendesk.ui.frame.actions import COMMANDS
from qwendesk.ui.frame.main_window import MainWindow
from qwendesk.ui.kit.tasks import Tasks
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.theme_keeper import ThemeKeeper

MakeClient = Callable[[], Awaitable[EngineClient]]


class EnginePart(msgspec.Struct):
    page: EnginePage
    testing: TestingBridge


def build_engine_page(
    keeper: ThemeKeeper,
    tasks: Tasks,
    engine: EngineBridge,
    meters: MeterBridge,
    window: MainWindow,
    make_client: MakeClient,
) -> EnginePart:
    """The page in the window's rail. `make_client` starts the worker of a test."""
    testing = TestingBridge(lambda: _examined(make_client), tasks)
    page = EnginePage(keeper, versions)
    page.test_asked.connect(testing.run)
    engine.changed.connect(lambda: page.show_state(engine.state))
    meters.changed.connect(lambda: page.show_snapshot(meters.meters.snapshot))
    testing.changed.connect(lambda: page.show_test(testing.diagnosis, running=testing.running))
    window.add_page("engine", "engine", tr("Engine"), COMMANDS["page_engine"].shortcut, page)
    return EnginePart(page, testing)


async def _examined(make_client: MakeClient) -> Diagnosis:
    """A test on a worker of its own, which is gone afterwards."""
    client = await make_client()
    service = EngineService(client)
    try:
        return await examine(client, service)
    finally:
        await service.close()
