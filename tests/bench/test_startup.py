"""The window is drawn before anything heavy is imported. How long that takes is measured, not tested."""

from pathlib import Path

import pytest

from bench.startup import start_once


@pytest.mark.parametrize("kind", ["ours", "bare"])
def test_nothing_heavy_is_imported_before_the_window_is_drawn(kind: str, tmp_path: Path) -> None:
    start, _ = start_once("ours" if kind == "ours" else "bare", tmp_path)
    assert start.heavy == ()
    assert start.reads_sources == (kind == "bare")
    assert start.cpu_s > 0
