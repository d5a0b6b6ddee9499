"""The server's routes, what every request passes before it is served, and how answers are written."""

import asyncio
import contextlib
import datetime
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from typing import Any

import msgspec
from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from qwendesk import __version__
from qwendesk.engine.contract import AnswerItem
from qwendesk.engine.protocol import Finished, PromptProgress
from qwendesk.server.access import Access, ServerKey, program_name, shown_path
from qwendesk.server.answer import AnswerCollector, AnswerHead, Comment, EventWriter, Frame, WrittenAnswer
from qwendesk.server.answering import Answering
from qwendesk.server.chat_completions import ChatWriter, chat_body, read_chat_request
from qwendesk.server.completions import CompletionsWriter, completions_body, read_completions_request
from qwendesk.server.fields import Fields, decode_body, off_loop
from qwendesk.server.messages import MessagesWriter, messages_body, read_messages_request
from qwendesk.server.question import Question
from qwendesk.server.refusals import CONTEXT_FULL, ApiFamily, Limits, Refused, error_body
from qwendesk.server.requests import RequestLog
from qwendesk.server.responses import ResponsesWriter, read_responses_request, responses_body
from qwendesk.server.served_models import ListedModel, ServedModels

# The body of a request.
FIELDS = web.RequestKey("fields", Fields)


class Dialect(msgspec.Struct, frozen=True):
    """An API in which questions are asked: how a request is read, and how its answer is written."""

    read: Callable[[Fields], Question]
    body: Callable[[AnswerHead, WrittenAnswer], dict[str, Any]]
    writer: Callable[[AnswerHead, PromptProgress | None], EventWriter]
    """Takes how far the prompt is when the stream begins; None if that isn't known yet."""
    streams_full_context: bool = False
    """True if its clients look for a full context among the events of a stream, not in its HTTP status."""


# Those that the server speaks, by path.
DIALECTS = {
    "/v1/chat/completions": Dialect(read_chat_request, chat_body, lambda head, _: ChatWriter(head)),
    "/v1/completions": Dialect(read_completions_request, completions_body, lambda head, _: CompletionsWriter(head)),
    "/v1/responses": Dialect(
        read_responses_request,
        responses_body,
        lambda head, _: ResponsesWriter(head),
        streams_full_context=True,  # Codex shortens its conversation only then
    ),
    "/v1/messages": Dialect(read_messages_request, messages_body, MessagesWriter),
}


class HttpAnswers:
    """Serves the requests that ask a question."""

    def __init__(self, answering: Answering, log: RequestLog, limits: Limits) -> None:
        self._answering, self._log, self._limits = answering, log, limits

    async def serve(
        self, request: web.Request, content: bytes, dialect: Dialect, client: str, program: str, request_id: int
    ) -> web.StreamResponse:
        """Return the response with the answer. Raise Refused if there is none and nothing was sent."""
        request[FIELDS] = fields = await off_loop(len(content), lambda: decode_body(content))
        question = await off_loop(len(content), lambda: dialect.read(fields))
        self._log.note_ignored(request_id, fields.ignored())
        head = await self._answering.head(question)
        collector = AnswerCollector(head)
        items = self._noted(self._answering.items(question, head, client, program), collector, request_id)
        if question.stream:
            return await self._stream(request, dialect, head, collector, items)
        async with contextlib.aclosing(items):
            async for _ in items:
                pass
        return web.json_response(dialect.body(head, collector.answer()))

    async def _noted(
        self, items: AsyncGenerator[AnswerItem], collector: AnswerCollector, request_id: int
    ) -> AsyncGenerator[AnswerItem]:
        """Yield the items of an answer, after the collector and the log have taken them."""
        async with contextlib.aclosing(items):
            async for item in items:
                collector.take(item)
                self._log.note(request_id, item)
                yield item

    async def _stream(
        self,
        request: web.Request,
        dialect: Dialect,
        head: AnswerHead,
        collector: AnswerCollector,
        items: AsyncGenerator[AnswerItem],
    ) -> web.StreamResponse:
        stream = _EventStream(request, self._limits.send_s)
        writer: EventWriter | None = None
        try:
            async with contextlib.aclosing(_with_pauses(items, self._limits.ping_s)) as news:
                async for item in news:
                    if writer is None:
                        writer = dialect.writer(head, collector.progress)
                        await stream.send(writer.begin())
                    if item is None:
                        await stream.send([self._waiting(writer, head)])
                    elif isinstance(item, Finished):
                        await stream.send(writer.end(collector.answer()))
                    elif not isinstance(item, PromptProgress):
                        await stream.send(writer.write(item))
        except Refused as refused:
            if writer is None:
                if refused.code != CONTEXT_FULL or not dialect.streams_full_context:
                    raise
                writer = dialect.writer(head, collector.progress)
                await stream.send(writer.begin())
            await stream.send(writer.fail(refused))
        return await stream.close()

    def _waiting(self, writer: EventWriter, head: AnswerHead) -> Frame:
        """Return what keeps a stream from looking dead; a comment also says if the model is being loaded."""
        frame = writer.wait()
        is_loading = self._answering.is_loading and isinstance(frame, Comment)
        return Comment(f"loading {head.model}") if is_loading else frame


class _EventStream:
    """The response of one stream. Its head is sent with the first events."""

    def __init__(self, request: web.Request, send_s: float) -> None:
        self._request, self._send_s = request, send_s
        self._response = web.StreamResponse(
            headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
        )

    async def send(self, frames: Iterable[Frame]) -> None:
        """Send frames. Raise ConnectionResetError if the client has left, or takes nothing for too long."""
        if not self._response.prepared:
            await self._response.prepare(self._request)
        content = b"".join(frame.encoded() for frame in frames)
        if not content:
            return
        try:
            async with asyncio.timeout(self._send_s):
                await self._response.write(content)
        except TimeoutError:
            raise ConnectionResetError("the client takes nothing") from None

    async def close(self) -> web.StreamResponse:
        await self._response.write_eof()
        return self._response


async def _with_pauses(items: AsyncGenerator[AnswerItem], seconds: float) -> AsyncGenerator[AnswerItem | None]:
    """Yield the items, and None whenever nothing but progress with the prompt came for that many seconds."""
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[AnswerItem | Exception] = asyncio.Queue()

    async def read() -> None:
        try:
            async with contextlib.aclosing(items):
                async for item in items:
                    queue.put_nowait(item)
        except Exception as error:  # noqa: BLE001  it is raised again where the items are read
            queue.put_nowait(error)

    reader = asyncio.create_task(read())
    due = loop.time() + seconds
    try:
        while True:
            try:
                async with asyncio.timeout_at(due):
                    item = await queue.get()
            except TimeoutError:
                due = loop.time() + seconds
                yield None
                continue
            if isinstance(item, Exception):
                raise item
            yield item
            if isinstance(item, Finished):
                return
            if not isinstance(item, PromptProgress):
                due = loop.time() + seconds
    finally:
        reader.cancel()
        await asyncio.gather(reader, return_exceptions=True)


_logger = logging.getLogger(__name__)
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_connection_logger = logging.getLogger("qwendesk.server.connections")
_connection_logger.setLevel(logging.CRITICAL)  # what is no HTTP may have keys and texts in it
_KEY = web.RequestKey("key", ServerKey)
# What may stand before and after the paths: clients put addresses together with and without "/v1" and slashes.
_BEFORE, _AFTER = "/{before:/*(?:v1/+)*}", "{after:/*}"
_PREFLIGHT_S = "600"
# The header that names the fields of a request that had no effect.
_IGNORED = "X-QwenDesk-Ignored-Fields"


class HttpApp:
    """Makes the application of one running server."""

    def __init__(
        self, answering: Answering, models: ServedModels, access: Access, log: RequestLog, limits: Limits
    ) -> None:
        self._answering, self._models, self._access, self._log = answering, models, access, log
        self._limits = limits
        self._answers = HttpAnswers(answering, log, limits)
        self._silent: dict[RequestHandler, asyncio.TimerHandle] = {}
        """The connections from which no request came yet, and what closes them."""

    def runner(self, *, shutdown_s: float) -> web.AppRunner:
        """Return what serves the application. When it ends, connections have `shutdown_s` seconds to be closed."""
        return web.AppRunner(
            self._build(),
            handler_cancellation=True,
            access_log=None,
            logger=_connection_logger,
            keepalive_timeout=self._limits.keepalive_s,
            shutdown_timeout=shutdown_s,
        )

    def allow_origins(self, origins: tuple[str, ...]) -> None:
        """Let these web pages use the server from now on, and no others."""
        self._access = msgspec.structs.replace(self._access, origins=origins)

    def connect(self, make_connection: Callable[[], RequestHandler]) -> RequestHandler:
        """Make a new connection, which is closed if no request comes in time."""
        connection = make_connection()

        def close() -> None:
            del self._silent[connection]
            connection.force_close()

        self._silent[connection] = asyncio.get_running_loop().call_later(self._limits.head_s, close)
        return connection

    def _build(self) -> web.Application:
        app = web.Application(middlewares=[self._guard], client_max_size=self._limits.body_bytes)
        app.on_response_prepare.append(self._on_prepare)
        for path, dialect in DIALECTS.items():
            self._add(app, "POST", path, self._answer_in(dialect))
        self._add(app, "POST", "/v1/messages/count_tokens", self._count_tokens)
        self._add(app, "POST", "/v1/embeddings", self._refuse_embeddings)
        self._add(app, "GET", "/v1/models", self._list_models)
        self._add(app, "GET", "/v1/models/{name:.*[^/]}", self._show_model)
        self._add(app, "GET", "/health", self._health)
        self._add(app, "GET", "/props", self._props)
        self._add(app, "POST", "/tokenize", self._tokenize)
        app.router.add_get("/{root:[/v1]*}", self._greet)
        return app

    def _add(self, app: web.Application, method: str, path: str, handler: Handler) -> None:
        inner = path.removeprefix("/v1").removeprefix("/")
        for each in (method, "HEAD") if method == "GET" else (method,):
            app.router.add_route(each, f"{_BEFORE}{inner}{_AFTER}", handler)

    async def _greet(self, _request: web.Request) -> web.Response:
        """Answer programs that only look whether there is a server."""
        return web.Response(text=f"QwenDesk {__version__}")

    async def _on_prepare(self, request: web.Request, response: web.StreamResponse) -> None:
        response.headers["Server"] = "QwenDesk"
        if FIELDS in request and response.status == 200 and (ignored := request[FIELDS].ignored()):
            response.headers[_IGNORED] = ignored
        origin = request.headers.get("Origin", "")
        if origin and self._access.allows(origin):
            response.headers["Access-Control-Allow-Origin"] = origin
            response.headers["Access-Control-Expose-Headers"] = _IGNORED
            response.headers["Vary"] = "Origin"

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Serve what may be served, and answer every failure in the shape of the API."""
        if (closing := self._silent.pop(request.protocol, None)) is not None:
            closing.cancel()
        try:
            self._access.check_host(request.headers.get("Host", ""))
            self._access.check_origin(request.headers.get("Origin", ""))
            if request.method == "OPTIONS":
                return _preflight()
            self._check_key(request)
            return await handler(request)
        except Refused as refused:
            return _refusal(request, refused)
        except web.HTTPException as error:
            return _refusal(request, Refused(error.status, _http_sentence(request, error)))
        except (ConnectionError, asyncio.CancelledError):
            raise  # the client has left
        except Exception:
            _logger.exception("A request for %s failed", request.path)
            if request.writer.output_size:
                raise  # an answer has begun, so the connection is closed: a second one would look like its text
            return _refusal(request, Refused(500, "QwenDesk failed to serve this request. Its log says why."))

    def _check_key(self, request: web.Request) -> None:
        """Note whose key was sent. Raise Refused for a wrong one, or none, and put that on the list."""
        try:
            key = self._access.client_of(request.path, request.headers)
        except Refused as refused:
            self._log.note_refusal(
                program_name(request.headers.get("User-Agent", "")), shown_path(request.raw_path), refused.sentence
            )
            raise
        if key is not None:
            request[_KEY] = key

    def _answer_in(self, dialect: Dialect) -> Handler:
        async def serve(request: web.Request) -> web.StreamResponse:
            key, program = request[_KEY], program_name(request.headers.get("User-Agent", ""))
            request_id = self._log.begin(program, key.name, request.path)
            try:
                content = await self._read(request)
                response = await self._answers.serve(request, content, dialect, key.key, program, request_id)
            except Refused as refused:
                self._log.end(request_id, "refused", refused.sentence)
                raise
            except BaseException:
                self._log.end(request_id, "stopped")
                raise
            self._log.end(request_id, "done")
            return response

        return serve

    async def _count_tokens(self, request: web.Request) -> web.Response:
        fields = await self._fields(request)
        question = await off_loop(request.content_length or 0, lambda: read_messages_request(fields))
        n_tokens = await self._answering.count_tokens(question, request[_KEY].key)
        return web.json_response({"input_tokens": n_tokens})

    async def _refuse_embeddings(self, _request: web.Request) -> web.Response:
        sentence = "QwenDesk makes no embeddings: it loads models that write text. Use another program for them."
        raise Refused(400, sentence, code="not_supported")  # clients repeat what ends with 500 or more

    async def _list_models(self, _request: web.Request) -> web.Response:
        models = [_model_object(model, self._models) for model in await self._models.all()]
        first, last = models[0]["id"], models[-1]["id"]
        return web.json_response(
            {"object": "list", "data": models, "has_more": False, "first_id": first, "last_id": last}
        )

    async def _show_model(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        for model in await self._models.all():
            if model.id.lower() == name.lower():
                return web.json_response(_model_object(model, self._models))
        raise Refused(404, f'There is no model "{name}". GET /v1/models lists them.', code="model_not_found")

    async def _health(self, _request: web.Request) -> web.Response:
        if self._models.is_loading:
            error = {"code": 503, "message": "Loading model", "type": "unavailable_error"}
            return web.json_response({"error": error}, status=503)
        if self._models.is_frozen:
            error = {"code": 503, "message": "The engine isn't responding", "type": "unavailable_error"}
            return web.json_response({"error": error}, status=503)
        return web.json_response({"status": "ok"})

    async def _props(self, _request: web.Request) -> web.Response:
        report = self._models.loaded
        present = (await self._models.all())[0]
        return web.json_response(
            {
                "default_generation_settings": {"n_ctx": report.n_ctx if report is not None else 0},
                "total_slots": 1,
                "model_alias": present.id,
                "model_path": present.id,
                "modalities": {"vision": report is not None and report.can_see, "audio": False},
                "build_info": f"QwenDesk {__version__}",
                "is_sleeping": report is None,
            }
        )

    async def _tokenize(self, request: web.Request) -> web.Response:
        body = await self._fields(request)
        body.required("content")
        if body.flag("with_pieces"):
            raise body.refuse("with_pieces", "The pieces of tokens are not given. Leave with_pieces out.")
        special = body.flag("parse_special", default=True)
        return web.json_response({"tokens": await self._answering.tokenize(body.text("content"), special=special)})

    async def _fields(self, request: web.Request) -> Fields:
        content = await self._read(request)
        request[FIELDS] = fields = await off_loop(len(content), lambda: decode_body(content))
        return fields

    async def _read(self, request: web.Request) -> bytes:
        """Return the body of a request. Raise Refused if it takes too long, HTTPException if it is too large."""
        try:
            async with asyncio.timeout(self._limits.body_s):
                return await request.read()
        except TimeoutError:
            raise Refused(408, f"The request didn't arrive within {self._limits.body_s:g} seconds.") from None
        except web.RequestPayloadError:
            raise Refused(400, "The body isn't what Content-Encoding or Transfer-Encoding says.") from None


def _family(request: web.Request) -> ApiFamily:
    is_anthropic = "/messages" in request.path or "anthropic-version" in request.headers
    return "anthropic" if is_anthropic else "openai"


def _refusal(request: web.Request, refused: Refused) -> web.Response:
    headers = {"Retry-After": "5"} if refused.status in (429, 503) else {}
    if refused.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return web.json_response(error_body(refused, _family(request)), status=refused.status, headers=headers)


def _http_sentence(request: web.Request, error: web.HTTPException) -> str:
    match error.status:
        case 404:
            return f"There is no {request.path} here."
        case 405:
            return f"{request.path} can't be used with {request.method}."
        case 413:
            return "The request is too large."
        case _:
            return f"{error.reason}."


def _preflight() -> web.Response:
    """Return the answer to a browser that asks what a page on the list may send."""
    return web.Response(
        status=204,
        headers={
            "Access-Control-Allow-Methods": "GET, POST, OPTIONS",
            "Access-Control-Allow-Headers": "*, Authorization",
            "Access-Control-Max-Age": _PREFLIGHT_S,
        },
    )


def _model_object(model: ListedModel, models: ServedModels) -> dict[str, Any]:
    """Return a model in the words of both OpenAI's and Anthropic's API."""
    report = models.loaded if model.is_loaded else None
    known = {} if report is None else {"max_input_tokens": report.n_ctx, "meta": {"n_ctx": report.n_ctx}}
    return {
        "id": model.id,
        "object": "model",
        "created": 0,
        "owned_by": "qwendesk",
        "type": "model",
        "display_name": model.id,
        "created_at": datetime.datetime.fromtimestamp(0, datetime.UTC).isoformat(),
        "lifecycle": "active",
        **known,
    }
