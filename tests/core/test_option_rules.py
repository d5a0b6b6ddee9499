"""Conflicts between load options have reasons, and linked options change together."""

import msgspec
import pytest

from qwendesk.core.errors import BadOption
from qwendesk.core.option_rules import check_combination, conflicts, parse_load_options, with_linked_changes
from qwendesk.core.options import LoadOptions
from tests.gguf_files import moe_35b

OPTIONS = LoadOptions(model="m.gguf")


def with_(**changes: object) -> LoadOptions:
    return msgspec.structs.replace(OPTIONS, **changes)


CONFLICTS = [
    ({"type_v": "q8_0", "flash_attn": "off"}, "type_v", "needs flash attention"),
    ({"split_mode": "tensor", "flash_attn": "off"}, "split_mode", "needs flash attention"),
    ({"n_ubatch": 1024, "n_batch": 512}, "n_ubatch", "can't be larger than Batch size"),
    ({"tensor_split": (3.0, 1.0), "split_mode": "none"}, "tensor_split", "split mode"),
    ({"tensor_split": (0.0, 0.0)}, "tensor_split", "above 0"),
    ({"tensor_split": (-1.0, 1.0)}, "tensor_split", "negative"),
    ({"devices": ("none", "CUDA0")}, "devices", "no GPU"),
    ({"devices": ("CUDA0",), "split_mode": "none", "main_gpu": 1}, "main_gpu", "doesn't exist"),
    ({"override_tensor": ("experts",)}, "override_tensor", "PATTERN=DEVICE"),
    ({"override_tensor": ("blk.(=CPU",)}, "override_tensor", "regular expression"),
    ({"image_min_tokens": 500, "image_max_tokens": 100}, "image_min_tokens", "can't be more"),
]


@pytest.mark.parametrize(("changes", "key", "reason"), CONFLICTS)
def test_each_conflict_has_its_reason(changes: dict[str, object], key: str, reason: str) -> None:
    found = conflicts(with_(**changes))
    assert [each.keys[0] for each in found] == [key]
    assert reason in found[0].sentence
    with pytest.raises(BadOption, match="These options conflict"):
        check_combination(with_(**changes))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"type_v": "q8_0"},
        {"type_k": "q8_0", "flash_attn": "off"},
        {"n_ubatch": 2048},
        {"tensor_split": (3.0, 1.0)},
        {"devices": ("none",)},
        {"override_tensor": (r"blk\.\d+\.ffn=CPU",)},
        {"image_min_tokens": 1024},
        {"n_ctx": 262_144},
        {"n_ctx": 262_145},
        {"n_ctx": 1_010_000},
        {"n_ctx": 1_010_000, "rope_scaling": "yarn"},
        {"n_ctx": 500_000, "rope_scaling": "linear", "rope_freq_scale": 0.5},
    ],
)
def test_valid_combinations_have_no_conflict(changes: dict[str, object]) -> None:
    assert conflicts(with_(**changes), moe_35b()) == ()


def test_a_model_adds_conflicts() -> None:
    long = with_(n_ctx=1_100_000)
    assert conflicts(long) == ()
    (found,) = conflicts(long, moe_35b())
    assert found.keys == ("n_ctx", "rope_scaling")
    assert "262,144" in found.sentence
    assert "1,010,000" in found.sentence
    (other,) = conflicts(with_(n_ctx=262_145), moe_35b(architecture="gemma4"))
    assert "YaRN isn't known to work with it" in other.sentence
    assert conflicts(with_(n_ctx=262_145, rope_scaling="yarn"), moe_35b(architecture="gemma4")) == (), "as it says"
    assert conflicts(with_(n_ctx=262_145), moe_35b(architecture="llama")) == ()
    (odd,) = conflicts(with_(type_k="q8_0"), moe_35b(key_length=80))
    assert odd.keys == ("type_k",)


@pytest.mark.parametrize(
    "changes", [{"rope_scaling": "none"}, {"rope_scaling": "linear"}, {"rope_scaling": "none", "rope_freq_scale": 0.5}]
)
def test_rope_scaling_that_reaches_no_further_is_a_conflict(changes: dict[str, object]) -> None:
    """llama.cpp takes these values and scales nothing."""
    (found,) = conflicts(with_(n_ctx=300_000, **changes), moe_35b())
    assert found.keys == ("n_ctx", "rope_scaling")
    assert "YaRN" in found.sentence


def test_a_scale_set_by_hand_must_reach_the_context() -> None:
    (found,) = conflicts(with_(n_ctx=800_000, rope_scaling="yarn", rope_freq_scale=0.5), moe_35b())
    assert "524,288" in found.sentence


def test_batch_and_evaluation_batch_are_linked() -> None:
    assert with_linked_changes(OPTIONS, {"n_ubatch": 4096}) == {"n_ubatch": 4096, "n_batch": 4096}
    assert with_linked_changes(with_(n_ubatch=1024), {"n_batch": 256}) == {"n_batch": 256, "n_ubatch": 256}
    assert with_linked_changes(OPTIONS, {"n_ubatch": 1024}) == {"n_ubatch": 1024}
    assert with_linked_changes(OPTIONS, {"n_batch": 256}) == {"n_batch": 256}, "auto stays auto"


def test_set_links_checks_and_keeps_what_was_given() -> None:
    assert parse_load_options(OPTIONS, {"n_ubatch": "4096"}).n_batch == 4096
    assert parse_load_options(OPTIONS, {"n_ubatch": "512", "n_batch": "512"}).n_batch == 512
    with pytest.raises(BadOption, match="larger than Batch size"):
        parse_load_options(OPTIONS, {"n_ubatch": "1024", "n_batch": "512"})
    with pytest.raises(BadOption, match="flash attention"):
        parse_load_options(OPTIONS, {"type_v": "q8_0", "flash_attn": "off"})
