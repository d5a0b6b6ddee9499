"""What the Load tab shows of a model on a PC, without a window."""

from pathlib import Path

import msgspec
import pytest

from qwendesk.core.devices import DeviceInfo
from qwendesk.core.option_rules import Conflict
from qwendesk.core.options import CacheType, LoadOptions
from qwendesk.core.plan import MachineMemory, SpeedEstimate
from qwendesk.core.settings import table
from qwendesk.core.units import GIB, show_bytes
from qwendesk.engines.load_decision import refusal
from qwendesk.engines.pending_load import OptionLimits, PendingLoad
from qwendesk.engines.view.load_options import load_text
from qwendesk.hardware.planner import best_plan
from tests.gguf_files import moe_35b

CARD = DeviceInfo("CUDA0", "RTX 4070", "gpu", "CUDA", 12 * GIB, 11 * GIB)
CPU = DeviceInfo("CPU", "", "cpu", "CPU")
OPTIONS = LoadOptions(model="m.gguf", mmproj="mmproj.gguf")
LIMITS = OptionLimits(n_ctx=262_144, longest_ctx=1_010_000, n_layers=40, has_experts=True)


def pending(options: LoadOptions = OPTIONS, *, gpus: int = 1, limits: OptionLimits = LIMITS) -> PendingLoad:
    """Return the options of a mixture model on a PC with this many cards of 12 GB."""
    cards = tuple(msgspec.structs.replace(CARD, name=f"CUDA{number}") for number in range(gpus))
    machine = MachineMemory(devices=cards, ram_total_bytes=64 * GIB, ram_available_bytes=60 * GIB)
    plan = best_plan(moe_35b(), None, machine, options)
    changed = frozenset(key for key in table(LoadOptions) if getattr(options, key) != getattr(OPTIONS, key))
    refused = refusal(plan, options)
    return PendingLoad(
        requested=options, planned_for=options, changed=changed, limits=limits, plan=plan,
        devices=(*cards, CPU), is_loaded=True,
        refusal=refused.sentence if refused is not None else "",
    )  # fmt: skip


def control(shown: PendingLoad, key: str) -> load_text.Control:
    return next(each for each in load_text.controls(shown) if each.key == key)


def test_a_mixture_model_on_a_small_card_is_asked_four_questions() -> None:
    found = load_text.controls(pending())

    assert [each.label for each in found] == ["Context length", "Memory for the model", "Chat memory", "Pictures"]
    assert all(each.chosen == 0 and each.text.startswith("Auto · ") for each in found)
    assert control(pending(), "n_gpu_layers").text == "Auto · GPU + RAM"


def test_auto_names_nothing_while_a_conflict_keeps_it_undecided() -> None:
    undecided = msgspec.structs.replace(pending(), plan=None, planned_for=None)

    assert [each.text for each in load_text.controls(undecided)] == ["Auto"] * 4


def test_what_the_model_or_the_pc_cannot_have_is_not_asked() -> None:
    blind = msgspec.structs.replace(OPTIONS, mmproj="")
    odd_heads = msgspec.structs.replace(LIMITS, can_quantise_cache=False)
    dense = msgspec.structs.replace(LIMITS, has_experts=False)

    assert [each.key for each in load_text.controls(pending(blind, limits=odd_heads))] == ["n_ctx", "n_gpu_layers"]
    assert [each.text for each in control(pending(limits=dense), "n_gpu_layers").choices] == [
        "Auto", "All on the GPU", "All in RAM",
    ]  # fmt: skip
    assert control(pending(gpus=0), "n_gpu_layers").choices == ()
    assert [each.text for each in control(pending(gpus=0), "vision").choices] == ["Auto", "CPU", "Off"]
    assert load_text.controls(PendingLoad()) == ()


@pytest.mark.parametrize(
    ("options", "key", "text"),
    [
        ({"n_ctx": 65_536}, "n_ctx", "64K"),
        ({"n_ctx": 98_304}, "n_ctx", "96K"),
        ({"n_ctx": 400_000}, "n_ctx", "400,000"),
        ({"n_gpu_layers": "all", "n_cpu_moe": 40}, "n_gpu_layers", "Experts in RAM"),
        ({"n_cpu_moe": 12}, "n_gpu_layers", "Set by hand"),
        ({"type_k": "q8_0", "type_v": "q8_0"}, "type_k", "Half size · q8_0"),
        ({"type_k": "q8_0"}, "type_k", "q8_0 / auto"),
        ({"vision": "off"}, "vision", "Off"),
    ],
)
def test_what_the_user_set_is_shown_as_it_was_set(options: dict[str, object], key: str, text: str) -> None:
    shown = pending(msgspec.structs.replace(OPTIONS, **options))

    assert control(shown, key).text == text
    assert control(shown, key).is_changed(shown)
    assert not any(each.is_changed(shown) for each in load_text.controls(shown) if each.key != key)


@pytest.mark.parametrize("key", ["n_ctx", "n_gpu_layers", "type_k", "vision"])
def test_each_choice_sets_what_it_says(key: str) -> None:
    for number, choice in enumerate(control(pending(), key).choices):
        shown = pending(msgspec.structs.replace(OPTIONS, **choice.changes))
        assert control(shown, key).chosen == number, choice.text


def test_half_the_chat_memory_says_how_much_it_saves() -> None:
    def with_cache(kind: CacheType) -> PendingLoad:
        return pending(msgspec.structs.replace(OPTIONS, n_ctx=32_768, type_k=kind, type_v=kind), gpus=2)

    def cache_bytes(shown: PendingLoad) -> int:
        assert shown.plan is not None
        return sum(device.kv_bytes for device in (*shown.plan.memory.gpus, shown.plan.memory.ram))

    exact, half = with_cache("f16"), with_cache("q8_0")
    assert show_bytes(cache_bytes(exact) - cache_bytes(half)) in control(exact, "type_k").note
    assert control(half, "type_k").note.startswith("The KV cache in 8 bits.")


@pytest.mark.parametrize(
    ("gpus", "limits", "changes", "unusable", "usable"),
    [
        (1, LIMITS, {}, {"split_mode", "tensor_split", "main_gpu", "swa_full", "lazy_mode"}, {"n_cpu_moe", "vision"}),
        (2, LIMITS, {}, {"swa_full"}, {"split_mode", "tensor_split", "main_gpu"}),
        (0, LIMITS, {}, {"n_gpu_layers", "n_cpu_moe", "offload_kqv", "reserve_gb", "devices"}, {"type_k", "aim"}),
        (1, msgspec.structs.replace(LIMITS, has_experts=False), {}, {"n_cpu_moe"}, {"n_gpu_layers"}),
        (1, msgspec.structs.replace(LIMITS, has_experts=False), {"n_cpu_moe": 3}, set(), {"n_cpu_moe"}),
        (1, LIMITS, {"mmproj": ""}, {"vision", "image_min_tokens", "image_max_tokens"}, {"mmproj"}),
    ],
)
def test_options_without_effect_are_told(
    gpus: int, limits: OptionLimits, changes: dict[str, object], unusable: set[str], usable: set[str]
) -> None:
    found = load_text.unusable_options(pending(msgspec.structs.replace(OPTIONS, **changes), gpus=gpus, limits=limits))

    assert unusable <= found
    assert not usable & found


def test_unknown_devices_hide_nothing() -> None:
    shown = msgspec.structs.replace(pending(gpus=0), devices=())

    assert not {"n_gpu_layers", "reserve_gb", "split_mode"} & load_text.unusable_options(shown)


def test_the_verdict_compares_with_the_speed_of_now() -> None:
    shown = msgspec.structs.replace(pending(), needs_reload=True, loaded_tok_s=45.2, measured_tok_s=41.4)

    assert load_text.verdict(shown) == load_text.FootVerdict("Fits. About 41 tok/s, now 45.")
    assert load_text.verdict(msgspec.structs.replace(shown, loaded_tok_s=None)).text == "Fits. About 41 tok/s."
    assert load_text.verdict(msgspec.structs.replace(shown, needs_reload=False)).text == "", "nothing has changed"
    other = msgspec.structs.replace(shown, is_loaded=False, other_loaded=str(Path("a", "Old-Q4_K_M.gguf")))
    assert load_text.verdict(other).text == "Fits. About 41 tok/s. Replaces Old-Q4_K_M. Your chat is kept."


def test_a_speed_measured_with_other_options_comes_before_the_estimate_and_is_said_once() -> None:
    shown = pending()
    assert shown.plan is not None
    estimate = SpeedEstimate(start=(130.0, 960.0), long=(130.0, 960.0), long_tokens=32_768)
    shown = msgspec.structs.replace(shown, plan=msgspec.structs.replace(shown.plan, speed=estimate), needs_reload=True)
    assert plain(load_text.speed_text(shown)) == "About 130–960 tok/s, in a long chat too"

    known = SpeedEstimate(start=(21.3, 21.3), long=(16.9, 16.9), long_tokens=32_768)
    known_here = msgspec.structs.replace(shown, expected=known, loaded_tok_s=21.4)
    assert plain(load_text.speed_text(known_here)) == (
        "About 21 tok/s at the start, 17 in a long chat. Measured with other options."
    )
    assert load_text.verdict(known_here).text == "Fits. About as fast as now: 21 tok/s."
    slow = SpeedEstimate(start=(8.1, 8.1), long=(8.1, 8.1), long_tokens=32_768)
    slow_here = msgspec.structs.replace(known_here, expected=slow, loaded_tok_s=8.1)
    assert load_text.verdict(slow_here).text == "Fits. About as fast as now: 8.1 tok/s."
    assert load_text.verdict(msgspec.structs.replace(known_here, loaded_tok_s=30.0)).text == (
        "Fits. About 21 tok/s, now 30."
    )
    assert load_text.speed_text(msgspec.structs.replace(known_here, measured_tok_s=20.0)).startswith("Measured here")


def plain(text: str) -> str:
    """Return `text` without what keeps it from breaking."""
    return text.replace("\xa0", " ").replace("\u2060", "")


def test_the_verdict_says_how_much_is_missing_and_what_is_wrong() -> None:
    too_long = pending(msgspec.structs.replace(OPTIONS, n_gpu_layers="all", n_cpu_moe=0))
    found = load_text.verdict(too_long)
    assert found.is_bad
    assert found.text.startswith("Needs ")
    assert "expert layers on the CPU would fit" in found.text
    conflicts = msgspec.structs.replace(pending(), conflicts=(Conflict(("type_v",), "These don't go together."),))
    assert load_text.verdict(conflicts) == load_text.FootVerdict("These don't go together.", is_bad=True)
    assert load_text.verdict(pending(), "Room for games").text == "Correct this option first: Room for games."
    waiting = msgspec.structs.replace(pending(), is_waiting=True)
    assert load_text.verdict(waiting).text.startswith("Reloads after the current answer.")


def test_the_button_says_how_long_the_last_load_took() -> None:
    shown = msgspec.structs.replace(pending(), last_load_s=9.2)

    assert load_text.reload_text(shown) == "Reload to apply · 9.2 s"
    assert load_text.reload_text(msgspec.structs.replace(shown, is_loaded=False)) == "Load"
