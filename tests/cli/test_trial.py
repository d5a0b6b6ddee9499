"""`qwendesk trial` on a made-up PC."""

import sys
from pathlib import Path

import pytest

from qwendesk.bench.pc_report import from_json
from qwendesk.bench.pc_trial import PcTrialState
from qwendesk.cli import main as cli
from qwendesk.cli import trial as cli_trial
from tests.bench.pc import TrialPc


class Keyboard:
    """Standard input with a user in front of it, who types that."""

    def __init__(self, typed: str) -> None:
        self._typed = typed

    def isatty(self) -> bool:
        return True

    def readline(self) -> str:
        return self._typed


@pytest.fixture
def pc(monkeypatch) -> TrialPc:
    pc = TrialPc()
    monkeypatch.setattr(cli_trial, "build_pc_trial", lambda: pc.trial)
    return pc


def test_trial_shows_the_page_and_saves_both_files(pc, tmp_path: Path, capsys):
    assert cli.main(["trial", "--yes", "--out", str(tmp_path / "reports")]) == 0

    shown = capsys.readouterr()
    page, report = sorted((tmp_path / "reports").iterdir(), key=lambda path: path.suffix, reverse=True)
    assert shown.out == page.read_text(encoding="utf-8")
    assert [engine.name for engine in from_json(report.read_bytes()).engines] == ["vulkan", "cpu-avx2", "cuda"]
    assert shown.err.count("read the meters (at most") == 1
    assert str(report) in shown.err


@pytest.mark.parametrize(("typed", "status", "n_files"), [("y\n", 0, 2), ("\n", 1, 0), ("n\n", 1, 0), ("", 1, 0)])
def test_report_is_kept_only_if_the_user_says_yes(pc, tmp_path, monkeypatch, typed, status, n_files):
    monkeypatch.setattr(sys, "stdin", Keyboard(typed))

    assert cli.main(["trial", "--out", str(tmp_path)]) == status

    assert len(list(tmp_path.iterdir())) == n_files


def test_without_a_terminal_it_says_so_before_it_measures(pc, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(Keyboard, "isatty", lambda _: False)
    monkeypatch.setattr(sys, "stdin", Keyboard(""))

    assert cli.main(["trial", "--out", str(tmp_path)]) == 2

    assert "Add --yes" in capsys.readouterr().err
    assert pc.clients == []


def test_folder_that_cannot_be_written_is_refused_before_it_measures(pc, tmp_path, capsys):
    file = tmp_path / "file"
    file.write_text("")

    assert cli.main(["trial", "--yes", "--out", str(file / "folder")]) == 2

    assert "Choose another folder" in capsys.readouterr().err
    assert pc.clients == []


def test_stopped_trial_is_saved_and_exits_as_interrupted(pc, tmp_path, monkeypatch):
    class PressedOnce(cli.Interrupts):
        """Ctrl+C comes while the first speed is measured."""

        def on_request(self, stop) -> None:
            super().on_request(stop)

            def press(state: PcTrialState) -> None:
                if state.lines and ", pp512" in state.lines[-1] and not self.is_requested:
                    self._on_signal(2, None)

            pc.trial.state.subscribe(press)

    monkeypatch.setattr(cli, "Interrupts", PressedOnce)

    assert cli.main(["trial", "--yes", "--out", str(tmp_path)]) == 130

    (saved,) = tmp_path.glob("*.json")
    report = from_json(saved.read_bytes())
    assert report.was_stopped
    assert report.engines[1].models[0].answers
