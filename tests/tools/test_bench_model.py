"""The generated benchmark models: the engine loads them, reads English with them, and writes tokens."""

from collections.abc import Iterator
from pathlib import Path

import llama_cpp
import msgspec
import numpy as np
import pytest

from qwendesk.core.paths import demo_model
from qwendesk.hub.gguf import read_facts
from tools import bench_model
from tools.bench_model import SIZES, make
from tools.bench_vocabulary import CONTROL, CONTROL_TOKENS, NORMAL, USER_DEFINED, USER_DEFINED_TOKENS, vocabulary

ENGLISH = (
    "The quick brown fox jumps over the lazy dog. Running a model at home needs a graphics card with enough memory, "
    "and some patience.\n\nHow long does it take? I can't say: 12345 tokens, perhaps."
)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("bench") / "tiny.gguf", "tiny")


@pytest.fixture(scope="module")
def engine(tiny: Path) -> Iterator[llama_cpp.Llama]:
    model = llama_cpp.Llama(str(tiny), n_ctx=256, n_batch=64, n_threads=1, verbose=False)
    yield model
    model.close()


@pytest.fixture
def few_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    few = msgspec.structs.replace(SIZES["tiny"], vocab_size=3000)
    monkeypatch.setattr(bench_model, "SIZES", {"tiny": few})


def test_header_matches_a_real_model(tiny: Path) -> None:
    facts = read_facts(tiny)

    assert (facts.kind, facts.architecture, facts.quant) == ("model", "qwen35moe", "Q4_K_M")
    assert (facts.vocab_size, facts.has_think_token) == (150_000, True)
    assert (facts.attention_layers, facts.recurrent_layers) == (1, 3)
    assert facts.chat_template == read_facts(demo_model()).chat_template


def test_any_text_survives_the_tokenizer(engine: llama_cpp.Llama) -> None:
    text = "Zürich, 東京 🙂\tfoo_bar(x) += 1;\r\n    done"

    assert engine.detokenize(engine.tokenize(text.encode(), add_bos=False)).decode() == text


def test_engine_decodes_with_the_model(engine: llama_cpp.Llama) -> None:
    engine.eval(engine.tokenize(ENGLISH.encode(), add_bos=False))

    logits = np.ctypeslib.as_array(llama_cpp.llama_get_logits(engine.ctx), (150_000,))
    assert np.isfinite(logits).all()
    assert 0.1 < logits.std() < 10


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path, few_tokens: None) -> None:
    first = make(tmp_path / "a.gguf", "tiny").read_bytes()
    second = make(tmp_path / "b.gguf", "tiny").read_bytes()
    other = make(tmp_path / "c.gguf", "tiny", seed=1).read_bytes()

    assert first == second
    assert first != other


@pytest.mark.parametrize(("quant", "kind"), [("f16", "F16"), ("q8_0", "Q8_0"), ("Q4_K_M", "Q4_K")])
def test_file_has_the_requested_quant(tmp_path: Path, few_tokens: None, quant: str, kind: str) -> None:
    facts = read_facts(make(tmp_path / "model.gguf", "tiny", quant))

    kinds = {tensor.name: tensor.type for tensor in facts.tensors}
    assert kinds["blk.0.ffn_up_exps.weight"] == kind
    assert kinds["blk.0.attn_norm.weight"] == "F32"


@pytest.mark.parametrize("size", [600, 5_000, 150_000])
def test_every_token_is_made_of_earlier_ones(size: int) -> None:
    words = vocabulary(size)
    known = set(words.tokens[:256])
    for merge in words.merges:
        left, right = merge.split(" ")
        assert left in known
        assert right in known
        known.add(left + right)

    assert len(words.tokens) == len(set(words.tokens)) == len(words.types) == size
    assert set(words.tokens) - known == {*CONTROL_TOKENS, *USER_DEFINED_TOKENS}
    assert [words.types.count(kind) for kind in (NORMAL, CONTROL, USER_DEFINED)] == [size - 20, 14, 6]
