"""What the meters and the banner say."""

import msgspec

from qwendesk.core.devices import Segment
from qwendesk.core.options import LoadOptions
from qwendesk.core.plan import Comparison
from qwendesk.core.units import GIB, MIB
from qwendesk.hardware.snapshot import GpuReading
from qwendesk.hardware.spill import SpillState
from qwendesk.meters.meter_state import GpuBar, MeterState, Spill, VramConsumer
from qwendesk.meters.spill_remedies import RemedyState, SpillRemedy
from qwendesk.meters.view import meter_text
from qwendesk.meters.view.spill_banner import story_of

SPILL = Spill(
    state=SpillState.SPILLING,
    excess_bytes=200 * MIB,
    best_tok_s=None,
    now_tok_s=None,
    slowdown=(1.9, 7.0),
    consumer=None,
)


def story(spill: Spill, state: RemedyState | None = None, *, on_windows: bool = False):
    meters = MeterState(state=spill.state, spill=spill)
    found = story_of(meters, state or RemedyState(), on_windows=on_windows)
    assert found is not None
    return found


def test_every_state_has_words() -> None:
    assert {meter_text.state_text(state)[0] for state in SpillState} == {
        "Fits", "Near limit", "Spilling", "Probably spilling", "Shared memory PC", "CPU only",
    }  # fmt: skip
    assert all(meter_text.state_tooltip(state) for state in SpillState)


def test_several_gpus_are_added_up() -> None:
    bar = GpuBar(gpu=GpuReading(name="A"), total_bytes=24 * GIB, used_bytes=20 * GIB, segments=(Segment("free", GIB),))
    assert meter_text.bar_text((bar, bar)) == "40.0 / 48 GB"
    spilled = msgspec.structs.replace(bar, excess_bytes=GIB)
    assert meter_text.bar_text((bar, spilled)) == "40.0 + 1.0 GB shared"
    assert meter_text.bar_tooltip((bar, spilled)).count("A: 20.0 GB of 24.0 GB") == 2


def test_predicted_and_actual_memory_are_compared() -> None:
    rows = (Comparison("CUDA0", 13 * GIB, 13 * GIB + 200 * MIB), Comparison("CUDA1", 8 * GIB, 8 * GIB))
    assert meter_text.compared_text(rows) == "estimated 21.0 GB, actual 21.2 GB"
    assert meter_text.compared_text(()) == ""


def test_unknown_values_are_omitted() -> None:
    assert meter_text.gpu_text(GpuReading(busy_percent=5.2)) == "GPU 5%"
    assert meter_text.gpu_text(None) == meter_text.ram_text(()) == ""
    hot = GpuReading(name="A", throttle=("thermal", "power cap"), power_limit_w=350.0)
    assert meter_text.gpu_tooltip(hot) == "A\nPower limit: 350 W\nThrottled: too hot, power limit"
    assert meter_text.rate_text(9.94) == "9.9 tok/s"


def test_unmeasured_slowdown_is_a_range_of_user_reports() -> None:
    found = story(SPILL)
    assert found.sentence == (
        "200 MB of the model sits in shared memory. Answers are 1.9 to 7 times slower (user reports)."
    )


def test_measured_slowdown_names_both_speeds() -> None:
    measured = msgspec.structs.replace(
        SPILL, best_tok_s=112.4, now_tok_s=15.2, consumer=VramConsumer("", None, 2 * GIB)
    )
    assert story(measured).sentence == (
        "200 MB of the model sits in shared memory. The speed fell from 112 to 15 tok/s. "
        "Other programs have taken 2.0 GB since the model was loaded."
    )


def test_suspected_spill_is_worded_as_a_suspicion() -> None:
    found = story(msgspec.structs.replace(SPILL, state=SpillState.SUSPECTED, excess_bytes=0, slowdown=None))
    assert found.title == "VRAM probably spills"
    assert "busy at low power" in found.sentence


def test_buttons_name_the_cost_of_rereading_the_chat() -> None:
    remedies = (
        SpillRemedy(id="drafts"),
        SpillRemedy(id="experts", expert_layers=1),
        SpillRemedy(id="vision", expected_tok_s=(84.6, 85.2)),
        SpillRemedy(id="kv"),
        SpillRemedy(id="eject"),
    )
    found = story(SPILL, RemedyState(remedies=remedies, reread_s=25.0, reread_tokens=12_000))
    assert [choice.text for choice in found.choices] == [
        "Token drafts off",
        "1 expert layer to CPU",
        "Pictures to CPU, about 85 tok/s",
        "Smaller cache (q8_0)",
        "Eject until the memory is free",
    ]
    assert found.note == "Applies after this answer. Processing the chat again takes about 25 s."
    assert all("takes about 25 s" in choice.tooltip for choice in found.choices), "each button says what it costs"
    last = (
        SpillRemedy(id="both", expert_layers=3, expected_tok_s=(60, 70)),
        SpillRemedy(id="context", options=LoadOptions(model="m", n_ctx=65_536)),
        SpillRemedy(id="layers", cpu_layers=2),
    )
    assert [choice.text for choice in story(SPILL, RemedyState(remedies=last)).choices] == [
        "Pictures + 3 expert layers to CPU, about 60–70 tok/s",
        "Shorter context (64K)",
        "2 layers to CPU",
    ]
    unknown = story(SPILL, RemedyState(remedies=remedies, reread_tokens=12_000))
    assert "12,000 tokens of the chat are processed again" in unknown.note
    assert story(SPILL, RemedyState(remedies=remedies, pending="kv")).busy


def test_driver_setting_is_named_for_nvidia_only() -> None:
    bar = GpuBar(gpu=GpuReading(vendor="amd"), total_bytes=GIB, used_bytes=GIB)
    meters = MeterState(state=SpillState.SPILLING, spill=SPILL, bars=(bar,))
    assert "Sysmem" not in story_of(meters, RemedyState(), on_windows=True).note
    nvidia = msgspec.structs.replace(bar, gpu=GpuReading(vendor="nvidia"))
    meters = msgspec.structs.replace(meters, bars=(nvidia,))
    assert "Prefer No Sysmem Fallback" in story_of(meters, RemedyState(), on_windows=True).note
    assert "Sysmem" not in story_of(meters, RemedyState(), on_windows=False).note
