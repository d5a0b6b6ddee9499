"""One answer of a server: a task reads it into a queue, from which the chat takes its items."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable

import httpx2
import msgspec

from qwendesk.core.errors import QwenDeskError
from qwendesk.core.failures import EngineExit
from qwendesk.engine.contract import AnswerItem
from qwendesk.engine.protocol import Finished, RequestFailed
from qwendesk.remote import connection as limits
from qwendesk.remote.answer_reader import AnswerReader, decode_chunk
from qwendesk.remote.connection import Connection, EndlessAnswer, WatchedStream, read_beginning
from qwendesk.remote.errors import (
    endless_answer,
    lost_in_answer,
    not_understood,
    silent_in_answer,
    status_error,
    stream_error,
    transport_error,
)

_logger = logging.getLogger(__name__)
_PATH = "/v1/chat/completions"
# How some servers and proxies send events.
_PLAIN_KINDS = ("", "text/plain")
# Items that wait for the chat. With more, nothing is read from the server, which then has to wait.
_MOST_UNREAD = 256

MakeBody = Callable[[], Awaitable[dict[str, object]]]


async def read_answer(
    connection: Connection, model: str, make_body: MakeBody, reader: AnswerReader
) -> AsyncIterator[AnswerItem]:
    """Ask for an answer and yield its items. Raises QwenDeskError and httpx2's errors before the last item."""
    body = await make_body()
    title = connection.server.title
    async with connection.stream(_PATH, body) as answer:
        if not answer.is_success:
            content = await read_beginning(answer)
            retry_after = answer.headers.get("Retry-After", "")
            raise status_error(title, answer.status_code, content, model=model, retry_after=retry_after)
        async for event in _events(answer, reader):
            try:
                is_large = len(event) > limits.LARGE_BYTES
                chunk = await asyncio.to_thread(decode_chunk, event) if is_large else decode_chunk(event)
            except (msgspec.DecodeError, UnicodeEncodeError) as error:
                raise not_understood(title) from error
            if chunk.error:
                raise stream_error(title, chunk.error, model=model)
            for item in reader.read(chunk):
                yield item
    if not reader.has_finished:
        raise lost_in_answer(title)
    for item in reader.finish():
        yield item


async def _events(answer: httpx2.Response, reader: AnswerReader) -> AsyncIterator[str | bytes]:
    """Yield the JSON of each event; of a server that doesn't stream, its whole answer. Raises httpx2's errors.

    Until `reader` has found the beginning of the answer, the server may be silent for longer.
    """
    kind = answer.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if kind == "application/json":
        yield await read_beginning(answer)
        return
    if kind in _PLAIN_KINDS:
        answer.headers["Content-Type"] = "text/event-stream"
    answer.encoding = "utf-8-sig"  # as the specification says, whatever the server says
    assert isinstance(answer.stream, httpx2.AsyncByteStream)
    answer.stream = watched = WatchedStream(answer.stream, limits.FIRST_SILENCE_S)
    async for event in httpx2.EventSource(answer, max_event_size=limits.MOST_EVENT_BYTES):
        if event.data.strip() == "[DONE]":
            return
        if event.data.strip():
            yield event.data
        if reader.has_begun:
            watched.silence_s = limits.SILENCE_S


class RunningAnswer:
    """Reads one answer in a task. It always ends with exactly one Finished or RequestFailed."""

    def __init__(
        self,
        connection: Connection,
        model: str,
        make_body: MakeBody,
        reader: AnswerReader,
        publish: Callable[[AnswerItem], None],
    ) -> None:
        """`publish` is called with each item as it arrives."""
        self.items: asyncio.Queue[AnswerItem] = asyncio.Queue()
        self.reader, self._connection, self._publish = reader, connection, publish
        self._has_room = asyncio.Event()
        self._has_ended = False
        self.task = asyncio.get_running_loop().create_task(self._run(model, make_body))
        self.task.add_done_callback(lambda _task: self._end_as_cancelled())

    def cancel(self) -> None:
        """Close the connection, at which the server stops. The answer ends as cancelled."""
        self.task.cancel()

    async def next_item(self) -> AnswerItem:
        item = await self.items.get()
        if self.items.qsize() <= _MOST_UNREAD // 2:
            self._has_room.set()
        return item

    async def end_reasoning(self) -> None:
        """Ask llama-server to end the reasoning. A failure is logged: the answer goes on as it was."""
        if not self.reader.answer_id:
            return
        try:
            body = {"id": self.reader.answer_id, "action": "reasoning_end"}
            await self._connection.post(f"{_PATH}/control", body)
        except QwenDeskError as error:
            _logger.info("The reasoning could not be ended: %s", error.sentence)

    async def _run(self, model: str, make_body: MakeBody) -> None:
        reader, title = self.reader, self._connection.server.title
        try:
            async for item in read_answer(self._connection, model, make_body, reader):
                self._put(item)
                while self.items.qsize() >= _MOST_UNREAD:
                    self._has_room.clear()
                    await self._has_room.wait()
        except asyncio.CancelledError:
            self._end_as_cancelled()
        except httpx2.SSEError:
            self._fail(not_understood(title))
        except EndlessAnswer:
            self._fail(endless_answer(title))
        except httpx2.RequestError as error:
            if reader.has_finished and not self._has_ended:  # the rest would have been the statistics alone
                for item in reader.finish():
                    self._put(item)
            elif not self._has_ended and reader.has_begun:
                is_silent = isinstance(error, httpx2.ReadTimeout)
                self._fail(silent_in_answer(title, limits.SILENCE_S) if is_silent else lost_in_answer(title))
            elif not self._has_ended:
                self._fail(transport_error(title, error))
        except QwenDeskError as error:
            self._fail(error)
        except Exception:
            _logger.exception("An answer of a server could not be read")
            self._fail(not_understood(title))

    def _end_as_cancelled(self) -> None:
        """End the answer, also if it was cancelled before its task had begun; do nothing if it has ended."""
        if not self._has_ended:
            for item in self.reader.finish("cancelled"):
                self._put(item)

    def _fail(self, error: QwenDeskError) -> None:
        for item in self.reader.flush():
            self._put(item)
        self._put(RequestFailed(id=0, title=error.title, sentence=error.sentence))

    def _put(self, item: AnswerItem) -> None:
        self._has_ended = isinstance(item, Finished | RequestFailed)
        self.items.put_nowait(item)
        self._publish(item)


class ServerAnswer:
    """The AnswerStream of a server."""

    def __init__(self, running: RunningAnswer) -> None:
        self._running = running
        self._loop = asyncio.get_running_loop()
        self._has_ended = False

    def __aiter__(self) -> "ServerAnswer":
        return self

    async def __anext__(self) -> AnswerItem:
        if self._has_ended:
            raise StopAsyncIteration
        try:
            item = await self._running.next_item()
        except asyncio.CancelledError:
            self._running.cancel()
            raise
        self._has_ended = isinstance(item, Finished | RequestFailed | EngineExit)
        return item

    async def cancel(self) -> None:
        self._running.cancel()

    async def answer_now(self) -> None:
        await self._running.end_reasoning()

    def __del__(self) -> None:
        # Nobody reads the answer any more. This may run on any thread, and after the event loop was closed.
        if not self._has_ended and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._running.cancel)


class FailedAnswer:
    """The AnswerStream of a request that was not sent."""

    def __init__(self, failure: RequestFailed) -> None:
        self._items = [failure]

    def __aiter__(self) -> "FailedAnswer":
        return self

    async def __anext__(self) -> AnswerItem:
        if not self._items:
            raise StopAsyncIteration
        return self._items.pop()

    async def cancel(self) -> None:
        """Do nothing: it has ended."""

    async def answer_now(self) -> None:
        """Do nothing: it has ended."""
