"""Serve requests: one thread reads them into a queue, and the main thread serves them one after the other.

Answers for programs (`Generate.gives_way`) are interrupted by a question of the window, and take turns by time. An
interrupted answer keeps all it has on the Python side and a copy of its memory; its request goes back into the queue.
"""

import collections
import importlib.metadata
import itertools
import os
import re
import sys
import threading
import time
import traceback
from collections.abc import Callable, Container, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Literal, TypeVar

import llama_cpp.llama_cpp as C
import msgspec

from qwendesk.core.benchmarks import TextTest
from qwendesk.core.errors import QwenDeskError
from qwendesk.core.stats import AnswerStats
from qwendesk.core.translation import mark
from qwendesk.core.units import show_bytes
from qwendesk.engine import protocol as p
from qwendesk.engine.protocol import AnyRequest, Request, RequestFailed
from qwendesk.engine.protocol_lines import LINE_LIMIT_BYTES, decode_request
from qwendesk.engine.worker import devices
from qwendesk.engine.worker.channel import Channel
from qwendesk.engine.worker.chat_states import MemoryAside, SavedChat
from qwendesk.engine.worker.control import RequestControl
from qwendesk.engine.worker.engine_calls import EngineFault
from qwendesk.engine.worker.generate import Generation, Steps, Stopped, warm
from qwendesk.engine.worker.loader import LoadError, Session, load
from qwendesk.engine.worker.log import EngineLog
from qwendesk.engine.worker.request_layout import measure
from qwendesk.engine.worker.speed_bench import bench
from qwendesk.engine.worker.stream import stream
from qwendesk.engine.worker.text_score import score

# How many lines of the engine's log are sent with a failed load.
_MAX_LOG_LINES = 80
# The least time between two progress events while weights are read. The window cannot show more.
_PROGRESS_EVERY_S = 0.03
# How often the worker says that it isn't frozen.
_BEAT_S = 1.0
# The process exits this long after a Shutdown even if native code is still busy.
_EXIT_GRACE_S = 1.5
# How long a program's answer runs at least while another program waits, and at least how many times as long as it takes
# to exchange their memories.
_TURN_S, _TURN_IN_EXCHANGES = 2.0, 10
# An answer that couldn't be interrupted for want of memory is not tried again for so long.
_NEXT_TRY_S = 2.0


class _Turn:
    """An answer that is being generated, or is interrupted."""

    def __init__(self, generation: Generation) -> None:
        self.generation = generation
        self.steps: Steps[p.Finished] = generation.steps()
        self.memory: MemoryAside | None = None
        """Its memory, while it is interrupted."""


class Service:
    """The worker's two threads: one reads requests and puts them in the inbox, the main thread serves them in order."""

    def __init__(self, channel: Channel, requests: BinaryIO) -> None:
        self._channel, self._requests = channel, requests
        self._inbox, self._control = Inbox(), RequestControl()
        self._log = EngineLog()
        self._session: Session | None = None
        self._interrupted: dict[int, _Turn] = {}
        """Answers that go on when their requests are taken from the inbox again, by id."""
        self._exchange_s, self._next_try_at = 0.0, 0.0

    def run(self) -> None:
        """Serve requests until Shutdown. If standard input ends or can't be read, the process exits at once."""
        self._log.install()
        devices.ggml()
        C.llama_backend_init()
        threading.Thread(target=self._read_requests, name="requests", daemon=True).start()
        threading.Thread(target=self._beat, name="beat", daemon=True).start()
        while not isinstance(request := self._inbox.take(self._interrupted), p.Shutdown):
            self._serve(request)
        self._close_session()

    def _read_requests(self) -> None:
        try:
            for request in read_requests(self._requests):
                self._dispatch(request)
        except Exception:  # noqa: BLE001 - a worker that gets no more requests could never be told to exit
            traceback.print_exc(file=sys.stderr)
            os._exit(1)
        os._exit(0)

    def _beat(self) -> None:
        """On a thread of its own, which runs while native code is busy on the main thread."""
        while True:
            self._channel.send(p.Beat(id=0))
            session = self._session
            if session is not None and self._control.is_idle:
                session.threads.look()
            time.sleep(_BEAT_S)

    def _dispatch(self, request: p.AnyRequest | p.RequestFailed) -> None:
        """On the reading thread: act on what can't wait, and queue the rest."""
        match request:
            case p.RequestFailed():
                self._channel.send(request)
            case p.Cancel(id=request_id, target=target):
                waiting = self._inbox.remove(target) if target not in self._interrupted else None
                known = waiting is not None or self._control.cancel(target)
                self._channel.send(p.Acknowledged(id=request_id, target=target, known=known))
                if waiting is not None:
                    self._control.forget(target)
                    self._channel.send(_cancelled(waiting))
            case p.AnswerNow(id=request_id, target=target):
                known = self._control.answer_now(target)
                self._channel.send(p.Acknowledged(id=request_id, target=target, known=known))
            case p.Shutdown():
                self._control.cancel_running()
                self._inbox.put(request)
                timer = threading.Timer(_EXIT_GRACE_S, os._exit, (0,))
                timer.daemon = True
                timer.start()
            case _:
                self._control.expect(request.id)
                self._inbox.put(request)

    def _serve(self, request: p.AnyRequest) -> None:
        """On the main thread: answer one request, with an error if it fails."""
        abort = self._session.model.abort if self._session and isinstance(request, p.Generate | p.Bench) else None
        with self._control.running(request.id, abort):
            try:
                self._handle(request)
            except QwenDeskError as error:
                self._channel.send(_failure(request.id, error))
            except Exception as error:  # noqa: BLE001 - one failed request must not end the worker
                traceback.print_exc(file=sys.stderr)
                self._clear_cache()
                self._channel.send(_failure(request.id, error))

    def _handle(self, request: p.AnyRequest) -> None:
        match request:
            case p.Hello():
                self._welcome(request)
            case p.ProbeDevices():
                found = p.Devices(id=request.id, devices=devices.list_devices(), cpu_features=devices.cpu_features())
                self._channel.send(found)
            case p.Load():
                self._load(request)
            case p.Unload():
                self._close_session()
                self._channel.send(p.Unloaded(id=request.id))
            case p.Warm():
                session = self._require_session()
                self._channel.send(warm(session, request, self._channel.send, self._has_nothing_else))
            case p.SaveState():
                self._save_state(request)
            case p.Bench():
                session = self._require_session()
                measured = score if isinstance(request.test, TextTest) else bench
                self._channel.send(measured(session, request, self._channel.send, self._should_stop))
            case p.Stream():
                self._require_session().threads.use()
                self._channel.send(p.Streamed(id=request.id, speed=stream(request.test)))
            case p.Measure():
                self._channel.send(measure(self._require_session(), request, self._channel.send))
            case p.Tokenize():
                tokens = self._require_session().model.tokenize(request.text, special=request.special)
                self._channel.send(p.Tokenized(id=request.id, tokens=tuple(tokens)))
            case p.Generate():
                self._generate(request)
            case _:
                raise AssertionError(f"{request} is served by the reading thread")

    def _generate(self, request: p.Generate) -> None:
        """Send an answer to its end, or until it is interrupted and its request goes back into the queue."""
        session = self._require_session()
        turn = self._interrupted.pop(request.id, None)
        if turn is None:
            turn = _Turn(Generation(session, request, self._control, self._channel.send, self._serve_measures))
        elif turn.memory is not None and not session.states.take_back(turn.memory):
            turn.steps.close()
            raise EngineFault("the engine could not take back the memory of an answer that was interrupted")
        began = time.monotonic()
        while True:
            try:
                next(turn.steps)
            except StopIteration as end:
                self._channel.send(end.value)
                return
            self._end_cancelled()
            if self._has_to_wait(request, time.monotonic() - began) and self._interrupt(request, turn):
                return

    def _has_to_wait(self, request: p.Generate, ran_s: float) -> bool:
        """Return whether others come before the rest of an answer that has run for `ran_s` seconds."""
        if not request.gives_way or self._inbox.is_empty or time.monotonic() < self._next_try_at:
            return False
        is_turn_over = ran_s >= max(_TURN_S, _TURN_IN_EXCHANGES * self._exchange_s)
        return bool(self._inbox.all(_is_generate if is_turn_over else _comes_first))

    def _interrupt(self, request: p.Generate, turn: _Turn) -> bool:
        """Put an answer behind the others in the queue. Return False if there is no memory for its state.

        Then questions of the window are told what they wait for.
        """
        began = time.monotonic()
        turn.generation.settle()
        turn.memory = self._require_session().states.set_aside()
        if turn.memory is None:
            self._next_try_at = time.monotonic() + _NEXT_TRY_S
            for question in self._inbox.all(_comes_first):
                self._channel.send(turn.generation.waited_for_by(question.id))
            return False
        # It is put back as fast as it was copied.
        self._exchange_s = 2 * (time.monotonic() - began)
        self._interrupted[request.id] = turn
        self._control.expect(request.id, is_interrupted=True)
        self._inbox.put(request)
        return True

    def _should_stop(self) -> bool:
        self._end_cancelled()
        return self._control.cancelled

    def _end_cancelled(self) -> None:
        """End interrupted answers that were cancelled: nobody should wait for their turn."""
        for request_id in [each for each in self._interrupted if self._control.is_cancelled(each)]:
            self._end_interrupted(request_id, Stopped("cancelled"))

    def _end_interrupted(self, request_id: int, reason: Exception) -> None:
        turn = self._interrupted.pop(request_id)
        self._inbox.remove(request_id)
        self._control.forget(request_id)
        try:
            turn.steps.throw(reason)
        except StopIteration as end:
            self._channel.send(end.value)
        except Exception as error:  # noqa: BLE001 - whatever ends one answer, others go on
            self._channel.send(_failure(request_id, error))

    def _welcome(self, request: p.Hello) -> None:
        if request.version != p.PROTOCOL_VERSION:
            raise QwenDeskError(
                mark("Versions differ"),
                mark("QwenDesk and this engine have different versions ({0} and {1}). Install both again."),
                request.version,
                p.PROTOCOL_VERSION,
            )
        self._channel.send(
            p.Welcome(
                id=request.id,
                version=p.PROTOCOL_VERSION,
                package_version=importlib.metadata.version("llama-cpp-python"),
                system_info=C.llama_print_system_info().decode("utf-8", "replace").strip(),
                backends=devices.backends(),
                pid=os.getpid(),
            )
        )

    def _load(self, request: p.Load) -> None:
        self._close_session()
        log_start, sent_at = self._log.mark(), float("-inf")

        def progress(stage: Literal["weights", "context", "vision", "template"], fraction: float) -> None:
            nonlocal sent_at
            now = time.monotonic()
            if stage != "weights" or now - sent_at >= _PROGRESS_EVERY_S:
                sent_at = now
                self._channel.send(p.LoadProgress(id=request.id, stage=stage, fraction=fraction))

        try:
            self._session = load(request.options, self._log, progress, lambda: self._control.cancelled)
        except LoadError as error:
            lines = self._log.since(log_start)[-_MAX_LOG_LINES:]
            refused = p.LoadRefused(
                id=request.id, stage=error.stage, message=error.message, values=error.values, engine_lines=lines
            )
            self._channel.send(refused)
            return
        self._channel.send(p.Loaded(id=request.id, report=self._session.report))

    def _save_state(self, request: p.SaveState) -> None:
        """Copy the state of a chat now, and write it on another thread, which sends the last event."""
        saved = self._require_session().states.copy(request.chat, request.most_bytes, is_idle=self._inbox.is_empty)
        if saved is None:
            self._channel.send(p.StateSaved(id=request.id, n_bytes=0))
        else:
            threading.Thread(target=self._write_state, args=(request, saved), name="state", daemon=True).start()

    def _write_state(self, request: p.SaveState, saved: SavedChat) -> None:
        try:
            n_bytes = saved.write(Path(request.path), request.most_bytes)
        except Exception as error:  # noqa: BLE001 - the app waits for an event, whatever happens on this thread
            self._channel.send(_failure(request.id, error))
            return
        self._channel.send(p.StateSaved(id=request.id, n_bytes=n_bytes, n_tokens=saved.n_tokens))

    def _has_nothing_else(self) -> bool:
        """Return whether the running request is wanted and no other waits. Serve waiting Measure requests first."""
        self._serve_measures()
        return self._inbox.is_empty and not self._control.cancelled

    def _serve_measures(self) -> None:
        """Serve waiting Measure requests. Called between two batches of the prompt and between two tokens."""
        while (request := self._inbox.take_if(p.Measure)) is not None:
            self._control.forget(request.id)
            try:
                self._channel.send(measure(self._require_session(), request, self._channel.send))
            except (QwenDeskError, EngineFault) as error:
                self._channel.send(_failure(request.id, error))

    def _require_session(self) -> Session:
        if self._session is None:
            raise QwenDeskError(mark("No model"), mark("No model is loaded. Choose one first."))
        return self._session

    def _clear_cache(self) -> None:
        if self._session is not None:
            self._session.cache.clear()

    def _close_session(self) -> None:
        for request_id in list(self._interrupted):
            sentence = mark("The model was unloaded before this answer was complete. Ask again.")
            self._end_interrupted(request_id, QwenDeskError(mark("Interrupted"), sentence))
        session, self._session = self._session, None
        if session is not None:
            session.close()


def _failure(request_id: int, error: Exception) -> p.RequestFailed:
    """Return the event for a request that failed with `error`."""
    if isinstance(error, QwenDeskError):
        return p.RequestFailed(id=request_id, title=error.title, sentence=error.source, values=error.values)
    return p.RequestFailed(
        id=request_id,
        title=mark("Engine error"),
        sentence=mark("{0}. The engine is still running: try again."),
        values=(str(error) or type(error).__name__,),
    )


def _is_generate(request: p.AnyRequest) -> bool:
    return isinstance(request, p.Generate)


def _comes_first(request: p.AnyRequest) -> bool:
    return isinstance(request, p.Generate) and not request.gives_way


def _cancelled(request: p.AnyRequest) -> p.Event:
    """Return the last event of a request that was cancelled before it was served."""
    match request:
        case p.Generate():
            return p.Finished(id=request.id, stop_reason="cancelled", stats=AnswerStats())
        case p.Load():
            return p.LoadRefused(id=request.id, stage="cancelled", message="the load was cancelled")
        case _:
            return p.RequestFailed(
                id=request.id, title=mark("Cancelled"), sentence=mark("This was cancelled before it began.")
            )


RequestT = TypeVar("RequestT", bound=Request)


class Inbox:
    """A first-in, first-out queue, in which a question of the window passes answers for programs.

    A request that can be served during another one can be taken early.
    """

    def __init__(self) -> None:
        self._requests: collections.deque[AnyRequest] = collections.deque()
        self._changed = threading.Condition()

    def put(self, request: AnyRequest) -> None:
        with self._changed:
            self._requests.append(request)
            self._changed.notify()

    @property
    def is_empty(self) -> bool:
        return not self._requests

    def all(self, is_wanted: Callable[[AnyRequest], bool]) -> Sequence[AnyRequest]:
        """Return the requests in the queue that are wanted."""
        with self._changed:
            return tuple(filter(is_wanted, self._requests))

    def take(self, interrupted: Container[int] = ()) -> AnyRequest:
        """Remove and return the first request; wait for one if the queue is empty.

        A question of the window passes other answers. What changes the model passes answers that are `interrupted`.
        """
        with self._changed:
            while not self._requests:
                self._changed.wait()
            answers = itertools.takewhile(_is_generate, self._requests)
            place = next((place for place, each in enumerate(answers) if _comes_first(each)), 0)
            n_interrupted = sum(1 for _ in itertools.takewhile(lambda each: each.id in interrupted, self._requests))
            if n_interrupted < len(self._requests) and isinstance(self._requests[n_interrupted], p.Load | p.Unload):
                place = n_interrupted
            request = self._requests[place]
            del self._requests[place]
            return request

    def remove(self, request_id: int) -> AnyRequest | None:
        """Remove and return the request with this id; None if it is not in the queue."""
        with self._changed:
            for place, request in enumerate(self._requests):
                if request.id == request_id:
                    del self._requests[place]
                    return request
            return None

    def take_if(self, kind: type[RequestT]) -> RequestT | None:
        """Remove and return the first request if it is of this kind, else None. Never wait.

        Answers that wait don't count: such a request passes them.
        """
        if not self._requests:
            return None
        with self._changed:
            for place, request in enumerate(self._requests):
                if isinstance(request, kind):
                    del self._requests[place]
                    return request
                if not _is_generate(request):
                    break
            return None


# Matches the beginning of every request as the app encodes it.
_ID = re.compile(rb'\s*\{\s*"type"\s*:\s*"\w*"\s*,\s*"id"\s*:\s*(\d{1,18})\b')
_SKIP_BYTES = 1024**2


def read_requests(stream: BinaryIO) -> Iterator[AnyRequest | RequestFailed]:
    """Yield each request until the stream ends. For a line that is not a request, yield the RequestFailed for it.

    The RequestFailed has the id at the beginning of the line, or 0 if there is none.
    """
    while line := stream.readline(LINE_LIMIT_BYTES):
        if len(line) == LINE_LIMIT_BYTES and not line.endswith(b"\n"):
            _skip_line(stream)
            yield _unreadable(line, f"it is longer than {show_bytes(LINE_LIMIT_BYTES)}")
            continue
        try:
            request = decode_request(line)
        except msgspec.DecodeError as error:
            yield _unreadable(line, str(error))
        else:
            yield request


def _skip_line(stream: BinaryIO) -> None:
    while (rest := stream.readline(_SKIP_BYTES)) and not rest.endswith(b"\n"):
        pass


def _unreadable(line: bytes, reason: str) -> RequestFailed:
    match = _ID.match(line)
    return RequestFailed(
        id=int(match[1]) if match else 0,
        title=mark("Not understood"),
        sentence=mark("The engine can't read this request: {0}. Restart QwenDesk. If that doesn't help, update it."),
        values=(reason,),
    )
