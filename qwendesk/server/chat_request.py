"""Reads requests of OpenAI's chat completions."""

from collections.abc import Iterator, Sequence
from typing import Any

from qwendesk.server.content import read_content, read_reasoning
from qwendesk.server.fields import Fields, encode_json
from qwendesk.server.pictures import picture
from qwendesk.server.question import ANY_TOOL, ClientMessage, Question, arranged, function_json, message, tool_call
from qwendesk.server.sampling_fields import read_format, read_sampling, read_stop_texts
from qwendesk.server.thinking_fields import read_thinking

MOST_LOGPROBS = 20
"""The limit of OpenAI's API for top_logprobs."""


def read_chat_request(body: Fields) -> Question:
    """Return the question. Raise Refused for what is wrong or can't be done."""
    refuse_unsupported(body)
    body.required("messages")
    sent = [each for number in body.objects("messages") for each in _messages(number)]
    if not sent:
        raise body.refuse("messages", "messages is empty.")
    tools = tuple(_tools(body))
    may_call, must_call = read_tool_choice(body, [name for name, _ in tools])
    thinking = read_thinking(body)
    changes = thinking.changes | read_sampling(body, "max_tokens", "max_completion_tokens", "n_predict", "num_predict")
    changes |= read_stop_texts(body, "stop")
    changes |= read_format(body.object("response_format"))
    changes["parallel_tool_calls"] = body.flag("parallel_tool_calls", default=True)
    return Question(
        messages=arranged(sent),
        model=body.text("model"),
        tools_json=tuple(text for _, text in tools),
        may_call=may_call,
        must_call=must_call,
        thinking=thinking.is_on,
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


def _messages(sent: Fields) -> Iterator[ClientMessage]:
    role = sent.text("role")
    pictures = (picture(text, sent.path("images")) for text in sent.texts("images"))
    parts = (*pictures, *read_content(sent, "content"))
    match role:
        case "system" | "developer":
            yield ClientMessage(message("system", parts))
        case "user":
            yield ClientMessage(message("user", parts))
        case "assistant":
            calls = list(sent.objects("tool_calls"))
            for call in calls:
                call.any("type")
            functions = [call.object("function") for call in calls]
            yield ClientMessage(
                message(
                    "assistant",
                    parts,
                    reasoning=read_reasoning(sent, "content"),
                    tool_calls=tuple(tool_call(each.text("name"), _arguments(each)) for each in functions),
                ),
                call_ids=tuple(call.text("id") for call in calls),
            )
        case "tool" | "function":
            yield ClientMessage(message("tool", parts), answers=sent.text("tool_call_id"))
        case _:
            raise sent.refuse("role", f'{sent.path("role")} must be system, user, assistant or tool, not "{role}".')


def _arguments(function: Fields) -> str:
    """Return the arguments of a call as JSON. Ollama's clients send them as an object."""
    value = function.any("arguments")
    return encode_json(value) if isinstance(value, dict) else function.text("arguments")


def _tools(body: Fields) -> Iterator[tuple[str, str]]:
    """Yield name and definition of each function; tools of other kinds run elsewhere."""
    for tool in body.objects("tools"):
        if tool.text("type", "function") != "function":
            tool.drop()
            continue
        function = tool.object("function")
        function.required("name")
        name = function.text("name")
        yield name, function_json(name, function.text("description"), function.any("parameters"))
