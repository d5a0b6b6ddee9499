"""The state of a made-up PC, second by second."""

import pytest

from qwendesk.core.units import GIB, MIB
from qwendesk.hardware.spill import Loaded, Sample, SpillState, believable_baseline, slowdown, start, step, worst
from tests.hardware.spill_simulator import Film, Pc


def a_pc(model: int = 21 * GIB, **changes) -> Pc:
    pc = Pc(**changes)
    pc.model, pc.pinned = model, 300 * MIB
    return pc


def grows(by: int):
    def change(pc: Pc) -> None:
        pc.game += by

    return change


def test_a_load_that_fits_stays_calm():
    film = Film(a_pc())
    assert film.run(8) == "FFFFFFFF"
    assert film.track.baseline_bytes == 300 * MIB
    assert film.track.excess_bytes == 0


def test_a_chat_that_grows_over_the_edge_is_near_and_then_spills():
    film = Film(a_pc(model=21 * GIB + 512 * MIB))
    # 24 GiB less 600 MiB and 21.5 GiB leave 1,960 MiB, and each second 250 MiB less: under 512 MiB from the sixth
    # second on, and 290 MiB over the edge at the ninth.
    film.run(2)
    assert film.run(12, grows(250 * MIB)) == "FFFFFFFNNNSS"


def test_a_game_starts_ends_and_the_pc_recovers():
    film = Film(a_pc())
    assert film.run(3) == "FFF"
    film.pc.game = 4 * GIB  # 1.6 GiB do not fit
    assert film.run(5) == "FFSSS"
    assert film.track.excess_bytes == pytest.approx(1.6 * GIB, abs=20 * MIB)
    film.pc.game = 0
    assert film.run(5) == "SSFFF"
    assert film.track.excess_bytes == 0


def test_less_than_the_famous_200_mb_counts_and_less_than_128_does_not():
    for excess, states in ((200 * MIB, "FFSSSS"), (120 * MIB, "FFFFFF")):
        pc = a_pc()
        film = Film(pc)
        film.run(1)
        pc.demoted = excess
        assert film.run(6) == states


def test_the_driver_demotes_memory_although_there_is_room():
    film = Film(a_pc(model=12 * GIB))
    film.run(3)
    film.pc.demoted = 3 * GIB
    assert film.run(4) == "FFSS"
    film.pc.demoted = 0
    assert film.run(4) == "SSFF"


def test_two_samples_are_no_spill_and_the_count_begins_again():
    film = Film(a_pc())
    film.run(2)
    for _ in range(4):
        film.pc.demoted = GIB
        assert film.run(2) == "FF"
        film.pc.demoted = 0
        assert film.run(1) == "F"


def test_a_spill_that_swings_around_the_limit_does_not_flicker():
    film = Film(a_pc())
    film.run(1)
    film.pc.demoted = 300 * MIB
    film.run(4)

    def swing(pc: Pc) -> None:
        pc.demoted = 100 * MIB if pc.demoted > 128 * MIB else 140 * MIB

    assert film.run(10, swing) == "S" * 10
    film.pc.demoted = 20 * MIB
    assert film.run(4) == "SSFF"


def test_near_the_limit_ends_with_room_to_spare():
    film = Film(a_pc())
    film.run(1)
    film.pc.game = 2 * GIB  # 424 MiB are free
    assert film.run(4) == "FFNN"
    film.pc.game = 2 * GIB - 150 * MIB  # 574 MiB: over the limit, and still near it
    assert film.run(4) == "NNNN"
    film.pc.game = 2 * GIB - 300 * MIB
    assert film.run(4) == "NNFF"


def test_the_plan_s_own_reserve_is_no_warning():
    film = Film(a_pc(model=23 * GIB, reserve=300 * MIB))
    assert film.run(5) == "FFFFF", "424 MiB are free, and only 300 were to stay free"
    film.pc.game = 200 * MIB
    assert film.run(4) == "FFNN"
    film.pc.game = 100 * MIB
    assert film.run(4) == "NNFF"


@pytest.mark.parametrize("reserve", [0, None])
def test_without_a_reserve_little_free_memory_is_near_the_limit(reserve):
    film = Film(a_pc(model=23 * GIB, reserve=reserve))
    assert film.run(4) == "FFNN", "424 MiB are free, and nothing was promised to stay free"


def test_what_the_system_grants_the_engine_counts_as_the_card_s_end():
    pc = a_pc(model=20 * GIB)
    pc.budget = 23 * GIB
    film = Film(pc)
    assert film.run(3) == "FFF"
    pc.budget = 20 * GIB + 300 * MIB  # a game is in front: the system keeps the card's memory for it
    assert film.run(4) == "FFNN"
    pc.budget = 23 * GIB
    assert film.run(4) == "NNFF"


def test_a_load_that_already_spilled_does_not_become_normal():
    film = Film(a_pc(model=25 * GIB))
    assert film.run(5) == "FFSSS"
    assert film.track.excess_bytes > GIB


def test_a_load_that_spilled_behind_large_host_buffers_is_seen_by_what_the_gpu_lacks():
    pc = a_pc(model=25 * GIB)
    film = Film(pc, pc.loaded(host_bytes=15 * GIB))
    assert film.run(4) == "FFSS"


def test_experts_in_pinned_ram_are_no_spill():
    pc = a_pc(model=10 * GIB)
    pc.pinned = 12 * GIB
    assert Film(pc).run(6) == "FFFFFF"


def test_without_the_engine_s_word_a_small_baseline_is_believed_and_a_large_one_not():
    unknown = Loaded()
    assert believable_baseline(Sample(shared_bytes=400 * MIB), unknown) == 400 * MIB
    assert believable_baseline(Sample(shared_bytes=3 * GIB), unknown) < 600 * MIB


def test_where_nothing_counts_shared_memory_a_slow_busy_gpu_is_suspected():
    pc = a_pc(counts_shared=False)
    film = Film(pc)
    pc.best = 110.0
    assert film.run(3) == "FFF"
    pc.busy, pc.power, pc.decode = 99.0, 110.0, 18.0
    assert film.run(4) == "FFPP"
    pc.decode = None  # between two answers nothing is known
    assert film.run(3) == "PPP"
    pc.decode = 70.0  # better, but not well
    assert film.run(3) == "PPP"
    pc.decode = 100.0
    assert film.run(4) == "PPFF"


@pytest.mark.parametrize(
    "calm",
    [{"power": 300.0}, {"busy": 40.0}, {"decode": 80.0}, {"best": None}, {"power": None}],
    ids=["full power", "idle", "fast", "never measured", "power unknown"],
)
def test_one_sign_missing_is_no_suspicion(calm):
    pc = a_pc(counts_shared=False)
    pc.busy, pc.power, pc.decode, pc.best = 99.0, 110.0, 18.0, 110.0
    for name, value in calm.items():
        setattr(pc, name, value)
    assert Film(pc).run(5) == "FFFFF"


def test_where_shared_memory_is_counted_a_slow_answer_is_no_suspicion():
    pc = a_pc()
    pc.busy, pc.power, pc.decode, pc.best = 99.0, 110.0, 18.0, 110.0
    assert Film(pc).run(5) == "FFFFF"


def test_unified_memory_and_the_cpu_stay_what_they_are():
    pc = a_pc(model=30 * GIB)
    assert Film(pc, Loaded(unified=True)).run(5) == "UUUUU"
    assert Film(pc, Loaded(on_gpu=False)).run(5) == "CCCCC"


def test_a_gpu_that_tells_nothing_keeps_its_state():
    loaded = Loaded()
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


def test_the_guess_before_a_measurement_covers_what_was_reported():
    low, high = slowdown(200 * MIB, 16 * GIB)  # one report: 70 tok/s became 10 to 20
    assert low < 3.5
    assert high == pytest.approx(7.0)
    low, high = slowdown(round(0.02 * 8 * GIB), 8 * GIB)
    assert low == pytest.approx(2.5)
    assert slowdown(20 * GIB, 24 * GIB)[1] == 30.0
    assert slowdown(0, 24 * GIB) == (1.0, 1.0)
