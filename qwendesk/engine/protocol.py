"""What the app and the engine worker say to each other: one JSON line per message.

Requests go to the worker's standard input, events come back on a descriptor of its own (see ADR 002).
A request carries everything it needs; every event names the request it answers.
"""

from typing import Literal

import msgspec

from qwendesk.core.devices import DeviceInfo
from qwendesk.core.messages import ImagePart, Message
from qwendesk.core.options import GenerationOptions, LoadOptions
from qwendesk.core.stats import AnswerStats, StopReason

PROTOCOL_VERSION = 1
LINE_LIMIT_BYTES = 64 * 1024**2
"""Longest line either end accepts; asyncio's default of 64 KiB would hang on a long message."""


class Request(msgspec.Struct, frozen=True, kw_only=True, tag_field="type"):
    """Base of all requests. `id` is chosen by the client, unique within one worker's life."""

    id: int


class Hello(Request, frozen=True, kw_only=True, tag="hello"):
    """The first request. Answered by Welcome, or by RequestFailed when the versions differ."""

    version: int = PROTOCOL_VERSION


class Load(Request, frozen=True, kw_only=True, tag="load"):
    """Load a model. No value may be "auto" where the fit decides (n_gpu_layers, n_cpu_moe, load_mode).

    Answered by LoadProgress..., then Loaded or LoadRefused.
    """

    options: LoadOptions


class Unload(Request, frozen=True, kw_only=True, tag="unload"):
    """Answered by Unloaded."""


class Measure(Request, frozen=True, kw_only=True, tag="measure"):
    """Count without reading: a conversation's tokens, and what each picture would fill. Answered by Measured."""

    messages: tuple[Message, ...] = ()
    pictures: tuple[ImagePart, ...] = ()
    options: GenerationOptions = GenerationOptions()


class Begun(msgspec.Struct, frozen=True):
    """An answer as far as it got before it was stopped or cut, as it was sent."""

    reasoning: str = ""
    text: str = ""

    @property
    def is_empty(self) -> bool:
        return not self.reasoning and not self.text

    @property
    def thought_is_open(self) -> bool:
        """It was cut inside its thought; one that was cut between the two goes on there, too."""
        return bool(self.reasoning) and not self.text


class Generate(Request, frozen=True, kw_only=True, tag="generate"):
    """Answer a conversation: Rendering, Rendered, PromptProgress..., Delta..., at last Finished or RequestFailed."""

    messages: tuple[Message, ...]
    """The last one is the one to be answered; what was begun of its answer is not among them."""
    options: GenerationOptions
    tools_json: tuple[str, ...] = ()
    """JSON text of one tool definition each."""
    begun: Begun | None = None
    """The answer goes on after this, with thinking as it was then. Deltas and counts are of what is new; the prompt's
    tokens include what was begun.
    """


class Cancel(Request, frozen=True, kw_only=True, tag="cancel"):
    """Stop the load or answer with id `target`. Acknowledged at once; the target ends with its own last event."""

    target: int


class AnswerNow(Request, frozen=True, kw_only=True, tag="answer_now"):
    """End the thought of the answer with id `target` and go on with the answer. Acknowledged at once."""

    target: int


class Probe(Request, frozen=True, kw_only=True, tag="probe"):
    """Answered by Devices."""


class Shutdown(Request, frozen=True, kw_only=True, tag="shutdown"):
    """The worker frees everything and ends."""


AnyRequest = Hello | Load | Unload | Measure | Generate | Cancel | AnswerNow | Probe | Shutdown


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="type"):
    """Base of all events. `id` is the request it belongs to."""

    id: int


class Welcome(Event, frozen=True, kw_only=True, tag="welcome"):
    version: int
    package_version: str
    """llama-cpp-python's version."""
    system_info: str
    """llama.cpp's one-line summary of instruction sets and backends."""
    backends: tuple[str, ...]
    pid: int = 0
    """The worker's own process, by which the meters find its memory; 0 where it is not told."""


class LoadProgress(Event, frozen=True, kw_only=True, tag="load_progress"):
    """`fraction` is 0..1 of the whole load."""

    stage: Literal["weights", "context", "vision", "template"]
    fraction: float


class Allocation(msgspec.Struct, frozen=True):
    """Bytes the engine really allocated on one device, read from its log."""

    device: str
    weights_bytes: int = 0
    kv_bytes: int = 0
    recurrent_bytes: int = 0
    compute_bytes: int = 0
    vision_bytes: int = 0


class TemplateAbilities(msgspec.Struct, frozen=True):
    """What the chat template honours, found by rendering it both ways, not by reading it."""

    source: Literal["model", "file", "builtin"]
    enable_thinking: bool
    preserve_thinking: bool
    tools: bool
    note: str = ""
    """Why the built-in template is used instead, if it is."""


class LoadReport(msgspec.Struct, frozen=True, kw_only=True):
    """What is loaded and what it took."""

    options: LoadOptions
    name: str
    architecture: str
    n_params: int
    weights_bytes: int
    n_ctx: int
    n_ctx_train: int
    n_layers: int
    n_vocab: int
    is_hybrid: bool
    can_think: bool
    """`<think>` and `</think>` are single tokens and the template can switch thinking."""
    can_see: bool
    template: TemplateAbilities
    allocations: tuple[Allocation, ...]
    special_tokens: dict[str, int]
    load_s: float


class Loaded(Event, frozen=True, kw_only=True, tag="loaded"):
    report: LoadReport


class LoadRefused(Event, frozen=True, kw_only=True, tag="load_refused"):
    """The load failed inside the engine; `engine.failures` turns this into a LoadFailure for people."""

    stage: Literal["options", "weights", "context", "vision", "template", "lora", "cancelled"]
    message: str
    engine_lines: tuple[str, ...] = ()


class Unloaded(Event, frozen=True, kw_only=True, tag="unloaded"):
    pass


class PictureCost(msgspec.Struct, frozen=True):
    """`width` and `height` in pixels as the file has them (orientation applied); `tokens` it fills."""

    sha256: str
    width: int
    height: int
    tokens: int


class Measured(Event, frozen=True, kw_only=True, tag="measured"):
    prompt_tokens: int
    """Of the whole conversation, pictures included; 0 when no message was given."""
    pictures: tuple[PictureCost, ...]
    n_ctx: int


class Rendering(Event, frozen=True, kw_only=True, tag="rendering"):
    """The chat template starts to run. If nothing follows in time, the client ends the worker."""


class Rendered(Event, frozen=True, kw_only=True, tag="rendered"):
    """The chat template has run; pictures are decoded next, which may take long and much memory for good reasons."""


class PromptProgress(Event, frozen=True, kw_only=True, tag="prompt_progress"):
    """Tokens of the prompt in memory so far, of all; `reused` of them were there already."""

    done: int
    total: int
    reused: int


class Delta(Event, frozen=True, kw_only=True, tag="delta"):
    """A piece of the thought or of the answer. `tokens` counts that kind's tokens so far."""

    kind: Literal["reasoning", "answer"]
    text: str
    tokens: int


class Finished(Event, frozen=True, kw_only=True, tag="finished"):
    stop_reason: StopReason
    stats: AnswerStats


class RequestFailed(Event, frozen=True, kw_only=True, tag="request_failed"):
    """The request cannot be served as it stands; the worker and the loaded model are fine."""

    title: str
    sentence: str


class Acknowledged(Event, frozen=True, kw_only=True, tag="acknowledged"):
    """A Cancel or AnswerNow arrived. `known` is False when its target is not running."""

    target: int
    known: bool


class Devices(Event, frozen=True, kw_only=True, tag="devices"):
    devices: tuple[DeviceInfo, ...]
    cpu_features: tuple[str, ...]


AnyEvent = (
    Welcome
    | LoadProgress
    | Loaded
    | LoadRefused
    | Unloaded
    | Measured
    | Rendering
    | Rendered
    | PromptProgress
    | Delta
    | Finished
    | RequestFailed
    | Acknowledged
    | Devices
)


class Estimate(Request, frozen=True, kw_only=True, tag="estimate"):
    """What would a load take? Asked of a worker of its own, started for it, which answers Estimated and ends."""

    options: LoadOptions


class Estimated(Event, frozen=True, kw_only=True, tag="estimated"):
    """The engine's own numbers, vision left out; or the `problem` for which it has none.

    weights_bytes are 0 everywhere when this engine folder cannot tell them.
    """

    allocations: tuple[Allocation, ...] = ()
    problem: str = ""


_encoder = msgspec.json.Encoder()
_request_decoder: msgspec.json.Decoder[AnyRequest] = msgspec.json.Decoder(AnyRequest)
_event_decoder: msgspec.json.Decoder[AnyEvent] = msgspec.json.Decoder(AnyEvent)
_estimate_decoder = msgspec.json.Decoder(Estimate)
_estimated_decoder = msgspec.json.Decoder(Estimated)


def encode_line(message: Request | Event) -> bytes:
    """One message as a line of JSON, newline included."""
    return _encoder.encode(message) + b"\n"


def decode_request(line: bytes) -> AnyRequest:
    """Raises msgspec.DecodeError (ValidationError included) when the line is no request of this version."""
    return _request_decoder.decode(line)


def decode_event(line: bytes) -> AnyEvent:
    """Raises msgspec.DecodeError (ValidationError included) when the line is no event of this version."""
    return _event_decoder.decode(line)


def decode_estimate(line: bytes) -> Estimate:
    """Raises msgspec.DecodeError (ValidationError included) when the line is no such request."""
    return _estimate_decoder.decode(line)


def decode_estimated(line: bytes) -> Estimated:
    """Raises msgspec.DecodeError (ValidationError included) when the line is no such answer."""
    return _estimated_decoder.decode(line)
