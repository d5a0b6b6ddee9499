"""Tables that stay on the drive, with the real engine and a small model of the Flash-Next architecture."""

import ctypes
from pathlib import Path
from typing import ClassVar

import llama_cpp.llama_cpp as C  # noqa: N812
import msgspec
import pytest

from qwendesk.core.errors import BadOption
from qwendesk.core.options import DecidedOptions
from qwendesk.engine.worker.loader import load
from qwendesk.engine.worker.log import EngineLog
from qwendesk.engine.worker.params import ModelParams
from tools.hollow_model import write_hollow
from tools.qwen_header import REAL_SIZES

LOG = EngineLog()
"""Never freed, because llama.cpp goes on calling it."""
SMALL = msgspec.structs.replace(
    REAL_SIZES["flash-next"],
    block_count=4,
    embedding_length=512,
    head_count=2,
    head_count_kv=1,
    ssm_group_count=1,
    ssm_inner_size=256,
    expert_count=4,
    expert_used_count=2,
    feed_forward_length=256,
    hyper_connection_rank=32,
    vocab_size=2048,
    ngram_rows=1_600_000,
    ngram_row_length=32,
)
TABLE_BYTES = 1_600_000 * 18
"""Rows of 32 values in IQ4_NL."""


def weights_in_ram(model: Path, **changes: object) -> int:
    values = {"n_gpu_layers": 0, "devices": ("none",), "n_ctx": 512, "n_threads": 1, "vision": "off"}
    options = DecidedOptions(model=str(model), **(values | changes))  # type: ignore[arg-type]
    session = load(options, LOG, lambda _stage, _fraction: None, lambda: False)
    try:
        return sum(row.weights_bytes for row in session.report.allocations)
    finally:
        session.close()


def test_a_table_read_lazily_is_not_counted(tmp_path: Path) -> None:
    LOG.install()
    model = write_hollow(tmp_path / "small.gguf", SMALL, loadable=True)

    in_ram = weights_in_ram(model, load_mode="none", lazy_mode="off")
    lazy = weights_in_ram(model, load_mode="none", lazy_mode="on")

    assert in_ram > TABLE_BYTES
    assert in_ram - lazy == pytest.approx(TABLE_BYTES, rel=0.05)


class OldParams(ctypes.Structure):
    """llama_model_params of an engine that has no lazy_mode."""

    _fields_: ClassVar = [(name, kind) for name, kind in C.llama_model_params._fields_ if name != "lazy_mode"]


def test_an_engine_without_lazy_mode_refuses_only_what_it_cannot_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(C, "llama_model_default_params", OldParams)

    ModelParams(DecidedOptions(model="m.gguf"), lambda _fraction: True)
    with pytest.raises(BadOption) as refused:
        ModelParams(DecidedOptions(model="m.gguf", lazy_mode="on"), lambda _fraction: True)

    assert "newer engine" in refused.value.sentence
