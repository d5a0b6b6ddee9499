"""The tab This PC, with a made-up PC: started, stopped, read, saved and copied with the real widgets."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtGui import QAction, QGuiApplication
from PySide6.QtWidgets import QAbstractButton, QFileDialog, QPlainTextEdit

from qwendesk.app.parts import build
from qwendesk.bench.pc_report import PcTrialReport, from_json, report_page
from qwendesk.engine.state import Phase
from qwendesk.services import Doubles
from qwendesk.widgets.theme_keeper import ThemeKeeper
from tests.bench.pc import CPU_ENGINE, TrialPc
from tests.fakes.bench import FakeBenchClient
from tests.fakes.engine import FakeEngineClient, ScriptedAnswer, decide_by_default
from tests.window_desk import Desk


class TrialDesk(Desk):
    """The window of a PC with one engine."""

    def __init__(self, client: FakeEngineClient) -> None:
        self.pc = TrialPc(CPU_ENGINE)
        super().__init__(build(client, decide=decide_by_default, doubles=Doubles(pc_trial=self.pc.trial_with)), client)
        self.window.show()
        self.window.activateWindow()

    async def open_tab(self) -> None:
        """Open the tab from the Engine page; both are built now."""
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


def saved_reports(folder: Path) -> list[Path]:
    return list(folder.glob("*.json"))


@pytest.fixture
def desk(qt_loop: asyncio.Runner, keeper: ThemeKeeper, client: FakeEngineClient) -> Iterator[TrialDesk]:
    made = TrialDesk(client)
    qt_loop.run(made.open_tab())
    yield made
    qt_loop.run(made.parts.close())
    assert all(client.closed for _, client in made.pc.clients)


async def test_the_engine_page_leads_to_the_tab_which_says_what_it_does(desk: TrialDesk) -> None:
    assert desk.window.page == "bench"
    assert desk.window.focusWidget() is desk.find("bench.tab.pc", QAbstractButton)
    assert "every engine" in desk.text_of("pc.words")
    assert "unloaded" in desk.text_of("pc.words")
    assert "10 min" in desk.text_of("pc.run")
    assert not desk.find("pc.export", QAbstractButton).isEnabled()
    assert not desk.is_shown("pc.text")
    assert desk.pc.clients == []


async def test_report_is_shown_saved_and_copied_and_the_model_comes_back(desk: TrialDesk, tmp_path: Path) -> None:
    await desk.load_demo()
    phases: list[Phase] = []
    desk.pc.prepare = lambda _name, _client: phases.append(desk.parts.engine.state.phase)

    desk.click("pc.run")
    await desk.until_report()
    await desk.parts.engine.wait_until_settled()

    assert set(phases) == {Phase.OFF}, "the chat's model is unloaded meanwhile"
    assert desk.parts.engine.state.phase is Phase.READY
    assert desk.text == report_page(desk.report)
    assert "Nothing has been sent" in desk.text_of("pc.words")
    assert saved_reports(tmp_path) == []
    desk.choose_folder(tmp_path)
    await desk.until(lambda: desk.is_shown("pc.note"))
    (saved,) = saved_reports(tmp_path)
    assert from_json(saved.read_bytes()) == desk.report
    assert str(saved) in desk.text_of("pc.note")
    desk.find("pc.export.text", QAction).trigger()
    assert "| tg32 |" in QGuiApplication.clipboard().text()


async def test_stopped_trial_shows_what_was_measured(desk: TrialDesk) -> None:
    await desk.run_into_first_question()

    desk.click("pc.run")
    await desk.until_report()

    assert "The trial was stopped early." in desk.text
    assert desk.find("pc.export", QAbstractButton).isEnabled()
    desk.pc.prepare = lambda _name, _client: None
    desk.click("pc.run")
    await desk.until(lambda: "| What is a quant?" in desk.text)
    assert "stopped early" not in desk.text


async def test_a_question_in_the_chat_ends_the_trial_and_is_answered(desk: TrialDesk) -> None:
    await desk.load_demo()
    await desk.run_into_first_question()
    desk.window.show_page("chat")

    await desk.ask("hello")

    assert desk.report.was_stopped


async def test_a_trial_does_not_begin_while_an_answer_is_generated(desk: TrialDesk) -> None:
    await desk.load_demo()
    desk.client.answers = [ScriptedAnswer(text="long " * 50, tokens_per_second=0.0001)]
    desk.window.show_page("chat")
    desk.send("hello")
    await desk.until(lambda: desk.parts.engine.state.phase is Phase.ANSWERING)
    desk.window.show_page("bench")

    desk.click("pc.run")
    await desk.until(lambda: desk.is_shown("pc.trouble"))

    assert "An answer is being generated" in desk.text_of("pc.trouble")
    assert desk.pc.clients == []


async def test_folder_that_cannot_be_written_is_named(desk: TrialDesk, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    desk.click("pc.run")
    await desk.until_report()

    desk.choose_folder(file / "folder")
    await desk.until(lambda: desk.is_shown("pc.note"))

    assert "Choose another folder" in desk.text_of("pc.note")


async def test_window_closes_during_a_trial(desk: TrialDesk) -> None:
    await desk.run_into_first_question()

    await desk.parts.close()

    assert all(client.closed for _, client in desk.pc.clients)
