"""Anthropic's messages: reads their requests and writes their answers."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from qwendesk.core.json_decoding import decode_json
from qwendesk.core.messages import Part, TextPart
from qwendesk.core.stats import AnswerStats
from qwendesk.engine.contract import AnswerItem
from qwendesk.engine.protocol import CallDelta, Called, Delta, PromptProgress
from qwendesk.server.answer import AnswerHead, Frame, StreamEvent, WrittenAnswer, unreadable_call
from qwendesk.server.content import read_content, read_reasoning
from qwendesk.server.fields import Fields, encode_json
from qwendesk.server.question import ANY_TOOL, ClientMessage, Question, arranged, function_json, message, tool_call
from qwendesk.server.refusals import Refused, error_body
from qwendesk.server.sampling_fields import read_format, read_sampling, read_stop_texts, read_thinking

# How a block begins that Claude Code puts before its system prompt. It differs in each request, so the whole prompt
# would be processed again each time; a model has no use for it.
_BILLING_HEADER = "x-anthropic-billing-header"


def read_messages_request(body: Fields) -> Question:
    """Return the question. Raise Refused for what is wrong or can't be done."""
    body.required("messages")
    sent = [ClientMessage(message("system", tuple(_system(body))))]
    sent += [each for number in body.objects("messages") for each in _messages(number)]
    if len(sent) == 1:
        raise body.refuse("messages", "messages is empty.")
    tools = tuple(_tools(body))
    may_call, must_call, parallel = _tool_choice(body, [name for name, _ in tools])
    thinking, output = read_thinking(body), body.object("output_config")
    form = output.object("format") if output.has("format") else body.object("output_format")
    changes = thinking.changes | read_sampling(body, "max_tokens", "num_predict") | read_format(form)
    changes |= read_stop_texts(body, "stop") | read_stop_texts(body, "stop_sequences")
    changes["parallel_tool_calls"] = parallel
    return Question(
        messages=arranged(sent),
        model=body.text("model"),
        tools_json=tuple(text for _, text in tools),
        may_call=may_call,
        must_call=must_call,
        # As with Anthropic's models, only a request that asks for thinking has it.
        thinking=thinking.is_on is True,
        changes=changes,
        stream=body.flag("stream"),
    )


def _system(body: Fields) -> Iterator[Part]:
    """Yield the parts of the system prompt, with an empty line between its texts."""
    parts = tuple(read_content(body, "system"))
    texts = (part.text for part in parts if isinstance(part, TextPart))
    yield TextPart("\n\n".join(text for text in texts if not text.startswith(_BILLING_HEADER)))
    yield from (part for part in parts if not isinstance(part, TextPart))


def _messages(sent: Fields) -> Iterator[ClientMessage]:
    """Yield a message as several, where it has results of tools and other things."""
    role = sent.text("role")
    if role not in ("user", "assistant", "system"):
        raise sent.refuse("role", f'{sent.path("role")} must be user or assistant, not "{role}".')
    parts = tuple(read_content(sent, "content"))
    blocks = [] if isinstance(sent.any("content"), str) else list(sent.objects("content"))
    if role == "assistant":
        yield _answer(sent, blocks, parts)
        return
    for block in blocks:
        if block.text("type") == "tool_result":
            result = tuple(read_content(block, "content"))
            yield ClientMessage(message("tool", result), answers=block.text("tool_use_id"))
    if parts or not blocks:
        yield ClientMessage(message(role, parts))


def _answer(sent: Fields, blocks: Sequence[Fields], parts: Sequence[Part]) -> ClientMessage:
    calls = [block for block in blocks if block.text("type") == "tool_use"]
    made = (tool_call(call.text("name"), encode_json(call.object("input").value)) for call in calls)
    return ClientMessage(
        message(
            "assistant",
            parts,
            reasoning=read_reasoning(sent, "content"),
            tool_calls=tuple(made),
        ),
        call_ids=tuple(call.text("id") for call in calls),
    )


def _tools(body: Fields) -> Iterator[tuple[str, str]]:
    """Yield name and definition of each tool of the client; those that run on Anthropic's servers are left out."""
    for tool in body.objects("tools"):
        if tool.text("type", "custom") == "custom":
            tool.required("name")
            name = tool.text("name")
            yield name, function_json(name, tool.text("description"), tool.any("input_schema"))
        else:
            tool.drop()


def _tool_choice(body: Fields, names: Sequence[str]) -> tuple[bool, str, bool]:
    """Return whether a tool may be called, which must be, and whether several may be."""
    choice = body.object("tool_choice")
    parallel = not choice.flag("disable_parallel_tool_use")
    match choice.text("type", "auto"):
        case "auto":
            return True, "", parallel
        case "none":
            return False, "", parallel
        case "any" if names:
            return True, ANY_TOOL, parallel
        case "tool" if choice.text("name") in names:
            return True, choice.text("name"), parallel
    raise body.refuse("tool_choice", "tool_choice must be auto, any, none or name a tool that tools has.")


_PING = StreamEvent({"type": "ping"}, "ping")


def stop_reason(answer: WrittenAnswer) -> str:
    """Return Anthropic's word for the end of an answer."""
    if answer.stop_reason in ("max_tokens", "context_full"):
        return "max_tokens"
    if answer.stop_reason == "stop_string":
        return "stop_sequence"
    return "tool_use" if answer.calls_tools else "end_turn"


def messages_body(head: AnswerHead, answer: WrittenAnswer) -> dict[str, Any]:
    """Return the body of an answer that isn't streamed."""
    content: list[dict[str, Any]] = []
    if answer.reasoning:
        content.append({"type": "thinking", "thinking": answer.reasoning, "signature": _signature(answer.reasoning)})
    if answer.text:
        content.append({"type": "text", "text": answer.text})
    content += [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": _input(call.arguments_json)}
        for call in answer.calls
    ]
    return _message(head, _usage(answer.stats)) | {
        "content": content,
        "stop_reason": stop_reason(answer),
        "stop_sequence": answer.stop_text or None,
    }


class MessagesWriter:
    """Writes one answer as events. `progress` is how far the prompt is when the stream begins, None if unknown."""

    def __init__(self, head: AnswerHead, progress: PromptProgress | None = None) -> None:
        self._head, self._progress = head, progress
        self._index = -1
        self._open = ""
        """The kind of the open block: "thinking", "text", "tool_use", or "" for none."""
        self._thinking: list[str] = []

    def begin(self) -> Iterator[Frame]:
        total, reused = (self._progress.total, self._progress.reused) if self._progress is not None else (0, 0)
        known = AnswerStats(prompt_tokens=total, reused_tokens=reused, reread_tokens=total - reused)
        yield _event({"type": "message_start", "message": _message(self._head, _usage(known))})
        yield _PING

    def write(self, item: AnswerItem) -> Iterator[Frame]:
        match item:
            case Delta(kind="reasoning", text=text):
                yield from self._to_block("thinking", {"thinking": "", "signature": ""})
                self._thinking.append(text)
                yield self._delta({"type": "thinking_delta", "thinking": text})
            case Delta(text=text):
                yield from self._text(text)
            case CallDelta(index=index, name=name, arguments=arguments):
                if name:
                    yield from self._end_block()
                    empty: dict[str, Any] = {"id": self._head.call_id(index), "name": name, "input": {}}
                    yield from self._to_block("tool_use", empty)
                if arguments:
                    yield self._delta({"type": "input_json_delta", "partial_json": arguments})
            case Called(call=None, is_finished=True) if self._open != "tool_use":
                yield from self._text(unreadable_call(item))
            case Called():
                yield from self._end_block()

    def wait(self) -> Frame:
        return _PING

    def end(self, answer: WrittenAnswer) -> Iterator[Frame]:
        yield from self._end_block()
        ending = {"stop_reason": stop_reason(answer), "stop_sequence": answer.stop_text or None}
        yield _event({"type": "message_delta", "delta": ending, "usage": _usage(answer.stats)})
        yield _event({"type": "message_stop"})

    def fail(self, refused: Refused) -> Iterable[Frame]:
        return (_event(error_body(refused, "anthropic")),)

    def _text(self, text: str) -> Iterator[Frame]:
        yield from self._to_block("text", {"text": ""})
        yield self._delta({"type": "text_delta", "text": text})

    def _to_block(self, kind: str, empty: dict[str, Any]) -> Iterator[Frame]:
        """Begin a block of that kind, unless one is open."""
        if self._open == kind:
            return
        yield from self._end_block()
        self._index, self._open = self._index + 1, kind
        yield _event({"type": "content_block_start", "index": self._index, "content_block": {"type": kind} | empty})

    def _end_block(self) -> Iterator[Frame]:
        if self._open == "thinking":
            signature = _signature("".join(self._thinking))
            yield self._delta({"type": "signature_delta", "signature": signature})
        if self._open:
            yield _event({"type": "content_block_stop", "index": self._index})
        self._open = ""

    def _delta(self, delta: dict[str, Any]) -> StreamEvent:
        return _event({"type": "content_block_delta", "index": self._index, "delta": delta})


def _event(data: dict[str, Any]) -> StreamEvent:
    return StreamEvent(data, data["type"])


def _message(head: AnswerHead, usage: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": f"msg_{head.key}",
        "type": "message",
        "role": "assistant",
        "model": head.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }


def _usage(stats: AnswerStats) -> dict[str, Any]:
    return {
        "input_tokens": stats.reread_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": stats.reused_tokens,
        "output_tokens": stats.reasoning_tokens + stats.answer_tokens,
    }


def _signature(thinking: str) -> str:
    """Return what stands where Anthropic signs its thinking. Clients send it back; nothing depends on it."""
    return hashlib.sha256(thinking.encode()).hexdigest()


def _input(arguments_json: str) -> Any:
    try:
        return decode_json(arguments_json)
    except msgspec.DecodeError:
        return {"arguments": arguments_json}
