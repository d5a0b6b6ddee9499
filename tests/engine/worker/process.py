"""A real worker process for tests, spoken to in plain blocking lines."""

import contextlib
import hashlib
import itertools
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from PIL import Image, ImageDraw

from qwendesk.core import paths
from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.messages import ImagePart, Message, TextPart, text_message
from qwendesk.core.options import DecidedOptions
from qwendesk.engine import protocol as p
from qwendesk.engine.protocol_lines import decode_event, encode_line
from tests.engine.device import placement

if TYPE_CHECKING:
    from qwendesk.engine.worker.generate import Steps

EventT = TypeVar("EventT", bound=p.Event)
GREEDY = GenerationOptions(temperature=0, presence_penalty=0)


def demo_options(**changes: Any) -> DecidedOptions:
    """The demo model on the CPU (or the device of `make gpu-test`), everything decided."""
    defaults: dict[str, Any] = {
        "model": str(paths.demo_model()),
        "mmproj": str(paths.demo_mmproj()),
        "n_ctx": 4096,
        "n_cpu_moe": 0,
        "load_mode": "mmap",
        "n_threads": 1,
    }
    return DecidedOptions(**defaults | placement() | changes)


def greedy(**changes: Any) -> GenerationOptions:
    return GenerationOptions(**{"temperature": 0, "presence_penalty": 0} | changes)


def image_part(path: Path) -> ImagePart:
    return ImagePart(str(path), hashlib.sha256(path.read_bytes()).hexdigest())


def user(text: str, *images: Path) -> Message:
    return Message("user", (*(image_part(path) for path in images), TextPart(text)))


def draw_circle(path: Path, colour: str) -> Path:
    """Write a picture of a circle that the demo model recognizes, and return its path."""
    image = Image.new("RGB", (128, 128), "white")
    ImageDraw.Draw(image).ellipse((32, 32, 96, 96), fill=colour)
    image.save(path)
    return path


class Answer:
    """What came back for one Generate."""

    def __init__(self, events: Sequence[p.Event]) -> None:
        self.events = events
        deltas = [event for event in events if isinstance(event, p.Delta)]
        self.reasoning = "".join(delta.text for delta in deltas if delta.kind == "reasoning")
        self.text = "".join(delta.text for delta in deltas if delta.kind == "answer")
        last = events[-1]
        assert isinstance(last, p.Finished), last
        self.stop_reason, self.stats = last.stop_reason, last.stats

    @property
    def message(self) -> Message:
        return text_message("assistant", self.text, reasoning=self.reasoning)


def finished(steps: "Steps[p.Finished]") -> p.Finished:
    """What the steps of an answer return at their end."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]


class WorkerProcess:
    """Sends requests and waits for what they give."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.process = process
        self._ids = itertools.count(1)

    def send(self, request: type[p.Request], **fields: Any) -> int:
        request_id = next(self._ids)
        assert self.process.stdin is not None
        self.process.stdin.write(encode_line(request(id=request_id, **fields)))
        self.process.stdin.flush()
        return request_id

    def next_event(self) -> p.AnyEvent:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"the worker ended with {self.process.wait()}"
        return decode_event(line)

    def until(self, *kinds: type[p.Event]) -> list[p.Event]:
        """Events up to the first of one of these kinds, that one included."""
        events: list[p.Event] = []
        while not events or not isinstance(events[-1], kinds):
            events.append(self.next_event())
        return events

    def expect(self, kind: type[EventT]) -> EventT:
        """The next event that is of this kind or says that something failed; it must be of this kind."""
        last = self.until(kind, p.RequestFailed, p.LoadRefused)[-1]
        assert isinstance(last, kind), last
        return last

    def load(self, options: DecidedOptions) -> p.LoadReport:
        self.send(p.Load, options=options)
        return self.expect(p.Loaded).report

    def refuse_load(self, options: DecidedOptions) -> p.LoadRefused:
        self.send(p.Load, options=options)
        last = self.until(p.LoadRefused, p.Loaded)[-1]
        assert isinstance(last, p.LoadRefused), last
        return last

    def ask(self, messages: Sequence[Message], options: GenerationOptions = GREEDY, **fields: Any) -> Answer:
        self.send(p.Generate, messages=tuple(messages), options=options, **fields)
        events = self.until(p.Finished, p.RequestFailed)
        return Answer(events)

    def refuse(
        self, messages: Sequence[Message], options: GenerationOptions = GREEDY, **fields: Any
    ) -> p.RequestFailed:
        self.send(p.Generate, messages=tuple(messages), options=options, **fields)
        last = self.until(p.Finished, p.RequestFailed)[-1]
        assert isinstance(last, p.RequestFailed), last
        return msgspec.structs.replace(last, sentence=last.sentence.format(*last.values), values=())


@contextlib.contextmanager
def worker_process() -> Iterator[WorkerProcess]:
    """A started worker that has said hello; it is gone afterwards."""
    process = subprocess.Popen(
        [sys.executable, "-m", "qwendesk", "--worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    with process:
        worker = WorkerProcess(process)
        try:
            worker.send(p.Hello)
            worker.expect(p.Welcome)
            yield worker
        finally:
            process.kill()
