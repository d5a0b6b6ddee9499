"""The window with an engine for measurements that says what a test wrote down."""

import asyncio
from collections.abc import Iterator

import pytest

from qwendesk.app.parts import build
from qwendesk.core import paths
from qwendesk.services import Doubles
from qwendesk.widgets.theme_keeper import ThemeKeeper
from tests.fakes.bench import FakeBenchClient
from tests.fakes.engine import FakeEngineClient, decide_by_default
from tests.window import app, client, keeper, pytest_pyfunc_call, qt_loop
from tests.window_desk import Desk

__all__ = ["app", "client", "keeper", "pytest_pyfunc_call", "qt_loop"]


class BenchDesk(Desk):
    """The window, and the engine that its measurements use."""

    def __init__(self, client: FakeEngineClient) -> None:
        self.bench_client = FakeBenchClient()
        parts = build(client, decide=decide_by_default, doubles=Doubles(make_bench_client=lambda: self.bench_client))
        super().__init__(parts, client)
        self.window.show()
        self.window.activateWindow()

    async def open_page(self) -> None:
        """Open the Bench page, which is built now."""
        self.window.go_to("bench")

    async def run_to_end(self) -> None:
        """Press Run, and wait until the run has ended."""
        speed = self.parts.services.bench.speed.state
        self.click("bench.run")
        await self.until(lambda: speed.value.is_running)
        await self.until(lambda: not speed.value.is_running)
        await self.parts.engine.wait_until_settled()
        await self.until(lambda: self.is_shown("bench.table"))


@pytest.fixture
def desk(qt_loop: asyncio.Runner, keeper: ThemeKeeper, client: FakeEngineClient) -> Iterator[BenchDesk]:
    """The Bench page, without a model."""
    made = BenchDesk(client)
    qt_loop.run(made.open_page())
    yield made
    qt_loop.run(made.parts.close())
    # What was measured would be found by the Bench page of a test that comes later.
    for results in paths.data_folder().glob("bench-*.json"):
        results.unlink()
