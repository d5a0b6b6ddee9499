"""What is kept of a crash."""

import datetime
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from qwendesk.core.failures import EngineExit
from qwendesk.core.options import LoadOptions
from qwendesk.help.crash_reports import MOST_REPORTS, CrashReport, CrashReports
from tests.links import skip_without_links

ENDLESS = """
import sys
from pathlib import Path
from qwendesk.help.crash_reports import CrashReports
reports = CrashReports(Path(sys.argv[1]), Path(sys.argv[2]))
reports.begin()
print("running", flush=True)
sys.stdin.read()
reports.end()
"""


def start(tmp_path: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", ENDLESS, str(tmp_path / "crashes"), str(tmp_path / "window.log")]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline().rstrip() == b"running"
    return process


def reports(tmp_path: Path) -> CrashReports:
    return CrashReports(tmp_path / "crashes", tmp_path / "window.log")


def end(process: subprocess.Popen[bytes]) -> None:
    process.communicate()


def test_an_app_that_was_killed_is_reported_at_the_next_start(tmp_path: Path) -> None:
    (tmp_path / "window.log").write_text("2026-11-21 ERROR something broke\n")
    process = start(tmp_path)
    process.kill()
    end(process)
    mine = reports(tmp_path)
    mine.begin()
    ((_, report),) = mine.pending()
    mine.end()
    assert report.of == "app"
    assert "didn't close properly" in report.sentence
    assert "something broke" in report.text()


@pytest.mark.skipif(sys.platform == "win32", reason="no such signal")
def test_native_crash_leaves_its_stack(tmp_path: Path) -> None:
    process = start(tmp_path)
    os.kill(process.pid, signal.SIGSEGV)
    end(process)
    mine = reports(tmp_path)
    mine.begin()
    ((_, report),) = mine.pending()
    mine.end()
    assert any("Segmentation fault" in line for line in report.lines)


def test_app_that_closed_properly_or_still_runs_is_not_reported(tmp_path: Path) -> None:
    ended, running = start(tmp_path), start(tmp_path)
    end(ended)
    mine = reports(tmp_path)
    mine.begin()
    assert mine.pending() == ()
    mine.end()
    end(running)
    assert list((tmp_path / "crashes").iterdir()) == []


def test_engine_crash_is_reported_without_folders_or_user_name(tmp_path: Path) -> None:
    mine = reports(tmp_path)
    secret = str(Path.home() / "secret")
    options = LoadOptions(model=f"{secret}/model.gguf", lora=(f"{secret}/a.bin=0.5", f"{secret}/b.bin"), n_ctx=4096)
    sentence = f"There is no file {Path.home()}/picture.png."
    mine.save_engine_crash(EngineExit(-6, sentence, (f"at {Path.home()}/x.cpp:12", "/run/media/anna/y")), options)
    ((file, report),) = mine.pending()
    assert str(Path.home()) not in file.read_text()
    text = report.text()
    assert "lora = a.bin=0.5, b.bin" in text
    assert "There is no file ~/picture.png." in text
    assert "/run/media/USER/y" in text
    assert "model = model.gguf" in text
    assert "n_ctx = 4096" in text
    assert "at ~/x.cpp:12" in text
    assert str(Path.home()) not in text


def test_report_of_an_older_version_is_redacted(tmp_path: Path) -> None:
    home = str(Path.home())
    report = CrashReport(
        of="engine", time="2026-11-20", version="0.1.0", system="Linux", sentence=f"No {home}/x.", lines=(f"{home}/y",),
        options={"lora": f"('{home}/loras/secret.gguf=0.5',)"},
    )  # fmt: skip
    mine = reports(tmp_path)
    mine.save(report, tmp_path / "report.txt")
    text = (tmp_path / "report.txt").read_text()
    assert home not in text
    assert "lora = ('secret.gguf=0.5',)" in text


def test_reports_are_saved_dismissed_and_never_pile_up(tmp_path: Path) -> None:
    times = iter(range(10_000))
    begin = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    mine = CrashReports(tmp_path / "crashes", now=lambda: begin + datetime.timedelta(seconds=next(times)))
    for number in range(MOST_REPORTS + 5):
        mine.save_engine_crash(EngineExit(1, f"Crash {number}."), None)
    pending = mine.pending()
    assert len(pending) == MOST_REPORTS
    assert pending[-1][1].sentence == f"Crash {MOST_REPORTS + 4}."
    mine.save(pending[-1][1], tmp_path / "report.txt")
    assert "Crash 24." in (tmp_path / "report.txt").read_text()
    mine.dismiss()
    assert mine.pending() == ()


def test_folder_that_cannot_be_created_causes_no_error(tmp_path: Path) -> None:
    (tmp_path / "crashes").write_text("in the way")
    mine = reports(tmp_path)
    mine.begin()
    mine.save_engine_crash(EngineExit(1, "It died."), None)
    assert mine.pending() == ()
    mine.end()


def test_nothing_is_deleted_in_a_linked_folder(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    skip_without_links(tmp_path)
    other = tmp_path / "other app" / "crash-20260101T000000000000-app.json"
    other.parent.mkdir()
    for number in range(MOST_REPORTS + 5):
        other.with_name(f"crash-20260101T{number:012}-app.json").touch()
    (tmp_path / "crashes").symlink_to(other.parent, target_is_directory=True)
    kept = reports(tmp_path)
    kept.begin()
    kept.save_engine_crash(EngineExit(1, "The engine stopped.", ()), None)
    kept.dismiss()
    kept.end()
    assert len(list(other.parent.iterdir())) == MOST_REPORTS + 5
    assert f"{tmp_path / 'crashes'} is a link to {other.parent}" in caplog.text


def test_only_crash_reports_are_deleted(tmp_path: Path) -> None:
    """However many there are."""
    (tmp_path / "crashes").mkdir()
    foreign = tmp_path / "crashes" / "crash-of-another-app.json"
    foreign.write_text("{}", encoding="utf-8")
    kept = reports(tmp_path)
    for _ in range(MOST_REPORTS + 5):
        kept.save_engine_crash(EngineExit(1, "The engine stopped.", ()), None)
    kept.dismiss()
    assert list((tmp_path / "crashes").iterdir()) == [foreign]
