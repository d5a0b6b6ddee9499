"""Broken and hostile files end in a clear error: never in a crash, a hang or a lot of memory."""

import os
import random
import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from qwendesk.core.errors import BadModelFile
from qwendesk.core.model_facts import ModelFacts
from qwendesk.hub.gguf import facts_of, read_facts
from qwendesk.hub.gguf_source import BadHeader
from tests.gguf_files import Q4_K, header_of, model_values, raw_header, tensor, write_cut, write_model
from tools.gguf_writer import Tensor, text_bytes

LIST, TEXT, U32 = 9, 8, 4


class Memory:
    """A file that exists only here."""

    name = "made-up.gguf"

    def __init__(self, data: bytes, size: int | None = None) -> None:
        self._data = data
        self.size = len(data) if size is None else size

    def read(self, offset: int, length: int) -> bytes:
        piece = self._data[offset : offset + length]
        return piece + bytes(max(min(length, self.size - offset) - len(piece), 0))


def refusal(data: bytes, size: int | None = None) -> BadModelFile:
    with pytest.raises(BadModelFile) as caught:
        facts_of(Memory(data, size), "made-up")
    return caught.value


LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 22016023168\n"
PAGE = b"<!DOCTYPE html>\n<html><head><title>401</title></head><body>" + b"Access denied. " * 60 + b"</body></html>"


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"", "empty"),
        (LFS, "Git LFS pointer"),
        (PAGE, "web page"),
        (b'{"error":"Repository not found"}', "isn't one. Download it again"),
        (struct.pack("<Q", 4096) + b'{"__metadata__":{}}', "safetensors"),
        (b"PK\x03\x04" + bytes(60), "archive"),
        (b"tjgg" + bytes(60), "old GGML format"),
        (b"GGML" + bytes(60), "isn't one. Download it again"),
        (bytes(4096), "isn't one. Download it again"),
    ],
)
def test_file_that_is_not_gguf_is_named(tmp_path: Path, data: bytes, word: str) -> None:
    path = tmp_path / "Qwen.gguf"
    path.write_bytes(data)

    with pytest.raises(BadModelFile, match=word) as caught:
        read_facts(path)

    assert caught.value.kind == "not_gguf"
    assert caught.value.sentence.startswith("Qwen.gguf")


def test_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadModelFile, match="could not be found") as caught:
        read_facts(tmp_path / "gone.gguf")

    assert caught.value.kind == "missing_file"


def test_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadModelFile, match="folder"):
        read_facts(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_pipe_is_refused_without_waiting(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.gguf"
    os.mkfifo(pipe)

    with pytest.raises(BadModelFile, match="not a file"):
        read_facts(pipe)


def test_every_cut_of_the_header_is_called_truncated(tmp_path: Path) -> None:
    weights = [tensor("token_embd.weight", 64, 4), tensor("blk.0.w.weight", 256, 2, kind=Q4_K)]
    whole = write_model(tmp_path / "whole.gguf", model_values(), weights).read_bytes()

    for length in range(1, len(whole)):
        error = refusal(whole[:length])
        assert error.kind == "truncated", f"cut at {length}: {error}"


def test_missing_tensor_data_is_counted(tmp_path: Path) -> None:
    whole = write_model(tmp_path / "whole.gguf", model_values(), [tensor("token_embd.weight", 64, 16)]).read_bytes()
    path = write_cut(tmp_path / "cut.gguf", whole, len(whole) - 1000)

    with pytest.raises(BadModelFile, match="The last 1,000 bytes of 5 KB are missing") as caught:
        read_facts(path)

    assert caught.value.kind == "truncated"


def test_padding_after_the_last_tensor_may_be_missing(tmp_path: Path) -> None:
    whole = write_model(tmp_path / "whole.gguf", model_values(), [tensor("w.weight", 9)]).read_bytes()

    assert facts_of(Memory(whole[: len(whole) - (32 - 4)]), "").tensors[0].n_bytes == 36


def one_value(kind_and_value: bytes, key: str = "some.key") -> bytes:
    return raw_header(n_values=1, rest=text_bytes(key) + kind_and_value)


def one_tensor(name: str, n_dimensions: int, shape: tuple[int, ...], kind: int, offset: int) -> bytes:
    info = struct.pack(f"<I{len(shape)}QIQ", n_dimensions, *shape, kind, offset)
    return raw_header(n_tensors=1, rest=text_bytes(name) + info)


BIG = 2**63
HOSTILE: dict[str, Callable[[], bytes]] = {
    "big-endian": lambda: b"GGUF" + struct.pack(">IQQ", 3, 0, 0),
    "version 0": lambda: raw_header(version=0),
    "version 1": lambda: raw_header(version=1),
    "version 4": lambda: raw_header(version=4),
    "too many tensors": lambda: raw_header(n_tensors=BIG),
    "too many values": lambda: raw_header(n_values=BIG),
    "key without end": lambda: raw_header(n_values=1, rest=struct.pack("<Q", BIG)),
    "key of 1 MB": lambda: raw_header(n_values=1, rest=text_bytes("k" * 1_000_000)),
    "empty key": lambda: one_value(struct.pack("<II", U32, 1), key=""),
    "key twice": lambda: raw_header(n_values=2, rest=(text_bytes("k") + struct.pack("<II", U32, 1)) * 2),
    "unknown value type": lambda: one_value(struct.pack("<I", 77)),
    "text without end": lambda: one_value(struct.pack("<IQ", TEXT, BIG)),
    "kept text of 2 MB": lambda: one_value(
        struct.pack("<I", TEXT) + text_bytes("x" * 2_000_000), "tokenizer.chat_template"
    ),
    "list in a list": lambda: one_value(struct.pack("<IIQ", LIST, LIST, 1)),
    "lists nested without end": lambda: one_value(struct.pack("<I", LIST) + struct.pack("<IQ", LIST, 1) * 10_000),
    "list without end": lambda: one_value(struct.pack("<IIQ", LIST, U32, BIG)),
    "texts without end": lambda: one_value(struct.pack("<IIQ", LIST, TEXT, BIG)),
    "one token again and again": lambda: one_value(
        struct.pack("<IIQ", LIST, TEXT, 1000) + text_bytes("<think>") * 1000, "tokenizer.ggml.tokens"
    ),
    "alignment 0": lambda: one_value(struct.pack("<II", U32, 0), "general.alignment"),
    "alignment 3": lambda: one_value(struct.pack("<II", U32, 3), "general.alignment"),
    "alignment as text": lambda: one_value(struct.pack("<I", TEXT) + text_bytes("32"), "general.alignment"),
    "too many layers": lambda: raw_header(
        n_values=2,
        rest=text_bytes("general.architecture")
        + struct.pack("<I", TEXT)
        + text_bytes("m")
        + text_bytes("m.block_count")
        + struct.pack("<II", U32, 2**31),
    ),
    "tensor name too long": lambda: one_tensor("n" * 64, 1, (32,), 0, 0),
    "tensor with 5 dimensions": lambda: one_tensor("w", 5, (1, 1, 1, 1, 1), 0, 0),
    "tensor with 4 billion dimensions": lambda: one_tensor("w", 2**32 - 1, (), 0, 0),
    "tensor of an unknown type": lambda: one_tensor("w", 1, (32,), 99, 0),
    "tensor of a removed type": lambda: one_tensor("w", 1, (32,), 4, 0),
    "tensor of another program's type": lambda: one_tensor("w", 1, (32,), 142, 0),
    "tensor of a type beyond all programs": lambda: one_tensor("w", 1, (32,), 400, 0),
    "tensor beyond all numbers": lambda: one_tensor("w", 4, (2**40, 2**40, 2**40, 2**40), 0, 0),
    "tensor with a broken block": lambda: one_tensor("w", 1, (33,), 8, 0),
    "tensor data far away": lambda: one_tensor("w", 1, (32,), 0, 2**62),
    "tensor twice": lambda: raw_header(n_tensors=2, rest=(text_bytes("w") + struct.pack("<IQIQ", 1, 0, 0, 0)) * 2),
}


UNSUPPORTED = (
    "big-endian", "version 0", "version 1", "version 4", "tensor of an unknown type", "tensor of a removed type",
    "tensor of another program's type",
)  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_headers_are_called_damaged(name: str) -> None:
    error = refusal(HOSTILE[name]())

    assert error.kind == ("unsupported_architecture" if name in UNSUPPORTED else "other")
    assert "made-up.gguf" in error.sentence


def test_big_endian_is_named() -> None:
    assert "big-endian" in refusal(HOSTILE["big-endian"]()).sentence


@pytest.mark.parametrize(
    ("number", "case", "program"),
    [
        (142, "fork-type", "PrismML-Eng/llama.cpp"),
        (143, "fork-type", "PrismML-Eng/llama.cpp"),
        (133, "fork-type", "ik_llama.cpp"),
        (144, "fork-type", "ik_llama.cpp"),
        (158, "fork-type", "ik_llama.cpp"),
        (212, "fork-type", "ik_llama.cpp"),
        (399, "fork-type", "ik_llama.cpp"),
        (100, "unknown-fork", ""),
        (300, "unknown-fork", ""),
        (31, "removed-type", ""),
        (43, "tensor-type", ""),
    ],
)
def test_a_type_of_another_program_names_it_and_never_says_update(number: int, case: str, program: str) -> None:
    error = refusal(one_tensor("w", 1, (32,), number, 0))

    assert isinstance(error, BadHeader)
    assert error.case == case
    assert program in error.sentence
    assert "pdate QwenDesk" not in error.sentence
    assert ("on the Engine page" in error.sentence) == (case == "tensor-type")


def test_rotated_weights_are_refused_though_their_type_is_known() -> None:
    """As Ternary-Bonsai 2 in Q2_0 has them: llama.cpp loads it and answers nonsense."""
    values = model_values(prism__hadamard__block_size=1024)

    error = refusal(header_of(values, [Tensor("w", (64,), 42, ())]) + bytes(64))

    assert error.kind == "unsupported_architecture"
    assert "PrismML-Eng/llama.cpp" in error.sentence


SPARSE_SIZE = 2**40
ENDLESS = {
    "many empty tokens": struct.pack("<IIQ", LIST, TEXT, 2**17),
    "a billion empty tokens": struct.pack("<IIQ", LIST, TEXT, 2**30),
    "a list of a terabyte": struct.pack("<IIQ", LIST, 0, 2**39),
    "a text of a terabyte": struct.pack("<IQ", TEXT, 2**39),
}


@pytest.mark.parametrize("name", ENDLESS)
def test_a_huge_sparse_file_costs_little(name: str) -> None:
    """The file claims a terabyte of zeros after its header, so that no length can be refused for the file's end."""
    data = one_value(ENDLESS[name], "tokenizer.ggml.tokens").replace(
        struct.pack("<QQ", 0, 1), struct.pack("<QQ", 0, 2), 1
    )
    source = Memory(data, SPARSE_SIZE)
    tracemalloc.start()
    try:
        with pytest.raises(BadModelFile):
            facts_of(source, "sparse")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak < 50 * 2**20


def test_strings_across_a_huge_file_are_abandoned_early() -> None:
    """Each text is as long as a window, so that each length costs a whole new read."""
    reads = 0

    class Jumping(Memory):
        def read(self, offset: int, length: int) -> bytes:
            nonlocal reads
            reads += 1
            return super().read(offset, length) if offset < 200 else struct.pack("<Q", 2**20).ljust(length, b"\0")

    data = one_value(struct.pack("<IIQ", LIST, TEXT, 2**20), "tokenizer.ggml.tokens")
    with pytest.raises(BadModelFile):
        facts_of(Jumping(data + struct.pack("<Q", 2**20), SPARSE_SIZE), "jumping")

    assert reads < 100


GOOD = header_of(
    model_values(), [Tensor("token_embd.weight", (64, 4), 0, ()), Tensor("blk.0.w.weight", (256, 2), Q4_K, ())]
)
WHOLE = GOOD + bytes(-len(GOOD) % 32) + bytes(1024 + 288)


def outcome(data: bytes) -> ModelFacts | BadModelFile:
    """Whatever the bytes are: facts or our own error, nothing else."""
    try:
        return facts_of(Memory(data), "mutated")
    except BadModelFile as error:
        return error


def test_unchanged_file_is_read() -> None:
    assert isinstance(outcome(WHOLE), ModelFacts)


changes = st.lists(st.tuples(st.integers(0, len(GOOD) - 1), st.integers(0, 255)), min_size=1, max_size=8)


@given(changes, st.integers(0, len(WHOLE)))
@example([(4, 255)], len(WHOLE))
@settings(max_examples=150)
def test_changed_and_cut_headers_give_facts_or_an_error(changes: list[tuple[int, int]], length: int) -> None:
    data = bytearray(WHOLE)
    for at, byte in changes:
        data[at] = byte

    found = outcome(bytes(data[:length]))

    if isinstance(found, BadModelFile):
        assert found.sentence.endswith(".")
        assert found.kind in {"not_gguf", "truncated", "unsupported_architecture", "other"}


@given(st.binary(max_size=300))
@settings(max_examples=100)
def test_random_bytes_after_the_magic_are_not_a_model(data: bytes) -> None:
    found = outcome(raw_header(n_tensors=3, n_values=7, rest=data))

    assert isinstance(found, BadModelFile)


@pytest.mark.soak
@settings(max_examples=20_000, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 2**32 - 1))
def test_many_changed_headers_give_facts_or_an_error(seed: int) -> None:
    chance = random.Random(seed)
    data = bytearray(WHOLE)
    for _ in range(chance.randint(1, 12)):
        at = chance.randrange(len(GOOD))
        data[at : at + 8] = chance.choice([chance.randbytes(1), struct.pack("<Q", 2 ** chance.randrange(64)), bytes(8)])

    outcome(bytes(data[: chance.choice([len(data), chance.randrange(len(data))])]))
