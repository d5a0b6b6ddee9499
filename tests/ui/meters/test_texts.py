"""What the meters and the banner say."""

import msgspec

from qwendesk.core.options import LoadOptions
from qwendesk.core.units import GIB, MIB
from qwendesk.hardware.snapshot import GpuReading, SystemReading
from qwendesk.hardware.spill import SpillState
from qwendesk.services.engine.measured import Comparison
from qwendesk.services.meters.bars import GpuBar, Meters, Segment, Spill, Taker
from qwendesk.services.meters.relief import Fix, Relief
from qwendesk.ui.meters import texts
from qwendesk.ui.meters.spill_text import story_of

SPILL = Spill(
    state=SpillState.SPILLING, excess_bytes=200 * MIB, best_tok_s=None, now_tok_s=None, slowdown=(1.9, 7.0), taker=None
)


def story(spill: Spill, relief: Relief | None = None, *, on_windows: bool = False):
    meters = Meters(state=spill.state, spill=spill)
    found = story_of(meters, relief or Relief(), on_windows=on_windows)
    assert found is not None
    return found


def test_every_state_has_words() -> None:
    assert {texts.state_text(state)[0] for state in SpillState} == {
        "Fits", "Near limit", "Spilling", "Probably spilling", "Shared memory PC", "CPU only",
    }  # fmt: skip
    assert all(texts.state_tooltip(state) for state in SpillState)


def test_several_gpus_are_added_up() -> None:
    bar = GpuBar(gpu=GpuReading(name="A"), total_bytes=24 * GIB, used_bytes=20 * GIB, segments=(Segment("free", GIB),))
    assert texts.bar_text((bar, bar)) == "40.0 / 48 GB"
    spilled = msgspec.structs.replace(bar, excess_bytes=GIB)
    assert texts.bar_text((bar, spilled)) == "40.0 + 1.0 GB shared"
    assert texts.bar_tooltip((bar, spilled)).count("A: 20.0 GB of 24.0 GB") == 2


def test_what_was_predicted_beside_what_is_real() -> None:
    rows = (Comparison("CUDA0", 13 * GIB, 13 * GIB + 200 * MIB), Comparison("CUDA1", 8 * GIB, 8 * GIB))
    assert texts.compared_text(rows) == "predicted 21.0 GB, real 21.2 GB"
    assert texts.compared_text(()) == ""


def test_what_is_unknown_is_left_out() -> None:
    assert texts.gpu_text(GpuReading(busy_percent=5.2)) == "GPU 5%"
    assert texts.gpu_text(None) == texts.ram_text(SystemReading()) == ""
    hot = GpuReading(name="A", throttle=("thermal", "power cap"), power_limit_w=350.0)
    assert texts.gpu_tooltip(hot) == "A\nPower limit: 350 W\nSlowed down by: too hot, power limit"
    assert texts.rate_text(9.94) == "9.9 tok/s"


def test_before_a_measurement_the_cost_is_a_range_of_others() -> None:
    found = story(SPILL)
    assert found.sentence == (
        "200 MB of the model sits in shared memory: answers come 1.9 to 7 times slower, by what others measured."
    )


def test_measured_here_it_is_two_numbers_and_a_nameless_program_is_told() -> None:
    measured = msgspec.structs.replace(SPILL, best_tok_s=112.4, now_tok_s=15.2, taker=Taker("", None, 2 * GIB))
    assert story(measured).sentence == (
        "200 MB of the model sits in shared memory: 112 → 15 tok/s. "
        "Other programs took 2.0 GB since the model was loaded."
    )


def test_a_suspicion_is_called_one() -> None:
    found = story(msgspec.structs.replace(SPILL, state=SpillState.SUSPECTED, excess_bytes=0, slowdown=None))
    assert found.title == "VRAM probably spills"
    assert "busy at low power" in found.sentence


def test_the_buttons_and_what_reading_again_costs() -> None:
    fixes = (
        Fix(id="experts", expert_layers=1),
        Fix(id="vision", expected_tok_s=(84.6, 85.2)),
        Fix(id="kv"),
        Fix(id="eject"),
    )
    found = story(SPILL, Relief(fixes=fixes, reread_s=25.0, reread_tokens=12_000))
    assert [choice.text for choice in found.choices] == [
        "1 expert layer to CPU",
        "Pictures to CPU, about 85 tok/s",
        "Smaller cache (q8_0)",
        "Eject until the memory is free",
    ]
    assert found.note == "Applied after this answer; reading the chat again takes about 25 s."
    assert all("takes about 25 s" in choice.tooltip for choice in found.choices), "each button says what it costs"
    last = (
        Fix(id="both", expert_layers=3, expected_tok_s=(60, 70)),
        Fix(id="context", options=LoadOptions(model="m", n_ctx=65_536)),
        Fix(id="layers", cpu_layers=2),
    )
    assert [choice.text for choice in story(SPILL, Relief(fixes=last)).choices] == [
        "Pictures + 3 expert layers to CPU, about 60–70 tok/s",
        "Shorter context (64K)",
        "2 layers to CPU",
    ]
    unknown = story(SPILL, Relief(fixes=fixes, reread_tokens=12_000))
    assert "12,000 tokens are then read again" in unknown.note
    assert story(SPILL, Relief(fixes=fixes, pending="kv")).busy


def test_the_driver_s_setting_is_nvidia_s_alone() -> None:
    bar = GpuBar(gpu=GpuReading(vendor="amd"), total_bytes=GIB, used_bytes=GIB)
    meters = Meters(state=SpillState.SPILLING, spill=SPILL, bars=(bar,))
    assert "Sysmem" not in story_of(meters, Relief(), on_windows=True).note
    nvidia = msgspec.structs.replace(bar, gpu=GpuReading(vendor="nvidia"))
    meters = msgspec.structs.replace(meters, bars=(nvidia,))
    assert "Prefer No Sysmem Fallback" in story_of(meters, Relief(), on_windows=True).note
    assert "Sysmem" not in story_of(meters, Relief(), on_windows=False).note


def test_a_calm_pc_has_no_banner() -> None:
    assert story_of(Meters(state=SpillState.FITS), Relief(), on_windows=True) is None
