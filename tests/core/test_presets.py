import pytest

from qwendesk.core import presets
from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.settings import check_all


@pytest.mark.parametrize(
    ("architecture", "names", "family"),
    [
        ("qwen35moe", ["QwenDesk Demo", "anything.gguf"], "demo"),
        ("qwen35moe", ["Qwen3.5-35B-A3B"], "qwen3.5"),
        ("qwen35moe", ["Qwen3.5 122B A10B"], "qwen3.5"),
        ("qwen35", ["Qwen3.5-27B"], "qwen3.5"),
        ("qwen35", ["Qwen_Qwen3.5-2B-Q4_K_M.gguf"], "qwen3.5-small"),
        ("qwen35", ["", "Qwen3.5-0.8B-UD-Q4_K_XL.gguf"], "qwen3.5-small"),
        ("qwen35", ["Qwen3.6-27B"], "qwen3.6-27b"),
        ("qwen35moe", ["Qwen3.6-35B-A3B"], "qwen3.6"),
        ("qwen35", ["Qwen3.8-27B"], "qwen3.8"),
        ("qwen4exp", ["Qwen3.8-Flash-Next"], "qwen3.8"),
        ("qwen35", ["Some Finetune"], "qwen3.5"),
        ("llama", ["Qwen3.5-but-not-really"], "other"),
    ],
)
def test_family_is_recognised_by_name(architecture, names, family):
    assert presets.family_of(architecture, *names) == family


def test_the_four_presets_of_the_big_models():
    numbers = {
        (thinking, style): tuple(
            presets.sampling("qwen3.5", style, thinking=thinking)[key]
            for key in ("temperature", "top_p", "top_k", "presence_penalty")
        )
        for thinking in (True, False)
        for style in ("general", "precise")
    }
    assert numbers == {
        (True, "general"): (1.0, 0.95, 20, 1.5),
        (True, "precise"): (0.6, 0.95, 20, 0.0),
        (False, "general"): (0.7, 0.8, 20, 1.5),
        (False, "precise"): (1.0, 1.0, 40, 2.0),
    }


def test_qwen36_27b_thinks_without_presence_penalty():
    assert presets.sampling("qwen3.6-27b", "general", thinking=True)["presence_penalty"] == 0


@pytest.mark.parametrize("style", ["general", "precise"])
def test_qwen38_has_one_preset_with_thinking_and_one_without(style):
    thinking, instruct = (presets.sampling("qwen3.8", style, thinking=on) for on in (True, False))
    assert (thinking["temperature"], thinking["top_p"], thinking["presence_penalty"]) == (1.0, 0.95, 0)
    assert (instruct["temperature"], instruct["top_p"], instruct["presence_penalty"]) == (0.7, 0.8, 1.5)


def test_custom_preset_keeps_the_sampling_and_the_familys_end_of_thinking():
    mine = GenerationOptions(temperature=0.123, presence_penalty=0.5)
    chosen = presets.preset(mine, "qwen3.6", "custom", thinking=False)
    assert (chosen.temperature, chosen.presence_penalty, chosen.enable_thinking) == (0.123, 0.5, False)
    assert "limited time" in chosen.thinking_close


def test_only_models_that_know_the_budget_sentence_get_it():
    assert presets.closing_text("demo") == presets.closing_text("other") == "\n</think>\n\n"
    assert presets.closing_text("qwen3.5").endswith("directly now.\n</think>\n\n")


@pytest.mark.parametrize("family", ["demo", "qwen3.5", "qwen3.5-small", "qwen3.6", "qwen3.6-27b", "qwen3.8", "other"])
@pytest.mark.parametrize("style", ["general", "precise", "custom"])
@pytest.mark.parametrize("thinking", [True, False])
def test_every_preset_is_valid(family, style, thinking):
    check_all(presets.preset(GenerationOptions(), family, style, thinking=thinking))


def test_demo_preset_always_takes_the_likeliest_token():
    chosen = presets.sampling("demo", "general", thinking=True)
    assert (chosen["temperature"], chosen["presence_penalty"]) == (0, 0)
