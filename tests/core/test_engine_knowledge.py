"""What is said of a model that no engine of the app can load: which release can, as far as the last look tells."""

from pathlib import Path

import msgspec
import pytest

from qwendesk.core import paths
from qwendesk.core.engine_knowledge import EngineKnowledge, SeenRelease, read_knowledge
from qwendesk.core.options import LoadOptions
from qwendesk.engine.load_failures import classify_load
from qwendesk.engine.protocol import LoadRefused
from qwendesk.engines.engine_updates import EngineUpdateState
from qwendesk.engines.llama_releases import EngineRelease
from tests.fakes.engine_folders import make_engine

NEWEST = SeenRelease("b11861", ("qwen35", "qwen4"), 44, 212 * 1024**2)


def test_before_a_look_nothing_is_promised() -> None:
    assert EngineKnowledge().advice("qwen4") == "A newer engine may know it: check for one on the Engine page."


def test_the_newest_release_is_named_with_its_size() -> None:
    said = EngineKnowledge(newest=NEWEST).advice("qwen4")
    assert said == "It needs a newer engine: b11861 has it. Get it on the Engine page (212 MB)."


def test_where_no_engine_has_it_nobody_is_sent_to_an_update() -> None:
    said = EngineKnowledge(newest=NEWEST).advice("qwen5")
    assert said.startswith("No engine has it yet: b11861, llama.cpp's newest release at the last check")
    assert "Get it" not in said


def test_an_engine_that_is_here_comes_first() -> None:
    known = EngineKnowledge({"b11861-cpu": ("qwen4",)}, newest=NEWEST)
    assert known.advice("qwen4") == "The engine b11861-cpu on this PC knows it: choose it on the Engine page."


def test_it_is_read_from_the_engines_and_from_the_last_look(tmp_path: Path) -> None:
    make_engine(
        tmp_path / "own", "b11861-cpu", release="b11861", package_version="", architectures=("qwen4",), n_types=44
    )
    make_engine(tmp_path / "own", "vulkan", "vulkan")
    found = EngineRelease(
        tag="b11900",
        date="2026-11-20",
        backend="cpu",
        archives=(),
        architectures=("qwen5",),
        n_types=44,
        download_bytes=9,
    )
    state = EngineUpdateState(found)
    (tmp_path / "own" / "engine-updates.json").write_bytes(msgspec.json.encode(state))
    known = read_knowledge((tmp_path / "app", tmp_path / "own"))
    assert known == EngineKnowledge({"b11861-cpu": ("qwen4",)}, 44, SeenRelease("b11900", ("qwen5",), 44, 9))
    (tmp_path / "own" / "engine-updates.json").write_bytes(b"{")
    assert read_knowledge((tmp_path / "app", tmp_path / "own")).newest is None


def refused(line: str) -> str:
    failed = LoadRefused(id=1, stage="weights", message="It failed.", engine_lines=(line,))
    return classify_load(failed, LoadOptions(model="/models/Qwen4-27B.gguf")).sentence


def test_a_failed_load_says_which_engine_can(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "engine_places", lambda: (tmp_path / "app", tmp_path / "own"))
    make_engine(tmp_path / "own", "b11861-cpu", release="b11861", package_version="", architectures=("qwen4",))
    said = refused("llama_model_load: error loading model: unknown model architecture: 'qwen4'")
    assert said == (
        'Qwen4-27B.gguf needs "qwen4", which this engine doesn\'t know. The engine b11861-cpu on this PC knows it: '
        "choose it on the Engine page. Or choose another model."
    )
    said = refused("llama_model_load: error loading model: unknown pre-tokenizer type: 'q99'")
    assert "A newer engine may know it" in said, "releases list no tokenizers"
    assert "QwenDesk" not in said
