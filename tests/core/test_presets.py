import pytest

from qwendesk.core import presets
from qwendesk.core.architectures import family_of, is_new_qwen, traits_of
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
        ("qwen35", ["Qwen35-4B-Heretic-Q4_K_M.gguf"], "qwen3.5"),
        ("qwen35", ["Qwen3_5-4B"], "qwen3.5"),
        ("qwen35", ["qwen38-27b-tune"], "qwen3.8"),
        ("qwen35moe", ["Qwen-35B-A3B-Uncensored"], "qwen3.5"),
        ("qwen35", ["Qwen 9B tune"], "qwen3.5"),
        ("qwen35", ["Swift-1.5 of Qwen3.6-27B"], "qwen3.6-27b"),
        ("llama", ["Qwen3.5-but-not-really"], "other"),
        ("qwen35moe", ["Qwen3.9-35B-A3B"], "other"),
        ("qwen4exp", ["Qwen4-30B"], "other"),
        ("qwen4exp", ["A fine-tune"], "qwen3.8"),
        ("qwen35", ["Qwen2.5-distill-9B"], "other"),
    ],
)
def test_family_is_recognised_by_name(architecture, names, family):
    assert family_of(architecture, *names) == family


# What the templates of the three versions have of what tells them apart.
TEMPLATES = {
    "3.5": "{%- if enable_thinking %}<think>{% endif %}<tool_call>\n<function=",
    "3.6": "{%- if enable_thinking and preserve_thinking %}<think>{% endif %}<tool_call>\n<function=",
    "3.8": "{%- if enable_thinking and preserve_thinking %}{{ reasoning_effort }}{% endif %}<tool_call>\n<function=",
}


@pytest.mark.parametrize(
    ("architecture", "name", "template", "family"),
    [
        ("qwen4exp", "Qwen4-27B", "3.8", "qwen3.8"),
        ("qwen4", "Qwen4-27B", "3.8", "qwen3.8"),
        ("qwen4moe", "anything.gguf", "3.6", "qwen3.6"),
        ("qwen35", "Qwen4-27B", "3.8", "qwen3.8"),
        ("qwen35moe", "Qwen3.9-35B-A3B", "3.6", "qwen3.6"),
        ("qwen4", "Qwen4-2B", "3.5", "qwen3.5-small"),
        ("qwen10moe", "Qwen10", "3.8", "qwen3.8"),
    ],
)
def test_new_qwen_is_treated_as_the_family_that_its_template_is_like(architecture, name, template, family):
    traits = traits_of(TEMPLATES[template], has_think_tokens=True)
    assert family_of(architecture, name, traits=traits) == family
    assert is_new_qwen(architecture, name)


@pytest.mark.parametrize(
    "traits",
    [
        None,
        traits_of(TEMPLATES["3.8"], has_think_tokens=False),
        traits_of("{{ messages }}", has_think_tokens=True),
        traits_of(TEMPLATES["3.8"].replace("<function=", '{"name":'), has_think_tokens=True),
        traits_of(TEMPLATES["3.8"].replace("preserve_thinking", "keep"), has_think_tokens=True),
    ],
    ids=["unknown", "no tokens for thinking", "no thinking", "calls in JSON", "efforts without kept thinking"],
)
def test_new_qwen_with_a_template_of_its_own_is_no_known_family(traits):
    for architecture in ("qwen4exp", "qwen4", "qwen35"):
        assert family_of(architecture, "Qwen4-27B", traits=traits) == "other"


@pytest.mark.parametrize(
    ("architecture", "name"),
    [
        ("qwen4exp", "Qwen3.8-Flash-Next"),
        ("qwen4exp", "A fine-tune"),
        ("qwen35", "Qwen3.5-27B"),
        ("qwen35", "Qwen3-distill"),
        ("qwen3next", "Qwen3-Coder-Next"),
        ("qwen3vl", "Qwen3-VL-8B"),
        ("llama", "Qwen4-llama"),
        ("qwen3tts", "Qwen4-TTS"),
    ],
)
def test_known_and_older_qwens_and_other_models_are_not_new(architecture, name):
    assert not is_new_qwen(architecture, name)


def test_new_qwen_takes_its_own_values_before_those_of_the_family():
    chosen = presets.preset(
        GenerationOptions(), "qwen3.8", "general", thinking=True, recommended={"temperature": 0.9}, is_new=True
    )
    assert (chosen.temperature, chosen.top_k, chosen.presence_penalty) == (0.9, 20, 0)
    assert "limited time" in chosen.thinking_close
    assert presets.preset_source("qwen3.8", {"temperature": 0.9}, is_new=True) == "file"
    assert presets.preset_source("qwen3.8", {}, is_new=True) == "alike"
    assert presets.preset_source("other", {}, is_new=True) == "llama.cpp"


def header(**values: str):
    return lambda key: values.get(key.removeprefix("general.sampling."), "")


def test_what_others_publish_differs_from_the_preset():
    uses = [("qwen3.5", False, "precise"), ("qwen3.6", True, "general"), ("qwen3.8", True, "general")]
    for family, thinking, style in uses:
        others = presets.other_sampling(family, style, thinking=thinking)
        card = presets.sampling(family, style, thinking=thinking)
        assert others
        assert all(card[key] != value for each in others for key, value in each.values.items())
    assert presets.other_sampling("qwen3.6-27b", "general", thinking=True) == ()


def test_header_recommends_sampling_for_a_family_without_a_preset():
    found = presets.read_recommended(header(temp="0.6", top_k="30.0", penalty_repeat="1.05", min_p=""))
    assert found == {"temperature": 0.6, "top_k": 30, "repeat_penalty": 1.05}

    chosen = presets.preset(GenerationOptions(), "other", "general", thinking=True, recommended=found)
    assert (chosen.temperature, chosen.top_k, chosen.top_p, chosen.presence_penalty) == (0.6, 30, 0.95, 0)
    assert presets.preset_source("other", found) == "file"
    assert presets.preset_source("other", {}) == "llama.cpp"


def test_model_card_counts_before_the_header():
    chosen = presets.preset(GenerationOptions(), "qwen3.8", "general", thinking=True, recommended={"temperature": 0.1})
    assert chosen.temperature == 1.0
    assert presets.preset_source("qwen3.8", {"temperature": 0.1}) == "card"


def test_own_sampling_counts_before_the_header():
    chosen = presets.preset(
        GenerationOptions(temperature=0.3), "other", "custom", thinking=True, recommended={"temperature": 0.1}
    )
    assert chosen.temperature == 0.3


@pytest.mark.parametrize("text", ["nan", "inf", "-1", "hot", "1e999", "9e9"])
def test_header_values_that_no_option_accepts_are_left_out(text):
    assert presets.read_recommended(header(temp=text, top_p="0.9")) == {"top_p": 0.9}


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
