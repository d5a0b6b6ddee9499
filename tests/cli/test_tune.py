"""`qwendesk bench --tune` with the real engine and the demo model, in a short time."""

from functools import partial
from pathlib import Path

import pytest

from qwendesk.bench.auto_tune import AutoTune
from qwendesk.cli import main as cli
from qwendesk.core.paths import demo_model
from qwendesk.settings.profiles import ProfilesService


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests of 10 milliseconds, and a clock that goes on by a second at each look: the search ends after a few."""
    seconds = iter(range(10_000))
    quick = partial(AutoTune, test_s=0.01, longest_s=60.0, clock=lambda: float(next(seconds)))
    monkeypatch.setattr("qwendesk.cli.tune.AutoTune", quick)


def test_what_was_tried_is_printed_with_its_speed(capsys: pytest.CaptureFixture[str]) -> None:
    before = ProfilesService().changes(str(demo_model()))

    assert cli.main(["bench", "--tune", "--set", "n_ctx=2048"]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("Your settings  ")
    assert "tok/s" in lines[0]
    assert lines[lines.index("") + 1].endswith(".")  # what came of it, whatever was fastest
    assert ProfilesService().changes(str(demo_model())) == before


def test_a_model_that_cannot_be_loaded(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert cli.main(["bench", str(tmp_path / "none.gguf"), "--tune"]) == 4

    assert "none.gguf" in capsys.readouterr().err
