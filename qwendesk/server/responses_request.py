"""Reads requests of OpenAI's responses."""

from collections.abc import Iterator
from typing import Any

import msgspec

from qwendesk.core.messages import Message, TextPart, ToolCall
from qwendesk.server.chat_request import read_tool_choice, refuse_unsupported
from qwendesk.server.content import read_content, read_reasoning
from qwendesk.server.fields import Fields
from qwendesk.server.question import ClientMessage, Question, arranged, function_json, message, tool_call
from qwendesk.server.sampling_fields import read_format, read_sampling, read_stop_texts
from qwendesk.server.thinking_fields import read_thinking


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
