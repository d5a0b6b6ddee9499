"""What drafts gained is remembered by model, placement and context."""

from pathlib import Path

import msgspec

from qwendesk.core.options import DecidedOptions
from qwendesk.engines.draft_speedups import DraftSpeedups

OPTIONS = DecidedOptions(model="/models/a.gguf", speculative="mtp", n_ctx=8192)


def test_a_speedup_is_remembered_for_these_options_only(tmp_path: Path) -> None:
    file = tmp_path / "speedups.json"
    assert DraftSpeedups(file).speedup(OPTIONS) is None
    DraftSpeedups(file).note(OPTIONS, 1.5)
    again = DraftSpeedups(file)
    assert again.speedup(OPTIONS) == 1.5
    assert again.speedup(msgspec.structs.replace(OPTIONS, check_tensors=True)) == 1.5
    for change in (
        {"n_ctx": 4096},
        {"n_cpu_moe": 5},
        {"model": "/models/b.gguf"},
        {"draft_n_max": 5},
        {"type_k": "q8_0"},
    ):
        assert again.speedup(msgspec.structs.replace(OPTIONS, **change)) is None, change


def test_only_a_difference_that_matters_is_written(tmp_path: Path) -> None:
    file = tmp_path / "speedups.json"
    speedups = DraftSpeedups(file)
    speedups.note(OPTIONS, 1.5)
    before = file.stat().st_mtime_ns
    speedups.note(OPTIONS, 1.51)
    assert file.stat().st_mtime_ns == before
    speedups.note(OPTIONS, 0.8)
    assert speedups.speedup(OPTIONS) == 0.8


def test_a_folder_that_cannot_be_written_is_no_problem(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    DraftSpeedups(tmp_path / "file" / "speedups.json").note(OPTIONS, 1.5)


def test_after_a_month_it_is_tried_again(tmp_path: Path) -> None:
    day_s = 24 * 3600.0
    now = 1_000_000_000.0
    speedups = DraftSpeedups(tmp_path / "speedups.json", lambda: now)
    speedups.note(OPTIONS, 0.8)
    now += 29 * day_s
    assert speedups.speedup(OPTIONS) == 0.8
    now += 2 * day_s
    assert speedups.speedup(OPTIONS) is None
