"""What the window does after a crash: it is kept, and offered at the next start."""

from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from PySide6.QtWidgets import QApplication, QFileDialog, QPlainTextEdit

from qwendesk.app.crash_part import CrashPart, safe_notice
from qwendesk.core.failures import EngineDeath
from qwendesk.engine.state import Phase
from qwendesk.services.crash_reports import CrashReports
from qwendesk.ui.kit.theme_keeper import ThemeKeeper
from tests.fakes.engine import ScriptedAnswer
from tests.ui.desk import Desk

SECRET = "marmalade-1729"


@pytest.fixture
def reports(tmp_path: Path) -> Iterator[CrashReports]:
    reports = CrashReports(tmp_path / "crashes", tmp_path / "window.log")
    yield reports
    reports.end()


def offered(desk: Desk, keeper: ThemeKeeper, reports: CrashReports) -> CrashPart:
    part = CrashPart(keeper, desk.window, desk.parts.engine, reports)
    part.offer()
    return part


async def test_nothing_is_said_when_all_ended_well(desk: Desk, keeper: ThemeKeeper, reports: CrashReports) -> None:
    reports.begin()
    offered(desk, keeper, reports)
    assert not desk.has("crash")


async def test_a_run_that_never_ended_is_offered_and_dismissed(
    desk: Desk, keeper: ThemeKeeper, reports: CrashReports, tmp_path: Path
) -> None:
    (tmp_path / "crashes").mkdir()
    dead = max(psutil.pids()) + 10_000
    mark = f'{{"pid": {dead}, "started_s": 5, "time": "2026-11-20T10:00:00", "version": "0.1.0"}}'
    (tmp_path / "crashes" / f"running-{dead}.json").write_text(mark)
    reports.begin()
    offered(desk, keeper, reports)
    assert desk.text_of("crash.title") == "QwenDesk did not end in order the last time"
    desk.click("crash.forget")
    assert reports.pending() == ()
    assert not desk.is_shown("crash")


async def test_the_engine_s_death_is_kept_without_a_word_of_the_chat(
    desk: Desk, keeper: ThemeKeeper, reports: CrashReports
) -> None:
    reports.begin()
    offered(desk, keeper, reports)
    desk.client.answers.append(ScriptedAnswer(text=f"{SECRET} two three", dies_after=2))
    await desk.ask(SECRET)
    await desk.until(lambda: desk.parts.engine.state.phase is Phase.READY)
    (_, report), *more = reports.pending()
    assert more == []
    assert report.of == "engine"
    assert SECRET not in report.text()


async def test_a_report_is_shown_copied_saved_and_deleted(
    desk: Desk, keeper: ThemeKeeper, reports: CrashReports, tmp_path: Path
) -> None:
    reports.begin()
    reports.engine_died(EngineDeath(-11, "The engine crashed.", ("last line",)), None)
    offered(desk, keeper, reports)
    assert desk.text_of("crash.title") == "The engine stopped unexpectedly the last time"
    desk.click("crash.show")
    text = desk.find("crash.text", QPlainTextEdit).toPlainText()
    assert "The engine crashed." in text
    assert "last line" in text
    desk.click("crash.copy")
    assert QApplication.clipboard().text() == text
    desk.click("crash.save_as")
    dialog = desk.find("crash.save_dialog", QFileDialog)
    dialog.fileSelected.emit(str(tmp_path / "report.txt"))
    dialog.close()
    assert (tmp_path / "report.txt").read_text() == text
    desk.click("crash.delete")
    assert reports.pending() == ()
    assert not desk.is_shown("crash")
    assert not desk.is_shown("crash.dialog")


async def test_a_report_that_cannot_be_saved_says_so(
    desk: Desk, keeper: ThemeKeeper, reports: CrashReports, tmp_path: Path
) -> None:
    reports.begin()
    reports.engine_died(EngineDeath(-11, "The engine crashed."), None)
    part = offered(desk, keeper, reports)
    (tmp_path / "file").write_text("")
    part.save(str(tmp_path / "file" / "report.txt"))
    assert desk.text_of("banner.title") == "Report not saved"


async def test_safe_mode_says_what_it_is(desk: Desk, keeper: ThemeKeeper) -> None:
    desk.window.add_notice(safe_notice(keeper))
    assert desk.is_shown("safe")
    assert "settings file stays as it is" in desk.text_of("safe.sentence")
