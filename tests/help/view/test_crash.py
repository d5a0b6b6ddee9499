"""What the window does after a crash: it is kept, and offered at the next start."""

from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from PySide6.QtWidgets import QAbstractButton, QApplication, QDialog, QFileDialog, QPlainTextEdit, QWidget

from qwendesk.core.failures import EngineExit
from qwendesk.engine.state import Phase
from qwendesk.help.crash_reports import CrashReports
from qwendesk.help.view.crash_notices import CrashNotices, safe_notice
from qwendesk.widgets.actions import installed
from qwendesk.widgets.theme_keeper import ThemeKeeper
from tests.fakes.engine import ScriptedAnswer
from tests.window_desk import Desk

SECRET = "marmalade-1729"


@pytest.fixture
def reports(tmp_path: Path) -> Iterator[CrashReports]:
    reports = CrashReports(tmp_path / "crashes", tmp_path / "window.log")
    yield reports
    reports.end()


def offered(desk: Desk, reports: CrashReports) -> CrashNotices:
    notices = CrashNotices(desk.window, desk.parts.engine.observed, reports)
    notices.notice_asked.connect(desk.window.add_notice)
    notices.error_found.connect(desk.window.report)
    notices.offer()
    return notices


async def test_no_notice_after_a_proper_end(desk: Desk, keeper: ThemeKeeper, reports: CrashReports) -> None:
    reports.begin()
    offered(desk, reports)
    assert not desk.has("crash")


async def test_report_of_a_crashed_run_is_offered_and_dismissed(
    desk: Desk, keeper: ThemeKeeper, reports: CrashReports, tmp_path: Path
) -> None:
    (tmp_path / "crashes").mkdir()
    dead = max(psutil.pids()) + 10_000
    mark = f'{{"pid": {dead}, "started_s": 5, "time": "2026-11-20T10:00:00", "version": "0.1.0"}}'
    (tmp_path / "crashes" / f"running-{dead}.json").write_text(mark)
    reports.begin()
    offered(desk, reports)
    assert desk.text_of("crash.title") == "QwenDesk didn't close properly last time"
    desk.click("crash.forget")
    assert reports.pending() == ()
    assert not desk.is_shown("crash")


async def test_engine_crash_is_saved_without_chat_text(desk: Desk, keeper: ThemeKeeper, reports: CrashReports) -> None:
    reports.begin()
    offered(desk, reports)
    desk.client.answers.append(ScriptedAnswer(text=f"{SECRET} two three", crashes_after=2))
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
    reports.save_engine_crash(EngineExit(-11, "The engine crashed.", ("last line",)), None)
    offered(desk, reports)
    assert desk.text_of("crash.title") == "The engine stopped unexpectedly last time"
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


async def test_a_crash_is_announced_once_and_its_report_stays_in_the_menu(
    desk: Desk, keeper: ThemeKeeper, reports: CrashReports
) -> None:
    reports.begin()
    reports.save_engine_crash(EngineExit(-11, "The engine crashed."), None)
    offered(desk, reports)
    desk.click("crash.dismiss")

    again = offered(desk, reports)
    assert not desk.is_shown("crash")
    installed(desk.window)["crash_reports"].trigger()
    assert "The engine crashed." in desk.find("crash.text", QPlainTextEdit).toPlainText()
    desk.find("crash.dialog", QDialog).close()

    reports.save_engine_crash(EngineExit(-9, "The engine crashed again."), None)
    again.deleteLater()
    offered(desk, reports)
    assert desk.window.findChildren(QWidget, "crash")[-1].isVisible()


async def test_without_crashes_the_menu_says_so(desk: Desk, keeper: ThemeKeeper, reports: CrashReports) -> None:
    reports.begin()
    offered(desk, reports)
    installed(desk.window)["crash_reports"].trigger()
    assert desk.text_of("crash.words") == "There are no crash reports."
    assert not desk.find("crash.copy", QAbstractButton).isEnabled()


async def test_failed_save_of_a_report_is_shown(
    desk: Desk, keeper: ThemeKeeper, reports: CrashReports, tmp_path: Path
) -> None:
    reports.begin()
    reports.save_engine_crash(EngineExit(-11, "The engine crashed."), None)
    part = offered(desk, reports)
    (tmp_path / "file").write_text("")
    part.save(str(tmp_path / "file" / "report.txt"))
    assert desk.text_of("banner.title") == "Report not saved"


async def test_safe_mode_is_explained(desk: Desk, keeper: ThemeKeeper) -> None:
    desk.window.add_notice(safe_notice())
    assert desk.is_shown("safe")
    assert "settings file isn't changed" in desk.text_of("safe.sentence")
