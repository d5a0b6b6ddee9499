"""Reads requests of OpenAI's chat completions."""

from collections.abc import Iterator, Sequence
from typing import Any

from qwendesk.core.messages import Part, TextPart
from qwendesk.server.fields import Fields
from qwendesk.server.pictures import picture_from_url
from qwendesk.server.question import ANY_TOOL, ClientMessage, Question, arranged, function_json, message, tool_call
from qwendesk.server.sampling_fields import read_effort, read_format, read_sampling, read_stop_texts

MOST_LOGPROBS = 20
"""The limit of OpenAI's API for top_logprobs."""
_TEXT_PARTS = ("text", "input_text", "output_text", "refusal")


def read_chat_request(body: Fields) -> Question:
    """Return the question. Raise Refused for what is wrong or can't be done."""
    refuse_unsupported(body)
    body.required("messages")
    sent = [each for number in body.objects("messages") for each in _messages(number)]
    if not sent:
        raise body.refuse("messages", "messages is empty.")
    tools = tuple(_tools(body))
    may_call, must_call = read_tool_choice(body, [name for name, _ in tools])
    thinking, changes = _thinking(body)
    response_format = body.object("response_format")
    changes |= read_sampling(body, "max_tokens", "max_completion_tokens", "n_predict")
    changes |= read_stop_texts(body, "stop")
    changes |= read_format(response_format, response_format.object("json_schema"))
    changes["parallel_tool_calls"] = body.flag("parallel_tool_calls", default=True)
    return Question(
        messages=arranged(sent),
        model=body.text("model"),
        tools_json=tuple(text for _, text in tools),
        may_call=may_call,
        must_call=must_call,
        thinking=thinking,
        changes=changes,
        n_logprobs=_n_logprobs(body),
        stream=body.flag("stream"),
        include_usage=body.object("stream_options").flag("include_usage"),
    )


def refuse_unsupported(body: Fields) -> None:
    """Raise Refused for fields of OpenAI's APIs that change the answer in a way that the engine can't."""
    if (body.whole("n") or 1) != 1 or (body.whole("best_of") or 1) != 1:
        raise body.refuse("n", "QwenDesk gives one answer to a request. Leave n out, or ask again for another answer.")
    if body.has("functions"):
        raise body.refuse("functions", "functions is the old form of tools. Send tools instead.")
    if "audio" in body.list("modalities"):
        raise body.refuse("modalities", "The model writes text only.")


def check_n_logprobs(body: Fields, name: str) -> int:
    """Return how many of the likeliest tokens a field asks for; 0 if it is left out. Raise Refused."""
    number = body.whole(name) or 0
    if not 0 <= number <= MOST_LOGPROBS:
        raise body.refuse(name, f"{body.path(name)} takes numbers from 0 to {MOST_LOGPROBS}.")
    return number


def _n_logprobs(body: Fields) -> int:
    number = check_n_logprobs(body, "top_logprobs")
    if body.flag("logprobs"):
        return number
    if number:
        raise body.refuse("top_logprobs", "top_logprobs needs logprobs to be true.")
    return -1


def read_tool_choice(body: Fields, names: Sequence[str]) -> tuple[bool, str]:
    """Return whether a tool may be called, and which must be, as in Question."""
    choice = body.any("tool_choice")
    if isinstance(choice, dict):
        form = body.object("tool_choice")
        if form.text("type") == "allowed_tools":
            allowed = form.object("allowed_tools") if form.has("allowed_tools") else form
            return _named_choice(body, allowed.text("mode", "auto"), names)
        name = form.object("function").text("name") or form.text("name")
        if name not in names:
            raise body.refuse("tool_choice", f'tool_choice names "{name}", which is not a function among tools.')
        return True, name
    return _named_choice(body, "auto" if choice is None else choice, names)


def _named_choice(body: Fields, choice: Any, names: Sequence[str]) -> tuple[bool, str]:
    if choice not in ("auto", "none", "required"):
        raise body.refuse("tool_choice", 'tool_choice must be "auto", "none", "required" or name a function.')
    if choice == "required" and not names:
        raise body.refuse("tool_choice", "tool_choice requires a call, but tools has no function.")
    return choice != "none", ANY_TOOL if choice == "required" else ""


def read_parts(body: Fields, name: str) -> Iterator[Part]:
    """Yield the parts of a content: a text, or a list of texts and pictures."""
    content = body.any(name)
    if content is None:
        return
    if isinstance(content, str):
        yield TextPart(content)
        return
    for part in body.objects(name):
        kind = part.text("type", "text")
        if kind in _TEXT_PARTS:
            yield TextPart(part.text("refusal" if kind == "refusal" else "text"))
        elif kind in ("image_url", "input_image"):
            is_object = isinstance(part.any("image_url"), dict)
            url = part.object("image_url").text("url") if is_object else part.text("image_url")
            yield picture_from_url(url, part.path("image_url"))
        else:
            raise part.refuse("type", f'Parts of the type "{kind}" can\'t be read. Send text and pictures.')


def _messages(sent: Fields) -> Iterator[ClientMessage]:
    role = sent.text("role")
    parts = tuple(read_parts(sent, "content"))
    match role:
        case "system" | "developer":
            yield ClientMessage(message("system", parts))
        case "user":
            yield ClientMessage(message("user", parts))
        case "assistant":
            calls = list(sent.objects("tool_calls"))
            functions = [call.object("function") for call in calls]
            yield ClientMessage(
                message(
                    "assistant",
                    parts,
                    reasoning=sent.text("reasoning_content") or _reasoning(sent),
                    tool_calls=tuple(tool_call(each.text("name"), each.text("arguments")) for each in functions),
                ),
                call_ids=tuple(call.text("id") for call in calls),
            )
        case "tool" | "function":
            yield ClientMessage(message("tool", parts), answers=sent.text("tool_call_id"))
        case _:
            raise sent.refuse("role", f'{sent.path("role")} must be system, user, assistant or tool, not "{role}".')


def _reasoning(sent: Fields) -> str:
    """Return the reasoning under the name that some clients use instead; there it may also be a list of details."""
    return sent.text("reasoning") if isinstance(sent.any("reasoning"), str) else ""


def _tools(body: Fields) -> Iterator[tuple[str, str]]:
    """Yield name and definition of each function; tools of other kinds run elsewhere."""
    for tool in body.objects("tools"):
        if tool.text("type", "function") != "function":
            continue
        function = tool.object("function")
        function.required("name")
        name = function.text("name")
        yield name, function_json(name, function.text("description"), function.any("parameters"))


def _thinking(body: Fields) -> tuple[bool | None, dict[str, Any]]:
    """Return whether to think, and the options: from the API's own field, or from the template's variables."""
    thinking, changes = read_effort(body.text("reasoning_effort") or body.object("reasoning").text("effort"))
    template = body.object("chat_template_kwargs")
    if template.has("enable_thinking"):
        thinking = template.flag("enable_thinking")
    if template.has("preserve_thinking"):
        changes["preserve_thinking"] = template.flag("preserve_thinking")
    effort_thinks, effort = read_effort(template.text("reasoning_effort"))
    return (thinking if effort_thinks is None else effort_thinks), changes | effort
