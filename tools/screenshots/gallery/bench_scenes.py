"""The Bench page with its sections, and the card "Why this speed?" of the Engine page."""

from functools import partial

import msgspec

from qwendesk.core.benchmarks import SpeedTest, StreamSpeed
from qwendesk.core.options import DecidedOptions
from qwendesk.core.stats import AnswerStats, AnswerTiming
from qwendesk.hardware.token_reads import TokenReads
from qwendesk.meters.why import Circumstances, explain
from qwendesk.meters.why_service import WhyState
from tools.screenshots.gallery.room import Room
from tools.screenshots.stage import settle, until

_STATS = AnswerStats(
    prompt_tokens=950, reread_tokens=950, answer_tokens=101, prefill_s=2.0, decode_s=1.0, n_threads=4, most_threads=4,
    timing=AnswerTiming(engine_s=0.9, sampling_s=0.05, wanted_cores=2.4, delayed_s=0.4),
)  # fmt: skip
_WHY = Circumstances(
    stats=_STATS, options=DecidedOptions(model="a.gguf"), n_cores=8, n_logical=16,
    reads=TokenReads(n_tokens=1000, ram_bytes=100_000_000, cpu_caches=10, cpu_cache_bytes=1_000_000),
    stream=StreamSpeed(ram_bytes_s=20e9, matrices_s=0.007, step_s=1e-6, attention_s=0.00005), stream_tokens=1000,
)  # fmt: skip


async def bench(room: Room) -> None:
    """The page before and after a measurement, and each of its sections."""
    services = room.parts.services.bench
    room.window.go_to("bench")
    await room.shoot("bench")
    room.bench_client.speed = _speed
    _show(room, "speed")
    await settle()
    await until(lambda: room.find("bench.run").isEnabled())
    room.click("bench.run")
    await until(lambda: services.speed.state.value.is_running)
    await until(lambda: not services.speed.state.value.is_running)
    await settle()
    await room.shoot("bench-speed")
    room.click("bench.details")
    await settle()
    await room.shoot("bench-speed-details")
    room.click("bench.details")
    _show(room, "tune")
    await settle()
    await until(lambda: room.find("tune.run").isEnabled())
    room.click("tune.run")
    await until(lambda: services.tune.state.value.is_running)
    await until(lambda: not services.tune.state.value.is_running)
    await settle()
    await room.shoot("bench-tune")
    for section in ("compare", "quality", "pc"):
        await room.shoot(f"bench-{section}", partial(_show, room, section))
    _show(room, "home")
    await room.shoot("bench-results")


async def why(room: Room) -> None:
    """The card before an answer, of a disturbed answer, and of one whose parts aren't measured."""
    found = room.parts.services.meters.why.state
    for name, circumstances in (("disturbed", _WHY), ("unmeasured", msgspec.structs.replace(_WHY, stream=None))):
        found.set(WhyState(why=explain(circumstances)))
        await room.shoot(f"why-{name}", partial(room.parts.navigation.why_asked.emit, AnswerStats()))
    found.set(WhyState())


def _speed(_options: DecidedOptions, test: SpeedTest) -> float:
    """Return tok/s of a 35B-A3B on a card of 24 GB: prompts are faster than answers, which slow down in long chats."""
    return 1_850.0 if test.n_prompt else 62.0 / (1 + test.depth / 60_000)


def _show(room: Room, section: str) -> None:
    room.parts.navigation.bench_section_asked.emit(section)
