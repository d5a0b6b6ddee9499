"""The state of a made-up PC, second by second."""

import pytest

from qwendesk.core.units import GIB, MIB
from qwendesk.hardware.spill import GpuAllocation, Sample, SpillState, plausible_baseline, slowdown, start, step, worst
from tests.hardware.spill_simulator import Pc, SpillRun


def a_pc(model: int = 21 * GIB, **changes) -> Pc:
    pc = Pc(**changes)
    pc.model, pc.pinned = model, 300 * MIB
    return pc


def grows(by: int):
    def change(pc: Pc) -> None:
        pc.game += by

    return change


def test_fitting_load_is_normal():
    spill_run = SpillRun(a_pc())
    assert spill_run.run(8) == "FFFFFFFF"
    assert spill_run.track.baseline_bytes == 300 * MIB
    assert spill_run.track.excess_bytes == 0


def test_growing_chat_is_near_the_limit_and_then_spills():
    spill_run = SpillRun(a_pc(model=21 * GIB + 512 * MIB))
    # 24 GiB less 600 MiB and 21.5 GiB leave 1,960 MiB, and each second 250 MiB less: under 512 MiB from the sixth
    # second on, and 290 MiB over the edge at the ninth.
    spill_run.run(2)
    assert spill_run.run(12, grows(250 * MIB)) == "FFFFFFFNNNSS"


def test_spill_ends_when_the_game_closes():
    spill_run = SpillRun(a_pc())
    assert spill_run.run(3) == "FFF"
    spill_run.pc.game = 4 * GIB  # 1.6 GiB do not fit
    assert spill_run.run(5) == "FFSSS"
    assert spill_run.track.excess_bytes == pytest.approx(1.6 * GIB, abs=20 * MIB)
    spill_run.pc.game = 0
    assert spill_run.run(5) == "SSFFF"
    assert spill_run.track.excess_bytes == 0


def test_spill_counts_from_128_mib():
    for excess, states in ((200 * MIB, "FFSSSS"), (120 * MIB, "FFFFFF")):
        pc = a_pc()
        spill_run = SpillRun(pc)
        spill_run.run(1)
        pc.demoted = excess
        assert spill_run.run(6) == states


def test_memory_demoted_by_the_driver_counts_as_spill():
    spill_run = SpillRun(a_pc(model=12 * GIB))
    spill_run.run(3)
    spill_run.pc.demoted = 3 * GIB
    assert spill_run.run(4) == "FFSS"
    spill_run.pc.demoted = 0
    assert spill_run.run(4) == "SSFF"


def test_spill_needs_three_samples_in_a_row():
    spill_run = SpillRun(a_pc())
    spill_run.run(2)
    for _ in range(4):
        spill_run.pc.demoted = GIB
        assert spill_run.run(2) == "FF"
        spill_run.pc.demoted = 0
        assert spill_run.run(1) == "F"


def test_a_spill_that_swings_around_the_limit_does_not_flicker():
    spill_run = SpillRun(a_pc())
    spill_run.run(1)
    spill_run.pc.demoted = 300 * MIB
    spill_run.run(4)

    def swing(pc: Pc) -> None:
        pc.demoted = 100 * MIB if pc.demoted > 128 * MIB else 140 * MIB

    assert spill_run.run(10, swing) == "S" * 10
    spill_run.pc.demoted = 20 * MIB
    assert spill_run.run(4) == "SSFF"


def test_near_limit_ends_only_with_enough_free_memory():
    spill_run = SpillRun(a_pc())
    spill_run.run(1)
    spill_run.pc.game = 2 * GIB  # 424 MiB are free
    assert spill_run.run(4) == "FFNN"
    spill_run.pc.game = 2 * GIB - 150 * MIB  # 574 MiB: over the limit, and still near it
    assert spill_run.run(4) == "NNNN"
    spill_run.pc.game = 2 * GIB - 300 * MIB
    assert spill_run.run(4) == "NNFF"


def test_planned_reserve_is_not_near_the_limit():
    spill_run = SpillRun(a_pc(model=23 * GIB, reserve=300 * MIB))
    assert spill_run.run(5) == "FFFFF", "424 MiB are free, and only 300 were to stay free"
    spill_run.pc.game = 200 * MIB
    assert spill_run.run(4) == "FFNN"
    spill_run.pc.game = 100 * MIB
    assert spill_run.run(4) == "NNFF"


@pytest.mark.parametrize("reserve", [0, None])
def test_without_a_reserve_little_free_memory_is_near_the_limit(reserve):
    spill_run = SpillRun(a_pc(model=23 * GIB, reserve=reserve))
    assert spill_run.run(4) == "FFNN", "424 MiB are free, and nothing was promised to stay free"


def test_budget_of_the_engine_counts_as_the_limit():
    pc = a_pc(model=20 * GIB)
    pc.budget = 23 * GIB
    spill_run = SpillRun(pc)
    assert spill_run.run(3) == "FFF"
    pc.budget = 20 * GIB + 300 * MIB  # a game is in front: the system keeps the card's memory for it
    assert spill_run.run(4) == "FFNN"
    pc.budget = 23 * GIB
    assert spill_run.run(4) == "NNFF"


def test_spill_during_the_load_is_not_the_baseline():
    spill_run = SpillRun(a_pc(model=25 * GIB))
    assert spill_run.run(5) == "FFSSS"
    assert spill_run.track.excess_bytes > GIB


def test_spill_behind_large_host_buffers_is_found():
    pc = a_pc(model=25 * GIB)
    spill_run = SpillRun(pc, pc.loaded(host_bytes=15 * GIB))
    assert spill_run.run(4) == "FFSS"


def test_experts_in_pinned_ram_are_not_a_spill():
    pc = a_pc(model=10 * GIB)
    pc.pinned = 12 * GIB
    assert SpillRun(pc).run(6) == "FFFFFF"


def test_only_a_small_baseline_is_accepted_without_a_report():
    unknown = GpuAllocation()
    assert plausible_baseline(Sample(shared_bytes=400 * MIB), unknown) == 400 * MIB
    assert plausible_baseline(Sample(shared_bytes=3 * GIB), unknown) < 600 * MIB


def test_slow_busy_gpu_is_suspected_without_memory_counters():
    pc = a_pc(counts_shared=False)
    spill_run = SpillRun(pc)
    pc.best = 110.0
    assert spill_run.run(3) == "FFF"
    pc.busy, pc.power, pc.decode = 99.0, 110.0, 18.0
    assert spill_run.run(4) == "FFPP"
    pc.decode = None  # between two answers nothing is known
    assert spill_run.run(3) == "PPP"
    pc.decode = 70.0  # better, but not well
    assert spill_run.run(3) == "PPP"
    pc.decode = 100.0
    assert spill_run.run(4) == "PPFF"


@pytest.mark.parametrize(
    "calm",
    [{"power": 300.0}, {"busy": 40.0}, {"decode": 80.0}, {"best": None}, {"power": None}],
    ids=["full power", "idle", "fast", "never measured", "power unknown"],
)
def test_suspicion_needs_all_signs(calm):
    pc = a_pc(counts_shared=False)
    pc.busy, pc.power, pc.decode, pc.best = 99.0, 110.0, 18.0, 110.0
    for name, value in calm.items():
        setattr(pc, name, value)
    assert SpillRun(pc).run(5) == "FFFFF"


def test_slow_answer_is_no_suspicion_with_memory_counters():
    pc = a_pc()
    pc.busy, pc.power, pc.decode, pc.best = 99.0, 110.0, 18.0, 110.0
    assert SpillRun(pc).run(5) == "FFFFF"


def test_unified_memory_and_cpu_keep_their_state():
    pc = a_pc(model=30 * GIB)
    assert SpillRun(pc, GpuAllocation(unified=True)).run(5) == "UUUUU"
    assert SpillRun(pc, GpuAllocation(on_gpu=False)).run(5) == "CCCCC"


def test_gpu_without_readings_keeps_its_state():
    loaded = GpuAllocation()
    track = start(loaded)
    for _ in range(5):
        track = step(track, Sample(), loaded)
    assert track.state is SpillState.FITS
    near = Sample(total_bytes=24 * GIB, used_bytes=24 * GIB)
    for _ in range(3):
        track = step(track, near, loaded)
    assert track.state is SpillState.NEAR_LIMIT
    for _ in range(5):
        track = step(track, Sample(), loaded)
    assert track.state is SpillState.NEAR_LIMIT


def test_of_several_gpus_the_worst_state_counts():
    assert worst([SpillState.FITS, SpillState.SPILLING, SpillState.NEAR_LIMIT]) is SpillState.SPILLING
    assert worst([SpillState.UNIFIED, SpillState.FITS]) is SpillState.FITS
    assert worst([]) is SpillState.CPU_ONLY


def test_estimated_slowdown_covers_user_reports():
    low, high = slowdown(200 * MIB, 16 * GIB)  # one report: 70 tok/s became 10 to 20
    assert low < 3.5
    assert high == pytest.approx(7.0)
    low, high = slowdown(round(0.02 * 8 * GIB), 8 * GIB)
    assert low == pytest.approx(2.5)
    assert slowdown(20 * GIB, 24 * GIB)[1] == 30.0
    assert slowdown(0, 24 * GIB) == (1.0, 1.0)
