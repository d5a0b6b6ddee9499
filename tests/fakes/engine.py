"""A scripted engine: answers what the test wrote down, at the speed the test asks for."""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from qwendesk.core.devices import DeviceInfo
from qwendesk.core.failures import EngineExit, LoadFailure
from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.messages import ImagePart, Message, Part
from qwendesk.core.options import DecidedOptions, LoadOptions, decided_options
from qwendesk.core.stats import AnswerStats, StopReason
from qwendesk.core.subscribers import Subscribers
from qwendesk.core.translation import tr
from qwendesk.engine.contract import AnswerItem
from qwendesk.engine.protocol import (
    PROTOCOL_VERSION,
    AnyRequest,
    Begun,
    Delta,
    Devices,
    Finished,
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
    PromptProgress,
    Rendering,
    RequestFailed,
    SaveState,
    StateSaved,
    TemplateAbilities,
    Unload,
    Warm,
    Warmed,
    Welcome,
)
from qwendesk.engine.state import EngineEvent, LoadAsked, LoadFailed, WorkerExited, WorkerStarting

PICTURE_TOKENS = 64
"""What every picture costs in `measure`, and in the stats of an answer."""

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
    special_tokens={"<think>": 10, "</think>": 11},
    load_s=0.1,
)


class ScriptedAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """One answer to give, or the rest of one that was begun. Its thought is left out when a request does not ask for
    thinking.
    """

    reasoning: str = ""
    text: str = ""
    chunk: int = 1
    """Words per Delta; a word counts as one token."""
    tokens_per_second: float | None = None
    """None: as fast as the loop."""
    stop_reason: StopReason = "eos"
    reasoning_looped: bool = False
    fail: RequestFailed | EngineExit | None = None
    """Ends the answer in place of Finished, after all its words."""
    crashes_after: int | None = None
    """The worker dies after that many Deltas."""


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
        self, messages: Sequence[Message], pictures: Sequence[ImagePart], options: GenerationOptions
    ) -> Measured | RequestFailed | EngineExit:
        request = Measure(id=self._take_id(), messages=tuple(messages), pictures=tuple(pictures), options=options)
        self.requests.append(request)
        if not self._loaded:
            return RequestFailed(id=request.id, title=tr("No model"), sentence=tr("No model is loaded."))
        return Measured(
            id=request.id,
            prompt_tokens=_prompt_tokens(messages, thoughts=options.preserve_thinking),
            reasoning_tokens=sum(len(each.reasoning.split()) for each in messages) * options.preserve_thinking,
            messages=tuple(MessageTokens(tuple(map(_part_tokens, each.parts))) for each in messages),
            pictures=tuple(PictureCost(each.sha256, 256, 256, PICTURE_TOKENS) for each in pictures),
            n_ctx=self.report.n_ctx,
        )

    def generate(
        self,
        messages: Sequence[Message],
        options: GenerationOptions,
        tools_json: Sequence[str] = (),
        begun: Begun | None = None,
        chat: str = "",
        state_file: str = "",
    ) -> "FakeAnswerStream":
        request = Generate(
            id=self._take_id(), messages=tuple(messages), options=options, tools_json=tuple(tools_json), begun=begun,
            chat=chat, state_file=state_file,
        )  # fmt: skip
        self.requests.append(request)
        if self.answers:
            script = self.answers.pop(0)
        else:
            script = ScriptedAnswer(reasoning="A short thought.", text=f"You said: {messages[-1].text}")
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


class FakeAnswerStream:
    """Plays one ScriptedAnswer."""

    def __init__(self, client: FakeEngineClient, request: Generate, script: ScriptedAnswer) -> None:
        self._client = client
        self._request = request
        self._script = script
        self._cancelled = self._answer_now = False
        self._interrupt = asyncio.Event()

    async def cancel(self) -> None:
        self._cancelled = True
        self._interrupt.set()

    async def answer_now(self) -> None:
        self._answer_now = True
        self._interrupt.set()

    def __aiter__(self) -> AsyncIterator[AnswerItem]:
        return self._play()

    async def _play(self) -> AsyncIterator[AnswerItem]:
        id, client, script = self._request.id, self._client, self._script
        if not client.is_loaded():
            yield RequestFailed(id=id, title=tr("No model"), sentence=tr("No model is loaded."))
            return
        client.publish(Rendering(id=id))
        total = _prompt_tokens(self._request.messages)
        for done in (0, total):
            progress = PromptProgress(id=id, done=done, total=total, reused=0)
            client.publish(progress)
            yield progress
        counts = {"reasoning": 0, "answer": 0}
        for number, (kind, text, tokens) in enumerate(self._pieces()):
            delay = tokens / script.tokens_per_second if script.tokens_per_second else 0.0
            if script.crashes_after is not None and number >= script.crashes_after:
                client.kill()
            await client.pause(delay, self._interrupt)
            if not client.is_loaded():
                yield EngineExit(
                    -9, "The engine stopped unexpectedly, probably because memory ran out.", ("last words",)
                )
                return
            if self._cancelled:
                break
            if kind == "reasoning" and self._answer_now:
                continue
            self._interrupt.clear()
            counts[kind] += tokens
            yield Delta(id=id, kind=kind, text=text, tokens=counts[kind])
        yield self._last(total, counts["reasoning"], counts["answer"])

    def _pieces(self) -> list[tuple[Literal["reasoning", "answer"], str, int]]:
        script = self._script
        pieces: list[tuple[Literal["reasoning", "answer"], str, int]] = []
        if self._request.options.enable_thinking:
            pieces += [("reasoning", text, tokens) for text, tokens in _in_chunks(script.reasoning, script.chunk)]
        pieces += [("answer", text, tokens) for text, tokens in _in_chunks(script.text, script.chunk)]
        return pieces

    def _last(self, prompt: int, reasoning: int, answer: int) -> AnswerItem:
        if self._script.fail is not None and not self._cancelled:
            if isinstance(self._script.fail, EngineExit):
                self._client.kill()
            else:
                self._client.publish(self._script.fail)
            return self._script.fail
        pictures = sum(len(message.images) for message in self._request.messages)
        speed = self._script.tokens_per_second
        stats = AnswerStats(
            prompt_tokens=prompt, reread_tokens=prompt, image_tokens=pictures * PICTURE_TOKENS,
            reasoning_tokens=reasoning, answer_tokens=answer, reasoning_looped=self._script.reasoning_looped,
            ttft_s=0.2, prefill_s=0.2, decode_s=(reasoning + answer) / speed if speed else 1.0,
        )  # fmt: skip
        reason: StopReason = "cancelled" if self._cancelled else self._script.stop_reason
        finished = Finished(id=self._request.id, stop_reason=reason, stats=stats)
        self._client.publish(finished)
        return finished


def _in_chunks(text: str, words: int) -> list[tuple[str, int]]:
    """`text` in pieces of that many words (white space stays with the word before it), each with its word count."""
    pieces = re.findall(r"\s*\S+\s*", text) or ([text] if text else [])
    groups = [pieces[start : start + words] for start in range(0, len(pieces), words)]
    return [("".join(group), len(group)) for group in groups]


def _part_tokens(part: Part) -> int:
    return PICTURE_TOKENS if isinstance(part, ImagePart) else len(part.text.split())


def _prompt_tokens(messages: Sequence[Message], *, thoughts: bool = False) -> int:
    thought = sum(len(each.reasoning.split()) for each in messages) if thoughts else 0
    return thought + sum(len(each.text.split()) + len(each.images) * PICTURE_TOKENS + 4 for each in messages)


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
