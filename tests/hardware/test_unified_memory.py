"""Plans for PCs whose GPU uses the RAM: Strix Halo, DGX Spark and Macs."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qwendesk.core.devices import DeviceInfo
from qwendesk.core.model_facts import ModelFacts
from qwendesk.core.options import LoadOptions
from qwendesk.core.plan import MachineMemory, Plan, shared_bytes
from qwendesk.core.units import GIB, MIB
from qwendesk.hardware.engine_gpus import carve_outs
from qwendesk.hardware.layer_split import HEADROOM_BYTES
from qwendesk.hardware.planner import best_plan
from qwendesk.hardware.snapshot import GpuReading
from tests.gguf_files import dense_27b, mmproj_facts, moe_35b

CPU = DeviceInfo("CPU", "Processor", "cpu", "CPU")


def strix_halo(limit: float) -> DeviceInfo:
    return DeviceInfo("Vulkan0", "Radeon 8060S Graphics", "igpu", "Vulkan", int(limit * GIB), int(limit * GIB))


def mac(limit: float) -> DeviceInfo:
    return DeviceInfo("MTL0", "Apple M4 Pro", "gpu", "MTL", int(limit * GIB), int(limit * GIB))


def machine(gpu: DeviceInfo, ram: float, free: float | None = None, **changes: object) -> MachineMemory:
    made = MachineMemory(
        devices=(gpu, CPU),
        ram_total_bytes=int(ram * GIB),
        ram_available_bytes=int((ram if free is None else free) * GIB),
        physical_cores=8,
    )
    return msgspec.structs.replace(made, **changes)


def plan(facts: ModelFacts, pc: MachineMemory, mmproj: ModelFacts | None = None, **values: object) -> Plan:
    return best_plan(facts, mmproj, pc, LoadOptions(model="m.gguf", **values))  # type: ignore[arg-type]


def test_a_strix_halo_has_everything_on_the_gpu() -> None:
    found = plan(moe_35b(), machine(strix_halo(124), 128, 120))

    assert found.fits
    assert (found.kind, found.options.n_ctx, found.options.n_cpu_moe) == ("vram", 262_144, 0)
    assert found.options.load_mode == "none", "an integrated GPU can't use a mapped file"
    assert plan(moe_35b(), machine(mac(48), 64)).options.load_mode == "mmap", "Metal can"


def test_memory_is_counted_once() -> None:
    memory = plan(moe_35b(), machine(strix_halo(124), 128, 120)).memory
    (gpu,) = memory.gpus

    assert memory.is_unified
    assert memory.ram.gpu_bytes == gpu.total_bytes == shared_bytes(memory.gpus)
    assert memory.shared.total_bytes == memory.ram.total_bytes
    assert gpu.budget_bytes == memory.ram.budget_bytes == 120 * GIB - HEADROOM_BYTES
    assert memory.shared.weights_bytes == gpu.weights_bytes + memory.ram.weights_bytes


def test_the_gpu_gets_no_more_than_its_driver_allows() -> None:
    """62 GiB of 128: the limit of Linux unless the user raises it."""
    (gpu,) = plan(moe_35b(), machine(strix_halo(62), 128, 120)).memory.gpus
    assert gpu.budget_bytes == 62 * GIB - HEADROOM_BYTES

    (gpu,) = plan(moe_35b(), machine(mac(36), 48)).memory.gpus
    assert gpu.budget_bytes == 36 * GIB - HEADROOM_BYTES, "the reserve isn't subtracted from what Metal allows"


def test_the_reserve_is_left_free_of_all_memory() -> None:
    (gpu,) = plan(moe_35b(), machine(strix_halo(64), 64, reserve_bytes=4 * GIB)).memory.gpus
    assert gpu.budget_bytes == 60 * GIB


def test_a_shorter_context_saves_memory_where_moving_experts_would_not() -> None:
    found = plan(moe_35b(), machine(strix_halo(26), 26), mmproj_facts())

    assert found.fits
    assert (found.kind, found.options.vision, found.options.n_cpu_moe) == ("vram", "gpu", 0)
    assert found.options.n_ctx < 262_144
    assert not any("CPU computes" in sentence for sentence in found.why)


def test_experts_are_moved_because_of_the_gpus_limit() -> None:
    found = plan(moe_35b(), machine(strix_halo(16), 64))

    assert found.fits
    assert found.kind == "some_experts_in_ram"
    assert found.options.n_ctx == 65_536, "the context isn't shortened: the memory has room for it"
    assert any("because the GPU may not use more of the memory" in sentence for sentence in found.why)


def test_the_headroom_is_spent_before_the_cpu_runs_the_model() -> None:
    """Before, a PC that missed the budget by less than the headroom was told to use the CPU."""
    found = plan(moe_35b(), machine(strix_halo(32), 32, 22))

    assert found.fits
    assert (found.kind, found.options.devices) == ("vram", ())
    assert "512 MB that usually stay free are used, so that the GPU can run the model." in found.why
    assert not plan(moe_35b(), machine(strix_halo(32), 32, 21.4)).fits


def test_layers_are_moved_last() -> None:
    found = plan(dense_27b(), machine(mac(12), 32))

    assert (found.fits, found.kind) == (True, "layers_in_ram")
    assert "The GPU may not use enough of the memory" in found.label


def test_what_does_not_fit_says_how_much_is_missing_of_the_memory() -> None:
    found = plan(moe_35b(), machine(strix_halo(20), 20), n_ctx=4096, n_gpu_layers="all", n_cpu_moe=0)

    assert not found.fits
    assert any(sentence.startswith("GPU and CPU share the memory") and "too much" in sentence for sentence in found.why)


def test_a_carve_out_is_not_part_of_the_ram() -> None:
    """Windows on a Strix Halo with 96 of 128 GiB set aside for the GPU."""
    gpu = strix_halo(112)
    reading = GpuReading(name="AMD Radeon(TM) 8060S Graphics", vendor="amd", unified=True, total_bytes=96 * GIB)
    pc = machine(gpu, 32, 26, carve_outs=carve_outs((gpu, CPU), (reading,)))
    found = plan(moe_35b(), pc)
    (row,) = found.memory.gpus

    assert found.kind == "vram"
    assert row.budget_bytes == 112 * GIB - HEADROOM_BYTES
    assert found.memory.ram.gpu_bytes == 0, "all of it is in the carve-out"
    assert not plan(moe_35b(), machine(gpu, 16, 14)).fits, "without one it would be RAM"


def test_small_carve_outs_and_those_of_cards_do_not_count() -> None:
    gpu, card = strix_halo(64), DeviceInfo("Vulkan1", "Radeon RX 7600", "gpu", "Vulkan", 8 * GIB, 8 * GIB)
    small = GpuReading(name="Radeon 8060S Graphics", vendor="amd", unified=True, total_bytes=512 * MIB)
    own = GpuReading(name="Radeon RX 7600", vendor="amd", total_bytes=8 * GIB)

    assert carve_outs((gpu, card), (small, own)) == ()


def test_an_unknown_integrated_gpu_is_as_fast_as_the_ram() -> None:
    shared = DeviceInfo("Vulkan0", "Graphics", "igpu", "Vulkan", 64 * GIB, 64 * GIB)
    (slow, fast) = (plan(moe_35b(), machine(gpu, 64)).speed for gpu in (shared, strix_halo(64)))

    assert slow is not None
    assert fast is not None
    assert 2 * slow.start[1] < fast.start[1]


@given(
    limit=st.floats(1, 130),
    ram=st.floats(4, 128),
    taken=st.floats(0, 0.9),
    carve_out=st.sampled_from([0, 0, 8, 96]),
    reserve=st.sampled_from([0, 0.25, 1, 4]),
    is_mac=st.booleans(),
    is_dense=st.booleans(),
    sees=st.booleans(),
    n_ctx=st.sampled_from([0, 8192, 262_144]),
)
def test_a_plan_never_uses_more_than_there_is(
    limit: float, ram: float, taken: float, carve_out: int, reserve: float, is_mac: bool, is_dense: bool, sees: bool,
    n_ctx: int,
) -> None:  # fmt: skip
    gpu = mac(limit) if is_mac else strix_halo(limit)
    set_aside = () if is_mac or not carve_out else ((gpu.name, carve_out * GIB),)
    pc = machine(gpu, ram, ram * (1 - taken), reserve_bytes=int(reserve * GIB), carve_outs=set_aside)
    found = plan(dense_27b() if is_dense else moe_35b(), pc, mmproj_facts() if sees else None, n_ctx=n_ctx)

    if not found.fits:
        return
    memory = found.memory
    pool = pc.ram_available_bytes + sum(n_bytes for _, n_bytes in set_aside)
    own = memory.ram.total_bytes - memory.ram.gpu_bytes
    assert own + sum(each.total_bytes for each in memory.gpus) <= pool
    assert all(each.total_bytes <= limit * GIB for each in memory.gpus)
    if memory.gpus and any(each.total_bytes for each in memory.gpus):
        left = pc.ram_total_bytes + sum(n_bytes for _, n_bytes in set_aside) - memory.shared.total_bytes
        assert left >= min(pc.reserve_bytes, pc.ram_total_bytes), "the reserve stays free"


@pytest.mark.parametrize("gpu", [strix_halo(16), mac(16)])
def test_the_search_does_not_try_to_move_what_frees_nothing(gpu: DeviceInfo) -> None:
    """With too little memory in all, no expert is moved, however many steps the search takes."""
    found = plan(moe_35b(), machine(gpu, 16), n_gpu_layers="all")

    assert not found.fits
    assert found.options.n_cpu_moe == 0
