"""Perplexity and divergence by the real engine, against a plain computation from its logits."""

import json
import math
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import llama_cpp.llama_cpp as C  # noqa: N812
import numpy as np
import pytest

from qwendesk.core.benchmarks import TextScore, TextTest
from qwendesk.engine import protocol as p
from tests.engine.worker.process import WorkerProcess, demo_options, user, worker_process

N_CTX = 64
TEXT = (
    "VRAM spill happens when the model needs more GPU memory than there is. The driver then moves data to slow system "
    "RAM and the speed drops a lot. A quant has fewer bits for each weight. Experts are stored in RAM, and attention "
    "stays on the card. The context is how many tokens fit in one chat. A longer context needs more memory. "
) * 3


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def worker() -> Iterator[WorkerProcess]:
    with worker_process() as process:
        process.load(options())
        yield process


def options(**changes):
    return demo_options(mmproj="", n_ctx=512, **changes)


def score(worker: WorkerProcess, **fields) -> TextScore:
    last = ask(worker, **fields)
    assert isinstance(last, p.Benched), last
    assert isinstance(last.result, TextScore)
    return last.result


def refusal(worker: WorkerProcess, **fields) -> str:
    failed = ask(worker, **fields)
    assert isinstance(failed, p.RequestFailed), failed
    return failed.sentence.format(*failed.values)


def ask(worker: WorkerProcess, **fields) -> p.Event:
    given = {key: str(value) if isinstance(value, Path) else value for key, value in fields.items()}
    worker.send(p.Bench, test=TextTest(n_ctx=N_CTX, **given))
    return worker.until(p.RequestFailed, p.Benched)[-1]


def plain_perplexity(n_ctx: int, text: str) -> tuple[float, int]:
    """exp of the mean loss of the second half of each chunk, from logits of one token after the other."""
    model_params, params = C.llama_model_default_params(), C.llama_context_default_params()
    model_params.n_gpu_layers = 0
    model = C.llama_model_load_from_file(options().model.encode(), model_params)
    params.n_ctx, params.n_threads, params.n_threads_batch = 512, 1, 1
    ctx = C.llama_init_from_model(model, params)
    vocab = C.llama_model_get_vocab(model)
    raw = text.encode()
    room = (C.llama_token * (len(raw) + 8))()
    n_tokens = C.llama_tokenize(vocab, raw, len(raw), room, len(room), False, False)
    tokens, n_vocab = list(room[:n_tokens]), C.llama_vocab_n_tokens(vocab)
    losses = []
    for start in range(0, n_tokens - n_ctx + 1, n_ctx):
        chunk = tokens[start : start + n_ctx]
        C.llama_memory_clear(C.llama_get_memory(ctx), True)
        for position, token in enumerate(chunk[:-1]):
            one = (C.llama_token * 1)(token)
            assert C.llama_decode(ctx, C.llama_batch_get_one(one, 1)) == 0
            if position >= n_ctx // 2:
                logits = np.ctypeslib.as_array(C.llama_get_logits(ctx), (n_vocab,)).astype(np.float64)
                losses.append(np.log(np.exp(logits - logits.max()).sum()) + logits.max() - logits[chunk[position + 1]])
    C.llama_free(ctx)
    C.llama_model_free(model)
    return math.exp(np.mean(losses)), len(losses)


def test_perplexity_is_that_of_a_plain_computation(worker: WorkerProcess, text: Path) -> None:
    C.llama_backend_init()
    expected, n_tokens = plain_perplexity(N_CTX, TEXT)

    found = score(worker, path=text)

    assert found.n_tokens == n_tokens == found.n_chunks * (N_CTX // 2 - 1)
    assert found.perplexity == pytest.approx(expected, rel=5e-3)  # batches round otherwise than single tokens
    assert 0 < found.error < found.perplexity
    assert found.divergence is None


def test_a_model_does_not_differ_from_itself(worker: WorkerProcess, text: Path, tmp_path: Path) -> None:
    base = tmp_path / "base.qdbase"
    plain = score(worker, path=text, save_base=base)

    found = score(worker, path=text, base=base)

    assert found.perplexity == plain.perplexity
    divergence = found.divergence
    assert divergence is not None
    assert (divergence.mean, divergence.maximum, divergence.same_top) == (0.0, 0.0, 1.0)
    assert divergence.base_perplexity == pytest.approx(plain.perplexity)
    assert [path.name for path in tmp_path.iterdir() if path.name.endswith(".new")] == []


def test_a_coarse_cache_differs_a_little(worker: WorkerProcess, text: Path, tmp_path: Path) -> None:
    base = tmp_path / "base.qdbase"
    score(worker, path=text, save_base=base)
    found = {}
    with worker_process() as other:
        for kind in ("q8_0", "q4_0"):
            other.load(options(type_k=kind, type_v=kind))
            found[kind] = score(other, path=text, base=base).divergence

    assert found["q8_0"] is not None
    assert found["q4_0"] is not None
    assert 0 < found["q8_0"].mean < 0.1
    assert found["q8_0"].mean < found["q4_0"].mean
    assert found["q8_0"].median <= found["q8_0"].p99 <= found["q8_0"].maximum
    assert 0.5 < found["q4_0"].same_top <= found["q8_0"].same_top <= 1


def test_only_so_many_chunks_are_read(worker: WorkerProcess, text: Path) -> None:
    assert score(worker, path=text, most_chunks=2).n_chunks == 2


def test_a_text_that_is_too_short_missing_or_no_text_is_refused(worker: WorkerProcess, tmp_path: Path) -> None:
    short, binary = tmp_path / "short.txt", tmp_path / "picture.txt"
    short.write_text("Only this.", encoding="utf-8")
    binary.write_bytes(b"\xff\xfe\x00" * 500)

    assert "Choose a longer text" in refusal(worker, path=short)
    assert "picture.txt isn't a UTF-8 text" in refusal(worker, path=binary)
    assert "none.txt can't be read" in refusal(worker, path=tmp_path / "none.txt")
    assert "can't be read" in refusal(worker, path=tmp_path)


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda content: content[:-100], "is cut off"),
        (lambda content: content[:-100] + bytes(100), "is damaged"),
        (lambda content: content[:30] + b"x" + content[31:], "is damaged"),
        (lambda content: b"GGUF" + content[4:], "isn't a base"),
        (lambda _content: b"", "isn't a base"),
        (lambda content: content[:100], "is damaged"),
    ],
)
def test_a_damaged_base_is_refused(worker: WorkerProcess, text: Path, tmp_path: Path, damage, sentence: str) -> None:
    base = tmp_path / "base.qdbase"
    score(worker, path=text, save_base=base, most_chunks=2)
    base.write_bytes(damage(base.read_bytes()))

    assert sentence in refusal(worker, path=text, base=base, most_chunks=2)


def rewritten(content: bytes, **changes) -> bytes:
    """A base with another header."""
    _magic, length, _crc = struct.unpack("<8sII", content[:16])
    header = json.dumps(json.loads(content[16 : 16 + length]) | changes).encode()
    return struct.pack("<8sII", b"QDBASE01", len(header), zlib.crc32(header)) + header + content[16 + length :]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"text_sha256": "0" * 64}, "from another text"),
        ({"n_vocab": 99}, "a vocabulary of 99"),
        ({"n_chunks": 7}, "7 chunks"),
        ({"tokens_sha256": "0" * 64}, "another vocabulary"),
        ({"n_ctx": "many"}, "isn't a base"),
        ({"n_kept": 10**15}, "isn't a base"),
        ({"n_ctx": -5}, "isn't a base"),
    ],
)
def test_a_base_of_something_else_is_refused(
    worker: WorkerProcess, text: Path, tmp_path: Path, changes, sentence: str
) -> None:
    base = tmp_path / "base.qdbase"
    score(worker, path=text, save_base=base, most_chunks=2)
    base.write_bytes(rewritten(base.read_bytes(), **changes))

    assert sentence in refusal(worker, path=text, base=base, most_chunks=2)


def test_a_base_that_can_t_be_written_leaves_nothing(worker: WorkerProcess, text: Path, tmp_path: Path) -> None:
    found = refusal(worker, path=text, save_base=tmp_path / "none" / "base.qdbase")

    assert "can't be written" in found
    assert sorted(path.name for path in tmp_path.iterdir()) == ["text.txt"]


def test_a_stop_ends_the_scoring_and_leaves_no_base(worker: WorkerProcess, text: Path, tmp_path: Path) -> None:
    text.write_text(TEXT * 200, encoding="utf-8")
    target = worker.send(p.Bench, test=TextTest(path=str(text), n_ctx=N_CTX, save_base=str(tmp_path / "base.qdbase")))
    worker.expect(p.BenchProgress)

    worker.send(p.Cancel, target=target)
    failed = worker.until(p.RequestFailed, p.Benched)[-1]

    assert isinstance(failed, p.RequestFailed)
    assert failed.title == "Cancelled"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["text.txt"]
    assert score(worker, path=text, most_chunks=1).n_chunks == 1


def test_chats_go_on_after_a_text_was_scored(worker: WorkerProcess, text: Path) -> None:
    before = worker.ask([user("What is 2 + 3?")])
    score(worker, path=text, most_chunks=1)

    assert worker.ask([user("What is 2 + 3?")]).text == before.text
