"""Reads requests of Anthropic's messages."""

from collections.abc import Iterator, Sequence

from qwendesk.core.messages import Part, TextPart
from qwendesk.server.content import read_content, read_reasoning
from qwendesk.server.fields import Fields, encode_json
from qwendesk.server.question import ANY_TOOL, ClientMessage, Question, arranged, function_json, message, tool_call
from qwendesk.server.sampling_fields import read_format, read_sampling, read_stop_texts
from qwendesk.server.thinking_fields import read_thinking

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
