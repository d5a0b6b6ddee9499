"""What the planner does with a placement that the user set, above all one that misses by little."""

import msgspec
import pytest

from qwendesk.core.options import LoadOptions
from qwendesk.core.plan import Plan
from qwendesk.core.units import GIB, MIB
from qwendesk.engines.load_decision import next_step, refusal
from qwendesk.hardware.ladder import ModelShape
from qwendesk.hardware.planner import best_plan
from tests.gguf_files import dense_27b, moe_35b
from tests.hardware.test_device_split import RTX_3060, RTX_3090, RTX_5060_TI, catalog_facts, machine, options

FULL_CONTEXT = {"n_ctx": 262_144, "type_k": "q4_0", "type_v": "q4_0"}


def plan_on_16_gib(reserve: int = GIB, **values: object) -> Plan:
    facts = catalog_facts("Qwen3.5-35B-A3B", "UD-Q4_K_XL")
    return best_plan(facts, None, machine(RTX_5060_TI, ram=64, reserve=reserve), options(**(FULL_CONTEXT | values)))


def test_the_known_recipe_for_16_gb_plans_as_such() -> None:
    """Users reported 256K with a q4_0 cache, n_cpu_moe 16, 14.8 GB used. Before, 25 of 41 layers stayed on the GPU."""
    plan = plan_on_16_gib(n_cpu_moe=16)

    assert plan.fits
    assert (plan.kind, plan.options.n_gpu_layers, plan.options.n_cpu_moe) == ("some_experts_in_ram", "all", 16)
    assert (plan.options.n_ctx, plan.options.type_k) == (262_144, "q4_0")
    assert plan.options.n_ubatch < 512
    assert "512 MB that usually stay free are used for what you set." in plan.why
    assert "Prompts are processed 256 tokens at a time to save video memory." in plan.why


@pytest.mark.parametrize(("quant", "most_on_cpu"), [("UD-Q4_K_L", 8), ("UD-Q3_K_XL", 0)])
def test_a_million_tokens_on_32_gb_plan_as_users_report(quant: str, most_on_cpu: int) -> None:
    """Users run 4 bits with 1M on 32 GB. Before, such a plan had no YaRN scale, so that its long part was useless."""
    facts, pc = catalog_facts("Qwen3.5-35B-A3B", quant), machine(("NVIDIA GeForce RTX 5090", 32), ram=64)
    plan = best_plan(facts, None, pc, options(n_ctx=1_010_000))

    assert plan.fits
    assert (plan.options.n_ctx, plan.options.n_gpu_layers) == (1_010_000, "all")
    assert (plan.options.rope_scaling, plan.options.rope_freq_scale) == ("yarn", 0.25)
    assert plan.options.yarn_orig_ctx == 262_144
    assert plan.memory.cpu_expert_layers <= most_on_cpu


def test_a_batch_that_the_user_set_is_kept() -> None:
    assert plan_on_16_gib(n_cpu_moe=17, n_ubatch=1024).options.n_ubatch == 1024


def test_a_smaller_reserve_lowers_the_headroom() -> None:
    none, little, much = (plan_on_16_gib(reserve).memory.gpus[0] for reserve in (0, 256 * MIB, 2 * GIB))

    assert (none.budget_bytes, little.budget_bytes, much.budget_bytes) == (16 * GIB, 16 * GIB - 256 * MIB, 14 * GIB)
    assert plan_on_16_gib(0, n_cpu_moe=16).options.n_ubatch == 1024


def test_expert_layers_that_miss_by_more_are_refused_with_the_nearest_number_that_fits() -> None:
    asked = options(n_cpu_moe=12, **FULL_CONTEXT)
    plan = plan_on_16_gib(n_cpu_moe=12)

    assert not plan.fits
    assert (plan.options.n_gpu_layers, plan.options.n_cpu_moe) == ("all", 12)
    assert plan.memory.gpus[0].missing_bytes > 512 * MIB
    assert "16 expert layers on the CPU would fit." in plan.why
    assert plan.nearest == msgspec.structs.replace(asked, n_cpu_moe=16)
    failure = refusal(plan, asked)
    assert failure is not None
    assert "16 expert layers on the CPU would fit." in failure.sentence
    step = next_step(asked, failure, ModelShape(40, 40, has_vision=False))
    assert step is not None
    assert (step.options, step.label) == (plan.nearest, "16 expert layers on the CPU")


@pytest.mark.parametrize("set_layers", ["all", 60])
def test_gpu_layers_that_do_not_fit_are_refused_with_the_most_that_do(set_layers: object) -> None:
    asked = options(n_gpu_layers=set_layers, n_ctx=8192)
    pc = machine(RTX_3060)

    plan = best_plan(dense_27b(), None, pc, asked)

    assert not plan.fits
    assert plan.nearest is not None
    assert isinstance(plan.nearest.n_gpu_layers, int)
    assert best_plan(dense_27b(), None, pc, plan.nearest).fits
    one_more = msgspec.structs.replace(plan.nearest, n_gpu_layers=plan.nearest.n_gpu_layers + 1)
    assert not best_plan(dense_27b(), None, pc, one_more).fits


def test_a_split_that_does_not_fit_is_refused_if_it_would_without() -> None:
    asked = options(tensor_split=(1, 4), n_cpu_moe=0, n_ctx=8192)
    pc = machine(RTX_3090, ("NVIDIA GeForce RTX 3050", 6))

    plan = best_plan(moe_35b(), None, pc, asked)

    assert not plan.fits
    assert plan.options.tensor_split == (1, 4)
    assert plan.nearest is not None
    assert best_plan(moe_35b(), None, pc, plan.nearest).fits


def test_on_several_cards_the_split_is_chosen_for_the_experts_that_the_user_set() -> None:
    plan = best_plan(moe_35b(), None, machine(RTX_3060, RTX_5060_TI), options(n_cpu_moe=6, n_ctx=65_536))

    assert plan.fits
    assert (plan.options.n_cpu_moe, plan.options.override_tensor) == (6, ())
    assert plan.options.tensor_split != ()


def test_a_card_that_no_number_of_expert_layers_fits_on_is_left_alone() -> None:
    plan = best_plan(moe_35b(), None, machine(("Card", 1)), options(n_cpu_moe=10))

    assert (plan.fits, plan.kind, plan.nearest) == (True, "cpu", None)


def test_placements_by_hand_that_fit_spend_nothing() -> None:
    plan = best_plan(moe_35b(), None, machine(RTX_3090), LoadOptions(model="m.gguf", n_cpu_moe=20))

    assert plan.fits
    assert plan.memory.gpus[0].budget_bytes == 23 * GIB
    assert not any("usually stay free" in sentence for sentence in plan.why)
