"""What the chat uses of the tools, and the calls of one round of an answer."""

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import Protocol

import msgspec

from qwendesk.chat.partial_answer import PartialAnswer
from qwendesk.chat.tree_edits import new_id
from qwendesk.core.chats import ChatSettings
from qwendesk.core.citations import citations_of
from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.messages import CallRecord, Message, ToolCall, ToolStep
from qwendesk.core.tool_context import CallContext
from qwendesk.engine.protocol import LoadReport

# How often the model may call tools in one answer; then it must answer.
MOST_ROUNDS = 20
# How many rounds in a row may have calls that could not be read.
MOST_UNREADABLE = 2
_STOPPED = "The user stopped this call."
_ANSWER_NOW = "The user wants the answer now, without this call."


class ChatTools(Protocol):
    """The part of the tool service that the chat uses. Methods are called on the event loop's thread."""

    def definitions(self, settings: ChatSettings) -> tuple[str, ...]:
        """Return the tools that are on in a chat, each as JSON in the form of OpenAI's API."""

    def taints(self, tool: str) -> bool:
        """Return whether a result of this tool may hold text that the user did not type."""

    def reads_descriptions(self, settings: ChatSettings) -> bool:
        """Return whether the prompt of a chat tells the model what others wrote about their tools."""

    async def run(self, call: ToolCall, context: CallContext) -> CallRecord:
        """Run a call, after the user's consent where it needs that. A failure is in the record's `error`."""


class ToolRounds:
    """Runs the calls of one answer, round by round."""

    def __init__(self, tools: ChatTools, partial: PartialAnswer, show: Callable[[], None]) -> None:
        """`show` is called when the state of a call has changed."""
        self._tools, self._partial, self._show = tools, partial, show
        self._task: asyncio.Task[None] | None = None
        self._call: asyncio.Task[CallRecord] | None = None
        """The call that runs or waits for consent."""
        self._stopped_ids: set[str] = set()
        """The calls that the user stopped one by one."""
        self._interrupted_by = ""
        self._n_rounds = self._n_unreadable = 0

    @property
    def is_running(self) -> bool:
        return self._task is not None

    @property
    def was_stopped(self) -> bool:
        return self._interrupted_by == _STOPPED

    @property
    def may_call(self) -> bool:
        """Whether the next round may call tools."""
        has_patience = self._n_rounds < MOST_ROUNDS and self._n_unreadable < MOST_UNREADABLE
        return has_patience and self._interrupted_by != _ANSWER_NOW

    def options(self, options: GenerationOptions, report: LoadReport | None) -> GenerationOptions:
        """Return the options of the next round: without the beginning of a call once the model must answer.

        If the user asked for the answer now, it is without thinking too. The prompt stays the same, and so does its
        memory.
        """
        if self._interrupted_by == _ANSWER_NOW:
            options = msgspec.structs.replace(options, thinking_budget=0)
        token = None if report is None else report.call_token
        if self.may_call or token is None:
            return options
        return msgspec.structs.replace(options, logit_bias=(*options.logit_bias, f"{token}=-inf"))

    def stop(self) -> None:
        self._interrupt(_STOPPED)

    def answer_now(self) -> None:
        self._interrupt(_ANSWER_NOW)

    def stop_call(self, call_id: str) -> None:
        """Stop one call; the answer goes on. Ignored if it doesn't run any more."""
        is_running = any(record.id == call_id and not record.is_done for record in self._partial.calls)
        if self._call is not None and is_running:
            self._stopped_ids.add(call_id)
            self._call.cancel()

    async def run(self, context: CallContext) -> None:
        """Run the calls of this round, one after the other. Calls that were interrupted have that as their error."""
        task = self._task = asyncio.ensure_future(self._run_all(context))
        try:
            await asyncio.wait((task,))
        except asyncio.CancelledError:
            task.cancel()
            raise
        finally:
            self._task = None
        if not task.cancelled():
            task.result()  # raises what went wrong
        self._n_rounds += 1
        is_readable = any(record.call.name for record in self._partial.calls)
        self._n_unreadable = 0 if is_readable else self._n_unreadable + 1

    async def _run_all(self, context: CallContext) -> None:
        for index, record in enumerate(self._partial.calls):
            if record.is_done:
                continue
            if self._is_interrupted():
                self._fail_the_rest(index)
                return
            running = msgspec.structs.replace(record, id=new_id(), began_s=time.time())
            self._partial.set_call(index, running)
            self._show()
            self._call = asyncio.ensure_future(self._tools.run(record.call, self._of_call(context, running)))
            try:
                done = await self._call
            except asyncio.CancelledError:
                if self._is_interrupted():
                    self._fail_the_rest(index)
                    return
                if running.id not in self._stopped_ids:
                    raise
                done = msgspec.structs.replace(running, is_done=True, error=_STOPPED)
            finally:
                self._call = None
            self._partial.set_call(index, msgspec.structs.replace(done, id=running.id, began_s=running.began_s))
            self._show()

    def _of_call(self, context: CallContext, record: CallRecord) -> CallContext:
        """Return the context of a call, with what the calls before it in this round have added."""
        done = tuple(each for each in self._partial.calls if each.is_done and each.call.name)
        is_tainted = context.is_tainted or any(self._tools.taints(each.call.name) for each in done)
        n_citations = max(citations_of([ToolStep(done)]), default=context.n_citations)
        return msgspec.structs.replace(
            context, call_id=record.id, is_tainted=is_tainted, n_citations=max(n_citations, context.n_citations)
        )

    def _is_interrupted(self) -> bool:
        return bool(self._interrupted_by)

    def _interrupt(self, error: str) -> None:
        self._interrupted_by = error
        if self._task is not None:
            self._task.cancel()

    def _fail_the_rest(self, first: int) -> None:
        for index, record in enumerate(self._partial.calls):
            if index >= first and not record.is_done:
                self._partial.set_call(index, msgspec.structs.replace(record, is_done=True, error=self._interrupted_by))
        self._show()


def still_allowed(asked: ChatSettings, now: ChatSettings) -> ChatSettings:
    """Return the settings with which an answer began, without tools and folders that the user has taken away since."""
    return msgspec.structs.replace(
        asked,
        tools=tuple(name for name in asked.tools if name in now.tools),
        tool_folders=tuple(folder for folder in asked.tool_folders if folder in now.tool_folders),
    )


def holds_untyped_text(questions: Iterable[Message], steps: Iterable[ToolStep], tools: ChatTools) -> bool:
    """Return whether a chat holds more than what its user typed and the model answered: files, pictures, results."""
    called = (record.call.name for step in steps for record in step.calls)
    return any(message.images or message.documents for message in questions) or any(map(tools.taints, called))
