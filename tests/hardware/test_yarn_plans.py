"""Plans of contexts beyond the trained one, which YaRN reaches."""

from qwendesk.hardware.ladder import ModelShape, step_levels
from tests.gguf_files import moe_35b
from tests.hardware.test_planner import decided, gpu, plan


def test_a_context_beyond_the_trained_one_gets_yarn_and_says_what_it_costs() -> None:
    found = plan(moe_35b(), gpu(80), n_ctx=1_000_000)
    chosen = found.options
    assert (chosen.n_ctx, chosen.rope_scaling) == (1_000_000, "yarn")
    assert (chosen.rope_freq_scale, chosen.yarn_orig_ctx) == (0.25, 262_144)
    assert any("YaRN with factor 4" in sentence and "short prompts" in sentence for sentence in found.why)
    assert decided(moe_35b(), gpu(80), n_ctx=400_000).rope_freq_scale == 0.5


def test_yarn_that_is_not_needed_is_not_applied_and_said() -> None:
    found = plan(moe_35b(), gpu(48), n_ctx=131_072, rope_scaling="yarn")
    assert found.options.rope_freq_scale == 0
    assert any("YaRN has no effect" in sentence for sentence in found.why)


def test_the_step_to_a_shorter_context_lets_yarn_be_decided_again() -> None:
    long = decided(moe_35b(), gpu(80), n_ctx=1_000_000)
    shorter = [step.rope_scaling for step in step_levels("context", long, ModelShape(40, 40, has_vision=False))]
    assert shorter
    assert set(shorter) == {"auto"}
