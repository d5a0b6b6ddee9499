"""The EngineClient that uses a worker process, and its limits: how long it waits, and how large a request may be."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import cast

import msgspec

from qwendesk.core.benchmarks import BenchTest
from qwendesk.core.failures import EngineExit, LoadFailure
from qwendesk.core.messages import ImagePart
from qwendesk.core.observed import Subscribers
from qwendesk.core.options import DecidedOptions
from qwendesk.core.translation import tr
from qwendesk.core.units import show_bytes
from qwendesk.engine.contract import AnswerItem, AnswerStream, EngineClient
from qwendesk.engine.load_failures import cancelled_load, classify_load
from qwendesk.engine.process import (
    SHORT_SPIN,
    UNRESPONSIVE,
    WorkerProcess,
    spin_count,
    start_problem,
    worker_command,
    worker_environment,
)
from qwendesk.engine.protocol import (
    Acknowledged,
    AnswerNow,
    AnyEvent,
    Bench,
    Benched,
    BenchProgress,
    CallDelta,
    Cancel,
    Delta,
    Devices,
    Generate,
    Hello,
    Load,
    Loaded,
    LoadProgress,
    LoadRefused,
    LoadReport,
    Measure,
    ProbeDevices,
    PromptProgress,
    Query,
    Rendered,
    Rendering,
    ReplyT_co,
    Request,
    RequestFailed,
    Shutdown,
    Warm,
    Welcome,
)
from qwendesk.engine.protocol_lines import LINE_LIMIT_BYTES, encode_line
from qwendesk.engine.replies import LastEvent, Reply, WorkerAnswer, closed_exit, no_model_failure, translated
from qwendesk.engine.state import EngineEvent, LoadAsked, LoadFailed, WorkerExited, WorkerSilent, WorkerStarting
from qwendesk.engine.watchdog import SilenceLimits, TemplateGuard, TemplateWatchdogLimits


def oversize_failure(request: Request, n_bytes: int) -> RequestFailed | None:
    """Return the failure of an encoded request of `n_bytes` that is too long to send; None if it can be sent."""
    if n_bytes <= LINE_LIMIT_BYTES:
        return None
    n_image_bytes = _encoded_image_bytes(request)
    if 2 * n_image_bytes > n_bytes:
        sentence = tr(
            "This chat and its attachments come to {0}, {1} of it pictures. The engine accepts at most {2} at once. "
            "Remove attachments, or start a new chat.",
            show_bytes(n_bytes), show_bytes(n_image_bytes), show_bytes(LINE_LIMIT_BYTES),
        )  # fmt: skip
    else:
        sentence = tr(
            "This chat and its attachments come to {0}, {1} of it text. The engine accepts at most {2} at once. Remove "
            "attachments, or start a new chat.",
            show_bytes(n_bytes), show_bytes(n_bytes - n_image_bytes), show_bytes(LINE_LIMIT_BYTES),
        )  # fmt: skip
    return RequestFailed(
        id=request.id,
        title=tr("Too large"),
        sentence=sentence,
    )


def _encoded_image_bytes(request: Request) -> int:
    """Return the base64 size in bytes of the images that a request carries as data."""
    if not isinstance(request, Generate | Measure | Warm):
        return 0
    images = [part for message in request.messages for part in message.parts if isinstance(part, ImagePart)]
    images += request.pictures if isinstance(request, Measure) else ()
    return sum(4 * len(image.data) // 3 for image in images)


class WorkerTimeouts(msgspec.Struct, frozen=True):
    """How many seconds the client waits before it kills its worker."""

    start_s: float = 120.0
    """From the start to Welcome. Up to 2 GB of GPU libraries may have to be read from disk."""
    acknowledge_s: float = 10.0
    load_stall_s: float = 3.0
    """A cancelled load may take this long without progress. An early kill loses nothing: no model is loaded yet."""
    answer_stall_s: float = 20.0
    """A cancelled answer may take this long without progress. A batch on a GPU cannot be interrupted and takes seconds
    if video memory spills. After a kill, the model must be loaded again.
    """
    cancel_s: float = 120.0
    """From a cancel to the end of its request. Also the limit without progress while images are decoded and encoded,
    which cannot be interrupted either and takes this long on a slow CPU.
    """
    stop_s: float = 3.0
    template: TemplateWatchdogLimits = TemplateWatchdogLimits()
    silence: SilenceLimits = SilenceLimits()


def stalled_at(timeouts: WorkerTimeouts, reply: Reply) -> float:
    """Return the time, by the event loop's clock, at which a request without another event counts as stalled."""
    event = reply.last_event
    if isinstance(event, Rendered) or (isinstance(event, PromptProgress) and event.encodes_image):
        limit_s = timeouts.cancel_s
    else:
        limit_s = timeouts.load_stall_s if reply.is_load else timeouts.answer_stall_s
    return reply.last_event_at + limit_s


def kill_at(timeouts: WorkerTimeouts, reply: Reply) -> float:
    """Return the time, by the event loop's clock, at which the worker of a cancelled request is killed.

    That is at once if the request had already stalled when it was cancelled. Each event of the request moves the time.
    """
    assert reply.cancelled_at is not None
    times = [stalled_at(timeouts, reply), reply.cancelled_at + timeouts.cancel_s]
    if not reply.is_acknowledged:
        times.append(reply.cancelled_at + timeouts.acknowledge_s)
    return min(times)


__all__ = ["AnswerItem", "AnswerStream", "EngineClient", "WorkerClient", "WorkerTimeouts"]

# How many lines of the engine's log are shown with a failed load if nothing was written to standard error.
_SHOWN_LINES = 20


async def _no_variables() -> Mapping[str, str]:
    return {}


class WorkerClient:
    """Starts a worker when one is needed, and passes its events to requests and subscribers.

    No worker process is left running after `unload` or `close`.
    """

    def __init__(
        self,
        command: Sequence[str] | None = None,
        timeouts: WorkerTimeouts | None = None,
        environment: Callable[[], Awaitable[Mapping[str, str]]] = _no_variables,
    ) -> None:
        """Each start awaits `environment` for the variables that select the worker's engine.

        They are added to the environment of this process.
        """
        self._command = tuple(command or worker_command())
        self._environment = environment
        self._timeouts = timeouts or WorkerTimeouts()
        self._subscribers = Subscribers[EngineEvent]()
        self._worker: WorkerProcess | None = None
        self._welcome: Welcome | None = None
        self._spin = SHORT_SPIN
        """With which the worker was started, or the next one is."""
        self._start_lock = asyncio.Lock()
        self._ids = itertools.count(1)
        self._replies: dict[int, Reply] = {}
        self._closed = False

    @property
    def worker_pid(self) -> int | None:
        """The worker's process id; None while none runs."""
        return self._worker.pid if self._worker is not None else None

    @property
    def engine_lines(self) -> tuple[str, ...]:
        """The last lines the running worker wrote to its standard error."""
        return self._worker.lines if self._worker is not None else ()

    def subscribe(self, callback: Callable[[EngineEvent], None]) -> Callable[[], None]:
        return self._subscribers.add(callback)

    async def start(self) -> Welcome | EngineExit:
        async with self._start_lock:
            if self._is_closed():
                return closed_exit()
            if self._worker is not None and self._worker.exit_requested:
                await self._worker.wait_until_exited()
            if self._worker is not None and self._welcome is not None:
                return self._welcome
            environment = worker_environment(await self._environment(), spin=self._spin)
            if self._is_closed():
                return closed_exit()
            self._subscribers.notify(WorkerStarting())
            try:
                self._worker = await WorkerProcess.spawn(
                    self._command, self._handle_event, self._handle_exit, environment
                )
            except OSError as error:
                engine_exit = EngineExit(None, start_problem(error, self._command), was_started=False)
                self._subscribers.notify(WorkerExited(engine_exit))
                return engine_exit
            except asyncio.CancelledError:
                self._subscribers.notify(WorkerExited(None))
                raise
            if self._is_closed():  # the client was closed while the process was created
                await self.unload()
                return closed_exit()
            return await self._shake_hands(self._worker)

    async def load(self, options: DecidedOptions) -> LoadReport | LoadFailure:
        welcome = await self.start()
        if isinstance(welcome, Welcome) and self._spin != (spin := spin_count(options, welcome.backends)):
            self._spin = spin
            await self.unload()
            welcome = await self.start()
        if isinstance(welcome, EngineExit):
            return self._load_failed(classify_load(welcome, options))
        self._subscribers.notify(LoadAsked(options))
        reply = self._send_request(Load(options=options))
        try:
            result = await self._wait_for_last(reply)
        except asyncio.CancelledError:
            self._load_failed(cancelled_load())
            raise
        if isinstance(result, Loaded):
            return result.report
        if reply.is_cancelled:
            return self._load_failed(cancelled_load())
        if isinstance(result, EngineExit):
            return self._load_failed(classify_load(result, options))
        if not isinstance(result, LoadRefused):
            sentence = result.sentence if isinstance(result, RequestFailed) else tr("The engine gave no reason.")
            result = LoadRefused(id=reply.id, stage="weights", message=sentence)
        # The log has every detail. Standard error has only what users need, and what libraries print directly.
        logged = result.engine_lines[-_SHOWN_LINES:] if result.stage not in ("options", "template") else ()
        shown = self.engine_lines or logged
        known = msgspec.structs.replace(result, engine_lines=(*self.engine_lines, *result.engine_lines))
        return self._load_failed(msgspec.structs.replace(classify_load(known, options), engine_lines=shown))

    async def cancel_load(self) -> None:
        load = next((reply for reply in self._replies.values() if reply.is_load), None)
        if load is not None:
            self._cancel(load.id)
        else:  # the worker is still starting, or is listing its devices before the load
            self._kill_if_stalled()

    async def unload(self) -> None:
        if self._worker is not None:
            self._kill_if_stalled()
            await self._worker.stop(Shutdown(id=next(self._ids)), timeout_s=self._timeouts.stop_s)

    async def probe(self) -> Devices | EngineExit:
        welcome = await self.start()
        if isinstance(welcome, EngineExit):
            return welcome
        result = await self._wait_for_last(self._send_request(ProbeDevices()))
        if isinstance(result, Devices | EngineExit):
            return result
        return EngineExit(None, tr("The engine couldn't list its devices."), self.engine_lines)

    def generate(self, request: Generate) -> WorkerAnswer:
        if self._worker is None:
            reply = Reply(0, is_public=False)
            reply.put(no_model_failure())
        else:
            reply = self._send_request(request)
        return WorkerAnswer(reply, self._cancel, self._answer_now)

    async def ask(self, request: Query[ReplyT_co]) -> ReplyT_co | RequestFailed | EngineExit:
        if self._worker is None:
            return no_model_failure()
        return cast("ReplyT_co", await self._wait_for_last(self._send_request(request, is_public=False)))

    async def bench(
        self, test: BenchTest, show: Callable[[BenchProgress], None] | None = None
    ) -> Benched | RequestFailed | EngineExit:
        if self._worker is None:
            return no_model_failure()
        reply = self._send_request(Bench(test=test))
        result = await self._wait_for_last(reply, show)
        assert isinstance(result, Benched | RequestFailed | EngineExit), result
        return result

    async def close(self) -> None:
        self._closed = True
        await self.unload()

    def _is_closed(self) -> bool:
        return self._closed

    async def _shake_hands(self, worker: WorkerProcess) -> Welcome | EngineExit:
        reply = self._send_request(Hello())
        limit_s = self._timeouts.start_s
        reply.expire_in(
            limit_s, lambda: worker.kill(tr("The engine didn't respond within {0} s of its start.", f"{limit_s:g}"))
        )
        try:
            result = await reply.last()
        except asyncio.CancelledError:
            worker.kill(tr("Starting the engine was cancelled."), is_expected=True)
            raise
        if isinstance(result, Welcome):
            self._welcome = result
            worker.watch_silence(self._timeouts.silence, lambda silent: self._subscribers.notify(WorkerSilent(silent)))
            return result
        if isinstance(result, EngineExit):
            return result
        sentence = (
            result.sentence if isinstance(result, RequestFailed) else tr("The engine's answer couldn't be understood.")
        )
        engine_exit = EngineExit(None, sentence, worker.lines)
        await worker.stop(Shutdown(id=next(self._ids)), timeout_s=self._timeouts.stop_s)
        return engine_exit

    def _send_request(self, request: Request, *, is_public: bool = True) -> Reply:
        assert self._worker is not None
        request = msgspec.structs.replace(request, id=next(self._ids))
        reply = Reply(request.id, is_public=is_public, is_load=isinstance(request, Load))
        line = encode_line(request)
        failure = oversize_failure(request, len(line))
        if failure is not None:
            reply.put(failure)
            return reply
        self._replies[reply.id] = reply
        self._worker.send(line)
        return reply

    async def _wait_for_last(
        self, reply: Reply, show: Callable[[BenchProgress], None] | None = None
    ) -> LastEvent | EngineExit:
        try:
            return await reply.last(show)
        except asyncio.CancelledError:
            self._cancel(reply.id)
            raise

    def _cancel(self, target: int) -> None:
        reply, worker = self._replies.get(target), self._worker
        if reply is None or worker is None or reply.is_cancelled:
            return
        reply.cancelled_at = asyncio.get_running_loop().time()
        worker.send(encode_line(Cancel(id=next(self._ids), target=target)))
        self._watch_cancelled(reply, worker)

    def _answer_now(self, target: int) -> None:
        if self._worker is not None and target in self._replies:
            self._worker.send(encode_line(AnswerNow(id=next(self._ids), target=target)))

    def _watch_cancelled(self, reply: Reply, worker: WorkerProcess) -> None:
        """Kill the worker if a cancelled request makes no progress.

        Background token counts are not watched: they may have to wait for the answer in progress, and nobody waits for
        a cancelled count.
        """
        if not reply.is_public:
            return
        seconds = kill_at(self._timeouts, reply) - asyncio.get_running_loop().time()
        reply.expire_in(seconds, lambda: worker.kill(tr(UNRESPONSIVE), is_expected=reply.is_load))

    def _kill_if_stalled(self) -> None:
        """Kill the worker, at the user's request, if any of its requests makes no progress."""
        now = asyncio.get_running_loop().time()
        replies = [reply for reply in self._replies.values() if reply.is_public]
        if self._worker is not None and any(stalled_at(self._timeouts, reply) <= now for reply in replies):
            self._worker.kill(tr("The engine was stopped."), is_expected=True)

    def _load_failed(self, failure: LoadFailure) -> LoadFailure:
        self._subscribers.notify(LoadFailed(failure))
        return failure

    def _handle_event(self, event: AnyEvent) -> None:
        if isinstance(event, Acknowledged):
            target = self._replies.get(event.target)
            if target is not None and target.is_cancelled and self._worker is not None:
                target.is_acknowledged = True
                self._watch_cancelled(target, self._worker)
            return
        reply = self._replies.get(event.id)
        if reply is None:
            return
        event = translated(event) if isinstance(event, RequestFailed) else event
        self._watch_template(reply, event)
        if isinstance(event, LastEvent):
            del self._replies[event.id]
            reply.close()
        if reply.is_public and not isinstance(event, Delta | CallDelta):
            self._subscribers.notify(event)
        reply.put(event)
        if reply.is_cancelled and event.id in self._replies and self._worker is not None:
            self._watch_cancelled(reply, self._worker)

    def _watch_template(self, reply: Reply, event: AnyEvent) -> None:
        runs_template = isinstance(event, Rendering) or (isinstance(event, LoadProgress) and event.stage == "template")
        worker, welcome = self._worker, self._welcome
        if runs_template and worker is not None and welcome is not None:
            reply.guard_with(TemplateGuard(welcome.pid or worker.pid, self._timeouts.template, worker.kill))
        else:
            reply.guard_with(None)

    def _handle_exit(self, worker: WorkerProcess, engine_exit: EngineExit) -> None:
        self._worker = self._welcome = None
        if worker.exit_requested:
            engine_exit = EngineExit(None, tr("The engine was stopped."), engine_exit.engine_lines)
        self._subscribers.notify(WorkerExited(None if worker.exit_requested else engine_exit))
        replies, self._replies = list(self._replies.values()), {}
        for reply in replies:
            reply.close()
            reply.put(engine_exit)
