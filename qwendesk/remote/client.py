"""The EngineClient that uses a server: its model is "loaded" by looking at what the server can do."""

import asyncio
import logging
import time
from collections.abc import Callable
from functools import partial
from typing import cast

import msgspec

from qwendesk.core.errors import QwenDeskError
from qwendesk.core.failures import EngineExit, LoadFailure
from qwendesk.core.observed import Subscribers
from qwendesk.core.options import DecidedOptions
from qwendesk.core.served_model import ServedModel, served_model, served_name
from qwendesk.core.translation import tr
from qwendesk.engine.contract import AnswerItem, AnswerStream
from qwendesk.engine.load_failures import cancelled_load
from qwendesk.engine.protocol import (
    PROTOCOL_VERSION,
    CallDelta,
    Called,
    Delta,
    Devices,
    Event,
    Generate,
    Loaded,
    LoadReport,
    Query,
    Rendering,
    ReplyT_co,
    RequestFailed,
    SaveState,
    ServedBy,
    StateSaved,
    Warm,
    Warmed,
    Welcome,
)
from qwendesk.engine.replies import no_model_failure
from qwendesk.engine.state import EngineEvent, LoadAsked, LoadFailed, WorkerExited
from qwendesk.remote.answer_reader import AnswerReader
from qwendesk.remote.answer_stream import FailedAnswer, RunningAnswer, ServerAnswer
from qwendesk.remote.connection import Connection
from qwendesk.remote.dialects import DIALECTS, ServerDialect
from qwendesk.remote.inspection import ModelOnServer, find_kind, inspect_model
from qwendesk.remote.servers import RemoteServer
from qwendesk.remote.wire import PictureEncoder, request_body

_logger = logging.getLogger(__name__)

# Returns the server at an address, as the user added it, or a new one. Raises QwenDeskError if it may not be used.
FindServer = Callable[[str], RemoteServer]
# Returns the key for an address; "" if there is none. Blocks.
LoadKey = Callable[[str], str]


class _InUse(msgspec.Struct, frozen=True):
    """The model that answers."""

    connection: Connection
    model: ModelOnServer
    dialect: ServerDialect


class RemoteClient:
    """Uses one model of one server at a time. No worker process belongs to it. See EngineClient for the methods."""

    def __init__(self, find_server: FindServer, load_key: LoadKey) -> None:
        self._find_server, self._load_key = find_server, load_key
        self._subscribers = Subscribers[EngineEvent]()
        self._in_use: _InUse | None = None
        self._loading: asyncio.Task[tuple[_InUse, RemoteServer]] | None = None
        self._running: set[asyncio.Task[None]] = set()
        self._pictures = PictureEncoder()
        self._picture_lock = asyncio.Lock()
        self._is_unseparated = False
        """Whether this server left the reasoning of an answer in its text, without a tag before it."""

    def subscribe(self, callback: Callable[[EngineEvent], None]) -> Callable[[], None]:
        return self._subscribers.add(callback)

    async def start(self) -> Welcome | EngineExit:
        return Welcome(id=0, version=PROTOCOL_VERSION, package_version="", system_info="", backends=())

    async def load(self, options: DecidedOptions) -> LoadReport | LoadFailure:
        """Connect to the server and find out what its model can do."""
        chosen = served_model(options.model)
        assert chosen is not None, options.model
        await self._let_go()
        self._subscribers.notify(LoadAsked(options))
        started_at = time.monotonic()
        self._loading = asyncio.ensure_future(self._connect(chosen))
        try:
            await asyncio.wait((self._loading,))
        except asyncio.CancelledError:
            self._loading.cancel()
            self._load_failed(cancelled_load())
            raise
        loading, self._loading = self._loading, None
        if loading.cancelled():
            return self._load_failed(cancelled_load())
        error = loading.exception()
        if isinstance(error, QwenDeskError):
            return self._load_failed(LoadFailure("other", error.title, error.sentence))
        self._in_use, server = loading.result()
        found = ServedModel(server.address, self._in_use.model.name)
        options = msgspec.structs.replace(options, model=found.text)
        report = _report(options, self._in_use, server, time.monotonic() - started_at)
        self._subscribers.notify(Loaded(id=0, report=report))
        return report

    async def cancel_load(self) -> None:
        if self._loading is not None:
            self._loading.cancel()

    async def unload(self) -> None:
        """Let go of the server. It keeps its model."""
        await self.cancel_load()
        await self._let_go()
        self._subscribers.notify(WorkerExited(None))

    async def probe(self) -> Devices | EngineExit:
        return Devices(id=0, devices=(), cpu_features=())

    def generate(self, request: Generate) -> AnswerStream:
        in_use = self._in_use
        if in_use is None:
            return FailedAnswer(no_model_failure())
        title = in_use.connection.server.title
        try:
            self._find_server(in_use.connection.server.address)
        except QwenDeskError as error:
            return _failed(error.title, error.sentence)
        if request.prompt:
            return _failed(tr("Not possible there"), tr("A server continues no raw text, only chats."))
        if request.n_logprobs >= 0:
            return _failed(tr("Not possible there"), tr("A server's log probabilities can't be passed on."))
        if request.begun is not None and not request.begun.is_empty and not in_use.dialect.continues:
            return _failed(tr("Can't continue"), tr("{0} can't continue an answer. Regenerate it instead.", title))
        reader = AnswerReader(
            time.monotonic,
            n_ctx=in_use.model.n_ctx,
            starts_open=self._is_unseparated and request.options.enable_thinking,
            may_call=request.may_call,
        )
        write = partial(
            request_body, request, in_use.model.name, in_use.dialect, self._pictures.data_url,
            can_think=in_use.model.template.enable_thinking,
        )  # fmt: skip

        async def make_body() -> dict[str, object]:
            async with self._picture_lock:
                return await asyncio.to_thread(write)

        self._subscribers.notify(Rendering(id=0))
        running = RunningAnswer(in_use.connection, in_use.model.name, make_body, reader, self._on_item)
        self._running.add(running.task)
        running.task.add_done_callback(partial(self._on_end, reader))
        return ServerAnswer(running)

    async def ask(self, request: Query[ReplyT_co]) -> ReplyT_co | RequestFailed | EngineExit:
        """Process nothing ahead and save nothing: a server's prompt cache belongs to the server."""
        match request:
            case Warm():
                reply: Event = Warmed(id=0, done=0, reread=0)
            case SaveState():
                reply = StateSaved(id=0, n_bytes=0)
            case _:
                sentence = tr("A server counts tokens only with an answer.")
                return RequestFailed(id=0, title=tr("Not counted"), sentence=sentence)
        return cast("ReplyT_co", reply)

    async def close(self) -> None:
        await self.cancel_load()
        await self._let_go()

    async def _connect(self, chosen: ServedModel) -> tuple[_InUse, RemoteServer]:
        server = self._find_server(chosen.address)
        key = await asyncio.to_thread(self._load_key, chosen.address)
        connection = Connection(server, key)
        try:
            kind = await find_kind(connection)
            connection.server = server = msgspec.structs.replace(server, kind=kind)
            model = await inspect_model(connection, kind, chosen.name)
        except BaseException:
            await connection.close()
            raise
        return _InUse(connection, model, DIALECTS[kind]), server

    async def _let_go(self) -> None:
        """Cancel what runs and close the connection."""
        running = tuple(self._running)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        in_use, self._in_use, self._is_unseparated = self._in_use, None, False
        if in_use is not None:
            await in_use.connection.close()

    def _on_item(self, item: AnswerItem) -> None:
        if not isinstance(item, Delta | CallDelta | Called | EngineExit):
            self._subscribers.notify(item)

    def _on_end(self, reader: AnswerReader, task: "asyncio.Task[None]") -> None:
        self._running.discard(task)
        self._is_unseparated = self._is_unseparated or reader.is_unseparated

    def _load_failed(self, failure: LoadFailure) -> LoadFailure:
        self._subscribers.notify(LoadFailed(failure))
        return failure


def _failed(title: str, sentence: str) -> FailedAnswer:
    return FailedAnswer(RequestFailed(id=0, title=title, sentence=sentence))


def _report(options: DecidedOptions, in_use: _InUse, server: RemoteServer, load_s: float) -> LoadReport:
    model, dialect = in_use.model, in_use.dialect
    return LoadReport(
        options=options,
        name=served_name(model.name),
        architecture=model.architecture,
        n_params=model.n_params,
        weights_bytes=model.weights_bytes,
        n_ctx=model.n_ctx,
        n_ctx_train=model.n_ctx_train,
        n_layers=0,
        n_vocab=0,
        is_hybrid=False,
        can_think=model.template.enable_thinking,
        can_see=model.can_see is not False,
        template=model.template,
        allocations=(),
        load_s=load_s,
        served_by=ServedBy(
            name=server.title,
            address=server.address,
            program=dialect.title,
            can_answer_now="answer_now" in dialect.extras,
            can_limit_thinking="budget" in dialect.extras,
            can_continue=bool(dialect.continues),
            unused_options=dialect.unused_options,
        ),
    )
