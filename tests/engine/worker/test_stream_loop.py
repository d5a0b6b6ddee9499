"""The stream loop reads what it is told to, on the real engine. No speed is asserted."""

from pathlib import Path

import msgspec
import pytest

from qwendesk.core.benchmarks import Attention, Matrix, StreamTest
from qwendesk.core.engine_abi import EngineAbi, Signature, encode_abi, known_abis
from qwendesk.core.engine_manifest import ABI_TABLE_NAME
from qwendesk.core.errors import BadRequest
from qwendesk.engine.worker.stream import _ggml, stream

MIB = 1024**2
SMALL = Matrix("Q4_K", 256, 64)
ATTENTION = Attention(
    type_k="F16", type_v="F16", key_length=64, value_length=64, n_heads=4, n_heads_kv=2, n_tokens=300
)  # fmt: skip


@pytest.mark.parametrize("kind", ["F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL"])
def test_matrices_of_every_usual_type(kind: str) -> None:
    found = stream(StreamTest(matrices=(Matrix(kind, 256, 64, 3),), n_threads=1))

    assert found.matrices_s > 0
    assert found.ram_bytes_s > 0
    assert found.step_s > 0
    assert found.attention_s == 0


@pytest.mark.parametrize("kind", ["F16", "F32", "Q8_0"])
def test_attention(kind: str) -> None:
    attention = Attention(
        type_k=kind, type_v=kind, key_length=64, value_length=64, n_heads=4, n_heads_kv=2, n_tokens=300
    )  # fmt: skip

    assert stream(StreamTest(matrices=(), attention=attention, n_threads=2)).attention_s > 0


def test_a_matrix_that_is_larger_than_the_buffer_is_read_in_pieces() -> None:
    large = Matrix("F32", 4096, 20_000)

    assert large.n_in * large.n_out * 4 > 256 * MIB
    assert stream(StreamTest(matrices=(large,), n_threads=2)).matrices_s > 0


@pytest.mark.parametrize(
    "test",
    [
        StreamTest(matrices=(Matrix("Q9_9", 256, 64),), n_threads=1),
        StreamTest(matrices=(Matrix("Q4_K", 256, 64, 100_000),), n_threads=1),
        StreamTest(matrices=(SMALL,), attention=ATTENTION, n_threads=1, buffer_bytes=MIB // 16),
    ],
    ids=["unknown type", "too many", "no room"],
)
def test_what_cannot_be_measured_is_refused(test: StreamTest) -> None:
    with pytest.raises(BadRequest):
        stream(test)


@pytest.mark.parametrize(
    "other",
    [
        lambda abi: {"functions": {**abi.functions, "ggml_row_size": Signature("uint64", ("double",))}},
        lambda abi: {"functions": {name: each for name, each in abi.functions.items() if name != "ggml_cast"}},
        lambda abi: {"structs": {name: each for name, each in abi.structs.items() if name != "ggml_init_params"}},
    ],
    ids=["another type", "a missing function", "a missing struct"],
)
def test_an_engine_of_another_release_that_differs_here_is_not_measured(
    other: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    abi: EngineAbi = known_abis()[0]
    (tmp_path / ABI_TABLE_NAME).write_bytes(encode_abi(msgspec.structs.replace(abi, **other(abi))))  # type: ignore[operator]
    monkeypatch.setenv("LLAMA_CPP_LIB_PATH", str(tmp_path))
    _ggml.cache_clear()

    with pytest.raises(BadRequest) as refused:
        stream(StreamTest(matrices=(SMALL,), n_threads=1))

    assert "can't measure" in str(refused.value)
