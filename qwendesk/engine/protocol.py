"""The protocol between the app and the engine worker: one line of JSON per message.

Requests go to the worker's standard input, and events come back on a descriptor of their own (see ADR 002). A request
carries everything it needs; each event has the id of the request it answers. The file has over 500 lines, because it
is the one list of all messages.
"""

from typing import ClassVar, Generic, Literal, TypeVar

import msgspec

from qwendesk.core.benchmarks import BenchResult, BenchTest, StreamSpeed, StreamTest
from qwendesk.core.devices import DeviceInfo
from qwendesk.core.generation_options import ChatFormat, GenerationOptions
from qwendesk.core.messages import ImagePart, Message, ToolCall
from qwendesk.core.model_facts import BASE_MODEL, NO_TEMPLATE
from qwendesk.core.model_titles import title_without_quant
from qwendesk.core.options import DecidedOptions
from qwendesk.core.rope_scaling import longest_context
from qwendesk.core.stats import AnswerStats, StopReason
from qwendesk.core.translation import tr

PROTOCOL_VERSION = 1
# With it, the worker ends itself when one call into a grammar takes too long.
GRAMMAR_EXIT_CODE = 72


class Request(msgspec.Struct, frozen=True, kw_only=True, tag_field="type"):
    """Base of all requests. The client that sends one sets `id`, which is unique for a worker process."""

    id: int = 0


ReplyT_co = TypeVar("ReplyT_co", covariant=True)


class Query(Request, Generic[ReplyT_co], frozen=True, kw_only=True):
    """A request with one reply, which the engine's state doesn't show."""


class Hello(Request, frozen=True, kw_only=True, tag="hello"):
    """The first request. Answered by Welcome, or by RequestFailed if the versions differ."""

    version: int = PROTOCOL_VERSION


class Load(Request, frozen=True, kw_only=True, tag="load"):
    """Load a model. Answered by LoadProgress events, then Loaded or LoadRefused."""

    options: DecidedOptions


class Unload(Request, frozen=True, kw_only=True, tag="unload"):
    """Unload the model. Answered by Unloaded."""


class Measure(Query["Measured"], frozen=True, kw_only=True, tag="measure"):
    """Count the tokens of a conversation, of its messages' parts and of other images, without evaluating anything.

    Answered by Measured or RequestFailed.
    """

    messages: tuple[Message, ...] = ()
    pictures: tuple[ImagePart, ...] = ()
    options: GenerationOptions = GenerationOptions()
    tools_json: tuple[str, ...] = ()
    client: str = ""
    """As in Generate."""


class Tokenize(Query["Tokenized"], frozen=True, kw_only=True, tag="tokenize"):
    """Turn a text into tokens. Answered by Tokenized or RequestFailed."""

    text: str
    special: bool = False
    """True if texts such as `<|im_end|>` become control tokens."""


Stage = Literal["", "thinking", "answering"]


class Begun(msgspec.Struct, frozen=True):
    """A partial answer: the text that was sent before the answer was interrupted."""

    reasoning: str = ""
    text: str = ""
    stage: Stage = ""
    """The part that the answer continues with, even if it was interrupted elsewhere: the engine then goes by the text,
    not by its tokens. "" if the texts tell.
    """

    @property
    def is_empty(self) -> bool:
        return not (self.reasoning or self.text or self.stage)

    @property
    def thought_is_open(self) -> bool:
        """Whether the answer continues in its reasoning. True even if it was interrupted right after the reasoning."""
        return self.stage == "thinking" or (not self.stage and bool(self.reasoning) and not self.text)


class Generate(Request, frozen=True, kw_only=True, tag="generate"):
    """Generate an answer.

    Answered by Rendering, Rendered, PromptProgress and Delta events, then Finished or RequestFailed. WaitsFor can come
    before them.
    """

    messages: tuple[Message, ...]
    """The last message is the one to answer. The partial answer `begun` is not among them."""
    options: GenerationOptions = GenerationOptions()
    tools_json: tuple[str, ...] = ()
    """The tool definitions, each as JSON."""
    may_call: bool = True
    """True if a tool may be called. If not, what looks like a call is text; the prompt is the same."""
    must_call: str = ""
    """The tool that the answer has to call, right after its reasoning: a name, "*" for any of them, or "" for none."""
    prompt: str = ""
    """A text to continue as it is, without the chat template. Its control tokens count, and `messages` are ignored."""
    begun: Begun | None = None
    """The answer continues after this, with thinking on or off as it was then. Deltas and token counts are only of new
    text; the prompt's tokens include the partial answer.
    """
    chat: str = ""
    """The chat of the messages. Its state is kept when the next request is of another chat; "" keeps none."""
    state_file: str = ""
    """Path of a file that SaveState may have written for this chat. A file that cannot be used is ignored."""
    client: str = ""
    """Client of the server that asks, or "" for the app itself. Nothing of another client's requests is reused."""
    gives_way: bool = False
    """True if it is interrupted while a Generate request waits that does not give way, or for some time while another
    one waits: between two batches of its prompt or two tokens of its answer.
    """
    program: str = ""
    """Name of the program that asks, for whoever has to wait for its answer; "" for the app itself, or if unknown."""
    n_logprobs: int = -1
    """Number of the likeliest tokens in the log probabilities of each token; -1 for no log probabilities."""


class Warm(Query["Warmed"], frozen=True, kw_only=True, tag="warm"):
    """Process ahead what the next prompt of a chat begins with. Ends early when another request arrives.

    Answered by Rendering, Rendered, then Warmed or RequestFailed.
    """

    messages: tuple[Message, ...]
    """If the last one is a question, it has only the files of a question that is not asked yet."""
    options: GenerationOptions = GenerationOptions()
    tools_json: tuple[str, ...] = ()
    chat: str = ""
    state_file: str = ""
    """As in Generate."""


class SaveState(Query["StateSaved"], frozen=True, kw_only=True, tag="save_state"):
    """Write the state of a chat to a file, with which a later engine continues it without processing it again.

    The state is copied at once and written on another thread. Answered by StateSaved or RequestFailed.
    """

    chat: str
    path: str
    most_bytes: int
    """A larger state is not written."""


class Bench(Request, frozen=True, kw_only=True, tag="bench"):
    """Measure the loaded model. Answered by BenchProgress events, then Benched or RequestFailed."""

    test: BenchTest


class Stream(Query["Streamed"], frozen=True, kw_only=True, tag="stream"):
    """Measure how fast the CPU reads what a token reads. Answered by Streamed or RequestFailed."""

    test: StreamTest


class Cancel(Request, frozen=True, kw_only=True, tag="cancel"):
    """Stop the request with id `target`. Answered by Acknowledged at once; the target ends with its own last event.

    A target that is still queued ends at once: with Finished, LoadRefused or, for other requests, RequestFailed.
    """

    target: int


class AnswerNow(Request, frozen=True, kw_only=True, tag="answer_now"):
    """End the reasoning of the Generate request `target` and begin its answer. Answered by Acknowledged at once."""

    target: int


class ProbeDevices(Request, frozen=True, kw_only=True, tag="probe"):
    """List the compute devices. Answered by Devices."""


class Shutdown(Request, frozen=True, kw_only=True, tag="shutdown"):
    """Free everything and exit. Not answered."""


AnyRequest = (
    Hello
    | Load
    | Unload
    | Measure
    | Tokenize
    | Generate
    | Warm
    | SaveState
    | Bench
    | Stream
    | Cancel
    | AnswerNow
    | ProbeDevices
    | Shutdown
)


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="type"):
    """Base of all events. `id` is that of the request."""

    id: int


class Welcome(Event, frozen=True, kw_only=True, tag="welcome"):
    version: int
    package_version: str
    """The version of llama-cpp-python."""
    system_info: str
    """llama.cpp's one-line summary of instruction sets and backends."""
    backends: tuple[str, ...]
    pid: int = 0
    """The process id of the worker, with which the meters find its memory; 0 if unknown."""


class Beat(Event, frozen=True, kw_only=True, tag="beat"):
    """Sent every second by a thread of its own, whatever the worker does; `id` is 0."""


class LoadProgress(Event, frozen=True, kw_only=True, tag="load_progress"):
    """`fraction` is the progress of the whole load, from 0 to 1."""

    stage: Literal["weights", "context", "vision", "template"]
    fraction: float


class Allocation(msgspec.Struct, frozen=True):
    """The bytes that the engine allocated on one device, according to its log."""

    device: str
    weights_bytes: int = 0
    kv_bytes: int = 0
    recurrent_bytes: int = 0
    compute_bytes: int = 0
    vision_bytes: int = 0

    @property
    def total_bytes(self) -> int:
        return self.weights_bytes + self.kv_bytes + self.recurrent_bytes + self.compute_bytes + self.vision_bytes


class TemplateAbilities(msgspec.Struct, frozen=True):
    """The features that the chat template supports, or has by default, found by rendering it with and without."""

    source: Literal["model", "file", "builtin"]
    enable_thinking: bool
    preserve_thinking: bool
    tools: bool
    call_dialect: Literal["", "xml", "json"] = ""
    """Form of an earlier tool call: Qwen's XML, JSON between the same tags, or another one ("")."""
    needs_parsed_calls: bool = False
    """True if it has a known fault: it fails for calls whose arguments are a text, as other programs pass them. The
    engine passes them parsed, which gives what the corrected template gives."""
    preserves_by_default: bool = False
    reasoning_efforts: tuple[str, ...] = ()
    default_effort: str = ""
    """Of the efforts, which each give another prompt (least first), the one that it takes by itself; "" if unknown."""
    has_video: bool = False
    """True if it has a place for a clip."""
    note: str = ""
    """Reason why the model's own template isn't used; "" if it is, or if it has none."""
    formats: tuple[ChatFormat, ...] = ()
    """The built-in templates that suit a model without a usable one of its own, the most fitting one first."""
    is_base: bool = False
    """True if the model has no template, and its names don't say that it was trained to chat."""

    @property
    def notice(self) -> str:
        """A notice about a built-in template, in the user's language; "" if none is used."""
        if self.source != "builtin":
            return ""
        if self.note:
            return tr("Its chat template can't be used, so QwenDesk uses a built-in one. {0}", self.note)
        return tr(BASE_MODEL if self.is_base else NO_TEMPLATE)


# `ServedBy.program` of a server whose program isn't known.
UNKNOWN_PROGRAM = "OpenAI-compatible server"


class ServedBy(msgspec.Struct, frozen=True, kw_only=True):
    """The server that a model runs on, and what it can do of what the engine worker does."""

    name: str
    """As the user calls it, or its address."""
    address: str
    program: str
    """Such as "llama-server"."""
    can_answer_now: bool = False
    can_limit_thinking: bool = False
    can_continue: bool = False
    unused_options: tuple[str, ...] = ()
    """Generation options that the server doesn't take."""


class LoadReport(msgspec.Struct, frozen=True, kw_only=True):
    """The loaded model, the memory it uses, and how long loading took.

    Of a model on a server, what the server doesn't say is 0 or empty.
    """

    options: DecidedOptions
    name: str
    """As in the file's header, where people write anything, or as its server calls it. `title` is what is shown."""
    architecture: str
    n_params: int
    weights_bytes: int
    n_ctx: int
    n_ctx_train: int
    n_layers: int
    n_vocab: int
    is_hybrid: bool
    can_think: bool
    """True if `<think>` and `</think>` are tokens of the model and the template can turn thinking on and off."""
    can_see: bool
    template: TemplateAbilities
    allocations: tuple[Allocation, ...]
    load_s: float
    end_tokens: tuple[int, ...] = ()
    """The tokens that end an answer."""
    call_token: int | None = None
    """The token that begins a tool call; None if the model has none."""
    n_draft_max: int = 0
    """Maximum number of drafted tokens; 0 if drafts are off, or if this memory cannot take any back."""
    pairs_frames: bool = False
    """True if the model was made for clips: two frames cost as one picture, and their times come before them."""
    recommended_sampling: dict[str, float | int] = {}
    """Sampling that the file's header recommends, by names of GenerationOptions."""
    served_by: ServedBy | None = None
    """None if the model is in the engine worker."""

    @property
    def host_bytes(self) -> int | None:
        """Bytes in system memory that a driver may count as shared; None if unknown.

        Weights that are read through mmap are not included.
        """
        if not self.allocations:
            return None
        rows = [row for row in self.allocations if row.device == "CPU"]
        mapped = self.options.load_mode in ("auto", "mmap")
        return sum(row.total_bytes - (row.weights_bytes if mapped else 0) for row in rows)

    @property
    def can_lengthen(self) -> bool:
        """Whether the model can be loaded here with a longer context."""
        longest = longest_context(self.architecture, self.n_ctx_train)
        return self.served_by is None and (self.n_ctx < longest or longest <= 0)

    @property
    def title(self) -> str:
        """Title of the model, without its quant."""
        return title_without_quant(self.options.model) if self.served_by is None else self.name


class Loaded(Event, frozen=True, kw_only=True, tag="loaded"):
    report: LoadReport


class LoadRefused(Event, frozen=True, kw_only=True, tag="load_refused"):
    """The load failed inside the engine. `engine.failures` turns this into a LoadFailure for users."""

    stage: Literal["options", "weights", "context", "vision", "template", "lora", "cancelled"]
    message: str
    """In English, with {0}, {1}, ... for `values`."""
    values: tuple[str, ...] = ()
    engine_lines: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """The message in the user's language."""
        return tr(self.message, *self.values)


class Unloaded(Event, frozen=True, kw_only=True, tag="unloaded"):
    pass


class PictureCost(msgspec.Struct, frozen=True):
    """The size of an image in pixels, upright and not scaled down, and its number of tokens."""

    sha256: str
    width: int
    height: int
    tokens: int


class MessageTokens(msgspec.Struct, frozen=True):
    parts: tuple[int, ...]
    """The tokens of each part by itself, in order, without the text that the template adds."""


class Measured(Event, frozen=True, kw_only=True, tag="measured"):
    prompt_tokens: int
    """The tokens of the whole conversation, including images; 0 if no message was given."""
    reasoning_tokens: int = 0
    """Number of the prompt's tokens that are earlier reasoning; 0 if the template drops it."""
    messages: tuple[MessageTokens, ...] = ()
    """One for each message that was given."""
    pictures: tuple[PictureCost, ...]
    n_ctx: int


class Tokenized(Event, frozen=True, kw_only=True, tag="tokenized"):
    tokens: tuple[int, ...]


class Rendering(Event, frozen=True, kw_only=True, tag="rendering"):
    """The chat template starts to run, perhaps not for the first time in this request.

    If no event follows in time, the client kills the worker.
    """


class Rendered(Event, frozen=True, kw_only=True, tag="rendered"):
    """The chat template has run.

    Next, the prompt is tokenized and images are decoded, which may legitimately take much time and memory.
    """


class WaitsFor(Event, frozen=True, kw_only=True, tag="waits_for"):
    """A question of the window waits for an answer that can't be interrupted: there is no room for its memory in RAM.

    Sent every two seconds until one of the other events of that question follows.
    """

    program: str
    """As in the other answer's Generate."""
    done: int
    """How many tokens of its prompt and its answer are in memory."""
    prompt_tokens: int
    max_tokens: int
    """The most tokens that its answer can have; -1 for no limit."""


class PromptProgress(Event, frozen=True, kw_only=True, tag="prompt_progress"):
    """`done` of `total` tokens of the prompt are in memory; `reused` of them were there before."""

    done: int
    total: int
    reused: int
    encodes_image: bool = False
    """The next step encodes an image, which can take minutes on a slow CPU and cannot be interrupted."""


class TokenLogprob(msgspec.Struct, frozen=True):
    token: bytes
    """Its text as UTF-8, which can be part of a character."""
    logprob: float
    """The logarithm of its probability before sampling options changed it."""


class AnswerToken(TokenLogprob, frozen=True):
    likeliest: tuple[TokenLogprob, ...] = ()
    """As many as were asked for, the likeliest first."""


class Delta(Event, frozen=True, kw_only=True, tag="delta"):
    """A piece of the reasoning or of the answer. `tokens` counts the tokens of that kind so far."""

    kind: Literal["reasoning", "answer"]
    text: str
    tokens: int
    logprobs: tuple[AnswerToken, ...] = ()
    """Those of the tokens of an answer up to here, if the request asked for them. Together they can have more text."""


class CallDelta(Event, frozen=True, kw_only=True, tag="call_delta"):
    """A piece of a tool call. `tokens` counts those of the answer so far, calls included."""

    kind: ClassVar[Literal["answer"]] = "answer"
    index: int
    """The number of the call in this answer, from 0."""
    name: str = ""
    """Set in the first piece."""
    arguments: str = ""
    """The next characters of the arguments as JSON. All of them joined are those of the call, if it is undamaged."""
    tokens: int


class Called(Event, frozen=True, kw_only=True, tag="called"):
    """The end of a tool call."""

    index: int
    call: ToolCall | None
    """None if the model did not finish the call, or if what it wrote cannot be understood."""
    text: str
    """Text of the model between the tags."""
    is_finished: bool
    """False if the answer was stopped within the call."""


class Warmed(Event, frozen=True, kw_only=True, tag="warmed"):
    """`done` tokens of the next prompt are in memory; `reread` of them were processed for this request."""

    done: int
    reread: int


class StateSaved(Event, frozen=True, kw_only=True, tag="state_saved"):
    """A state was written; `n_bytes` is 0 if there was none of this chat, or if it was too short or too large."""

    n_bytes: int
    n_tokens: int = 0
    """Number of tokens of the chat."""


class BenchProgress(Event, frozen=True, kw_only=True, tag="bench_progress"):
    """`done` of `total` tokens of all repetitions were evaluated."""

    done: int
    total: int


class Benched(Event, frozen=True, kw_only=True, tag="benched"):
    result: BenchResult


class Streamed(Event, frozen=True, kw_only=True, tag="streamed"):
    speed: StreamSpeed


class Finished(Event, frozen=True, kw_only=True, tag="finished"):
    stop_reason: StopReason
    stats: AnswerStats
    stop_text: str = ""
    """The stop text that ended the answer; "" if none did."""


class RequestFailed(Event, frozen=True, kw_only=True, tag="request_failed"):
    """The request cannot be served. The worker and the loaded model can still be used."""

    title: str
    sentence: str
    """In English, with {0}, {1}, ... for `values`, when the worker sends it. The client passes it on translated."""
    values: tuple[str, ...] = ()


class Acknowledged(Event, frozen=True, kw_only=True, tag="acknowledged"):
    """A Cancel or AnswerNow arrived. `known` is False if there is no such target (for Cancel, running or queued)."""

    target: int
    known: bool


class Devices(Event, frozen=True, kw_only=True, tag="devices"):
    devices: tuple[DeviceInfo, ...]
    cpu_features: tuple[str, ...]


AnyEvent = (
    Welcome
    | Beat
    | LoadProgress
    | Loaded
    | LoadRefused
    | Unloaded
    | Measured
    | Tokenized
    | Rendering
    | Rendered
    | WaitsFor
    | PromptProgress
    | Delta
    | CallDelta
    | Called
    | Warmed
    | StateSaved
    | BenchProgress
    | Benched
    | Streamed
    | Finished
    | RequestFailed
    | Acknowledged
    | Devices
)
