"""OpenAI's responses: reads their requests and writes their answers."""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from qwendesk.core.json_decoding import decode_json
from qwendesk.core.messages import Message, TextPart, ToolCall
from qwendesk.core.stats import AnswerStats
from qwendesk.engine.contract import AnswerItem
from qwendesk.engine.protocol import CallDelta, Called, Delta
from qwendesk.server.answer import AnswerHead, Frame, StreamEvent, WrittenAnswer, unreadable_call
from qwendesk.server.chat_completions import WAITING, read_tool_choice, refuse_unsupported
from qwendesk.server.content import read_content, read_reasoning
from qwendesk.server.fields import Fields
from qwendesk.server.question import ClientMessage, Question, arranged, function_json, message, tool_call
from qwendesk.server.refusals import Refused, error_body
from qwendesk.server.sampling_fields import read_format, read_sampling, read_stop_texts, read_thinking


def read_responses_request(body: Fields) -> Question:
    """Return the question. Raise Refused for what is wrong or can't be done."""
    refuse_unsupported(body)
    for name in ("previous_response_id", "conversation", "prompt"):
        if body.has(name):
            raise body.refuse(name, f"QwenDesk keeps no responses, so {name} can't be used. Send the whole input.")
    if body.flag("background"):
        raise body.refuse("background", "QwenDesk keeps no responses, so none can run in the background.")
    if body.whole("top_logprobs"):
        raise body.refuse("top_logprobs", "Log probabilities are given by /v1/chat/completions only.")
    body.required("input")
    reader = _InputReader()
    if instructions := body.text("instructions"):
        reader.add_message(ClientMessage(message("system", (TextPart(instructions),))))
    if isinstance(body.any("input"), str):
        reader.add_message(ClientMessage(message("user", (TextPart(body.text("input")),))))
    else:
        for item in body.objects("input"):
            reader.add(item)
    tools = tuple(_tools(body))
    may_call, must_call = read_tool_choice(body, [name for name, _ in tools])
    thinking = read_thinking(body)
    changes = thinking.changes | read_sampling(body, "max_output_tokens", "max_tokens", "num_predict")
    changes |= read_format(body.object("text").object("format")) | read_stop_texts(body, "stop")
    changes["parallel_tool_calls"] = body.flag("parallel_tool_calls", default=True)
    return Question(
        messages=arranged(reader.messages()),
        model=body.text("model"),
        tools_json=tuple(text for _, text in tools),
        may_call=may_call,
        must_call=must_call,
        thinking=thinking.is_on,
        changes=changes,
        stream=body.flag("stream"),
    )


class _InputReader:
    """Puts the items of an input together to messages: reasoning, text and calls of one turn become one."""

    def __init__(self) -> None:
        self._messages: list[ClientMessage] = []
        self._turn = ClientMessage(Message("assistant"))
        """The assistant's turn that is being put together."""

    def messages(self) -> list[ClientMessage]:
        self._end_turn()
        return self._messages

    def add_message(self, sent: ClientMessage) -> None:
        self._end_turn()
        self._messages.append(sent)

    def add(self, item: Fields) -> None:
        kind = item.text("type", "message")
        match kind:
            case "message" if item.text("role") == "assistant":
                if self._turn.message.tool_calls:
                    self._end_turn()
                parts = (*self._turn.message.parts, *read_content(item, "content"))
                self._change_turn(parts=message("assistant", parts).parts)
            case "message":
                role = item.text("role")
                if role not in ("user", "system", "developer"):
                    raise item.refuse("role", f"{item.path('role')} must be user, assistant, system or developer.")
                parts = tuple(read_content(item, "content"))
                self.add_message(ClientMessage(message("user" if role == "user" else "system", parts)))
            case "reasoning":
                if self._turn.message.parts or self._turn.message.tool_calls:
                    self._end_turn()
                self._change_turn(reasoning=self._turn.message.reasoning + read_reasoning(item, "content"))
            case "function_call" | "custom_tool_call":
                self._add_call(item, kind)
            case "function_call_output" | "custom_tool_call_output":
                parts = tuple(read_content(item, "output"))
                self.add_message(ClientMessage(message("tool", parts), answers=item.text("call_id")))
            case "item_reference":
                raise item.refuse("type", "QwenDesk keeps no responses, so items can't be referred to. Send them.")
            case _:
                item.drop()  # what tools of OpenAI's own servers did, which no such model has seen

    def _add_call(self, item: Fields, kind: str) -> None:
        if kind == "custom_tool_call":
            arguments = msgspec.json.encode({"input": item.text("input")}).decode()
        else:
            arguments = item.text("arguments")
        call: ToolCall = tool_call(item.text("name"), arguments)
        self._change_turn(tool_calls=(*self._turn.message.tool_calls, call))
        self._turn = msgspec.structs.replace(self._turn, call_ids=(*self._turn.call_ids, item.text("call_id")))

    def _change_turn(self, **changes: Any) -> None:
        changed = msgspec.structs.replace(self._turn.message, **changes)
        self._turn = msgspec.structs.replace(self._turn, message=changed)

    def _end_turn(self) -> None:
        written = self._turn.message
        if written.parts or written.reasoning or written.tool_calls:
            self._messages.append(self._turn)
        self._turn = ClientMessage(Message("assistant"))


def _tools(body: Fields) -> Iterator[tuple[str, str]]:
    """Yield name and definition of each function; tools that run on OpenAI's servers are left out."""
    for tool in body.objects("tools"):
        if tool.text("type") == "function":
            tool.required("name")
            name = tool.text("name")
            yield name, function_json(name, tool.text("description"), tool.any("parameters"))
        else:
            tool.drop()


def responses_body(head: AnswerHead, answer: WrittenAnswer) -> dict[str, Any]:
    """Return the body of an answer that isn't streamed."""
    writer = _Items(head)
    items = [writer.reasoning(answer.reasoning)] if answer.reasoning else []
    if answer.text or not answer.calls:
        items.append(writer.message(answer.text))
    items += [writer.call(index, call.name, call.arguments_json) for index, call in enumerate(answer.calls)]
    return _response(head, answer, items)


class _Items:
    """Makes the items of a response. Their ids are those of the stream."""

    def __init__(self, head: AnswerHead) -> None:
        self._head = head
        self._n_items = 0

    def next_id(self, prefix: str) -> str:
        self._n_items += 1
        return f"{prefix}_{self._head.key}{self._n_items - 1:02d}"

    def reasoning(self, text: str) -> dict[str, Any]:
        return _done_reasoning(self.next_id("rs"), text)

    def message(self, text: str) -> dict[str, Any]:
        return _done_message(self.next_id("msg"), text)

    def call(self, index: int, name: str, arguments: str) -> dict[str, Any]:
        return _done_call(self.next_id("fc"), self._head.call_id(index), name, arguments)


class ResponsesWriter:
    """Writes one answer as events, each with its type and a number."""

    def __init__(self, head: AnswerHead) -> None:
        self._head, self._ids = head, _Items(head)
        self._number = -1
        self._items: list[dict[str, Any]] = []
        """The items that have ended."""
        self._kind = self._item_id = ""
        """Those of the open item: "reasoning", "message", "call", or "" for none."""
        self._text: list[str] = []
        self._call = ("", "")
        """Id and name of the open call."""

    def begin(self) -> Iterator[Frame]:
        begun = _response(self._head, None, [])
        yield self._event("response.created", response=begun)
        yield self._event("response.in_progress", response=begun)

    def write(self, item: AnswerItem) -> Iterator[Frame]:
        match item:
            case Delta(kind="reasoning", text=text):
                yield from self._to_text("reasoning", "rs")
                yield from self._add(text, "response.reasoning_text.delta")
            case Delta(text=text):
                yield from self._answer(text)
            case CallDelta(index=index, name=name, arguments=arguments):
                if name:
                    yield from self._end_item()
                    self._kind, self._item_id = "call", self._ids.next_id("fc")
                    self._call = (self._head.call_id(index), name)
                    begun = _done_call(self._item_id, *self._call, "") | {"status": "in_progress"}
                    yield self._event("response.output_item.added", output_index=self._place, item=begun)
                if arguments:
                    yield from self._add(arguments, "response.function_call_arguments.delta")
            case Called(call=None, is_finished=True) if self._kind != "call":
                yield from self._answer(unreadable_call(item))
            case Called(is_finished=True):
                yield from self._end_item()

    def wait(self) -> Frame:
        return WAITING

    def end(self, answer: WrittenAnswer) -> Iterator[Frame]:
        if self._kind == "call":
            self._kind = ""  # the answer was cut off within it, so it is no call
        yield from self._end_item()
        response = _response(self._head, answer, self._items)
        yield self._event(f"response.{response['status']}", response=response)

    def fail(self, refused: Refused) -> Iterable[Frame]:
        error = error_body(refused, "openai")["error"]
        failed = _response(self._head, None, self._items) | {
            "status": "failed",
            "error": {"code": refused.code or "server_error", "message": error["message"]},
        }
        return (self._event("response.failed", response=failed),)

    @property
    def _place(self) -> int:
        return len(self._items)

    def _answer(self, text: str) -> Iterator[Frame]:
        yield from self._to_text("message", "msg")
        yield from self._add(text, "response.output_text.delta")

    def _to_text(self, kind: str, prefix: str) -> Iterator[Frame]:
        """Begin an item of text, unless one of that kind is open."""
        if self._kind == kind:
            return
        yield from self._end_item()
        self._kind, self._item_id = kind, self._ids.next_id(prefix)
        done = _done_reasoning(self._item_id, "") if kind == "reasoning" else _done_message(self._item_id, "")
        part = done["content"][0]
        begun = done | {"content": [], "status": "in_progress"}
        yield self._event("response.output_item.added", output_index=self._place, item=begun)
        yield self._event("response.content_part.added", **self._where(), part=part)

    def _add(self, text: str, event: str) -> Iterator[Frame]:
        self._text.append(text)
        where = self._where()
        if self._kind == "call":
            del where["content_index"]
        elif self._kind == "message":
            where["logprobs"] = []
        yield self._event(event, **where, delta=text)

    def _end_item(self) -> Iterator[Frame]:
        text, kind, where = "".join(self._text), self._kind, self._where()
        self._text, self._kind = [], ""
        match kind:
            case "reasoning":
                done = _done_reasoning(self._item_id, text)
                yield self._event("response.reasoning_text.done", **where, text=text)
                yield self._event("response.content_part.done", **where, part=done["content"][0])
            case "message":
                done = _done_message(self._item_id, text)
                yield self._event("response.output_text.done", **where, text=text, logprobs=[])
                yield self._event("response.content_part.done", **where, part=done["content"][0])
            case "call":
                done = _done_call(self._item_id, *self._call, text)
                del where["content_index"]
                yield self._event("response.function_call_arguments.done", **where, name=self._call[1], arguments=text)
            case _:
                return
        yield self._event("response.output_item.done", output_index=self._place, item=done)
        self._items.append(done)

    def _where(self) -> dict[str, Any]:
        return {"item_id": self._item_id, "output_index": self._place, "content_index": 0}

    def _event(self, kind: str, **fields: Any) -> StreamEvent:
        self._number += 1
        return StreamEvent({"type": kind, "sequence_number": self._number, **fields}, kind)


def _done_reasoning(item_id: str, text: str) -> dict[str, Any]:
    content = [{"type": "reasoning_text", "text": text}]
    return {"id": item_id, "type": "reasoning", "summary": [], "content": content, "status": "completed"}


def _done_message(item_id: str, text: str) -> dict[str, Any]:
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    return {"id": item_id, "type": "message", "role": "assistant", "content": [part], "status": "completed"}


def _done_call(item_id: str, call_id: str, name: str, arguments: str) -> dict[str, Any]:
    return {
        "id": item_id,
        "type": "function_call",
        "call_id": call_id,
        "name": name,
        "arguments": arguments,
        "status": "completed",
    }


def _response(head: AnswerHead, answer: WrittenAnswer | None, items: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the response object; `answer` is None while it is written."""
    question = head.question
    is_cut = answer is not None and answer.stop_reason in ("max_tokens", "context_full")
    status = "in_progress" if answer is None else "incomplete" if is_cut else "completed"
    return {
        "id": f"resp_{head.key}",
        "object": "response",
        "created_at": head.created_s,
        "status": status,
        "error": None,
        "incomplete_details": {"reason": "max_output_tokens"} if is_cut else None,
        "instructions": None,
        "metadata": {},
        "model": head.model,
        "output": list(items),
        "parallel_tool_calls": bool(question.changes.get("parallel_tool_calls", True)),
        "temperature": question.changes.get("temperature"),
        "top_p": question.changes.get("top_p"),
        "max_output_tokens": question.changes.get("max_tokens"),
        "tool_choice": "required" if question.must_call else "auto" if question.may_call else "none",
        "tools": [_tool(text) for text in question.tools_json],
        "store": False,
        "usage": None if answer is None else _usage(answer.stats),
    }


def _tool(definition_json: str) -> dict[str, Any]:
    function = decode_json(definition_json)["function"]
    return {"type": "function", "strict": False, **function}


def _usage(stats: AnswerStats) -> dict[str, Any]:
    output = stats.reasoning_tokens + stats.answer_tokens
    return {
        "input_tokens": stats.prompt_tokens,
        "input_tokens_details": {"cached_tokens": stats.reused_tokens, "cache_write_tokens": 0},
        "output_tokens": output,
        "output_tokens_details": {"reasoning_tokens": stats.reasoning_tokens},
        "total_tokens": stats.prompt_tokens + output,
    }
