import asyncio

import msgspec
import pytest

from qwendesk.core.units import GIB, MIB
from qwendesk.engines.measurements import MeasuredSpeeds
from qwendesk.hardware.spill import SpillState
from qwendesk.meters.spill_remedies import LoadEstimate
from tests.fakes.gaming_pc import OPTIONS


def parts(bar) -> dict[str, int]:
    return {each.kind: each.n_bytes for each in bar.segments}


async def test_gpu_is_shown_without_a_state_before_a_load(desk):
    assert await desk.look() == "-"
    (bar,) = desk.meters.state.value.bars
    assert parts(bar) == {"other": 600 * MIB, "free": 24 * GIB - 600 * MIB}


async def test_segments_are_what_the_engine_allocated(desk):
    await desk.load()
    assert await desk.look(2) == "fits fits"
    (bar,) = desk.meters.state.value.bars
    found = parts(bar)
    assert found["weights"] == 18 * GIB
    assert found["context"] == 2 * GIB + 63 * MIB
    assert found["vision"] == GIB
    assert found["other"] == 600 * MIB
    assert sum(found.values()) == 24 * GIB
    assert desk.meters.state.value.threads == 8


async def test_game_that_causes_a_spill_is_named(desk):
    await desk.load()
    await desk.look(2)
    desk.pc.game = 3 * GIB
    assert await desk.look(4) == "fits fits spilling spilling"
    spill = desk.meters.state.value.spill
    assert spill is not None
    assert spill.consumer is not None
    assert (spill.consumer.name, spill.consumer.n_bytes) == ("Cyberdrome.exe", 3 * GIB)
    assert spill.excess_bytes == 600 * MIB + 3 * GIB + desk.pc.size - 24 * GIB
    low, high = spill.slowdown or (0, 0)
    assert 1 < low < high, "nothing was measured yet"
    bar = desk.meters.state.value.bars[0]
    assert bar.excess_bytes == spill.excess_bytes
    assert sum(parts(bar).values()) == 24 * GIB
    desk.pc.game = 0
    assert await desk.look(4) == "spilling spilling fits fits"
    assert desk.meters.state.value.spill is None


async def test_ejected_model_leaves_the_bar_at_once(desk):
    await desk.load()
    await desk.look()
    await desk.engine.eject()
    assert desk.meters.state.value.state is None
    assert "weights" not in parts(desk.meters.state.value.bars[0])


async def test_new_load_has_a_new_baseline(desk):
    await desk.load()
    await desk.look()
    desk.pc.game = 3 * GIB
    assert (await desk.look(4)).endswith("spilling")
    desk.pc.shrink(9 * GIB)
    await desk.load()
    assert await desk.look(4) == "fits fits fits fits"


async def test_the_history_keeps_five_minutes(desk):
    await desk.look(3)
    desk.now_s += 290
    await desk.look(20)
    times = [point.at_s for point in desk.meters.state.value.history]
    assert times == sorted(times)
    assert desk.now_s - times[0] <= 300
    assert len(times) == 20


async def test_polling_continues_until_close(desk):
    seen = asyncio.Event()
    desk.meters.state.subscribe(lambda _meters: seen.set())
    desk.meters.start()
    desk.meters.start()
    await seen.wait()
    looks = desk.pc.looks
    desk.meters.set_visible(False)  # wakes it, so that it looks less often from now on
    await desk.until(lambda: desk.pc.looks > looks)


async def test_loaded_model_is_measured_at_once(desk):
    seen = asyncio.Event()
    desk.meters.state.subscribe(lambda meters: seen.set() if meters.state is SpillState.FITS else None)
    desk.meters.start()
    await desk.until(lambda: desk.pc.looks > 0)
    await desk.load()
    await seen.wait()


async def test_speed_of_a_running_answer_counts(desk):
    await desk.load()
    speeds = []

    def tick(_news) -> None:
        desk.now_s += 0.1
        speeds.append(desk.answers.decode_tok_s)

    desk.chat.subscribe(tick)
    await desk.chat.send("one two three four five six seven eight nine ten")
    assert not desk.answers.is_answering
    assert desk.answers.context_tokens > 10
    known = [speed for speed in speeds if speed is not None]
    assert known
    assert all(5 < speed < 15 for speed in known[1:])


async def test_the_curve_of_speeds_is_the_loaded_models(desk):
    await desk.load()
    await desk.look(2)
    state = desk.meters.state.value
    fast = tuple(msgspec.structs.replace(point, tok_s=1220.0) for point in state.history)
    desk.meters.state.set(msgspec.structs.replace(state, history=fast))
    await desk.load()
    await desk.look()
    history = desk.meters.state.value.history
    assert [point.tok_s for point in history if point.tok_s is not None] == []
    assert all(point.used_bytes for point in history), "memory is the PC's, whatever is loaded"


async def test_speed_of_a_long_answer_is_saved(desk, tmp_path):
    await desk.load()
    await desk.chat.send(" ".join(f"word{number}" for number in range(30)))
    await desk.meters.close()
    kept = MeasuredSpeeds(tmp_path / "speeds.json").speed(OPTIONS, desk.answers.context_tokens)
    assert kept is not None
    assert kept.best == kept.last == desk.answers.last_tok_s


async def test_what_was_estimated_is_kept_with_the_measured_speed(desk):
    desk.meters._estimate = lambda _options: LoadEstimate({}, 0, (20.0, 80.0))
    await desk.load()
    await desk.chat.send(" ".join(f"word{number}" for number in range(30)))
    await desk.meters.close()
    kept = desk.speeds.speed(OPTIONS, desk.answers.context_tokens)
    assert kept is not None
    assert kept.estimated == pytest.approx(40.0)
    assert desk.speeds.gpu_factor == pytest.approx(min(max(kept.best / 40, 0.4), 2.5))


async def test_the_end_of_an_answer_can_be_waited_for(desk):
    await desk.load()
    order = []
    desk.answers.note_start()
    waiting = asyncio.create_task(desk.answers.wait_until_idle())
    waiting.add_done_callback(lambda _task: order.append("idle"))
    await asyncio.sleep(0)
    order.append("written")
    desk.answers.note_end()
    await waiting
    await asyncio.sleep(0)
    assert order == ["written", "idle"]


async def test_gpu_without_a_probe_has_no_state(desk):
    await desk.load()
    desk.pc.has_card = False
    assert await desk.look() == "-"
