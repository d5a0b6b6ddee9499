"""Reads requests of Anthropic's messages."""

from collections.abc import Iterator, Sequence
from typing import Any

from qwendesk.core.messages import Part, TextPart
from qwendesk.server.fields import Fields, encode_json
from qwendesk.server.pictures import picture_from_base64
from qwendesk.server.question import ANY_TOOL, ClientMessage, Question, arranged, function_json, message, tool_call
from qwendesk.server.sampling_fields import read_effort, read_format, read_sampling, read_stop_texts

_BILLING_HEADER = "x-anthropic-billing-header"
"""How a block begins that Claude Code puts before its system prompt. It differs in each request, so the whole prompt
would be processed again each time; a model has no use for it.
"""


def read_messages_request(body: Fields) -> Question:
    """Return the question. Raise Refused for what is wrong or can't be done."""
    body.required("messages")
    sent = [ClientMessage(message("system", tuple(_system(body))))]
    sent += [each for number in body.objects("messages") for each in _messages(number)]
    if len(sent) == 1:
        raise body.refuse("messages", "messages is empty.")
    tools = tuple(_tools(body))
    may_call, must_call, parallel = _tool_choice(body, [name for name, _ in tools])
    thinking, changes = _thinking(body)
    changes |= read_sampling(body, "max_tokens") | read_stop_texts(body, "stop_sequences")
    changes["parallel_tool_calls"] = parallel
    return Question(
        messages=arranged(sent),
        model=body.text("model"),
        tools_json=tuple(text for _, text in tools),
        may_call=may_call,
        must_call=must_call,
        thinking=thinking,
        changes=changes,
        stream=body.flag("stream"),
    )


def _system(body: Fields) -> Iterator[Part]:
    """Yield the texts of the system prompt, with an empty line between them."""
    if isinstance(body.any("system"), str):
        yield TextPart(body.text("system"))
        return
    texts = (block.text("text") for block in body.objects("system"))
    kept = [text for text in texts if not text.startswith(_BILLING_HEADER)]
    yield TextPart("\n\n".join(kept))


def _messages(sent: Fields) -> Iterator[ClientMessage]:
    """Yield a message as several, where it has results of tools and other things."""
    role = sent.text("role")
    if role not in ("user", "assistant", "system"):
        raise sent.refuse("role", f'{sent.path("role")} must be user or assistant, not "{role}".')
    if isinstance(sent.any("content"), str):
        yield ClientMessage(message(role, (TextPart(sent.text("content")),)))
        return
    blocks = list(sent.objects("content"))
    if role == "assistant":
        yield _answer(blocks)
        return
    for block in blocks:
        if block.text("type") == "tool_result":
            yield ClientMessage(message("tool", _parts_of(block, "content")), answers=block.text("tool_use_id"))
    parts = tuple(part for block in blocks for part in _parts(block))
    if parts or not blocks:
        yield ClientMessage(message(role, parts))


def _answer(blocks: Sequence[Fields]) -> ClientMessage:
    calls = [block for block in blocks if block.text("type") == "tool_use"]
    reasoning = "".join(block.text("thinking") for block in blocks if block.text("type") == "thinking")
    made = (tool_call(call.text("name"), encode_json(call.object("input").value)) for call in calls)
    return ClientMessage(
        message(
            "assistant",
            tuple(part for block in blocks for part in _parts(block)),
            reasoning=reasoning,
            tool_calls=tuple(made),
        ),
        call_ids=tuple(call.text("id") for call in calls),
    )


def _parts_of(block: Fields, name: str) -> tuple[Part, ...]:
    if isinstance(block.any(name), str):
        return (TextPart(block.text(name)),)
    return tuple(part for inner in block.objects(name) for part in _parts(inner))


def _parts(block: Fields) -> Iterator[Part]:
    """Yield the text or the picture of a block, and nothing for blocks of other kinds."""
    match block.text("type"):
        case "text":
            yield TextPart(block.text("text"))
        case "image":
            source = block.object("source")
            if source.text("type") != "base64":
                raise source.refuse("type", "Only pictures in base64 are read. QwenDesk fetches no addresses.")
            yield picture_from_base64(source.text("data"), source.path("data"))
        case "document":
            source = block.object("source")
            if source.text("type") != "text":
                raise source.refuse("type", "Only documents of plain text are read. Send the text of the document.")
            yield TextPart(f"{block.text('title')}\n{source.text('data')}\n".lstrip())


def _tools(body: Fields) -> Iterator[tuple[str, str]]:
    """Yield name and definition of each tool of the client; those that run on Anthropic's servers are left out."""
    for tool in body.objects("tools"):
        if tool.text("type", "custom") == "custom":
            tool.required("name")
            name = tool.text("name")
            yield name, function_json(name, tool.text("description"), tool.any("input_schema"))


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


def _thinking(body: Fields) -> tuple[bool, dict[str, Any]]:
    """Return whether to think, and the options. As with Anthropic's models, only a request that asks for it has it."""
    thinking, output = body.object("thinking"), body.object("output_config")
    thinks = thinking.text("type", "disabled") != "disabled"
    changes: dict[str, Any] = {}
    if (budget := thinking.whole("budget_tokens")) is not None and thinks:
        if budget < 1:
            raise thinking.refuse("budget_tokens", f"{thinking.path('budget_tokens')} must be at least 1.")
        changes["thinking_budget"] = budget
    _, effort = read_effort(output.text("effort"))
    form = output.object("format") if output.has("format") else body.object("output_format")
    return thinks, changes | effort | read_format(form, form)
