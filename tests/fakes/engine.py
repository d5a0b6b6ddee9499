"""A scripted engine: answers what the test wrote down, at the speed the test asks for."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from qwendesk.core.benchmarks import StreamSpeed
from qwendesk.core.devices import DeviceInfo
from qwendesk.core.failures import EngineExit, LoadFailure
from qwendesk.core.observed import Subscribers
from qwendesk.core.options import DecidedOptions, LoadOptions, decided_options
from qwendesk.core.translation import tr
from qwendesk.engine.protocol import (
    PROTOCOL_VERSION,
    AnyRequest,
    Devices,
    Generate,
    Load,
    Loaded,
    LoadProgress,
    LoadReport,
    Measure,
    Measured,
    MessageTokens,
    PictureCost,
    ProbeDevices,
    Query,
    ReplyT_co,
    Request,
    RequestFailed,
    SaveState,
    StateSaved,
    Stream,
    Streamed,
    TemplateAbilities,
    Tokenize,
    Tokenized,
    Unload,
    Warm,
    Warmed,
    Welcome,
)
from qwendesk.engine.state import EngineEvent, LoadAsked, LoadFailed, WorkerExited, WorkerStarting
from tests.fakes.answer_stream import (
    PICTURE_TOKENS,
    FakeAnswerStream,
    ScriptedAnswer,
    part_tokens,
    prompt_tokens,
)

RequestT = TypeVar("RequestT", bound=Request)

DEMO_REPORT = LoadReport(
    options=DecidedOptions(model="/models/qwendesk-demo-Q8_0.gguf", mmproj="/models/mmproj-qwendesk-demo-Q8_0.gguf"),
    name="QwenDesk Demo",
    architecture="qwen35moe",
    n_params=2_970_000,
    weights_bytes=3_200_000,
    n_ctx=32_768,
    n_ctx_train=32_768,
    n_layers=8,
    n_vocab=2048,
    is_hybrid=True,
    can_think=True,
    can_see=True,
    template=TemplateAbilities(source="model", enable_thinking=True, preserve_thinking=False, tools=False),
    allocations=(),
    load_s=0.1,
)


def decide_by_default(options: LoadOptions, _devices: Devices) -> DecidedOptions:
    """Decide every "auto" as llama.cpp would."""
    return decided_options(options)


async def ready(client: "FakeEngineClient") -> "FakeEngineClient":
    """Return the client as `preferred_client` does."""
    return client


class FakeEngineClient:
    """An EngineClient without a process. `requests` records what was asked, in order."""

    def __init__(self, report: LoadReport = DEMO_REPORT, answers: Sequence[ScriptedAnswer] = ()) -> None:
        self.report = report
        self.answers = list(answers)
        """Taken from the front; when it is empty, answers are "You said: ..."."""
        self.requests: list[AnyRequest] = []
        self.warmed: list[Warm] = []
        """What was to be processed ahead; not among `requests`."""
        self.load_delay_s = 0.0
        self.load_result: LoadReport | LoadFailure | None = None
        """None: `report`, with the options that were asked for."""
        self.start_result: EngineExit | None = None
        self.devices: tuple[DeviceInfo, ...] = (
            DeviceInfo(name="CPU", description="Fake CPU", kind="cpu", backend="CPU"),
        )
        self.pid = 0
        """The worker's process, as the meters see it; 0 is none."""
        self.state_content, self.state_tokens = b"state", 1000
        """What `save_state` writes, and how many tokens it says the chat has."""
        self.streamed: Streamed | RequestFailed = Streamed(
            id=0, speed=StreamSpeed(ram_bytes_s=20e9, matrices_s=0.02, step_s=0.0, attention_s=0.0)
        )
        """The reply to a stream loop."""
        self.closed = False
        self._running = self._loaded = False
        self._next_id = 0
        self._subscribers = Subscribers[EngineEvent]()
        self._load_cancelled = False
        self._pauses: set[asyncio.Event] = set()

    def subscribe(self, callback: Callable[[EngineEvent], None]) -> Callable[[], None]:
        return self._subscribers.add(callback)

    async def start(self) -> Welcome | EngineExit:
        welcome = Welcome(
            id=0,
            version=PROTOCOL_VERSION,
            package_version="0.3.36",
            system_info="fake",
            backends=tuple(dict.fromkeys(device.backend for device in self.devices)),
            pid=self.pid,
        )
        if self._running:
            return welcome
        self.publish(WorkerStarting())
        if self.start_result is not None:
            self.publish(WorkerExited(self.start_result))
            return self.start_result
        self._running = True
        self.publish(welcome)
        return welcome

    async def load(self, options: DecidedOptions) -> LoadReport | LoadFailure:
        request = self.record(Load(options=options))
        self._load_cancelled = False
        died = await self.start()
        if isinstance(died, EngineExit):
            return self._load_failed(LoadFailure("other", "The engine did not start", died.sentence))
        self.publish(LoadAsked(options))
        for step in range(10):
            self.publish(LoadProgress(id=request.id, stage="weights", fraction=step / 10))
            await self.pause(self.load_delay_s / 10, asyncio.Event())
            if self._load_cancelled:
                return self._load_failed(LoadFailure("cancelled", "Loading was stopped", "You stopped it."))
            if not self._running:
                return self._load_failed(LoadFailure("other", "The engine died", "It was killed while loading."))
        result = self.load_result or msgspec.structs.replace(self.report, options=options)
        if isinstance(result, LoadFailure):
            return self._load_failed(result)
        self._loaded = True
        self.publish(Loaded(id=request.id, report=result))
        return result

    async def cancel_load(self) -> None:
        self._load_cancelled = True
        self._end_pauses()

    async def unload(self) -> None:
        self.record(Unload())
        self._end(None)

    async def probe(self) -> Devices | EngineExit:
        request = self.record(ProbeDevices())
        died = await self.start()
        if isinstance(died, EngineExit):
            return died
        devices = Devices(id=request.id, devices=self.devices, cpu_features=("AVX2",))
        self.publish(devices)
        return devices

    def _measured(self, request: Measure) -> Measured:
        thoughts = request.options.preserve_thinking
        return Measured(
            id=request.id,
            prompt_tokens=prompt_tokens(request.messages, thoughts=thoughts)
            + sum(len(each.split()) for each in request.tools_json),
            reasoning_tokens=sum(len(each.reasoning.split()) for each in request.messages) * thoughts,
            messages=tuple(MessageTokens(tuple(map(part_tokens, each.parts))) for each in request.messages),
            pictures=tuple(PictureCost(each.sha256, 256, 256, PICTURE_TOKENS) for each in request.pictures),
            n_ctx=self.report.n_ctx,
        )

    def generate(self, request: Generate) -> "FakeAnswerStream":
        request = self.record(request)
        if self.answers:
            script = self.answers.pop(0)
        else:
            said = request.messages[-1].text if request.messages else request.prompt
            script = ScriptedAnswer(reasoning="A short thought.", text=f"You said: {said}")
        return FakeAnswerStream(self, request, script)

    async def ask(self, request: Query[ReplyT_co]) -> ReplyT_co | RequestFailed | EngineExit:
        request = self.record(request)
        if not self._loaded:
            return RequestFailed(id=request.id, title=tr("No model"), sentence=tr("No model is loaded."))
        reply: Any
        match request:
            case Measure():
                reply = self._measured(request)
            case Tokenize():
                reply = Tokenized(id=request.id, tokens=tuple(map(len, request.text.split())))
            case Stream():
                reply = self.streamed
            case Warm():
                reply = Warmed(id=request.id, done=100, reread=100)
            case SaveState():
                reply = await self._saved(request)
        return reply

    async def _saved(self, request: SaveState) -> StateSaved:
        if len(self.state_content) > request.most_bytes:
            return StateSaved(id=request.id, n_bytes=0)
        await asyncio.to_thread(_write, Path(request.path), self.state_content)
        return StateSaved(id=request.id, n_bytes=len(self.state_content), n_tokens=self.state_tokens)

    async def close(self) -> None:
        self._end(None)
        self.closed = True

    def kill(self, sentence: str = "The engine stopped unexpectedly, probably because memory ran out.") -> EngineExit:
        """The worker dies now, as by kill -9. What waits for it notices at once."""
        engine_exit = EngineExit(-9, sentence, ("last words",))
        self._end(engine_exit)
        return engine_exit

    @property
    def asked(self) -> list[Generate]:
        """The requests for an answer, in order."""
        return [each for each in self.requests if isinstance(each, Generate)]

    @property
    def is_running(self) -> bool:
        """Whether the process would run that this engine stands for."""
        return self._running

    def is_loaded(self) -> bool:
        return self._loaded

    def publish(self, event: EngineEvent) -> None:
        self._subscribers.notify(event)

    async def pause(self, seconds: float, interrupt: asyncio.Event) -> None:
        """Lets the loop run for `seconds`, or until `interrupt` is set, which a death and a cancelled load do too."""
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        self._pauses.add(interrupt)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await interrupt.wait()
        self._pauses.discard(interrupt)

    def _end_pauses(self) -> None:
        for interrupt in self._pauses:
            interrupt.set()

    def _load_failed(self, failure: LoadFailure) -> LoadFailure:
        self.publish(LoadFailed(failure))
        return failure

    def _end(self, engine_exit: EngineExit | None) -> None:
        if self._running:
            self._running = self._loaded = False
            self._end_pauses()
            self.publish(WorkerExited(engine_exit))

    def record(self, request: RequestT) -> RequestT:
        """Return the request with an id of its own."""
        self._next_id += 1
        request = msgspec.structs.replace(request, id=self._next_id)
        (self.warmed if isinstance(request, Warm) else self.requests).append(request)
        return request


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
