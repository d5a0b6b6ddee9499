"""PartialAnswer: collects an answer while it is generated, and returns it as a message on demand."""

from collections.abc import Sequence

import msgspec

from qwendesk.core.conversation import ChatNode
from qwendesk.core.json_decoding import decode_json
from qwendesk.core.messages import CallRecord, Message, ToolCall, ToolStep, text_message
from qwendesk.core.stats import AnswerStats, StopReason
from qwendesk.engine.protocol import Begun, CallDelta, Called, Delta

_NO_STATS = AnswerStats()
# What the model reads about a call that was running when the app or the answer ended.
INTERRUPTED = "This call was interrupted."
# What the model reads about a call that could not be understood.
UNREADABLE = "This call could not be read. Write it again, exactly in the form that was shown."


class PartialAnswer:
    """An answer that is generated from its beginning, or continued where it was cut off or where it called tools."""

    def __init__(self, chat_id: str, turn_id: int, node: ChatNode, *, keeps_thinking: bool, calls_again: bool) -> None:
        """`node` is the answer in the tree; its id, parent, model and options are kept.

        With `keeps_thinking`, its reasoning goes on even if it had ended. With `calls_again`, it goes on with the calls
        of its last step that are not done.
        """
        self.chat_id = chat_id
        self.turn_id = turn_id
        self.begun = Begun(node.message.reasoning, node.message.text, "thinking" if keeps_thinking else "")
        self._node = node
        steps = node.message.steps[:-1] if calls_again else node.message.steps
        self._steps = tuple(map(_with_all_done, steps))
        self._reasoning = [node.message.reasoning] if node.message.reasoning else []
        self._text = [node.message.text] if node.message.text else []
        self._calls: list[CallRecord] = []
        """The calls of this round, while they are written and while they run."""
        self._n_written = 0
        """How many of them are whole."""
        self._round_stats = _NO_STATS
        """The statistics of the rounds before this one."""
        self._reasoning_began_at: float | None = None
        self._reasoning_ended_at = 0.0
        self._thought_s = node.thought_s
        if calls_again:
            self._open(node.message.steps[-1])

    @property
    def node_id(self) -> str:
        return self._node.id

    @property
    def calls(self) -> Sequence[CallRecord]:
        return self._calls

    @property
    def steps(self) -> tuple[ToolStep, ...]:
        """The steps whose calls are done."""
        return self._steps

    @property
    def step_messages(self) -> tuple[Message, ...]:
        """The messages of the steps that are done, for the next request."""
        return tuple(message for step in self._steps for message in step.messages)

    def _open(self, step: ToolStep) -> None:
        """Make a step the current round, in which the model has written its calls."""
        self._reasoning, self._text = [step.reasoning], [step.text]
        self._calls, self._n_written = list(step.calls), len(step.calls)
        self._reasoning_began_at, self._reasoning_ended_at = 0.0, step.thought_s
        self._thought_s = sum(each.thought_s for each in self._steps)

    def set_model_and_options(self, *, model: str, options_json: str) -> None:
        """Set the model and the options, which are known once the request is sent."""
        self._node = msgspec.structs.replace(self._node, model=model, options_json=options_json)

    def add(self, delta: Delta, now: float) -> None:
        """Append a piece of text that arrived at the time `now`, in seconds of a monotonic clock."""
        if delta.kind == "reasoning":
            self._reasoning.append(delta.text)
            if self._reasoning_began_at is None:
                self._reasoning_began_at = now
            self._reasoning_ended_at = now
            return
        if not self._text:
            self._reasoning_ended_at = now
        self._text.append(delta.text)

    def add_call_text(self, delta: CallDelta) -> None:
        """Append a piece of a call that is being written."""
        if delta.index == len(self._calls):
            self._calls.append(CallRecord(ToolCall(delta.name, "")))
        record = self._calls[delta.index]
        call = ToolCall(record.call.name or delta.name, record.call.arguments_json + delta.arguments)
        self._calls[delta.index] = msgspec.structs.replace(record, call=call)

    def end_call(self, called: Called) -> None:
        """Take a call as a whole. One that the model did not finish is dropped."""
        del self._calls[self._n_written :]
        if called.call is not None:
            self._calls.append(CallRecord(called.call))
        elif called.is_finished:
            self._text.append(f"<tool_call>{called.text}</tool_call>")
            self._calls.append(CallRecord(ToolCall(""), is_done=True, error=UNREADABLE))
        self._n_written = len(self._calls)

    def set_call(self, index: int, record: CallRecord) -> None:
        """Replace a call of this round, with what came of it."""
        self._calls[index] = record

    def end_round(self, stats: AnswerStats) -> None:
        """Begin the round after the calls, which are done. `stats` are those of the round that wrote them."""
        self._steps = (*self._steps, self._open_step())
        self._round_stats = self._with_round(stats)
        self._thought_s += self._seconds_of_reasoning()
        self._reasoning, self._text, self._calls, self._n_written = [], [], [], 0
        self._reasoning_began_at, self._reasoning_ended_at = None, 0.0

    def node(
        self, *, stop_reason: StopReason | None = None, stats: AnswerStats = _NO_STATS, error: str = ""
    ) -> ChatNode:
        """Return the answer so far; the arguments say how it ended, if it has. Then a half call is left out."""
        stats = self._with_round(stats)
        if stop_reason is not None or error:
            del self._calls[self._n_written :]
        if self._calls:
            message = Message("assistant", steps=(*self._steps, self._open_step()))
        else:
            written = text_message("assistant", "".join(self._text), reasoning="".join(self._reasoning))
            message = msgspec.structs.replace(written, steps=self._steps)
        return msgspec.structs.replace(
            self._node,
            message=message,
            stop_reason=stop_reason,
            stats=stats if self.begun.is_empty else joined(self._node.stats, stats),
            thought_s=self._thought_s + self._seconds_of_reasoning(),
            error=error,
        )

    def _open_step(self) -> ToolStep:
        seconds = self._seconds_of_reasoning()
        return ToolStep(tuple(self._calls), "".join(self._reasoning), "".join(self._text), seconds)

    def _with_round(self, stats: AnswerStats) -> AnswerStats:
        return after_tools(self._round_stats, stats) if self._round_stats.prompt_tokens else stats

    def _seconds_of_reasoning(self) -> float:
        return 0.0 if self._reasoning_began_at is None else self._reasoning_ended_at - self._reasoning_began_at


def _with_all_done(step: ToolStep) -> ToolStep:
    """Return the step with its calls ended. One that was still being written is left out."""
    calls = (
        record if record.is_done else msgspec.structs.replace(record, is_done=True, error=INTERRUPTED)
        for record in step.calls
        if record.is_done or _is_whole(record.call)
    )
    return msgspec.structs.replace(step, calls=tuple(calls))


def _is_whole(call: ToolCall) -> bool:
    try:
        return isinstance(decode_json(call.arguments_json), dict)
    except msgspec.DecodeError:
        return False


def after_tools(first: AnswerStats, following: AnswerStats) -> AnswerStats:
    """Return the statistics of an answer that went on after tools: the prompt of the first round, and the sums."""
    if not following.prompt_tokens:
        return first
    return msgspec.structs.replace(
        _added(first, following),
        tool_rounds=first.tool_rounds + 1,
        after_tools_tokens=first.after_tools_tokens + following.reread_tokens,
        after_tools_s=first.after_tools_s + following.ttft_s,
    )


def joined(first: AnswerStats, rest: AnswerStats) -> AnswerStats:
    """Return the statistics of a continued answer: tokens and times of both parts, and the prompt of the first."""
    if not first.prompt_tokens:
        return rest
    reread = min(rest.reread_tokens, first.prompt_tokens)
    return msgspec.structs.replace(
        _added(first, rest),
        reused_tokens=first.prompt_tokens - reread,
        reread_tokens=reread,
        prefill_s=first.prefill_s + rest.prefill_s,
        tool_rounds=first.tool_rounds + rest.tool_rounds,
        after_tools_tokens=first.after_tools_tokens + rest.after_tools_tokens,
        after_tools_s=first.after_tools_s + rest.after_tools_s,
    )


def _added(first: AnswerStats, second: AnswerStats) -> AnswerStats:
    """Return `first` with the tokens and times that were spent on generating `second`."""
    return msgspec.structs.replace(
        first,
        reasoning_tokens=first.reasoning_tokens + second.reasoning_tokens,
        answer_tokens=first.answer_tokens + second.answer_tokens,
        reasoning_looped=first.reasoning_looped or second.reasoning_looped,
        drafted_tokens=first.drafted_tokens + second.drafted_tokens,
        accepted_tokens=first.accepted_tokens + second.accepted_tokens,
        decode_s=first.decode_s + second.decode_s,
        n_threads=second.n_threads,
        most_threads=second.most_threads,
        timing=first.timing.plus(second.timing),
        cache_note=second.cache_note,
        dropped_messages=second.dropped_messages,
    )
