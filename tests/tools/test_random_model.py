"""Random models of real dimensions: the engine loads them and writes tokens, with a picture too."""

from pathlib import Path

import msgspec
import numpy as np
import pytest

from qwendesk.hub.gguf import read_facts
from tools import random_model
from tools.bench_model import SIZES
from tools.hollow_model import write_hollow
from tools.random_model import write_random, write_random_mmproj

TINY = msgspec.structs.replace(SIZES["tiny"], vocab_size=3000)


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(random_model, "REAL_SIZES", {"tiny": TINY})
    return "tiny"


def test_tensors_are_those_of_a_hollow_model(tmp_path: Path, tiny: str) -> None:
    written = read_facts(write_random(tmp_path / "random.gguf", tiny))
    hollow = read_facts(write_hollow(tmp_path / "hollow.gguf", TINY))

    assert written.tensors == hollow.tensors
    assert written.has_think_token


@pytest.mark.parametrize("quant", ["q4_k_m", "q8_0"])
def test_engine_answers_with_the_model(tmp_path: Path, tiny: str, quant: str) -> None:
    import llama_cpp  # loads the engine, which only this test needs

    model = llama_cpp.Llama(
        str(write_random(tmp_path / "random.gguf", tiny, quant)), n_ctx=128, n_threads=1, verbose=False
    )
    try:
        model.eval(model.tokenize(b"What is a quant?", add_bos=False))
        logits = np.ctypeslib.as_array(llama_cpp.llama_get_logits(model.ctx), (3000,))
        assert np.isfinite(logits).all()
        assert 0.1 < logits.std() < 10
    finally:
        model.close()


def test_vision_encoder_has_the_published_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unsloth's mmproj-BF16.gguf of Qwen3.5-35B-A3B has 902,822,528 bytes."""
    monkeypatch.setattr(random_model, "VISION_LAYERS", 1)
    one = write_random_mmproj(tmp_path / "one.gguf", 2048).stat().st_size
    monkeypatch.setattr(random_model, "VISION_LAYERS", 2)
    two = write_random_mmproj(tmp_path / "two.gguf", 2048).stat().st_size

    assert one + 26 * (two - one) == pytest.approx(902_822_528, rel=1e-4)
