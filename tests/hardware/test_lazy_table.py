"""The n-gram table of Qwen3.8-Flash-Next: in RAM or read from the drive, and what the plan says about it."""

import msgspec
import pytest

from qwendesk.core.devices import DeviceInfo
from qwendesk.core.model_facts import ModelFacts
from qwendesk.core.options import LoadOptions
from qwendesk.core.plan import DriveKind, MachineMemory, Plan
from qwendesk.core.units import GIB
from qwendesk.hardware.estimated_facts import estimate_facts
from qwendesk.hardware.model_memory import kv_bytes, lazy_table_bytes, recurrent_bytes
from qwendesk.hardware.planner import best_plan
from tools.qwen_header import REAL_SIZES

TABLE_BYTES = 28_800_138_240
"""Of per_layer_token_embd.weight in Unsloth's files, as in their headers."""
FACTS = estimate_facts(REAL_SIZES["flash-next"], "qwen4exp", 93_700_000_000, quant="UD-IQ4_XS")
CARD = DeviceInfo("CUDA0", "NVIDIA GeForce RTX 3090", "gpu", "CUDA", 24 * GIB, 23 * GIB)
STRIX_HALO = DeviceInfo("Vulkan0", "Radeon 8060S Graphics", "igpu", "Vulkan", 120 * GIB, 118 * GIB)


def plan(
    lazy_mode: str = "auto", *, gpu: DeviceInfo = CARD, drive: DriveKind = "", facts: ModelFacts = FACTS, ram: int = 128
) -> Plan:
    pc = MachineMemory(
        devices=(gpu,), ram_total_bytes=ram * GIB, ram_available_bytes=ram * GIB, drive=drive, physical_cores=8
    )
    asked = LoadOptions(model="m.gguf", n_ctx=32_768, lazy_mode=lazy_mode)  # type: ignore[arg-type]
    return best_plan(facts, None, pc, asked)


def test_caches_have_the_published_sizes() -> None:
    """24 KiB of KV cache and 3 KiB of indexer keys for each token, 112.2 MiB of recurrent state."""
    assert kv_bytes(FACTS, LoadOptions(model="m"), 4096) == 4096 * 27 * 1024
    assert recurrent_bytes(FACTS) == 117_669_888


def test_the_table_stays_on_the_drive_and_takes_no_ram() -> None:
    lazy, in_ram = plan(), plan("off")

    assert lazy.memory.lazy_bytes == TABLE_BYTES
    assert in_ram.memory.lazy_bytes == 0
    assert in_ram.ram_bytes - lazy.ram_bytes == pytest.approx(TABLE_BYTES, rel=0.01)


def test_a_pc_too_small_for_the_table_still_fits_the_rest() -> None:
    assert plan(ram=62).fits
    assert not plan("off", ram=62).fits


@pytest.mark.parametrize(("lazy_mode", "expected"), [("auto", 0), ("off", 0), ("on", TABLE_BYTES)])
def test_a_gpu_that_shares_the_ram_keeps_the_table_there_unless_told_otherwise(lazy_mode: str, expected: int) -> None:
    found = plan(lazy_mode, gpu=STRIX_HALO)

    assert found.memory.lazy_bytes == expected
    assert any("for a GPU that shares the RAM" in sentence for sentence in found.why) == (lazy_mode == "auto")


def test_a_small_table_is_read_whole_unless_told_otherwise() -> None:
    small = msgspec.structs.replace(REAL_SIZES["flash-next"], ngram_rows=1_000_000)
    facts = estimate_facts(small, "qwen4exp", 65_000_000_000)

    assert plan(facts=facts).memory.lazy_bytes == 0
    assert plan("on", facts=facts).memory.lazy_bytes == 1_000_000 * 90


@pytest.mark.parametrize(
    ("drive", "said"),
    [("ssd", "stays on the SSD"), ("hdd", "Move the model to an SSD"), ("", "which should be an SSD")],
)
def test_the_plan_says_which_drive_the_table_is_on(drive: DriveKind, said: str) -> None:
    assert any(said in sentence for sentence in plan(drive=drive).why)
    assert not any(said in sentence for sentence in plan("off", drive=drive).why)


def test_a_hard_disk_is_slow_and_gets_a_warning() -> None:
    """A user measured 5 tok/s from a hard disk and 22 from an SSD."""
    disk, ssd = plan(drive="hdd"), plan(drive="ssd")

    assert "hard disk" in disk.label
    assert "hard disk" not in ssd.label
    assert disk.speed is not None
    assert ssd.speed is not None
    assert disk.speed.start[0] < 5 < disk.speed.start[1]
    assert ssd.speed.start[0] > 2 * disk.speed.start[0]


def test_other_models_say_nothing_about_tables() -> None:
    dense = estimate_facts(REAL_SIZES["27b"], "qwen35", 16_000_000_000)

    assert not any("table" in sentence for sentence in plan(facts=dense, drive="hdd").why)


@pytest.mark.parametrize(
    ("file_bytes", "table_bytes"),
    [
        (111_334_654_784, TABLE_BYTES),  # Unsloth's UD-Q4_K_XL
        (158_286_406_548, 54_400_261_120),  # UD-Q5_K_XL
        (188_225_033_248, 54_400_261_120),  # Q8_0
        (162_624_826_784, TABLE_BYTES),  # ggml-org's Q8_0
    ],
)
def test_the_size_of_a_file_tells_the_size_of_its_table(file_bytes: int, table_bytes: int) -> None:
    """The tables of Unsloth's files are as their headers say; ggml-org's leaves 8.5 bits for everything else."""
    facts = estimate_facts(REAL_SIZES["flash-next"], "qwen4exp", file_bytes)

    assert lazy_table_bytes(facts) == pytest.approx(table_bytes, rel=1e-3)
    assert sum(tensor.n_bytes for tensor in facts.tensors) == pytest.approx(file_bytes, rel=1e-6)
