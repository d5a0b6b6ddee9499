"""What auto-tune may vary, for plans of PCs that we don't have."""

from typing import Any

import pytest

from qwendesk.bench.tune_rules import Dimension, TuneInput, change_texts, dimensions, pinned
from qwendesk.core.devices import DeviceInfo
from qwendesk.core.model_facts import ModelFacts
from qwendesk.core.options import LoadOptions
from qwendesk.core.plan import MachineMemory, Plan
from qwendesk.core.units import GIB
from qwendesk.hardware.planner import best_plan
from tests.gguf_files import dense_27b, moe_35b


def plan(*cards_gib: float, facts: ModelFacts | None = None, **values: object) -> Plan:
    """Return the plan of a PC with 8 cores and these cards."""
    devices = tuple(
        DeviceInfo(f"CUDA{number}", f"Card {number}", "gpu", "CUDA", round(gib * GIB), round(gib * GIB))
        for number, gib in enumerate(cards_gib)
    )
    memory = MachineMemory(devices=devices, ram_total_bytes=128 * GIB, ram_available_bytes=128 * GIB, physical_cores=8)
    return best_plan(facts or moe_35b(), None, memory, LoadOptions(model="m.gguf", **values))  # type: ignore[arg-type]


def space(made: Plan, **values: Any) -> tuple[Dimension, ...]:
    defaults = {"can_draft": True, "n_layers": 40, "n_prompt": 2048, "physical_cores": 8, "logical_cores": 16}
    return dimensions(TuneInput(plan=made, **(defaults | values)))


def steps_of(found: tuple[Dimension, ...], key: str) -> list[Any]:
    """Return the values of an option that are tried, without the user's own."""
    return [step[key] for each in found for step in each.steps if key in step]


def test_every_dimension_contains_the_users_own_settings_once() -> None:
    for made in (plan(), plan(24), plan(12, 12), plan(12)):
        for dimension in space(made, may_change_answers=True):
            assert dimension.steps.count({}) == 1
            assert dimension.position({}) == dimension.steps.index({})


def test_experts_threads_batches_and_drafts_are_varied_where_experts_are_in_ram() -> None:
    made = plan(16)
    own = made.options.n_cpu_moe

    found = space(made)

    assert own > 0
    assert steps_of(found, "n_cpu_moe") == [n for n in (own - 4, own - 2, own - 1, own + 1, own + 2, own + 4) if n > 0]
    assert 4 in steps_of(found, "n_threads")
    assert 2048 in steps_of(found, "n_ubatch")
    assert {"off", "mtp", "lookup"} >= set(steps_of(found, "speculative")) >= {"mtp", "lookup"}
    assert steps_of(found, "op_offload") == [False]


def test_the_cpu_is_left_alone_where_the_gpu_computes_everything() -> None:
    found = space(plan(48))

    assert steps_of(found, "n_threads") == []
    assert steps_of(found, "n_threads_batch") == []
    assert steps_of(found, "n_cpu_moe") == []
    assert steps_of(found, "split_mode") == []


def test_threads_come_first_without_a_gpu() -> None:
    found = space(plan())

    assert "n_threads" in found[0].keys
    assert steps_of(found, "n_threads") == [1, 2, 4, 6, 7, 16]


def test_several_gpus_are_split_in_other_ways() -> None:
    found = space(plan(24, 24, facts=dense_27b()))

    assert set(steps_of(found, "split_mode")) == {"row", "tensor", "none"}
    assert steps_of(found, "main_gpu") == [0, 1]
    shares = steps_of(found, "tensor_split")
    assert len(shares) == 4
    assert all(sum(share) == pytest.approx(100) for share in shares)


def test_the_cache_is_varied_only_if_answers_may_change() -> None:
    made = plan(48)

    assert steps_of(space(made), "type_k") == []
    assert steps_of(space(made, may_change_answers=True), "type_k") == ["q8_0"]


def test_a_batch_longer_than_the_measured_prompt_makes_no_difference() -> None:
    assert max(steps_of(space(plan(48), n_prompt=256), "n_ubatch")) == 256


def test_a_larger_evaluation_batch_enlarges_the_batch() -> None:
    found = space(plan(48), n_prompt=4096)

    assert {"n_ubatch": 4096, "n_batch": 4096} in [step for each in found for step in each.steps]


def test_the_context_the_cache_and_the_place_of_pictures_are_kept() -> None:
    made = plan(24)

    options = pinned(LoadOptions(model="m.gguf"), made)

    assert (options.n_ctx, options.type_k) == (made.options.n_ctx, made.options.type_k)
    assert (options.n_cpu_moe, options.n_gpu_layers, options.n_threads) == ("auto", "auto", 0)


def test_changes_are_named_in_a_few_words() -> None:
    changes = {"n_ubatch": 1024, "n_threads": 6, "type_k": "q8_0", "type_v": "q8_0", "speculative": "mtp"}

    assert change_texts(changes) == (
        "prompts read 1024 tokens at a time",
        "6 CPU threads",
        "chat memory q8_0",
        "guesses ahead by the draft head (token drafts)",
    )
    assert change_texts({"speculative": "lookup", "draft_n_max": 5}) == ("guesses ahead from the chat (token drafts)",)
