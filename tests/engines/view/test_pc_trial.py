"""A trial of a made-up PC in the window: started, stopped, read and saved with the real widgets."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QDialog, QFileDialog, QPlainTextEdit

from qwendesk.app.parts import build
from qwendesk.engine.state import Phase
from qwendesk.engines.pc_trial.report import from_json, report_page
from qwendesk.services import Doubles
from qwendesk.widgets.theme_keeper import ThemeKeeper
from tests.engines.pc_trial.pc import CPU_ENGINE, TrialPc
from tests.fakes.engine import FakeEngineClient, ScriptedAnswer, decide_by_default
from tests.window_desk import Desk


class TrialDesk(Desk):
    """The window on the Engine page of a PC with one engine."""

    def __init__(self, client: FakeEngineClient) -> None:
        self.pc = TrialPc(CPU_ENGINE)
        super().__init__(build(client, decide=decide_by_default, doubles=Doubles(pc_trial=self.pc.trial)), client)
        self.window.show()
        self.window.activateWindow()
        self.window.show_page("engine")

    @property
    def text(self) -> str:
        return self.find("pctrial.text", QPlainTextEdit).toPlainText()

    def hang_in_first_question(self) -> None:
        def answer_slowly(_name: str, client: FakeEngineClient) -> None:
            client.answers[1] = ScriptedAnswer(text="one two three", tokens_per_second=0.0001)

        self.pc.prepare = answer_slowly

    def start(self) -> None:
        self.click("engine.measure")
        self.click("pctrial.start")

    async def until_report(self) -> None:
        await self.until(lambda: self.pc.trial.state.value.report is not None)

    def choose_folder(self, folder: Path) -> None:
        self.click("pctrial.save")
        dialog = self.find("pctrial.folder_dialog", QFileDialog)
        dialog.fileSelected.emit(str(folder))
        dialog.close()


def saved_reports(folder: Path) -> list[Path]:
    return list(folder.glob("*.json"))


@pytest.fixture
def make_trial_desk(
    qt_loop: asyncio.Runner, keeper: ThemeKeeper, client: FakeEngineClient
) -> Iterator[Callable[[], TrialDesk]]:
    desks: list[TrialDesk] = []

    def make() -> TrialDesk:
        desks.append(TrialDesk(client))
        return desks[-1]

    yield make
    for desk in desks:
        qt_loop.run(desk.parts.close())
        assert all(client.closed for _, client in desk.pc.clients)


async def test_trial_says_first_what_it_does(make_trial_desk: Callable[[], TrialDesk]) -> None:
    desk = make_trial_desk()

    desk.click("engine.measure")

    assert "up to ten minutes" in desk.text_of("pctrial.words")
    assert "ejected" in desk.text_of("pctrial.words")
    assert not desk.is_shown("pctrial.save")
    assert not desk.is_shown("pctrial.stop")
    desk.click("pctrial.close")
    assert not desk.is_shown("pctrial.dialog")
    assert desk.pc.clients == []


async def test_report_is_shown_and_saved(make_trial_desk: Callable[[], TrialDesk], tmp_path: Path) -> None:
    desk = make_trial_desk()
    await desk.load_demo()

    desk.start()
    await desk.until_report()

    report = desk.pc.trial.state.value.report
    assert report is not None
    assert desk.parts.engine.state.phase is Phase.OFF, "the loaded model was ejected"
    assert desk.text == report_page(report)
    assert "Nothing has been sent" in desk.text_of("pctrial.words")
    assert saved_reports(tmp_path) == []
    desk.choose_folder(tmp_path)
    await desk.until(lambda: desk.is_shown("pctrial.note"))
    (saved,) = saved_reports(tmp_path)
    assert from_json(saved.read_bytes()) == report
    assert str(saved) in desk.text_of("pctrial.note")
    desk.click("pctrial.close")
    assert not desk.is_shown("pctrial.dialog")


async def test_stopped_trial_shows_what_was_measured(make_trial_desk: Callable[[], TrialDesk]) -> None:
    desk = make_trial_desk()
    desk.hang_in_first_question()
    desk.start()
    await desk.until(lambda: "question 1" in desk.text)
    assert not desk.is_shown("pctrial.close")

    desk.click("pctrial.stop")
    await desk.until_report()

    assert "The trial was stopped early." in desk.text
    assert desk.is_shown("pctrial.save")
    assert not desk.is_shown("pctrial.start")
    desk.pc.prepare = lambda _name, _client: None
    desk.click("pctrial.again")
    await desk.until(lambda: "| What is a quant?" in desk.text)
    assert "stopped early" not in desk.text


async def test_esc_stops_a_running_trial_and_then_closes(make_trial_desk: Callable[[], TrialDesk]) -> None:
    desk = make_trial_desk()
    desk.hang_in_first_question()
    desk.start()
    await desk.until(lambda: "question 1" in desk.text)
    dialog = desk.find("pctrial.dialog", QDialog)

    QTest.keyClick(dialog, Qt.Key.Key_Escape)
    await desk.until_report()
    assert dialog.isVisible()

    QTest.keyClick(dialog, Qt.Key.Key_Escape)
    assert not desk.is_shown("pctrial.dialog")


async def test_report_stays_until_the_next_trial(make_trial_desk: Callable[[], TrialDesk]) -> None:
    desk = make_trial_desk()
    desk.start()
    await desk.until_report()
    page = desk.text
    desk.click("pctrial.close")

    desk.click("engine.measure")

    assert desk.window.findChildren(QPlainTextEdit, "pctrial.text")[-1].toPlainText() == page


async def test_folder_that_cannot_be_written_is_named(make_trial_desk: Callable[[], TrialDesk], tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    desk = make_trial_desk()
    desk.start()
    await desk.until_report()

    desk.choose_folder(file / "folder")
    await desk.until(lambda: desk.is_shown("pctrial.note"))

    assert "Choose another folder" in desk.text_of("pctrial.note")


async def test_window_closes_during_a_trial(make_trial_desk: Callable[[], TrialDesk]) -> None:
    desk = make_trial_desk()
    desk.hang_in_first_question()
    desk.start()
    await desk.until(lambda: "question 1" in desk.text)

    await desk.parts.close()

    assert all(client.closed for _, client in desk.pc.clients)
