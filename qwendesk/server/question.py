"""Question: what a client asks, in whichever API's words."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from qwendesk.core.json_decoding import decode_json
from qwendesk.core.messages import Message, Part, TextPart, ToolCall
from qwendesk.core.think_tags import split_answer, without_think_tags
from qwendesk.engine.protocol import Stage
from qwendesk.server.fields import encode_json

# The value of `must_call` if any tool will do.
ANY_TOOL = "*"


class ClientMessage(msgspec.Struct, frozen=True):
    """A message as a client sent it, with the ids by which it names calls."""

    message: Message
    call_ids: tuple[str, ...] = ()
    """Those of the message's calls, in order."""
    answers: str = ""
    """The id of the call whose result this is."""
    stage: Stage = ""
    """Progress of an answer whose reasoning stood in its text, as in the engine's Begun."""


class Question(msgspec.Struct, frozen=True, kw_only=True):
    messages: tuple[ClientMessage, ...] = ()
    prompt: str = ""
    """A text to continue without the chat template, in place of messages."""
    model: str = ""
    tools_json: tuple[str, ...] = ()
    may_call: bool = True
    must_call: str = ""
    """As in the engine's Generate request."""
    thinking: bool | None = None
    """None if the client did not say."""
    changes: Mapping[str, Any] = {}
    """Fields of GenerationOptions that the client sets."""
    n_logprobs: int = -1
    """As in the engine's Generate request."""
    stream: bool = False
    include_usage: bool = True
    """True if a stream of chat completions ends with the usage."""


def message(role: str, parts: Sequence[Part], **values: Any) -> Message:
    """Return a message of that role, without empty texts."""
    kept = tuple(part for part in parts if not isinstance(part, TextPart) or part.text)
    return Message(role=role, parts=kept, **values)  # type: ignore[arg-type]


def arranged(messages: Sequence[ClientMessage]) -> tuple[ClientMessage, ...]:
    """Return the messages as chat templates want them.

    There is one system message of text at the beginning; what a client says as the system later on counts as the user's
    words, and so do pictures of the system. The results of several calls come in the order of the calls. Reasoning that
    stands in the text of an answer is split off.
    """
    n_system = next((i for i, each in enumerate(messages) if each.message.role != "system"), len(messages))
    texts = (each.message.text for each in messages[:n_system])
    system = "\n\n".join(text for text in texts if text.strip())
    first = (ClientMessage(message("system", (TextPart(system),))),) if system else ()
    images = tuple(image for each in messages[:n_system] for image in each.message.images)
    others = [_without_tags(_not_system(each)) for each in messages[n_system:]]
    return (*first, *_with_results_in_order(_with_images(others, images)))


def function_json(name: str, description: str, parameters: Any) -> str:
    """Return a tool's definition as chat templates get it."""
    described = {"description": description} if description else {}
    schema = parameters if isinstance(parameters, dict) else {"type": "object", "properties": {}}
    return encode_json({"type": "function", "function": {"name": name, **described, "parameters": schema}})


def tool_call(name: str, arguments: str) -> ToolCall:
    """Return an earlier call. Arguments that are not an object, as of a call that was cut off, are kept as a text."""
    try:
        value = decode_json(arguments or "{}")
    except msgspec.DecodeError:
        value = None
    return ToolCall(name, (arguments or "{}") if isinstance(value, dict) else encode_json({"arguments": arguments}))


def _not_system(sent: ClientMessage) -> ClientMessage:
    if sent.message.role != "system":
        return sent
    return msgspec.structs.replace(sent, message=msgspec.structs.replace(sent.message, role="user"))


def _without_tags(sent: ClientMessage) -> ClientMessage:
    """Return an answer with the reasoning that its text has between tags as its reasoning."""
    answer = without_think_tags(sent.message)
    if answer is sent.message:
        return sent
    stage: Stage = ""  # most often, the texts tell
    if not answer.text:
        has_ended = split_answer(sent.message.text).has_ended_thinking
        stage = "answering" if has_ended else "" if answer.reasoning else "thinking"
    return msgspec.structs.replace(sent, message=answer, stage=stage)


def _with_images(messages: Sequence[ClientMessage], images: Sequence[Part]) -> list[ClientMessage]:
    """Return the messages with `images` before the first words of the user."""
    if not images:
        return list(messages)
    first = next((index for index, sent in enumerate(messages) if sent.message.role == "user"), None)
    if first is None:
        return [ClientMessage(message("user", images)), *messages]
    question = messages[first].message
    shown = msgspec.structs.replace(question, parts=(*images, *question.parts))
    return [*messages[:first], msgspec.structs.replace(messages[first], message=shown), *messages[first + 1 :]]


def _with_results_in_order(messages: Sequence[ClientMessage]) -> Iterator[ClientMessage]:
    """Yield the messages, with each run of results sorted by the order of the calls before it."""
    order: dict[str, int] = {}
    index = 0
    while index < len(messages):
        run = index
        while run < len(messages) and messages[run].message.role == "tool":
            run += 1
        if run > index:
            yield from sorted(messages[index:run], key=lambda sent: order.get(sent.answers, len(order)))
            index = run
            continue
        order = {call_id: number for number, call_id in enumerate(messages[index].call_ids)}
        yield messages[index]
        index += 1
