"""Explains the speed of answers: the last one of the window's engine, and any that a command asks for."""

import asyncio
import os
from collections import deque

import msgspec
import psutil

from qwendesk.core.conversation import Answer
from qwendesk.core.failures import EngineExit, LoadFailure
from qwendesk.core.model_facts import ModelFacts
from qwendesk.core.observed import Observed
from qwendesk.core.owner import Owner
from qwendesk.core.plan import MachineMemory
from qwendesk.core.stats import AnswerStats
from qwendesk.engine.answer_meter import AnswerMeter
from qwendesk.engine.contract import EngineClient
from qwendesk.engine.protocol import Devices, LoadReport, RequestFailed, Stream
from qwendesk.engine.state import EngineState
from qwendesk.engines.engine_service import EngineService
from qwendesk.engines.measurements import Measurements
from qwendesk.hardware.layer_split import planned_gpus
from qwendesk.hardware.memory_estimate import WORKER_BYTES
from qwendesk.hardware.memory_limit import memory_limit
from qwendesk.hardware.ram_modules import has_one_channel, modules_here
from qwendesk.hardware.speed_estimate import FAST, SLOW, token_rates
from qwendesk.hardware.token_reads import TokenReads, token_reads
from qwendesk.meters.why import Circumstances, Why, explain
from qwendesk.meters.why_text import other_answer_note, why_sentence

# Answers that can be explained later than at once, the latest ones of the loaded model.
_N_KEPT = 100
# For the buffer of the stream loop, the worker itself and other programs.
_ROOM_BYTES = 1024**3


class WhyState(msgspec.Struct, frozen=True, kw_only=True):
    """What the window shows of the last answer's speed."""

    why: Why | None = None
    """None before the first answer of the loaded model that is long enough."""
    is_measuring: bool = False
    problem: str = ""
    """Why this PC couldn't be measured; "" if it could, or wasn't."""
    note: str = ""
    """Why the answer that the user asked about isn't the explained one; "" if it is, or if nobody asked."""


class WhyService(Owner):
    """Owns the explanation of the window's last answer. Its methods are called on the event loop's thread."""

    def __init__(
        self, engine: EngineService, client: EngineClient, answers: AnswerMeter, measured: Measurements
    ) -> None:
        super().__init__()
        self._engine, self._client, self._measured = engine, client, measured
        self.state = Observed(WhyState())
        self._explaining: set[asyncio.Task[None]] = set()
        self._report: LoadReport | None = None
        self._kept: deque[Why] = deque(maxlen=_N_KEPT)
        self.at_close(answers.subscribe(self._on_answer))
        self.at_close(engine.subscribe(self._on_engine))

    async def measure(self) -> None:
        """Measure how fast this PC reads what a token of the last answer read, and explain the answer with it."""
        why = self.state.value.why
        if why is None or self.state.value.is_measuring:
            return
        self._change(is_measuring=True, problem="")
        measured = await measure(self._client, why.circumstances)
        problem = measured if isinstance(measured, str) else ""
        explained = explain(measured) if not isinstance(measured, str) else why
        if explained is not None and why in self._kept:
            self._kept[self._kept.index(why)] = explained
        is_current = self.state.value.why is why
        self._change(why=explained if is_current else self.state.value.why, is_measuring=False, problem=problem)

    def reason(self, stats: AnswerStats) -> str:
        """Return why the answer with these statistics was as fast as it was; "" if that isn't known any more."""
        why = self._why(stats)
        return why_sentence(why) if why is not None else ""

    def show(self, answer: Answer) -> None:
        """Show the explanation of this answer. If it isn't known, the last answer's stays, with a note that says so."""
        why, shown = self._why(answer.stats), self.state.value.why
        if why is not None:
            self._change(why=why, note="", problem="" if why is not shown else self.state.value.problem)
        elif answer.stats.timing.engine_s > 0:
            loaded = self._report.title if self._report is not None else ""
            self._change(note=other_answer_note(answer.model, loaded, has_shown=shown is not None))
        else:
            self._change(note="")

    def _why(self, stats: AnswerStats) -> Why | None:
        return next((why for why in reversed(self._kept) if why.circumstances.stats.timing == stats.timing), None)

    async def close(self) -> None:
        await super().close()
        await asyncio.gather(*self._explaining)

    def _on_engine(self, state: EngineState) -> None:
        if state.local_report is not self._report:
            self._report = state.local_report
            self._kept.clear()
            self.state.set(WhyState())

    def _on_answer(self, stats: AnswerStats) -> None:
        report = self._engine.state.local_report
        if report is None:
            return
        task = asyncio.create_task(self._explain(stats, report))
        self._explaining.add(task)
        task.add_done_callback(self._explaining.discard)

    async def _explain(self, stats: AnswerStats, report: LoadReport) -> None:
        state = self._engine.state
        files = await asyncio.to_thread(self._engine.read_files, report.options)
        if isinstance(files, LoadFailure) or self._engine.state.local_report is not report:
            return
        machine = self._measured.machine(Devices(id=0, devices=state.devices, cpu_features=()), 0)
        found = await asyncio.to_thread(circumstances, stats, state, report, files[0], machine)
        before = self.state.value.why
        if before is not None and before.circumstances.options == found.options:
            earlier = before.circumstances
            found = msgspec.structs.replace(found, stream=earlier.stream, stream_tokens=earlier.stream_tokens)
        why = explain(found)
        if why is not None:
            self._kept.append(why)
            self._change(why=why, note="")

    def _change(self, **changes: object) -> None:
        self.state.set(msgspec.structs.replace(self.state.value, **changes))


def circumstances(
    stats: AnswerStats, state: EngineState, report: LoadReport, facts: ModelFacts, machine: MachineMemory
) -> Circumstances:
    """Return what explains an answer of the loaded model, without what is measured afterwards. Blocks on small files.

    The KV cache counts as it was in the middle of the answer.
    """
    n_answered = stats.reasoning_tokens + stats.answer_tokens
    has_gpu = any(row.device != "CPU" and row.weights_bytes for row in report.allocations)
    reads = token_reads(facts, report.options, stats.total_tokens - n_answered // 2, has_gpu=has_gpu)
    pid = state.welcome.pid if state.welcome is not None else 0
    return Circumstances(
        stats=stats,
        options=report.options,
        reads=reads,
        gpu_s=_gpu_s(reads, facts, report, machine, FAST),
        gpu_slow_s=_gpu_s(reads, facts, report, machine, SLOW),
        n_cores=psutil.cpu_count(logical=False) or 0,
        n_logical=_usable_cores(),
        limit_bytes=memory_limit(pid) if pid else None,
        needed_bytes=WORKER_BYTES + sum(row.total_bytes for row in report.allocations if row.device == "CPU"),
        has_one_channel=has_one_channel(modules_here()),
    )


async def measure(client: EngineClient, found: Circumstances) -> Circumstances | str:
    """Return `found` with what the stream loop measured on the loaded model's engine, or a sentence why it couldn't.

    No more threads than cores read, because the limit is what this PC can do. Where there is little memory, nothing is
    measured: the system could end the engine for the buffer.
    """
    if not found.reads.n_matrices or _room_bytes(found) < _ROOM_BYTES:
        return found
    n_threads = max(1, min(found.stats.most_threads or found.n_cores, found.n_cores or found.n_logical))
    reply = await client.ask(Stream(test=found.reads.stream_test(n_threads)))
    if isinstance(reply, RequestFailed | EngineExit):
        return reply.sentence
    n_tokens = found.reads.attention.n_tokens if found.reads.attention is not None else 0
    return msgspec.structs.replace(found, stream=reply.speed, stream_tokens=n_tokens)


def _gpu_s(reads: TokenReads, facts: ModelFacts, report: LoadReport, machine: MachineMemory, bound: int) -> float:
    """Return the estimated seconds for what the GPUs read. Several take turns, so the mean of their speeds counts."""
    gpus = planned_gpus(machine, report.options)
    if not reads.gpu_layers or not gpus:
        return 0.0
    rates = token_rates(facts, report.options, machine, reads.n_tokens, bound).gpus
    byte_s = sum(each.byte_s for each in rates) / len(rates)
    layer_s = sum(each.layer_s for each in rates) / len(rates)
    return (reads.gpu_bytes + reads.gpu_cache_bytes) * byte_s + reads.gpu_layers * layer_s


def _room_bytes(found: Circumstances) -> int:
    """Return the memory that the engine's process may still take."""
    free = psutil.virtual_memory().available
    if found.limit_bytes is None:
        return free
    return min(free, found.limit_bytes - found.needed_bytes)


def _usable_cores() -> int:
    """Return how many cores this process may use, two for a core with two threads."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1
