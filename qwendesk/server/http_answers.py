"""Answers over HTTP: as one body, or as a stream of server-sent events."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Iterable

from aiohttp import web

from qwendesk.engine.contract import AnswerItem
from qwendesk.engine.protocol import Finished, PromptProgress
from qwendesk.server.answer import AnswerCollector, AnswerHead, Comment, EventWriter, Frame
from qwendesk.server.answering import Answering
from qwendesk.server.dialects import Dialect
from qwendesk.server.fields import Fields, decode_body, off_loop
from qwendesk.server.limits import Limits
from qwendesk.server.refusals import CONTEXT_FULL, Refused
from qwendesk.server.requests import RequestLog

# The body of a request.
FIELDS = web.RequestKey("fields", Fields)


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
