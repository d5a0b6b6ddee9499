"""Answering: takes questions through a fair queue, the model and the engine to the items of their answers."""

import asyncio
import contextlib
from collections import OrderedDict, deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import msgspec

from qwendesk.chat.question_files import answer_options
from qwendesk.core.chats import ChatSettings
from qwendesk.core.errors import QwenDeskError
from qwendesk.core.failures import EngineExit
from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.messages import Message
from qwendesk.core.translation import tr
from qwendesk.engine.contract import AnswerItem, EngineClient
from qwendesk.engine.protocol import (
    Begun,
    CallDelta,
    Called,
    Delta,
    Finished,
    Generate,
    LoadReport,
    Measure,
    Measured,
    RequestFailed,
    Tokenize,
    Tokenized,
)
from qwendesk.server.answer import AnswerCollector, AnswerHead
from qwendesk.server.clips import ServedClips
from qwendesk.server.conversations import ReasoningMemory, conversation_key, engine_client, prefix_hashes
from qwendesk.server.fields import off_loop
from qwendesk.server.question import Question
from qwendesk.server.refusals import BAD_PICTURE, CONTEXT_FULL, Refused
from qwendesk.server.requests import program_title
from qwendesk.server.served_models import ServedModels


class FairQueue:
    """Lets a few clients have answers of one model at once, between which the engine divides its time, and one of each.

    When one ends, the client that was served longest ago is next, with its oldest request. One that needs another model
    waits until nothing runs, and nobody passes it.
    """

    def __init__(self, most_waiting: int, most_at_once: int = 4) -> None:
        self.most_waiting, self._most_at_once = most_waiting, most_at_once
        self._waiting: OrderedDict[str, deque[_QueuedRequest]] = OrderedDict()
        """By client, the one to serve next first. No client has an empty queue."""
        self._running: list[_QueuedRequest] = []

    @property
    def n_waiting(self) -> int:
        return sum(map(len, self._waiting.values()))

    @asynccontextmanager
    async def turn(self, client: str, model: str = "") -> AsyncIterator[None]:
        """Wait for the client's turn, which lasts until the context is left. Raise Refused if too many wait."""
        place = _QueuedRequest(client, model)
        self._waiting.setdefault(client, deque()).append(place)
        self._begin_next()
        try:
            if place not in self._running and self.n_waiting > self.most_waiting:
                sentence = f"{self.most_waiting} requests are waiting already. Try again later."
                raise Refused(429, sentence, code="queue_full")
            await place.begins
            yield
        finally:
            self._leave(place)

    def _leave(self, place: "_QueuedRequest") -> None:
        if place in self._running:
            self._running.remove(place)
        else:
            queue = self._waiting[place.client]
            queue.remove(place)
            if not queue:
                del self._waiting[place.client]
        self._begin_next()

    def _begin_next(self) -> None:
        """Begin what can run now."""
        while (place := self._next()) is not None:
            queue = self._waiting.pop(place.client)
            queue.popleft()
            if queue:
                self._waiting[place.client] = queue  # behind all others
            self._running.append(place)
            if not place.begins.done():  # else its client has just left, and leaves the queue in a moment
                place.begins.set_result(None)

    def _next(self) -> "_QueuedRequest | None":
        busy = {each.client for each in self._running}
        place = next((queue[0] for client, queue in self._waiting.items() if client not in busy), None)
        if place is None or not self._running:
            return place
        is_alike = all(each.model == place.model for each in self._running)
        return place if is_alike and len(self._running) < self._most_at_once else None


class _QueuedRequest:
    """A request that waits or runs."""

    def __init__(self, client: str, model: str) -> None:
        self.client, self.model = client, model
        self.begins: asyncio.Future[None] = asyncio.get_running_loop().create_future()


# A message costs as much time to hash as so many more of its characters.
_MESSAGE_BYTES = 500
# Returns the options of an answer before what the client sets: the preset of the model's family.
MakeOptions = Callable[[Question, LoadReport], GenerationOptions]


def served_options(question: Question, report: LoadReport) -> GenerationOptions:
    """Return the options of an answer for another program: with tools, the preset for code, if the model thinks."""
    thinks = question.thinking is not False and report.can_think
    preset = "precise" if question.tools_json and thinks else ""
    return answer_options(ChatSettings(preset=preset, thinking=question.thinking), report)


class Answering:
    """Owns the queue and what is remembered of answers. Call its methods on the event loop's thread."""

    def __init__(
        self, client: EngineClient, models: ServedModels, queue: FairQueue, make_options: MakeOptions,
        clips: ServedClips,
    ) -> None:  # fmt: skip
        self._clips = clips
        self._client, self._models, self._queue, self._make_options = client, models, queue, make_options
        self._memory = ReasoningMemory()

    @property
    def is_loading(self) -> bool:
        return self._models.is_loading

    async def head(self, question: Question) -> AnswerHead:
        """Return what is known of an answer before it begins."""
        return AnswerHead.new(question, await self._models.expected(question.model))

    async def items(
        self, question: Question, head: AnswerHead, client: str, program: str
    ) -> AsyncGenerator[AnswerItem]:
        """Yield the items of an answer, the last of which is Finished. Raise Refused if it fails.

        Conversations of one client are unknown to others. Its programs take turns.
        """
        async with self._queue.turn(f"{client} {program}", question.model):
            restarts = 1
            while True:
                report = await self._models.ready(question.model)
                engine_exit: EngineExit | None = None
                has_begun = False
                async with contextlib.aclosing(self._generate(question, head, report, client, program)) as items:
                    async for item in items:
                        if isinstance(item, EngineExit):
                            engine_exit = item
                            break
                        has_begun = has_begun or isinstance(item, Delta | CallDelta | Called)
                        yield item
                if engine_exit is None:
                    return
                if has_begun or not restarts:
                    raise _refused(engine_exit)
                restarts -= 1  # nothing is lost: the engine starts again, and so does this answer

    async def count_tokens(self, question: Question, client: str) -> int:
        """Return how many tokens a question has. Raise Refused."""
        report = await self._models.ready(question.model)
        options = self._options(question, report)
        completed, _ = self._completed(question, await _hashes(question, client))
        messages = await self._clips.with_frames(completed, report)
        counted = await self._client.ask(
            Measure(messages=messages, options=options, tools_json=question.tools_json, client=engine_client(client))
        )
        if not isinstance(counted, Measured):
            raise _refused(counted, question)
        return counted.prompt_tokens

    async def tokenize(self, text: str, *, special: bool) -> tuple[int, ...]:
        """Return the tokens of a text. Raise Refused."""
        await self._models.ready("")
        result = await self._client.ask(Tokenize(text=text, special=special))
        if not isinstance(result, Tokenized):
            raise _refused(result)
        return result.tokens

    async def _generate(
        self, question: Question, head: AnswerHead, report: LoadReport, client: str, program: str
    ) -> AsyncGenerator[AnswerItem]:
        options = self._options(question, report)
        hashes = await _hashes(question, client)
        completed, begun = self._completed(question, hashes)
        messages = await self._clips.with_frames(completed, report)
        request = Generate(
            messages=messages,
            options=options,
            tools_json=question.tools_json,
            begun=begun,
            chat=conversation_key(hashes, question.messages) if question.messages else "",
            may_call=question.may_call,
            must_call=question.must_call,
            prompt=question.prompt,
            gives_way=True,
            program=program_title(program),
            n_logprobs=question.n_logprobs,
            client=engine_client(client),
        )
        stream = self._client.generate(request)
        collector, has_ended = AnswerCollector(head), False
        try:
            async for item in stream:
                has_ended = isinstance(item, Finished | RequestFailed | EngineExit)
                collector.take(item)
                if isinstance(item, RequestFailed):
                    raise _refused(item, question)
                if isinstance(item, Finished):
                    _check_room(item, report)
                    if begun is None:
                        self._memory.remember(hashes[-1], collector.answer().as_message)
                yield item
            if not has_ended:
                raise AssertionError("an answer stream ended without its last item")
        finally:
            if not has_ended:
                await stream.cancel()

    def _completed(self, question: Question, hashes: Sequence[bytes]) -> tuple[tuple[Message, ...], Begun | None]:
        """Return the messages with their reasoning, and the partial answer that is to be continued, if there is one."""
        messages = self._memory.completed(hashes, question.messages)
        last = messages[-1] if messages else None
        if last is None or last.role != "assistant" or last.tool_calls:
            return messages, None
        begun = Begun(last.reasoning, last.text, question.messages[-1].stage)
        return messages[:-1], None if begun.is_empty else begun

    def _options(self, question: Question, report: LoadReport) -> GenerationOptions:
        if any(sent.message.images for sent in question.messages) and not report.can_see:
            sentence = "The loaded model sees no pictures. Load it with its vision file (mmproj)."
            raise Refused(400, sentence, code="no_vision")
        if question.must_call and not report.template.call_dialect:
            raise Refused(400, "The chat template of the loaded model has no tool calls.", code="no_tools")
        try:
            return msgspec.structs.replace(self._make_options(question, report), **question.changes)
        except QwenDeskError as error:
            raise Refused(400, error.sentence) from error


async def _hashes(question: Question, client: str) -> list[bytes]:
    """Return the hashes of the question's messages, made on another thread if there are many."""
    n_bytes = sum(len(sent.message.text) for sent in question.messages) + _MESSAGE_BYTES * len(question.messages)
    return await off_loop(n_bytes, lambda: prefix_hashes(client, question.tools_json, question.messages))


def _check_room(finished: Finished, report: LoadReport) -> None:
    """Raise Refused if the prompt alone fills the context."""
    stats = finished.stats
    if finished.stop_reason == "context_full" and not stats.reasoning_tokens + stats.answer_tokens:
        raise Refused(400, _too_long(stats.prompt_tokens, report.n_ctx), code=CONTEXT_FULL, param="messages")


def _too_long(n_tokens: int, n_ctx: int) -> str:
    """Return a sentence with the words by which programs know a full context, and then shorten the conversation.

    Anthropic's, for Claude Code and Zed, must come first. The others are OpenAI's and vLLM's, for LiteLLM, Cline and
    opencode, and llama-server's, for VS Code.
    """
    return (
        f"prompt is too long: {n_tokens} tokens > {n_ctx} maximum. This model's maximum context length is {n_ctx} "
        f"tokens: the request ({n_tokens} tokens) exceeds the available context size. Please reduce the length of the "
        "messages."
    )


def _refused(failed: RequestFailed | EngineExit, question: Question | None = None) -> Refused:
    if isinstance(failed, EngineExit):
        return Refused(503, failed.sentence, code="engine_exit")
    # The user may have ejected the model a moment ago; the next request loads it again.
    status = {tr("Engine error"): 500, tr("No model"): 503}.get(failed.title, 400)
    if failed.title == tr("Too long"):  # as a server says on which the model is
        return Refused(400, f"prompt is too long: {failed.sentence}", code=CONTEXT_FULL, param="messages")
    images = (image for sent in question.messages for image in sent.message.images) if question is not None else ()
    param = next((image.path for image in images if image.path in failed.sentence), "")
    return Refused(status, f"{failed.title}. {failed.sentence}", param=param, code=BAD_PICTURE if param else "")
