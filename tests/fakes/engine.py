"""A scripted engine: answers what the test wrote down, at the speed the test asks for."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from qwendesk.core.devices import DeviceInfo
from qwendesk.core.failures import EngineExit, LoadFailure
from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.messages import ImagePart, Message
from qwendesk.core.options import DecidedOptions, LoadOptions, decided_options
from qwendesk.core.subscribers import Subscribers
from qwendesk.core.translation import tr
from qwendesk.engine.protocol import (
    PROTOCOL_VERSION,
    AnyRequest,
    Begun,
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
    RequestFailed,
    SaveState,
    StateSaved,
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
        request = Load(id=self._take_id(), options=options)
        self.requests.append(request)
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
        self.requests.append(Unload(id=self._take_id()))
        self._end(None)

    async def probe(self) -> Devices | EngineExit:
        request = ProbeDevices(id=self._take_id())
        self.requests.append(request)
        died = await self.start()
        if isinstance(died, EngineExit):
            return died
        devices = Devices(id=request.id, devices=self.devices, cpu_features=("AVX2",))
        self.publish(devices)
        return devices

    async def measure(
        self,
        messages: Sequence[Message],
        pictures: Sequence[ImagePart],
        options: GenerationOptions,
        tools_json: Sequence[str] = (),
        client: str = "",
    ) -> Measured | RequestFailed | EngineExit:
        request = Measure(
            id=self._take_id(), messages=tuple(messages), pictures=tuple(pictures), options=options,
            tools_json=tuple(tools_json), client=client,
        )  # fmt: skip
        self.requests.append(request)
        if not self._loaded:
            return RequestFailed(id=request.id, title=tr("No model"), sentence=tr("No model is loaded."))
        return Measured(
            id=request.id,
            prompt_tokens=prompt_tokens(messages, thoughts=options.preserve_thinking)
            + sum(len(each.split()) for each in tools_json),
            reasoning_tokens=sum(len(each.reasoning.split()) for each in messages) * options.preserve_thinking,
            messages=tuple(MessageTokens(tuple(map(part_tokens, each.parts))) for each in messages),
            pictures=tuple(PictureCost(each.sha256, 256, 256, PICTURE_TOKENS) for each in pictures),
            n_ctx=self.report.n_ctx,
        )

    async def tokenize(self, text: str, *, special: bool = False) -> Tokenized | RequestFailed | EngineExit:
        request = Tokenize(id=self._take_id(), text=text, special=special)
        self.requests.append(request)
        if not self._loaded:
            return RequestFailed(id=request.id, title=tr("No model"), sentence=tr("No model is loaded."))
        return Tokenized(id=request.id, tokens=tuple(map(len, text.split())))

    def generate(
        self,
        messages: Sequence[Message],
        options: GenerationOptions,
        tools_json: Sequence[str] = (),
        begun: Begun | None = None,
        chat: str = "",
        state_file: str = "",
        *,
        may_call: bool = True,
        must_call: str = "",
        prompt: str = "",
        gives_way: bool = False,
        n_logprobs: int = -1,
        client: str = "",
    ) -> "FakeAnswerStream":
        request = Generate(
            id=self._take_id(), messages=tuple(messages), options=options, tools_json=tuple(tools_json), begun=begun,
            chat=chat, state_file=state_file, may_call=may_call, must_call=must_call, prompt=prompt,
            gives_way=gives_way, n_logprobs=n_logprobs, client=client,
        )  # fmt: skip
        self.requests.append(request)
        if self.answers:
            script = self.answers.pop(0)
        else:
            script = ScriptedAnswer(
                reasoning="A short thought.", text=f"You said: {messages[-1].text if messages else prompt}"
            )
        return FakeAnswerStream(self, request, script)

    async def warm(
        self,
        messages: Sequence[Message],
        options: GenerationOptions,
        tools_json: Sequence[str] = (),
        chat: str = "",
        state_file: str = "",
    ) -> Warmed | RequestFailed | EngineExit:
        request = Warm(
            id=self._take_id(), messages=tuple(messages), options=options, tools_json=tuple(tools_json), chat=chat,
            state_file=state_file,
        )  # fmt: skip
        self.warmed.append(request)
        if not self._loaded:
            return RequestFailed(id=request.id, title=tr("No model"), sentence=tr("No model is loaded."))
        return Warmed(id=request.id, done=100, reread=100)

    async def save_state(self, chat: str, path: str, most_bytes: int) -> StateSaved | RequestFailed | EngineExit:
        request = SaveState(id=self._take_id(), chat=chat, path=path, most_bytes=most_bytes)
        self.requests.append(request)
        if not self._loaded:
            return RequestFailed(id=request.id, title=tr("No model"), sentence=tr("No model is loaded."))
        if len(self.state_content) > most_bytes:
            return StateSaved(id=request.id, n_bytes=0)
        await asyncio.to_thread(_write, Path(path), self.state_content)
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

    def _take_id(self) -> int:
        self._next_id += 1
        return self._next_id


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
