"""The generated benchmark models: the engine loads them, reads English with them, and writes tokens."""

import shutil
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


def test_tokens_of_english_have_several_letters(engine: llama_cpp.Llama) -> None:
    tokens = engine.tokenize(ENGLISH.encode(), add_bos=False)

    assert len(ENGLISH) / len(tokens) > 2
    assert engine.detokenize(tokens).decode() == ENGLISH


def test_any_text_survives_the_tokenizer(engine: llama_cpp.Llama) -> None:
    text = "Zürich, 東京 🙂\tfoo_bar(x) += 1;\r\n    done"

    assert engine.detokenize(engine.tokenize(text.encode(), add_bos=False)).decode() == text


def test_special_tokens_are_single_and_of_the_right_kind(engine: llama_cpp.Llama) -> None:
    tokens = engine.tokenize(b"<|im_start|>user<think></think><|im_end|>", add_bos=False, special=True)

    assert tokens[-1] == engine.token_eos()
    assert tokens[-2] - tokens[-3] == 1
    vocab = llama_cpp.llama_model_get_vocab(engine.model)
    kinds = [llama_cpp.llama_vocab_get_attr(vocab, token) for token in (tokens[0], tokens[-3], tokens[-2], tokens[-1])]
    control, user_defined = llama_cpp.LLAMA_TOKEN_ATTR_CONTROL, llama_cpp.LLAMA_TOKEN_ATTR_USER_DEFINED
    assert kinds == [control, user_defined, user_defined, control]


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


def test_failed_quantisation_leaves_no_file(tmp_path: Path, few_tokens: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llama_cpp, "llama_model_quantize", lambda *_: 1)
    monkeypatch.setattr(bench_model, "ROOT", tmp_path / "root")
    (tmp_path / "root").mkdir()

    with pytest.raises(RuntimeError, match="quantiser"):
        make(tmp_path / "model.gguf", "tiny")

    assert list((tmp_path / "root" / ".work").iterdir()) == []
    assert list(tmp_path.glob("model*")) == []


def test_missing_disk_space_is_reported_before_writing(
    tmp_path: Path, few_tokens: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = shutil.disk_usage(tmp_path)._replace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: full)

    with pytest.raises(OSError, match="disk space"):
        make(tmp_path / "model.gguf", "tiny")


def test_the_largest_size_has_the_real_models_parameters() -> None:
    tensors = bench_model._Weights(SIZES["35b"], 0).tensors()
    numbers = sum(tensor.n_bytes // (2 if tensor.type == 1 else 4) for tensor in tensors)

    difference = (248_320 - bench_model.VOCABULARY_SIZE) * 2048 * 2
    assert (numbers + difference) / 1e9 == pytest.approx(34.66, abs=0.02)


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


def test_impossible_vocabulary_is_refused() -> None:
    with pytest.raises(ValueError, match="10000000 tokens"):
        vocabulary(10_000_000)
