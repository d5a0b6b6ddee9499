"""What the plain fit decides for PCs that people have."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qwendesk.core import paths
from qwendesk.core.devices import DeviceInfo
from qwendesk.core.failures import LoadFailure
from qwendesk.core.model_facts import ModelFacts
from qwendesk.core.options import LoadOptions
from qwendesk.core.units import GIB
from qwendesk.hardware.demand import Placement, Situation, demand, usable_gpus
from qwendesk.hardware.estimate import split_weights, weights_bytes
from qwendesk.hardware.fit import fit
from qwendesk.hub.gguf import read_facts
from tests.gguf_files import dense_27b, mmproj_facts, moe_35b

CPU = DeviceInfo("CPU", "Processor", "cpu", "CPU")


def gpu(gib: float, name: str = "CUDA0") -> DeviceInfo:
    free = int(gib * GIB)
    return DeviceInfo(name, f"Card {name}", "gpu", "CUDA", total_bytes=free, free_bytes=free)


def igpu(gib: float) -> DeviceInfo:
    return DeviceInfo("Vulkan0", "Integrated", "igpu", "Vulkan", total_bytes=int(gib * GIB), free_bytes=int(gib * GIB))


def options(**values: object) -> LoadOptions:
    return LoadOptions(model="m.gguf", **values)  # type: ignore[arg-type]


def decided(
    facts: ModelFacts, *devices: DeviceInfo, ram: float = 64, mmproj: ModelFacts | None = None, **values: object
) -> LoadOptions:
    found = fit(facts, mmproj, (CPU, *devices), int(ram * GIB), options(**values), physical_cores=8)
    assert isinstance(found, LoadOptions), found
    return found


def failure(facts: ModelFacts, *devices: DeviceInfo, ram: float = 64, **values: object) -> LoadFailure:
    found = fit(facts, None, (CPU, *devices), int(ram * GIB), options(**values))
    assert isinstance(found, LoadFailure), found
    return found


def test_a_large_gpu_takes_everything_with_the_whole_context() -> None:
    chosen = decided(moe_35b(), gpu(48))

    assert (chosen.n_gpu_layers, chosen.n_cpu_moe, chosen.n_ctx, chosen.load_mode) == ("all", 0, 262_144, "mmap")
    assert chosen.n_threads == 8


def test_the_context_shrinks_before_experts_move() -> None:
    chosen = decided(moe_35b(), gpu(24))

    assert (chosen.n_gpu_layers, chosen.n_cpu_moe) == ("all", 0)
    assert 8_192 <= chosen.n_ctx < 262_144
    assert chosen.n_ctx & (chosen.n_ctx - 1) == 0


@pytest.mark.parametrize(("gib", "fewest", "most"), [(16, 10, 20), (12, 18, 30), (8, 28, 38)])
def test_experts_move_before_layers(gib: float, fewest: int, most: int) -> None:
    chosen = decided(moe_35b(), gpu(gib), ram=32)

    assert chosen.n_gpu_layers == "all"
    assert isinstance(chosen.n_cpu_moe, int)
    assert fewest <= chosen.n_cpu_moe <= most
    assert chosen.n_ctx == 32_768
    assert chosen.load_mode == "none"


def test_pictures_on_the_gpu_cost_expert_layers() -> None:
    without = decided(moe_35b(), gpu(12), ram=32)
    on_gpu = decided(moe_35b(), gpu(12), ram=32, mmproj=mmproj_facts())
    on_cpu = decided(moe_35b(), gpu(12), ram=32, mmproj=mmproj_facts(), vision="cpu")
    off = decided(moe_35b(), gpu(12), ram=32, mmproj=mmproj_facts(), vision="off")

    assert isinstance(on_gpu.n_cpu_moe, int)
    assert isinstance(without.n_cpu_moe, int)
    assert on_gpu.n_cpu_moe > without.n_cpu_moe
    assert on_cpu.n_cpu_moe == off.n_cpu_moe == without.n_cpu_moe


def test_layers_of_a_dense_model_move_when_it_is_too_large() -> None:
    chosen = decided(dense_27b(), gpu(12), ram=32)

    assert isinstance(chosen.n_gpu_layers, int)
    assert 20 < chosen.n_gpu_layers < 50
    assert (chosen.n_cpu_moe, chosen.n_ctx, chosen.load_mode) == (0, 8_192, "mmap")


def test_all_experts_and_some_layers_move_on_a_tiny_gpu() -> None:
    chosen = decided(moe_35b(), gpu(3.2), ram=64)

    assert isinstance(chosen.n_gpu_layers, int)
    assert 0 < chosen.n_gpu_layers < 41
    assert chosen.n_cpu_moe == 40


def test_without_a_gpu_everything_is_in_ram() -> None:
    chosen = decided(moe_35b(), ram=64)

    assert (chosen.n_gpu_layers, chosen.n_cpu_moe, chosen.n_ctx, chosen.load_mode) == (0, 0, 262_144, "mmap")
    assert chosen.devices == ()


def test_without_a_gpu_a_dense_model_is_mapped() -> None:
    assert decided(dense_27b(), ram=64).load_mode == "mmap"


def test_in_ram_the_context_shrinks_too() -> None:
    assert decided(dense_27b(), ram=18.3).n_ctx == 16_384


def test_too_little_ram_is_a_failure_with_numbers_and_a_next_step() -> None:
    found = failure(moe_35b(), ram=16)

    assert found.kind == "out_of_ram"
    assert "16.0 GB is free" in found.sentence
    assert "Qwen3.5-35B-A3B-Q4_K_M.gguf needs 2" in found.sentence
    assert "smaller quant" in found.sentence


def test_mmap_chosen_by_the_user_may_read_from_disk() -> None:
    chosen = decided(moe_35b(), ram=8, load_mode="mmap", n_ctx=4096)

    assert (chosen.load_mode, chosen.n_gpu_layers) == ("mmap", 0)


def test_mmap_does_not_help_where_the_cache_alone_is_too_large() -> None:
    assert failure(dense_27b(), ram=8, load_mode="mmap", n_ctx=262_144).kind == "out_of_ram"


def test_experts_that_fit_neither_in_the_gpu_nor_in_ram() -> None:
    assert failure(moe_35b(), gpu(8), ram=8).kind == "out_of_ram"


def test_a_chosen_context_is_kept() -> None:
    chosen = decided(moe_35b(), gpu(24), ram=64, n_ctx=131_072)

    assert chosen.n_ctx == 131_072
    assert isinstance(chosen.n_cpu_moe, int)
    assert chosen.n_cpu_moe > 0


def test_a_small_cache_leaves_room_for_context() -> None:
    assert decided(moe_35b(), gpu(24), type_k="q8_0", type_v="q8_0").n_ctx > decided(moe_35b(), gpu(24)).n_ctx


@pytest.mark.parametrize("layers", [0, 10, 41, "all"])
def test_chosen_layers_are_kept(layers: int | str) -> None:
    chosen = decided(moe_35b(), gpu(24), n_gpu_layers=layers)

    assert chosen.n_gpu_layers == layers


def test_chosen_expert_layers_are_kept() -> None:
    chosen = decided(moe_35b(), gpu(12), n_cpu_moe=38)

    assert (chosen.n_cpu_moe, chosen.n_gpu_layers) == (38, "all")


def test_chosen_layers_that_do_not_fit_are_refused() -> None:
    found = failure(dense_27b(), gpu(12), n_gpu_layers="all")

    assert found.kind == "out_of_vram"
    assert "Card CUDA0, which has 12.0 GB free" in found.sentence


def test_chosen_values_may_use_what_we_would_leave_free() -> None:
    assert decided(moe_35b(), gpu(21.5), n_gpu_layers="all", n_cpu_moe=0, n_ctx=8192).n_gpu_layers == "all"
    assert decided(moe_35b(), gpu(21.5), n_ctx=8192).n_cpu_moe != 0


def test_chosen_threads_are_kept() -> None:
    assert decided(moe_35b(), n_threads=3).n_threads == 3


def test_a_chosen_load_mode_is_kept() -> None:
    assert decided(moe_35b(), gpu(12), load_mode="mlock").load_mode == "mlock"


def test_an_integrated_gpu_counts_only_when_it_is_named() -> None:
    assert decided(dense_27b(), igpu(24), ram=32).n_gpu_layers == 0
    assert decided(dense_27b(), igpu(24), ram=32, devices=("Vulkan0",)).n_gpu_layers == "all"


def test_an_integrated_gpu_cannot_hold_more_than_the_ram() -> None:
    assert failure(dense_27b(), igpu(24), ram=12, devices=("Vulkan0",)).kind == "out_of_ram"


def test_devices_can_be_switched_off() -> None:
    assert decided(moe_35b(), gpu(48), devices=("none",)).n_gpu_layers == 0


def test_two_gpus_share_a_model() -> None:
    both = decided(moe_35b(), gpu(16), gpu(16, "CUDA1"))

    assert (both.n_gpu_layers, both.n_cpu_moe) == ("all", 0)
    assert decided(moe_35b(), gpu(16)).n_cpu_moe != 0


def test_one_named_gpu_of_two_is_used_alone() -> None:
    assert decided(moe_35b(), gpu(48), gpu(12, "CUDA1"), devices=("CUDA1",)).n_cpu_moe != 0


def test_a_split_that_overfills_one_gpu_moves_experts() -> None:
    even = decided(moe_35b(), gpu(24), gpu(8, "CUDA1"), n_ctx=8192)
    lopsided = decided(moe_35b(), gpu(24), gpu(8, "CUDA1"), n_ctx=8192, tensor_split=(1.0, 1.0))

    assert even.n_cpu_moe == 0
    assert lopsided.n_cpu_moe != 0


def test_a_full_gpu_is_left_alone() -> None:
    chosen = decided(moe_35b(), gpu(0.5), ram=64, mmproj=mmproj_facts())

    assert (chosen.n_gpu_layers, chosen.devices, chosen.vision) == (0, ("none",), "cpu")


def test_a_gpu_that_does_not_tell_its_memory_is_not_filled() -> None:
    silent = DeviceInfo("X0", "Silent", "gpu", "X")

    assert decided(moe_35b(), silent).n_gpu_layers == 0
    assert decided(moe_35b(), silent, n_gpu_layers="all").n_gpu_layers == "all"


def test_a_bad_placement_pattern_is_named() -> None:
    found = failure(moe_35b(), override_tensor=("blk(=CPU",))

    assert found.kind == "bad_option"
    assert "blk(" in found.sentence


def test_a_short_model_keeps_its_context() -> None:
    assert decided(moe_35b(context_length=2048), gpu(48)).n_ctx == 2048


def test_the_demo_runs_on_anything() -> None:
    demo, pictures = read_facts(paths.demo_model()), read_facts(paths.demo_mmproj())

    in_ram = decided(demo, ram=0.75, mmproj=pictures)
    on_gpu = decided(demo, gpu(2), ram=4, mmproj=pictures)

    assert (in_ram.n_gpu_layers, in_ram.n_ctx) == (0, 32_768)
    assert on_gpu.n_gpu_layers == "all"


@given(
    st.floats(0, 100),
    st.floats(0, 100),
    st.floats(0, 400),
    st.booleans(),
    st.sampled_from(["f16", "q8_0", "q4_0"]),
    st.sampled_from([0, 4096, 50_000, 262_144]),
)
def test_whatever_is_decided_fits(
    first: float, second: float, ram: float, sees: bool, cache_type: str, n_ctx: int
) -> None:
    devices = (CPU, gpu(first), gpu(second, "CUDA1"))
    asked = options(n_ctx=n_ctx, type_k=cache_type, type_v=cache_type)
    mmproj = mmproj_facts() if sees else None

    found = fit(moe_35b(), mmproj, devices, int(ram * GIB), asked)

    if isinstance(found, LoadFailure):
        assert found.kind == "out_of_ram"
        assert ram * GIB < weights_bytes(moe_35b()) + 12 * GIB
        return
    weights, gpus = split_weights(moe_35b()), usable_gpus(devices, found)
    situation = Situation(facts=moe_35b(), mmproj=mmproj, options=found, weights=weights, gpus=gpus)
    layers = 41 if found.n_gpu_layers == "all" else found.n_gpu_layers
    assert isinstance(layers, int)
    assert isinstance(found.n_cpu_moe, int)
    needed = demand(situation, Placement(found.n_ctx, layers, found.n_cpu_moe))
    assert all(
        taken + GIB <= (device.free_bytes or 0) for taken, device in zip(needed.gpus, situation.gpus, strict=True)
    )
    assert needed.ram_weights + needed.ram_other <= ram * GIB
    assert found == msgspec.structs.replace(found, n_ctx=n_ctx or found.n_ctx)


def test_every_byte_is_somewhere() -> None:
    """Weights are neither lost nor counted twice, wherever they are put."""
    weights = split_weights(moe_35b())
    situation = Situation(facts=moe_35b(), mmproj=None, options=options(), weights=weights, gpus=(gpu(8), gpu(24)))
    buffers = demand(situation, Placement(8192, 41, 0))
    whole = sum(buffers.gpus) + buffers.ram_weights + buffers.ram_other

    for layers, cpu_moe in [(41, 5), (41, 40), (20, 40), (1, 0)]:
        moved = demand(situation, Placement(8192, layers, cpu_moe))
        extra = 2 * weights.largest_expert_tensor
        host_buffer = 0 if layers == 41 else buffers.gpus[0]
        total = sum(moved.gpus) + moved.ram_weights + moved.ram_other
        assert whole <= total <= whole + extra + host_buffer


def test_a_tiny_model_gets_one_thread_unless_told_otherwise() -> None:
    tiny = msgspec.structs.replace(dense_27b(), file_bytes=3_000_000)

    assert decided(tiny, ram=64).n_threads == 1
    assert decided(tiny, ram=64, n_threads=2).n_threads == 2
