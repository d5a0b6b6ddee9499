"""Chats as the text the model reads, written by the model's own chat template, with the parts it has to learn."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jinja2

from tools.demo_model.chats import Chat, Message
from tools.demo_model.tool_use import TOOLS

TEMPLATE = (Path(__file__).parent / "chat_template.jinja").read_text(encoding="utf-8")
_COMPILED = jinja2.Environment().from_string(TEMPLATE)

Piece = tuple[str, bool]
"""A text, and whether the model has to learn to write it."""

# Marks around the model's earlier answers while the template runs; no text of ours holds them.
_OPEN, _CLOSE = "\ue000", "\ue001"
_ANSWER = re.compile(f"{_OPEN}(.*?){_CLOSE}(<\\|im_end\\|>)?", re.DOTALL)


def pieces(chat: Chat, *, thinking: bool) -> list[Piece]:
    """The whole text of `chat`, in pieces: the last answer to be learnt with its thought, the earlier ones without.

    With `thinking` off the last answer has no thought, and the prompt says so.
    """
    *earlier, last = chat.messages
    given = [_as_given(message, _OPEN + message.text + _CLOSE, message.thought) for message in earlier]
    prompt = _written(chat, given, add_generation_prompt=True, enable_thinking=thinking)
    answer = _as_given(last, last.text, last.thought if thinking else "")
    whole = _written(chat, [*given, answer], add_generation_prompt=False)
    if not whole.startswith(prompt):
        raise ValueError(f"The template writes an answer differently from its prompt: {whole!r}")
    return [*_marked(prompt), (whole[len(prompt) :].rstrip("\n"), True)]


def _as_given(message: Message, answer: str, thought: str) -> dict[str, Any]:
    """The message as templates expect it; `answer` and `thought` are what it says if it is the model's."""
    given: dict[str, Any] = {"role": message.role, "content": message.text}
    if message.has_picture:
        given["content"] = [{"type": "image"}, {"type": "text", "text": message.text}]
    if message.role == "assistant":
        given["content"] = answer if message.text else ""
        given["reasoning_content"] = thought
    if message.call:
        call = {"name": message.call.name, "arguments": message.call.arguments}
        given["tool_calls"] = [{"type": "function", "function": call}]
    return given


def _written(chat: Chat, messages: list[dict[str, Any]], **variables: object) -> str:
    system = [{"role": "system", "content": chat.system}] if chat.system else []
    tools = [tool_definition(name) for name in chat.tools] or None
    return _COMPILED.render(messages=[*system, *messages], tools=tools, **variables)


def call_text(message: Message) -> str:
    """What the model writes to call a tool, "" for a message that calls none."""
    if not message.call:
        return ""
    (text, _) = pieces(Chat((Message("user", "?"), message)), thinking=False)[-1]
    return text.removesuffix("<|im_end|>")


def tool_definition(name: str) -> Mapping[str, Any]:
    """The tool in the form of OpenAI's API."""
    properties = {parameter: {"type": "string"} for parameter in TOOLS[name]}
    parameters = {"type": "object", "properties": properties, "required": list(properties)}
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


def _marked(prompt: str) -> list[Piece]:
    found: list[Piece] = []
    at = 0
    for answer in _ANSWER.finditer(prompt):
        found += [(prompt[at : answer.start()], False), (answer[1] + (answer[2] or ""), True)]
        at = answer.end()
    return [*found, (prompt[at:], False)]
