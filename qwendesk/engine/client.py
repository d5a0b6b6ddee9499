"""The EngineClient that owns a worker process."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Mapping, Sequence

import msgspec

from qwendesk.core.failures import EngineDeath, LoadFailure
from qwendesk.core.messages import ImagePart, Message
from qwendesk.core.options import GenerationOptions, LoadOptions
from qwendesk.core.subscribers import Subscribers
from qwendesk.engine.contract import AnswerItem, AnswerStream, EngineClient
from qwendesk.engine.failures import cancelled_load, classify_load
from qwendesk.engine.process import WorkerProcess, worker_command
from qwendesk.engine.protocol import (
    Acknowledged,
    AnswerNow,
    AnyEvent,
    Begun,
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
    Measured,
    Probe,
    Rendering,
    Request,
    RequestFailed,
    Shutdown,
    Welcome,
)
from qwendesk.engine.replies import LastEvent, Reply, WorkerAnswer
from qwendesk.engine.state import EngineNews, LoadAsked, LoadFailed, WorkerEnded, WorkerStarting
from qwendesk.engine.watchdog import TemplateGuard, TemplateLimits

__all__ = ["AnswerItem", "AnswerStream", "EngineClient", "Patience", "WorkerClient"]

_NO_MODEL = RequestFailed(id=0, title="No model", sentence="No model is loaded. Choose one first.")
_CLOSED = EngineDeath(None, "The engine is closed.")
_SHOWN_LINES = 20
"""Lines of the engine's log that people see under a failed load when its standard error has none."""


class Patience(msgspec.Struct, frozen=True):
    """Seconds the client waits for its worker before it ends it."""

    start_s: float = 120.0
    """From the start to Welcome: a cold disk has to bring in up to 2 GB of GPU libraries."""
    acknowledge_s: float = 10.0
    cancel_s: float = 120.0
    """From an acknowledged cancel to the end of its request: a picture being encoded cannot be interrupted, and on a
    slow processor takes that long. The model stays loaded, which is worth the wait."""
    stop_s: float = 3.0
    template: TemplateLimits = TemplateLimits()


async def _nothing() -> Mapping[str, str]:
    return {}


class WorkerClient:
    """Starts a worker when one is needed, and hands its events to whom they concern. Never leaves one behind."""

    def __init__(
        self,
        command: Sequence[str] | None = None,
        patience: Patience | None = None,
        environment: Callable[[], Awaitable[Mapping[str, str]]] = _nothing,
    ) -> None:
        """`environment` is asked at each start for what the worker gets besides this process's own: which engine. The
        start waits for its answer."""
        self._command = tuple(command or worker_command())
        self._environment = environment
        self._patience = patience or Patience()
        self._subscribers = Subscribers[EngineNews]()
        self._worker: WorkerProcess | None = None
        self._welcome: Welcome | None = None
        self._one_start = asyncio.Lock()
        self._ids = itertools.count(1)
        self._replies: dict[int, Reply] = {}
        self._load: Reply | None = None
        self._closed = False

    @property
    def worker_pid(self) -> int | None:
        """The worker's process id; None while none runs."""
        return self._worker.pid if self._worker is not None else None

    @property
    def engine_lines(self) -> tuple[str, ...]:
        """The last lines the running worker wrote to its standard error."""
        return self._worker.lines if self._worker is not None else ()

    def subscribe(self, callback: Callable[[EngineNews], None]) -> Callable[[], None]:
        return self._subscribers.add(callback)

    async def start(self) -> Welcome | EngineDeath:
        async with self._one_start:
            if self._is_closed():
                return _CLOSED
            if self._worker is not None and self._worker.asked_to_end:
                await self._worker.gone()
            if self._worker is not None and self._welcome is not None:
                return self._welcome
            environment = await self._environment()
            if self._is_closed():
                return _CLOSED
            self._subscribers.notify(WorkerStarting())
            try:
                self._worker = await WorkerProcess.spawn(self._command, self._take, self._ended, environment)
            except OSError as error:
                death = EngineDeath(None, f"The engine could not be started: {error}.")
                self._subscribers.notify(WorkerEnded(death))
                return death
            except asyncio.CancelledError:
                self._subscribers.notify(WorkerEnded(None))
                raise
            if self._is_closed():  # while the process was made
                await self.unload()
                return _CLOSED
            return await self._greet(self._worker)

    async def load(self, options: LoadOptions) -> LoadReport | LoadFailure:
        welcome = await self.start()
        if isinstance(welcome, EngineDeath):
            return self._load_failed(classify_load(welcome, options))
        self._subscribers.notify(LoadAsked(options))
        reply = self._load = self._ask(lambda request_id: Load(id=request_id, options=options))
        result = await self._last_of(reply)
        self._load = None
        if isinstance(result, Loaded):
            return result.report
        if reply.cancelled:
            return self._load_failed(cancelled_load())
        if isinstance(result, EngineDeath):
            return self._load_failed(classify_load(result, options))
        if not isinstance(result, LoadRefused):
            sentence = result.sentence if isinstance(result, RequestFailed) else "the engine gave no reason"
            result = LoadRefused(id=reply.id, stage="weights", message=sentence)
        # Its log has every detail; its standard error has what people need, and what libraries print past the log.
        logged = result.engine_lines[-_SHOWN_LINES:] if result.stage not in ("options", "template") else ()
        shown = self.engine_lines or logged
        known = msgspec.structs.replace(result, engine_lines=(*self.engine_lines, *result.engine_lines))
        return self._load_failed(msgspec.structs.replace(classify_load(known, options), engine_lines=shown))

    async def cancel_load(self) -> None:
        if self._load is not None:
            self._cancel(self._load.id)

    async def unload(self) -> None:
        if self._worker is not None:
            await self._worker.stop(Shutdown(id=next(self._ids)), patience_s=self._patience.stop_s)

    async def probe(self) -> Devices | EngineDeath:
        welcome = await self.start()
        if isinstance(welcome, EngineDeath):
            return welcome
        result = await self._last_of(self._ask(lambda request_id: Probe(id=request_id)))
        if isinstance(result, Devices | EngineDeath):
            return result
        return EngineDeath(None, "The engine could not list its devices.", self.engine_lines)

    async def measure(
        self, messages: Sequence[Message], pictures: Sequence[ImagePart], options: GenerationOptions
    ) -> Measured | RequestFailed | EngineDeath:
        if self._worker is None:
            return _NO_MODEL
        reply = self._ask(
            lambda request_id: Measure(
                id=request_id, messages=tuple(messages), pictures=tuple(pictures), options=options
            ),
            is_public=False,
        )
        result = await self._last_of(reply)
        assert isinstance(result, Measured | RequestFailed | EngineDeath), result
        return result

    def generate(
        self,
        messages: Sequence[Message],
        options: GenerationOptions,
        tools_json: Sequence[str] = (),
        begun: Begun | None = None,
    ) -> WorkerAnswer:
        if self._worker is None:
            reply = Reply(0, is_public=False)
            reply.put(_NO_MODEL)
        else:
            reply = self._ask(
                lambda request_id: Generate(
                    id=request_id, messages=tuple(messages), options=options, tools_json=tuple(tools_json), begun=begun
                )
            )
        return WorkerAnswer(reply, self._cancel, self._answer_now)

    async def close(self) -> None:
        self._closed = True
        await self.unload()

    def _is_closed(self) -> bool:
        return self._closed

    async def _greet(self, worker: WorkerProcess) -> Welcome | EngineDeath:
        reply = self._ask(lambda request_id: Hello(id=request_id))
        limit_s = self._patience.start_s
        reply.expire_in(limit_s, lambda: worker.kill(f"The engine did not answer within {limit_s:g} s of its start."))
        try:
            result = await reply.last()
        except asyncio.CancelledError:
            worker.kill("Starting the engine was cancelled.", asked=True)
            raise
        if isinstance(result, Welcome):
            self._welcome = result
            return result
        if isinstance(result, EngineDeath):
            return result
        sentence = result.sentence if isinstance(result, RequestFailed) else "The engine answered nonsense."
        death = EngineDeath(None, sentence, worker.lines)
        await worker.stop(Shutdown(id=next(self._ids)), patience_s=self._patience.stop_s)
        return death

    def _ask(self, make: Callable[[int], Request], *, is_public: bool = True) -> Reply:
        assert self._worker is not None
        reply = Reply(next(self._ids), is_public=is_public)
        self._replies[reply.id] = reply
        self._worker.send(make(reply.id))
        return reply

    async def _last_of(self, reply: Reply) -> LastEvent | EngineDeath:
        try:
            return await reply.last()
        except asyncio.CancelledError:
            self._cancel(reply.id)
            raise

    def _cancel(self, target: int) -> None:
        reply, worker = self._replies.get(target), self._worker
        if reply is None or worker is None or reply.cancelled:
            return
        reply.cancelled = True
        worker.send(Cancel(id=next(self._ids), target=target))
        self._give_up_after(self._patience.acknowledge_s, reply, worker)

    def _answer_now(self, target: int) -> None:
        if self._worker is not None and target in self._replies:
            self._worker.send(AnswerNow(id=next(self._ids), target=target))

    def _give_up_after(self, seconds: float, reply: Reply, worker: WorkerProcess) -> None:
        sentence = f"The engine did not stop within {seconds:g} s, so it was ended."
        reply.expire_in(seconds, lambda: worker.kill(sentence))

    def _load_failed(self, failure: LoadFailure) -> LoadFailure:
        self._subscribers.notify(LoadFailed(failure))
        return failure

    def _take(self, event: AnyEvent) -> None:
        """One event from the worker."""
        if isinstance(event, Acknowledged):
            target = self._replies.get(event.target)
            if target is not None and target.cancelled and self._worker is not None:
                self._give_up_after(self._patience.cancel_s, target, self._worker)
            return
        reply = self._replies.get(event.id)
        if reply is None:
            return
        self._watch_template(reply, event)
        if isinstance(event, LastEvent):
            del self._replies[event.id]
            reply.close()
        if reply.is_public and not isinstance(event, Delta):
            self._subscribers.notify(event)
        reply.put(event)

    def _watch_template(self, reply: Reply, event: AnyEvent) -> None:
        runs_template = isinstance(event, Rendering) or (isinstance(event, LoadProgress) and event.stage == "template")
        worker, welcome = self._worker, self._welcome
        if runs_template and worker is not None and welcome is not None:
            reply.guard_with(TemplateGuard(welcome.pid or worker.pid, self._patience.template, worker.kill))
        else:
            reply.guard_with(None)

    def _ended(self, worker: WorkerProcess, death: EngineDeath) -> None:
        self._worker = self._welcome = None
        if worker.asked_to_end:
            death = EngineDeath(None, "The engine was stopped.", death.engine_lines)
        self._subscribers.notify(WorkerEnded(None if worker.asked_to_end else death))
        replies, self._replies = list(self._replies.values()), {}
        for reply in replies:
            reply.close()
            reply.put(death)
