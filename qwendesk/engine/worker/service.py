"""Serves requests: one thread reads them, the main thread works on them one after the other."""

import importlib.metadata
import os
import sys
import threading
import traceback
from typing import BinaryIO, Literal

import llama_cpp.llama_cpp as C
import msgspec

from qwendesk.core.errors import QwenDeskError
from qwendesk.engine import protocol as p
from qwendesk.engine.worker import devices
from qwendesk.engine.worker.channel import Channel
from qwendesk.engine.worker.control import Control
from qwendesk.engine.worker.generate import Turn
from qwendesk.engine.worker.inbox import Inbox
from qwendesk.engine.worker.loader import LoadError, Session, load
from qwendesk.engine.worker.log import EngineLog
from qwendesk.engine.worker.measure import measure
from qwendesk.engine.worker.model import EngineFault

_LINES_ATTACHED = 80
"""Lines of the engine's log that go with a failed load."""
_EXIT_GRACE_S = 1.5
"""A Shutdown that cannot be served by then, because native code is busy, ends the process anyway."""


class Service:
    def __init__(self, channel: Channel, requests: BinaryIO) -> None:
        self._channel, self._requests = channel, requests
        self._inbox, self._control = Inbox(), Control()
        self._log = EngineLog()
        self._session: Session | None = None

    def run(self) -> None:
        """Until Shutdown. When standard input ends, the app is gone and the process exits on the spot."""
        self._log.install()
        C.llama_backend_init()
        threading.Thread(target=self._read, name="requests", daemon=True).start()
        while not isinstance(request := self._inbox.take(), p.Shutdown):
            self._serve(request)
        self._close_session()

    def _read(self) -> None:
        while line := self._requests.readline(p.LINE_LIMIT_BYTES):
            try:
                request = p.decode_request(line)
            except msgspec.DecodeError as error:
                self._channel.send(
                    p.RequestFailed(id=0, title="Not understood", sentence=f"The engine got a bad request: {error}.")
                )
                continue
            match request:
                case p.Cancel(id=request_id, target=target):
                    known = self._control.cancel(target)
                    self._channel.send(p.Acknowledged(id=request_id, target=target, known=known))
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
        os._exit(0)

    def _serve(self, request: p.AnyRequest) -> None:
        abort = self._session.model.abort if self._session and isinstance(request, p.Generate) else None
        with self._control.running(request.id, abort):
            try:
                self._answer(request)
            except QwenDeskError as error:
                self._channel.send(p.RequestFailed(id=request.id, title=error.title, sentence=error.sentence))
            except Exception as error:  # noqa: BLE001 - the worker outlives what one request trips over
                traceback.print_exc(file=sys.stderr)
                self._forget_memory()
                sentence = f"{str(error) or type(error).__name__}. The engine goes on; try again."
                self._channel.send(p.RequestFailed(id=request.id, title="Engine error", sentence=sentence))

    def _answer(self, request: p.AnyRequest) -> None:
        match request:
            case p.Hello():
                self._welcome(request)
            case p.Probe():
                found = p.Devices(id=request.id, devices=devices.list_devices(), cpu_features=devices.cpu_features())
                self._channel.send(found)
            case p.Load():
                self._load(request)
            case p.Unload():
                self._close_session()
                self._channel.send(p.Unloaded(id=request.id))
            case p.Measure():
                self._channel.send(measure(self._loaded(), request, self._channel.send))
            case p.Generate():
                turn = Turn(self._loaded(), request, self._control, self._channel.send, self._measure_meanwhile)
                self._channel.send(turn.run())
            case _:
                raise AssertionError(f"{request} is served by the reading thread")

    def _welcome(self, request: p.Hello) -> None:
        if request.version != p.PROTOCOL_VERSION:
            raise QwenDeskError(
                "Versions differ",
                f"The app speaks protocol {request.version}, this engine {p.PROTOCOL_VERSION}. Install both again.",
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
        mark, shown = self._log.mark(), 0

        def progress(stage: Literal["weights", "context", "vision", "template"], fraction: float) -> None:
            nonlocal shown
            percent = int(fraction * 100)
            if stage != "weights" or percent != shown:
                shown = percent
                self._channel.send(p.LoadProgress(id=request.id, stage=stage, fraction=fraction))

        try:
            self._session = load(request.options, self._log, progress, lambda: self._control.cancelled)
        except LoadError as error:
            lines = self._log.since(mark)[-_LINES_ATTACHED:]
            refused = p.LoadRefused(id=request.id, stage=error.stage, message=str(error), engine_lines=lines)
            self._channel.send(refused)
            return
        self._channel.send(p.Loaded(id=request.id, report=self._session.report))

    def _measure_meanwhile(self) -> None:
        """Counts asked for while an answer is written are given between two tokens."""
        while (request := self._inbox.take_if(p.Measure)) is not None:
            try:
                self._channel.send(measure(self._loaded(), request, self._channel.send))
            except (QwenDeskError, EngineFault) as error:
                title = error.title if isinstance(error, QwenDeskError) else "Engine error"
                sentence = error.sentence if isinstance(error, QwenDeskError) else str(error)
                self._channel.send(p.RequestFailed(id=request.id, title=title, sentence=sentence))

    def _loaded(self) -> Session:
        if self._session is None:
            raise QwenDeskError("No model", "No model is loaded. Choose one first.")
        return self._session

    def _forget_memory(self) -> None:
        if self._session is not None:
            self._session.cache.clear()

    def _close_session(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.close()
