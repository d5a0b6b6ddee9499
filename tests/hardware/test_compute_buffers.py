"""Memory by our formulas against what the engine itself plans, and against what it printed on other people's PCs."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from qwendesk.core.devices import DeviceInfo
from qwendesk.core.model_facts import ModelFacts
from qwendesk.core.options import LoadOptions
from qwendesk.core.paths import demo_model
from qwendesk.core.plan import DevicePlan, MachineMemory
from qwendesk.core.units import GIB, MIB
from qwendesk.hardware.memory_estimate import memory_use
from qwendesk.hardware.model_memory import kv_bytes, layer_kv_bytes, recurrent_bytes
from qwendesk.hub.gguf import read_facts
from tools.hollow_model import write_hollow
from tools.qwen_header import REAL_SIZES

DATA = Path(__file__).parent.parent / "data"
RECORDED: list[dict[str, Any]] = json.loads((DATA / "engine_memory.json").read_text())["rows"]
LOGGED: list[dict[str, Any]] = json.loads((DATA / "logged_memory.json").read_text())["rows"]
LONG = 131_072
"""With whole layers in RAM and more context than this, what a GPU borrows depends on how the engine packs its buffer:
there the formula is only good to a fifth."""


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ModelFacts]:
    folder = tmp_path_factory.mktemp("hollow")
    return {size: read_facts(write_hollow(folder / f"{size}.gguf", size)) for size in REAL_SIZES}


def memory_of(facts: ModelFacts, row: dict[str, Any]) -> dict[str, DevicePlan]:
    cards = [
        DeviceInfo(f"GPU{number}", "Card", "gpu", "X", int(gib * GIB), int(gib * GIB))
        for number, gib in enumerate(row["cards_gib"])
    ]
    pc = MachineMemory(devices=tuple(cards), ram_total_bytes=512 * GIB, ram_available_bytes=512 * GIB)
    values = {key: tuple(value) if isinstance(value, list) else value for key, value in row["options"].items()}
    memory = memory_use(facts, LoadOptions(model="m.gguf", **values), pc)
    return {device.name: device for device in (*memory.gpus, memory.ram)}


def parts_of(device: DevicePlan) -> tuple[float, ...]:
    sizes = (device.weights_bytes, device.kv_bytes, device.recurrent_bytes, device.compute_bytes)
    return tuple(size / MIB for size in sizes)


def test_recorded_sizes_cover_the_usual_placements() -> None:
    options = [row["options"] for row in RECORDED]

    assert {row["size"] for row in RECORDED} == set(REAL_SIZES) - {"flash-next"}, "that is compared in test_dry_run.py"
    assert {4096, 32_768, 131_072, 262_144} <= {each["n_ctx"] for each in options}
    assert {512, 1024, 2048} <= {each.get("n_ubatch", 512) for each in options}
    assert {"on", "off"} <= {each.get("flash_attn") for each in options}
    assert {0, "all", 20, 32} <= {each["n_gpu_layers"] for each in options}
    assert {0, 10, 40, 48} <= {each["n_cpu_moe"] for each in options}
    assert {0, 1, 2, 3} == {len(row["cards_gib"]) for row in RECORDED}


def test_estimates_are_close_to_the_engines_sizes(models: dict[str, ModelFacts]) -> None:
    """Weights within 1%, caches and states within 2%, compute buffers within 15% (and 4 MiB, for the smallest)."""
    wrong = []
    for row in RECORDED:
        ours = memory_of(models[row["size"]], row)
        is_hard = row["options"]["n_gpu_layers"] != "all" and row["options"]["n_ctx"] > LONG
        for name, real in row["mib"].items():
            allowed = (0.01, 0.02, 0.02, 0.22 if is_hard else 0.15)
            for what, planned, wanted, share in zip(
                ("weights", "KV", "state", "compute"), parts_of(ours[name]), real, allowed, strict=True
            ):
                if abs(planned - wanted) > max(share * wanted, 4):
                    wrong.append(f"{row['size']} {row['options']} {name} {what}: {wanted:.0f}, not {planned:.0f} MiB")
    assert wrong == []


def named(models: dict[str, ModelFacts], name: str) -> ModelFacts:
    return models[name.split("-", maxsplit=1)[0].lower()]


@pytest.mark.parametrize("row", LOGGED, ids=lambda row: f"{row['model']}-{row.get('n_ctx', '')}-{row.get('n_seq', 1)}")
def test_cache_and_state_sizes_match_logs_of_users(row: dict[str, Any], models: dict[str, ModelFacts]) -> None:
    facts = named(models, row["model"])

    if "kv_mib" in row:
        types = LoadOptions(model="m", type_k=row["type_k"], type_v=row["type_v"])
        found = kv_bytes(facts, types, row["n_ctx"])
        assert found / MIB == pytest.approx(row["kv_mib"], rel=0.02)
    if "k_only_mib" in row:
        no_values = msgspec.structs.replace(facts, value_length=0, embedding_length=0)
        assert kv_bytes(no_values, LoadOptions(model="m", type_k=row["type_k"]), row["n_ctx"]) / MIB == pytest.approx(
            row["k_only_mib"], rel=0.02
        )
    if "recurrent_mib" in row:
        found = recurrent_bytes(facts, row.get("n_seq", 1))
        assert found / MIB == pytest.approx(row["recurrent_mib"], rel=0.02)


def test_a_batch_is_never_longer_than_the_context(models: dict[str, ModelFacts]) -> None:
    row = {"cards_gib": [], "options": {"n_ctx": 256, "n_ubatch": 2048}}
    short = {"cards_gib": [], "options": {"n_ctx": 256, "n_ubatch": 256}}

    assert memory_of(models["9b"], row) == memory_of(models["9b"], short)


@pytest.mark.parametrize(("options", "engine_mib"), [({}, 1.3), ({"n_cpu_moe": 8, "n_ubatch": 1024}, 0.5)])
def test_a_gpu_with_only_the_output_and_the_draft_head_needs_no_buffer_of_a_layer(
    options: dict[str, Any], engine_mib: float
) -> None:
    """The demo split 3 to 1, as tests/gpu/test_memory.py loads it: none of the 8 layers that run is on the second."""
    row = {"cards_gib": [8, 8], "options": {"n_ctx": 32_768, "tensor_split": (3.0, 1.0), **options}}
    first, second = (memory_of(read_facts(demo_model()), row)[name] for name in ("GPU0", "GPU1"))

    assert (first.layers, second.layers) == (8, 0)
    assert second.weights_bytes
    assert second.compute_bytes / MIB == pytest.approx(engine_mib, abs=0.1)
    assert first.compute_bytes > 32 * MIB


def test_drafting_costs_a_layer_and_its_context(tmp_path: Path) -> None:
    facts = read_facts(write_hollow(tmp_path / "mtp.gguf", "4b", nextn_layers=1))
    plain = read_facts(write_hollow(tmp_path / "plain.gguf", "4b"))
    options = LoadOptions(model="m.gguf", n_ctx=32_768)
    pc = MachineMemory(ram_total_bytes=64 * GIB, ram_available_bytes=64 * GIB)

    with_mtp = msgspec.structs.replace(options, speculative="mtp")
    without, with_draft = memory_use(facts, options, pc).ram, memory_use(facts, with_mtp, pc).ram
    layer_kv = layer_kv_bytes(facts, 32_768)

    assert without.total_bytes == memory_use(plain, options, pc).ram.total_bytes
    assert with_draft.draft_bytes > layer_kv + sum(
        tensor.n_bytes for tensor in facts.tensors if "blk.32." in tensor.name
    )
