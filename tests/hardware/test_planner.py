"""What the planner decides for PCs that people have."""

import itertools

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qwendesk.core import paths
from qwendesk.core.devices import DeviceInfo
from qwendesk.core.model_facts import ModelFacts
from qwendesk.core.options import LoadOptions
from qwendesk.core.plan import MachineMemory, Plan
from qwendesk.core.units import GIB, MIB
from qwendesk.hardware.memory_estimate import memory_use
from qwendesk.hardware.model_memory import weights_bytes
from qwendesk.hardware.planner import best_plan, could_load
from qwendesk.hub.gguf import read_facts
from tests.gguf_files import dense_27b, mmproj_facts, moe_35b

CPU = DeviceInfo("CPU", "Processor", "cpu", "CPU")


def gpu(gib: float, name: str = "CUDA0", **changes: object) -> DeviceInfo:
    free = int(gib * GIB)
    card = DeviceInfo(name, f"Card {name}", "gpu", "CUDA", total_bytes=free, free_bytes=free)
    return msgspec.structs.replace(card, **changes)


def igpu(gib: float) -> DeviceInfo:
    return DeviceInfo("Vulkan0", "Integrated", "igpu", "Vulkan", total_bytes=int(gib * GIB), free_bytes=int(gib * GIB))


def options(**values: object) -> LoadOptions:
    return LoadOptions(model="m.gguf", **values)  # type: ignore[arg-type]


def machine(*devices: DeviceInfo, ram: float = 64, **changes: object) -> MachineMemory:
    memory = int(ram * GIB)
    made = MachineMemory(devices=(CPU, *devices), ram_total_bytes=memory, ram_available_bytes=memory, physical_cores=8)
    return msgspec.structs.replace(made, **changes)


def plan(
    facts: ModelFacts, *devices: DeviceInfo, ram: float = 64, mmproj: ModelFacts | None = None, **values: object
) -> Plan:
    return best_plan(facts, mmproj, machine(*devices, ram=ram), options(**values))


def decided(
    facts: ModelFacts, *devices: DeviceInfo, ram: float = 64, mmproj: ModelFacts | None = None, **values: object
) -> LoadOptions:
    found = plan(facts, *devices, ram=ram, mmproj=mmproj, **values)
    assert found.fits, found.why
    return found.options


def test_large_gpu_takes_everything_at_full_precision() -> None:
    chosen = decided(moe_35b(), gpu(48))

    assert (chosen.n_gpu_layers, chosen.n_cpu_moe, chosen.n_ctx, chosen.load_mode) == ("all", 0, 262_144, "mmap")
    assert (chosen.type_k, chosen.type_v, chosen.n_threads, chosen.n_ubatch) == ("f16", "f16", 8, 512)


def test_a_model_of_an_unknown_family_is_planned_by_its_header_and_not_called_new() -> None:
    """Llama and Gemma are no newer than QwenDesk."""
    known = plan(moe_35b(), gpu(24))
    for name in ("Qwen9-35B-A3B", "Qwen3-30B-A3B"):
        other = plan(moe_35b(name=name, basename="", path=f"/models/{name}.gguf"), gpu(24))
        assert other.memory == known.memory
        assert other.why == (
            *known.why,
            "QwenDesk doesn't know this model, so the plan is made from its header alone.",
        )


def test_a_new_qwen_with_a_known_template_is_called_new_and_treated_as_the_family_that_it_is_like() -> None:
    template = "{{ enable_thinking }}{{ preserve_thinking }}{{ reasoning_effort }}<function="
    path = "/models/Qwen4-35B-A3B.gguf"
    facts = moe_35b(name="Qwen4", basename="", path=path, chat_template=template, has_think_token=True)
    assert plan(facts, gpu(24)).why[-1] == (
        "This Qwen is newer than this QwenDesk. Its template, tokens and header are like Qwen3.8's, so it's treated as "
        "one."
    )


def test_the_cache_is_quantised_before_experts_move() -> None:
    chosen = decided(moe_35b(), gpu(24))

    assert (chosen.n_gpu_layers, chosen.n_cpu_moe, chosen.type_k) == ("all", 0, "q8_0")
    assert chosen.n_ctx == 131_072


@pytest.mark.parametrize(("gib", "fewest", "most"), [(16, 17, 21), (12, 26, 30), (8, 35, 39)])
def test_experts_move_before_layers_on_common_gpus(gib: float, fewest: int, most: int) -> None:
    """With pictures; collected advice says about 19-20, 28 and 36 of 40 for Q4_K_M."""
    chosen = decided(moe_35b(), gpu(gib), ram=29, mmproj=mmproj_facts())

    assert (chosen.n_gpu_layers, chosen.vision, chosen.load_mode) == ("all", "gpu", "none")
    assert isinstance(chosen.n_cpu_moe, int)
    assert fewest <= chosen.n_cpu_moe <= most
    assert (chosen.n_ctx, chosen.type_k, chosen.n_ubatch) == (65_536, "q8_0", 1024)


@pytest.mark.parametrize("gib", [8, 12, 16])
def test_with_one_expert_layer_fewer_on_the_cpu_it_would_not_fit(gib: float) -> None:
    found = plan(moe_35b(), gpu(gib), mmproj=mmproj_facts())
    assert isinstance(found.options.n_cpu_moe, int)
    fewer = msgspec.structs.replace(found.options, n_cpu_moe=found.options.n_cpu_moe - 1)

    memory = memory_use(moe_35b(), fewer, machine(gpu(gib)), mmproj_facts())

    assert found.fits
    assert memory.gpus[0].missing_bytes > 0


def test_the_reserve_is_never_planned_into() -> None:
    for reserve in (0, GIB, 4 * GIB):
        found = best_plan(moe_35b(), None, machine(gpu(16), reserve_bytes=reserve), options())
        card = found.memory.gpus[0]
        assert found.fits
        assert card.total_bytes <= 16 * GIB - reserve


def test_memory_of_other_programs_is_not_planned_but_our_own_is() -> None:
    busy = gpu(24, free_bytes=10 * GIB)

    taken = best_plan(moe_35b(), None, machine(busy), options()).memory.gpus[0]
    of_engine = best_plan(moe_35b(), None, machine(busy, engine_bytes=(("CUDA0", 12 * GIB),)), options()).memory.gpus[0]

    assert taken.budget_bytes == 10 * GIB - 512 * MIB
    assert of_engine.budget_bytes == 22 * GIB - 512 * MIB


def test_the_aims_differ_in_what_they_give_up() -> None:
    speed = decided(moe_35b(), gpu(23.2), aim="speed")
    long = decided(moe_35b(), gpu(23.2), aim="long_context")

    assert (speed.n_cpu_moe, speed.n_ctx < 131_072) == (0, True)
    assert long.n_ctx == 262_144
    assert isinstance(long.n_cpu_moe, int)
    assert long.n_cpu_moe > 0


def test_pictures_on_the_gpu_cost_expert_layers() -> None:
    without = decided(moe_35b(), gpu(12), ram=32)
    on_gpu = decided(moe_35b(), gpu(12), ram=32, mmproj=mmproj_facts())
    on_cpu = decided(moe_35b(), gpu(12), ram=32, mmproj=mmproj_facts(), vision="cpu")
    off = decided(moe_35b(), gpu(12), ram=32, mmproj=mmproj_facts(), vision="off")

    assert isinstance(on_gpu.n_cpu_moe, int)
    assert isinstance(without.n_cpu_moe, int)
    assert on_gpu.n_cpu_moe > without.n_cpu_moe
    assert on_cpu.n_cpu_moe == off.n_cpu_moe == without.n_cpu_moe


def test_a_dense_model_gives_up_pictures_on_the_gpu_then_context_then_layers() -> None:
    roomy, tight, small = (decided(dense_27b(), gpu(gib), ram=32, mmproj=mmproj_facts(5120)) for gib in (24, 19.5, 12))

    assert (roomy.n_gpu_layers, roomy.vision) == ("all", "gpu")
    assert (tight.n_gpu_layers, tight.vision) == ("all", "cpu")
    assert tight.n_ctx < roomy.n_ctx
    assert isinstance(small.n_gpu_layers, int)
    assert 30 < small.n_gpu_layers < 50
    assert (small.n_cpu_moe, small.n_ctx, small.load_mode) == (0, 8_192, "mmap")


def test_all_experts_and_some_layers_move_on_a_tiny_gpu() -> None:
    found = plan(moe_35b(), gpu(3.2), ram=64)

    assert isinstance(found.options.n_gpu_layers, int)
    assert 0 < found.options.n_gpu_layers < 41
    assert (found.options.n_cpu_moe, found.kind) == (40, "layers_in_ram")
    assert "slower" in found.label


def test_without_a_gpu_everything_is_in_ram() -> None:
    found = plan(moe_35b(), ram=64)
    chosen = found.options

    assert (chosen.n_gpu_layers, chosen.n_cpu_moe, chosen.n_ctx, chosen.load_mode) == (0, 0, 262_144, "mmap")
    assert (chosen.devices, found.kind) == ((), "cpu")
    assert [device.name for device in found.devices] == ["CPU"]


def test_the_prompt_cache_counts_as_ram_as_far_as_a_model_can_fill_it() -> None:
    def ram(facts: ModelFacts, **changes: object) -> int:
        return memory_use(facts, options(n_gpu_layers=0, n_cpu_moe=0, **changes), machine()).ram.total_bytes

    assert ram(dense_27b()) - ram(dense_27b(), cache_budget_mib=0) == 768 * MIB, "a quarter is for pictures"
    small = msgspec.structs.replace(dense_27b(), ssm_state_size=4, ssm_inner_size=16)
    assert 0 < ram(small) - ram(small, cache_budget_mib=0) < 16 * MIB


def test_in_ram_the_context_shrinks_too() -> None:
    assert decided(dense_27b(), ram=19.05).n_ctx == 32_768


def test_plan_that_does_not_fit_says_how_much_is_missing() -> None:
    found = plan(moe_35b(), ram=16)

    assert not found.fits
    assert found.memory.ram.missing_bytes > 4 * GIB
    assert any("too much" in sentence for sentence in found.why)


def test_mmap_chosen_by_the_user_may_read_from_disk_and_says_so() -> None:
    found = plan(moe_35b(), ram=8, load_mode="mmap", n_ctx=4096)

    assert (found.fits, found.kind, found.options.load_mode) == (True, "disk", "mmap")
    assert "disk" in found.label


def test_mmap_does_not_help_where_the_cache_alone_is_too_large() -> None:
    assert not plan(dense_27b(), ram=8, load_mode="mmap", n_ctx=262_144).fits


def test_a_chosen_context_is_kept() -> None:
    chosen = decided(moe_35b(), gpu(20), ram=64, n_ctx=131_072)

    assert chosen.n_ctx == 131_072
    assert isinstance(chosen.n_cpu_moe, int)
    assert chosen.n_cpu_moe > 0


@pytest.mark.parametrize(
    "values",
    [
        {"n_gpu_layers": 0},
        {"n_gpu_layers": 10},
        {"n_gpu_layers": "all"},
        {"n_cpu_moe": 38},
        {"type_k": "q4_0", "type_v": "q5_1"},
        {"n_ubatch": 2048},
        {"vision": "cpu"},
        {"n_threads": 3},
        {"load_mode": "mlock"},
        {"flash_attn": "off"},
        {"n_ctx": 50_000, "type_k": "f16"},
    ],
    ids=str,
)
def test_options_set_by_the_user_are_kept(values: dict[str, object]) -> None:
    chosen = msgspec.structs.asdict(decided(moe_35b(), gpu(24), mmproj=mmproj_facts(), **values))

    assert {key: chosen[key] for key in values} == values


def test_without_flash_attention_the_cache_is_not_quantised() -> None:
    chosen = decided(moe_35b(), gpu(24), flash_attn="off")

    assert (chosen.type_k, chosen.type_v) == ("f16", "f16")


def test_chosen_layers_that_do_not_fit_are_not_changed_but_refused() -> None:
    found = plan(dense_27b(), gpu(12), n_gpu_layers="all")

    assert (found.fits, found.options.n_gpu_layers) == (False, "all")
    assert not could_load(found, options(n_gpu_layers="all"))
    assert "Card CUDA0" in found.why[0]


def test_chosen_values_may_use_the_reserve() -> None:
    asked = {"n_gpu_layers": "all", "n_cpu_moe": 0, "n_ctx": 8192}
    found = plan(moe_35b(), gpu(21.5), **asked)

    assert not found.fits
    assert could_load(found, options(**asked))


def test_an_integrated_gpu_counts_where_there_is_no_other_and_not_beyond_ram() -> None:
    assert decided(dense_27b(), igpu(24), ram=32).n_gpu_layers == "all"
    assert not plan(dense_27b(), igpu(24), ram=12).fits
    beside_a_card = plan(dense_27b(), igpu(24), gpu(24), ram=32)
    assert beside_a_card == plan(dense_27b(), gpu(24), ram=32), "a card is planned as without an integrated GPU"


def test_devices_can_be_switched_off() -> None:
    assert decided(moe_35b(), gpu(48), devices=("none",)).n_gpu_layers == 0


def test_two_gpus_share_a_model() -> None:
    both = plan(moe_35b(), gpu(16), gpu(16, "CUDA1"))
    totals = [device.total_bytes for device in both.devices]

    assert (both.kind, both.options.n_cpu_moe) == ("vram", 0)
    assert max(totals) < 1.3 * min(totals)
    assert decided(moe_35b(), gpu(16)).n_cpu_moe != 0


def test_one_named_gpu_of_two_is_used_alone() -> None:
    assert decided(moe_35b(), gpu(48), gpu(12, "CUDA1"), devices=("CUDA1",)).n_cpu_moe != 0


def test_a_split_that_overfills_one_gpu_moves_experts() -> None:
    even = plan(moe_35b(), gpu(24), gpu(10, "CUDA1"), n_ctx=8192)
    lopsided = plan(moe_35b(), gpu(24), gpu(10, "CUDA1"), n_ctx=8192, tensor_split=(1.0, 1.0))

    assert even.memory.cpu_expert_layers == 0
    assert lopsided.memory.cpu_expert_layers > 0


def test_a_full_gpu_is_left_alone() -> None:
    chosen = decided(moe_35b(), gpu(0.5), ram=64, mmproj=mmproj_facts())

    assert (chosen.n_gpu_layers, chosen.devices, chosen.vision) == (0, ("none",), "cpu")


def test_gpu_with_unknown_memory_is_not_used() -> None:
    silent = DeviceInfo("X0", "Silent", "gpu", "X")

    assert decided(moe_35b(), silent).n_gpu_layers == 0
    assert decided(moe_35b(), silent, n_gpu_layers="all").n_gpu_layers == "all"


def test_a_short_model_keeps_its_context() -> None:
    assert decided(moe_35b(context_length=2048), gpu(48)).n_ctx == 2048


def test_the_demo_runs_on_anything() -> None:
    demo, pictures = read_facts(paths.demo_model()), read_facts(paths.demo_mmproj())

    in_ram = decided(demo, ram=0.75, mmproj=pictures)
    on_gpu = decided(demo, gpu(3), ram=4, mmproj=pictures)

    assert (in_ram.n_gpu_layers, in_ram.n_ctx) == (0, 32_768)
    assert (on_gpu.n_gpu_layers, on_gpu.n_threads) == ("all", 1)


def test_each_decision_has_a_reason() -> None:
    found = plan(moe_35b(), gpu(12), mmproj=mmproj_facts())
    text = " ".join(found.why)

    assert f"The experts of {found.options.n_cpu_moe} of 40 layers are in RAM, the fewest that fit" in text
    assert "Context: 64K of 256K" in text
    assert "KV cache: q8_0 instead of f16 saves" in text
    assert "The GPU processes pictures." in text
    assert "1024 tokens at a time" in text


@pytest.mark.parametrize(
    ("card", "vision", "sentence"),
    [
        (None, "auto", "The CPU processes pictures."),
        (gpu(24), "gpu", "The GPU processes pictures."),
        (gpu(24), "cpu", "The CPU processes pictures, as you set. Slower."),
    ],
)
def test_a_plan_says_what_processes_pictures_and_leaves_the_size_to_the_table_of_memory(
    card: DeviceInfo | None, vision: str, sentence: str
) -> None:
    """The engine's own numbers replace those of the table, and a size in the sentence would contradict them."""
    assert sentence in plan(moe_35b(), *([card] if card else []), mmproj=mmproj_facts(), vision=vision).why


@given(
    st.floats(0, 100),
    st.floats(0, 100),
    st.floats(0, 400),
    st.booleans(),
    st.sampled_from(["auto", "q8_0", "q4_0"]),
    st.sampled_from([0, 4096, 50_000, 262_144]),
    st.sampled_from(["speed", "balanced", "long_context"]),
)
def test_every_plan_fits(
    first: float, second: float, ram: float, sees: bool, cache_type: str, n_ctx: int, aim: str
) -> None:
    asked = options(n_ctx=n_ctx, type_k=cache_type, type_v=cache_type, aim=aim)
    mmproj = mmproj_facts() if sees else None
    pc = machine(gpu(first), gpu(second, "CUDA1"), ram=ram)

    found = best_plan(moe_35b(), mmproj, pc, asked)

    if not found.fits:
        assert ram * GIB < weights_bytes(moe_35b()) + 12 * GIB
        return
    chosen = found.options
    assert "auto" not in (chosen.n_gpu_layers, chosen.n_cpu_moe, chosen.type_k, chosen.n_ubatch, chosen.vision)
    assert memory_use(moe_35b(), chosen, pc, mmproj) == found.memory
    used = [device for device in found.memory.gpus if device.total_bytes]
    assert all(device.total_bytes <= (device.limit_bytes or 0) - 512 * MIB for device in used)
    assert found.ram_bytes <= ram * GIB


def test_plan_places_every_byte_of_the_weights() -> None:
    """Neither lost nor counted twice, wherever they are put."""
    pc = machine(gpu(8), gpu(24, "CUDA1"))
    whole = weights_bytes(moe_35b())

    patterns = ((), (r"blk\.[0-9]\.ffn_.*_exps=CPU",), (r"blk\.1\..*=CUDA1",))
    for layers, cpu_moe, pattern in itertools.product(("all", 20, 1, 0), (0, 5, 40), patterns):
        memory = memory_use(moe_35b(), options(n_gpu_layers=layers, n_cpu_moe=cpu_moe, override_tensor=pattern), pc)
        assert sum(device.weights_bytes for device in (*memory.gpus, memory.ram)) == whole


def test_all_expert_layers_are_no_more_than_the_model_has() -> None:
    """--cpu-moe is read as a number above that of any model."""
    assert decided(moe_35b(), gpu(24), n_cpu_moe=10_000).n_cpu_moe == 40
