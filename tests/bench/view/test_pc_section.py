"""The tab This PC, with a made-up PC: started, stopped, read, saved and copied with the real widgets."""

from pathlib import Path

from PySide6.QtGui import QAction, QGuiApplication
from PySide6.QtWidgets import QAbstractButton

from qwendesk.bench.pc_report import from_json, report_page
from qwendesk.engine.state import Phase
from tests.bench.view.conftest import TrialDesk


def saved_reports(folder: Path) -> list[Path]:
    return list(folder.glob("*.json"))


async def test_the_engine_page_leads_to_the_tab_which_says_what_it_does(trial_desk: TrialDesk) -> None:
    assert trial_desk.window.page == "bench"
    assert trial_desk.window.focusWidget() is trial_desk.find("bench.pc.back", QAbstractButton)
    assert "every engine" in trial_desk.text_of("pc.words")
    assert "unloaded" in trial_desk.text_of("pc.words")
    assert "10 min" in trial_desk.text_of("pc.run")
    assert not trial_desk.find("pc.export", QAbstractButton).isEnabled()
    assert not trial_desk.is_shown("pc.text")
    assert trial_desk.pc.clients == []


async def test_report_is_shown_saved_and_copied_and_the_model_comes_back(trial_desk: TrialDesk, tmp_path: Path) -> None:
    await trial_desk.load_demo()
    phases: list[Phase] = []
    trial_desk.pc.prepare = lambda _name, _client: phases.append(trial_desk.parts.engine.state.phase)

    trial_desk.click("pc.run")
    await trial_desk.until_report()
    await trial_desk.parts.engine.wait_until_settled()

    assert set(phases) == {Phase.OFF}, "the chat's model is unloaded meanwhile"
    assert trial_desk.parts.engine.state.phase is Phase.READY
    assert trial_desk.text == report_page(trial_desk.report)
    assert "Nothing has been sent" in trial_desk.text_of("pc.words")
    assert saved_reports(tmp_path) == []
    trial_desk.choose_folder(tmp_path)
    await trial_desk.until(lambda: trial_desk.is_shown("pc.note"))
    (saved,) = saved_reports(tmp_path)
    assert from_json(saved.read_bytes()) == trial_desk.report
    assert str(saved) in trial_desk.text_of("pc.note")
    trial_desk.find("pc.export.text", QAction).trigger()
    assert "| tg32 |" in QGuiApplication.clipboard().text()


async def test_stopped_trial_shows_what_was_measured(trial_desk: TrialDesk) -> None:
    await trial_desk.run_into_first_question()

    trial_desk.click("pc.run")
    await trial_desk.until_report()

    assert trial_desk.window.focusWidget() is trial_desk.find("pc.run", QAbstractButton)
    assert "The trial was stopped early." in trial_desk.text
    assert trial_desk.find("pc.export", QAbstractButton).isEnabled()
    trial_desk.pc.prepare = lambda _name, _client: None
    trial_desk.click("pc.run")
    await trial_desk.until(lambda: "| What is a quant?" in trial_desk.text)
    assert "stopped early" not in trial_desk.text


async def test_folder_that_cannot_be_written_is_named(trial_desk: TrialDesk, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    trial_desk.click("pc.run")
    await trial_desk.until_report()

    trial_desk.choose_folder(file / "folder")
    await trial_desk.until(lambda: trial_desk.is_shown("pc.note"))

    assert "Choose another folder" in trial_desk.text_of("pc.note")


async def test_window_closes_during_a_trial(trial_desk: TrialDesk) -> None:
    await trial_desk.run_into_first_question()

    await trial_desk.parts.close()

    assert all(client.closed for _, client in trial_desk.pc.clients)
