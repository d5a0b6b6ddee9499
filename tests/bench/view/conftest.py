"""The window with engines for measurements that say what a test wrote down."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QAbstractButton, QFileDialog, QPlainTextEdit

from qwendesk.app.parts import build
from qwendesk.bench.pc_report import PcTrialReport
from qwendesk.core import paths
from qwendesk.services import Doubles
from qwendesk.widgets.theme_keeper import ThemeKeeper
from tests.bench.pc import CPU_ENGINE, TrialPc
from tests.fakes.bench import FakeBenchClient
from tests.fakes.engine import FakeEngineClient, ScriptedAnswer, decide_by_default
from tests.window import app, client, keeper, pages_in_steps, pytest_pyfunc_call, qt_loop
from tests.window_desk import Desk

__all__ = ["app", "client", "keeper", "pages_in_steps", "pytest_pyfunc_call", "qt_loop"]


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

    def open_section(self, key: str) -> None:
        """Open a section of the page without starting anything."""
        self.parts.navigation.bench_section_asked.emit(key)

    async def run_to_end(self) -> None:
        """Press Measure, and wait until the run has ended."""
        speed = self.parts.services.bench.speed.state
        self.open_section("speed")
        await self.until(lambda: self.find("bench.run", QAbstractButton).isEnabled())
        self.click("bench.run")
        await self.until(lambda: speed.value.is_running)
        await self.until(lambda: not speed.value.is_running)
        assert speed.value.failure is None, f"{speed.value.failure}, notes {speed.value.notes}"
        await self.parts.engine.wait_until_settled()
        await self.until(lambda: self.is_shown("bench.headline"))


class TrialDesk(Desk):
    """The window of a PC with one engine."""

    def __init__(self, client: FakeEngineClient) -> None:
        self.pc = TrialPc(CPU_ENGINE)
        super().__init__(build(client, decide=decide_by_default, doubles=Doubles(pc_trial=self.pc.trial_with)), client)
        self.window.show()
        self.window.activateWindow()

    async def open_section(self) -> None:
        """Open the section from the Engine page; both are built now."""
        self.window.show_page("engine")
        self.click("engine.measure")

    @property
    def text(self) -> str:
        return self.find("pc.text", QPlainTextEdit).toPlainText()

    @property
    def report(self) -> PcTrialReport:
        report = self.pc.trial.state.value.report
        assert report is not None
        return report

    def hang_in_first_question(self) -> None:
        def answer_slowly(_name: str, client: FakeBenchClient) -> None:
            client.answers[1] = ScriptedAnswer(text="one two three", tokens_per_second=0.0001)

        self.pc.prepare = answer_slowly

    async def until_report(self) -> None:
        await self.until(lambda: self.pc.trial.state.value.report is not None)

    async def run_into_first_question(self) -> None:
        self.hang_in_first_question()
        self.click("pc.run")
        await self.until(lambda: "question 1" in self.text)

    def choose_folder(self, folder: Path) -> None:
        self.find("pc.export.report", QAction).trigger()
        dialog = self.find("pc.folder_dialog", QFileDialog)
        dialog.fileSelected.emit(str(folder))
        dialog.close()


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


@pytest.fixture
def trial_desk(qt_loop: asyncio.Runner, keeper: ThemeKeeper, client: FakeEngineClient) -> Iterator[TrialDesk]:
    """The section This PC, without a model."""
    made = TrialDesk(client)
    qt_loop.run(made.open_section())
    yield made
    qt_loop.run(made.parts.close())
    assert all(client.closed for _, client in made.pc.clients)
