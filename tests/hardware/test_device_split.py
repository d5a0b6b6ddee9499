"""How layers and experts are dealt to several GPUs."""

import itertools
from collections.abc import Iterator

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qwendesk.core.devices import DeviceInfo
from qwendesk.core.model_facts import ModelFacts, TensorFacts
from qwendesk.core.options import LoadOptions
from qwendesk.core.plan import MachineMemory, Plan
from qwendesk.core.units import GIB, MIB
from qwendesk.hardware.device_split import best_split, shares_of
from qwendesk.hardware.expert_layers import cpu_expert_layers, with_cpu_expert_layers
from qwendesk.hardware.layer_split import LayerSplit, planned_gpus
from qwendesk.hardware.memory_estimate import memory_use
from qwendesk.hardware.planner import best_plan
from qwendesk.hardware.speed_estimate import estimate_speed
from qwendesk.hub.catalog import load_catalog
from qwendesk.models.fit import estimate_model
from tests.gguf_files import dense_27b, mmproj_facts, moe_35b

RTX_3090, RTX_3060 = ("NVIDIA GeForce RTX 3090", 24), ("NVIDIA GeForce RTX 3060", 12)
RTX_5060_TI = ("NVIDIA GeForce RTX 5060 Ti", 16)


def catalog_facts(model_id: str, quant: str) -> ModelFacts:
    """Facts of Unsloth's file, with the size that the catalog says."""
    contents = load_catalog().contents
    model = next(each for each in contents.models if each.id == model_id)
    repository = next(each for each in contents.repositories if each.repo == f"unsloth/{model_id}-GGUF")
    n_bytes = next(file.n_bytes for file in repository.files if (file.kind, file.quant) == ("model", quant))
    return estimate_model(model, n_bytes, quant)


def machine(*cards: tuple[str, float], ram: float = 128, reserve: int = GIB) -> MachineMemory:
    devices = tuple(
        DeviceInfo(f"CUDA{number}", name, "gpu", "CUDA", round(gib * GIB), round(gib * GIB))
        for number, (name, gib) in enumerate(cards)
    )
    memory = round(ram * GIB)
    return MachineMemory(
        devices=devices, ram_total_bytes=memory, ram_available_bytes=memory, reserve_bytes=reserve, physical_cores=8
    )


def options(**values: object) -> LoadOptions:
    return LoadOptions(model="m.gguf", **values)  # type: ignore[arg-type]


def expert_layers(plan: Plan, facts: ModelFacts) -> tuple[int, ...]:
    return cpu_expert_layers(plan.options, facts.block_count)


@pytest.mark.parametrize(
    ("model", "quant", "cards", "most"),
    [
        ("Qwen3.5-35B-A3B", "Q8_0", (RTX_3090, RTX_3060), 8),
        ("Qwen3.5-122B-A10B", "Q4_K_M", (RTX_3090, RTX_3090), 23),
        ("Qwen3.5-122B-A10B", "Q4_K_M", (RTX_3090, RTX_3090, RTX_3090), 11),
        ("Qwen3.5-35B-A3B", "Q8_0", (RTX_5060_TI, RTX_5060_TI), 12),
    ],
)
def test_every_card_is_filled_before_experts_go_to_ram(
    model: str, quant: str, cards: tuple[tuple[str, float], ...], most: int
) -> None:
    """Before, layers went to the cards by their size, and 30, 35, 35 and 25 layers had their experts in RAM."""
    facts = catalog_facts(model, quant)

    plan = best_plan(facts, None, machine(*cards), options())

    in_ram = expert_layers(plan, facts)
    assert plan.fits
    assert 0 < len(in_ram) <= most
    one_layer = max(sum(t.n_bytes for t in facts.tensors if f"blk.{n}." in t.name) for n in range(facts.block_count))
    assert all((gpu.budget_bytes or 0) - gpu.total_bytes < one_layer for gpu in plan.memory.gpus)


def test_of_two_equal_cards_the_first_ones_experts_move_so_that_n_cpu_moe_says_it() -> None:
    facts = catalog_facts("Qwen3.5-35B-A3B", "Q8_0")

    plan = best_plan(facts, None, machine(RTX_5060_TI, RTX_5060_TI), options())

    assert plan.options.override_tensor == ()
    assert plan.memory.cpu_expert_layers == plan.options.n_cpu_moe


def test_a_model_that_fits_on_the_fast_card_leaves_the_slow_one_empty() -> None:
    plan = best_plan(moe_35b(), None, machine(("NVIDIA GeForce RTX 5090", 32), RTX_3060), options(n_ctx=8192))

    assert plan.options.tensor_split == (100.0, 0.0)
    assert plan.memory.gpus[1].total_bytes == 0


def test_the_faster_card_is_filled_first_even_if_it_is_the_second() -> None:
    plan = best_plan(moe_35b(), None, machine(RTX_3060, RTX_3090), options(n_ctx=131_072, type_k="f16"))
    slow, fast = plan.memory.gpus

    assert plan.kind == "vram"
    assert fast.total_bytes > 0.95 * (fast.budget_bytes or 0)
    assert slow.total_bytes < 0.5 * (slow.budget_bytes or 0)


def test_equal_cards_are_filled_evenly() -> None:
    plan = best_plan(dense_27b(), None, machine(RTX_3090, RTX_3090, RTX_3090), options(n_ctx=65_536))
    totals = [gpu.total_bytes for gpu in plan.memory.gpus]

    assert plan.kind == "vram"
    assert max(totals) < 1.2 * min(totals)


def test_a_full_card_gets_nothing() -> None:
    plan = best_plan(moe_35b(), mmproj_facts(), machine(RTX_3090, ("NVIDIA GeForce RTX 3060", 0)), options())

    assert plan.fits
    assert plan.kind in ("vram", "some_experts_in_ram")
    assert plan.memory.gpus[1].total_bytes == 0


def test_a_dense_model_leaves_the_fewest_layers_in_ram() -> None:
    pc = machine(RTX_3060, ("NVIDIA GeForce RTX 3050", 6))

    plan = best_plan(dense_27b(), None, pc, options())

    n_gpu_layers = plan.options.n_gpu_layers
    assert plan.kind == "layers_in_ram"
    assert isinstance(n_gpu_layers, int)
    one_more = msgspec.structs.replace(plan.options, n_gpu_layers=n_gpu_layers + 1, tensor_split=())
    assert best_split(dense_27b(), None, pc, one_more, may_move_experts=False) is None


def test_on_a_split_by_hand_only_the_fuller_cards_experts_move() -> None:
    plan = best_plan(moe_35b(), None, machine(RTX_3090, ("NVIDIA GeForce RTX 3060", 8)), options(tensor_split=(1, 1)))

    assert plan.fits
    assert plan.options.tensor_split == (1, 1)
    assert plan.options.n_cpu_moe == 0
    assert min(expert_layers(plan, moe_35b())) >= 20
    assert plan.options.load_mode == "none"


def test_pictures_take_room_on_the_first_card_only() -> None:
    without, with_pictures = (
        best_plan(moe_35b(), mmproj, machine(RTX_5060_TI, RTX_5060_TI), options(n_ctx=131_072))
        for mmproj in (None, mmproj_facts())
    )

    assert [gpu.vision_bytes > 0 for gpu in with_pictures.memory.gpus] == [True, False]
    assert with_pictures.options.tensor_split[0] < without.options.tensor_split[0]


@pytest.mark.parametrize(
    "counts", [(30, 11), (0, 41), (41, 0), (1, 40), (40, 1), (0, 5, 0, 60), (65, 0, 0), (97, 3, 1)]
)
def test_shares_deal_exactly_these_layers_even_with_the_engines_short_floats(counts: tuple[int, ...]) -> None:
    n_layers = sum(counts)
    pc = machine(*[RTX_3090] * len(counts))
    shares = shares_of(counts)

    split = LayerSplit(planned_gpus(pc, options()), options(tensor_split=shares), n_layers, n_layers)
    dealt = [split.gpu_of(layer) for layer in range(n_layers)]

    assert tuple(dealt.count(gpu) for gpu in range(len(counts))) == counts
    for number, end in enumerate(itertools.accumulate(shares)):
        position = end / sum(shares) * n_layers % 1
        assert end in (0, sum(shares)) or 0.02 < position < 0.98, f"share {number} is too near a layer's edge"


def test_layers_of_a_plan_are_read_back_from_its_options() -> None:
    start = options(override_tensor=(r"blk\.7\.attn_.*=CPU",))

    for layers in ((), (0, 1, 2), (0, 1, 5), (3, 4), (10, 11, 12)):
        made = with_cpu_expert_layers(start, layers)
        assert cpu_expert_layers(made, 40) == layers
        assert made.override_tensor[:1] == start.override_tensor
        assert with_cpu_expert_layers(made, ()) == msgspec.structs.replace(start, n_cpu_moe=0)


def small_model(experts_mib: tuple[int, ...], rest_mib: int) -> ModelFacts:
    """A mixture with a layer for each size of experts."""
    tensors = [TensorFacts("token_embd.weight", "F16", (256, 8), MIB), TensorFacts("output.weight", "F16", (1,), MIB)]
    for layer, size in enumerate(experts_mib):
        tensors.append(TensorFacts(f"blk.{layer}.attn_q.weight", "F16", (1,), rest_mib * MIB))
        parts = ("gate", "up", "down") if size else ()
        tensors += (TensorFacts(f"blk.{layer}.ffn_{part}_exps.weight", "F16", (64, 64), size * MIB) for part in parts)
    return moe_35b(
        block_count=len(experts_mib), embedding_length=256, context_length=8192, full_attention_interval=2,
        vocab_size=1000, tensors=tuple(tensors), file_bytes=GIB,
    )  # fmt: skip


def every_split(
    facts: ModelFacts, pc: MachineMemory, start: LoadOptions, *, moves: bool
) -> Iterator[tuple[float, int, LoadOptions]]:
    """Every way to deal the layers, with every number of experts of each card in RAM: speed, layers in RAM, options."""
    n_layers = facts.block_count
    n_gpus = len(pc.devices)
    for cuts in itertools.combinations_with_replacement(range(n_layers + 2), n_gpus - 1):
        ends = (0, *cuts, n_layers + 1)
        runs = [range(begin, min(end, n_layers)) for begin, end in itertools.pairwise(ends)]
        dealt = msgspec.structs.replace(start, tensor_split=shares_of([b - a for a, b in itertools.pairwise(ends)]))
        for moved in itertools.product(*(range(len(run) + 1) if moves else (0,) for run in runs)):
            if moves and not any(moved):
                continue
            in_ram = [layer for run, n in zip(runs, moved, strict=True) for layer in run[:n]]
            chosen = with_cpu_expert_layers(dealt, in_ram) if moves else dealt
            memory = memory_use(facts, chosen, pc)
            speed = estimate_speed(facts, chosen, memory, pc)
            if speed is not None and not any(gpu.missing_bytes for gpu in memory.gpus):
                yield speed.start[0], len(in_ram), chosen


CARDS = ("NVIDIA GeForce RTX 3090", "NVIDIA GeForce RTX 3060", "Tesla P40")


@given(
    st.lists(st.integers(0, 300), min_size=2, max_size=5),
    st.integers(1, 200),
    st.lists(st.tuples(st.sampled_from(CARDS), st.integers(0, 20)), min_size=2, max_size=3),
    st.booleans(),
)
@settings(max_examples=60)
def test_no_split_is_faster(experts_mib: list[int], rest_mib: int, cards: list[tuple[str, int]], moves: bool) -> None:
    """Compared with every way to deal a small model's layers, by the estimates of whole configurations."""
    facts = small_model(tuple(experts_mib), rest_mib)
    pc = machine(*((name, eighths / 8 + 1.6) for name, eighths in cards))
    start = options(n_ctx=4096, n_cpu_moe=len(experts_mib) if moves else 0, n_ubatch=512, vision="cpu")
    every = list(every_split(facts, pc, start, moves=moves))

    found = best_split(facts, None, pc, start, may_move_experts=moves)

    assert (found is not None) == bool(every)
    if found is None:
        return
    fastest = max(speed for speed, *_ in every)
    memory = memory_use(facts, found, pc)
    speed = estimate_speed(facts, found, memory, pc)
    assert memory.fits
    assert speed is not None
    assert speed.start[0] == pytest.approx(fastest, rel=1e-9)
    fewest = min(layers for speed, layers, _ in every if speed >= fastest * (1 - 1e-12))
    assert len(cpu_expert_layers(found, facts.block_count)) <= fewest


def test_the_plan_says_what_each_card_gets() -> None:
    facts = catalog_facts("Qwen3.5-35B-A3B", "Q8_0")

    why = best_plan(facts, None, machine(RTX_3090, RTX_3060), options()).why

    assert why[0].startswith("NVIDIA GeForce RTX 3090 (CUDA0): 22.8 GB of 23.0 GB")
    assert why[1].startswith("NVIDIA GeForce RTX 3060 (CUDA1): 10.8 GB of 11.0 GB")
    assert why[2] == "NVIDIA GeForce RTX 3090 (CUDA0) has 29 layers; the experts of 4 are in RAM."
    assert why[3] == "NVIDIA GeForce RTX 3060 (CUDA1) has 11 layers."


def test_the_plan_says_which_card_gets_nothing() -> None:
    found = best_plan(moe_35b(), None, machine(("NVIDIA GeForce RTX 5090", 32), RTX_3060), options(n_ctx=8192))

    assert "NVIDIA GeForce RTX 3060 (CUDA1) gets nothing: the others are faster or have more room." in found.why
