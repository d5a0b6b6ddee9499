"""OpenAI's chat completions: reads their requests and writes their answers."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from qwendesk import __version__
from qwendesk.core.stats import AnswerStats
from qwendesk.engine.contract import AnswerItem
from qwendesk.engine.protocol import AnswerToken, CallDelta, Called, Delta, TokenLogprob
from qwendesk.server.answer import AnswerHead, Comment, Frame, StreamEvent, WrittenAnswer, unreadable_call
from qwendesk.server.content import picture, read_content, read_reasoning
from qwendesk.server.fields import Fields, encode_json
from qwendesk.server.question import ANY_TOOL, ClientMessage, Question, arranged, function_json, message, tool_call
from qwendesk.server.refusals import Refused, error_body
from qwendesk.server.sampling_fields import read_format, read_sampling, read_stop_texts, read_thinking

# What OpenAI writes for a token that can't come; JSON has no infinity.
_LEAST = -9999.0


def chat_logprobs(question: Question, tokens: Sequence[AnswerToken]) -> dict[str, Any] | None:
    """Return the value of a choice's logprobs in chat completions; None if the client didn't ask."""
    if question.n_logprobs < 0:
        return None
    content = [_token(each) | {"top_logprobs": [_token(other) for other in each.likeliest]} for each in tokens]
    return {"content": content, "refusal": None}


def completion_logprobs(question: Question, tokens: Sequence[AnswerToken], n_before: int = 0) -> dict[str, Any] | None:
    """Return the same for completions. `n_before` characters of the answer came before these tokens."""
    if question.n_logprobs < 0:
        return None
    texts, offsets = [_text(each) for each in tokens], []
    for text in texts:
        offsets.append(n_before)
        n_before += len(text)
    return {
        "tokens": texts,
        "token_logprobs": [_logprob(each) for each in tokens],
        "top_logprobs": [{_text(other): _logprob(other) for other in each.likeliest} for each in tokens],
        "text_offset": offsets,
    }


def _token(token: TokenLogprob) -> dict[str, Any]:
    return {"token": _text(token), "logprob": _logprob(token), "bytes": list(token.token)}


def _text(token: TokenLogprob) -> str:
    return token.token.decode("utf-8", "replace")


def _logprob(token: TokenLogprob) -> float:
    return max(token.logprob, _LEAST)


# The limit of OpenAI's API for top_logprobs.
MOST_LOGPROBS = 20


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


DONE = StreamEvent("[DONE]")
# What OpenAI has to tell whether two answers with one seed can be compared.
FINGERPRINT = f"qwendesk-{__version__}"
WAITING = Comment("no answer yet")


def finish_reason(answer: WrittenAnswer) -> str:
    """Return OpenAI's word for the end of an answer."""
    if answer.stop_reason in ("max_tokens", "context_full"):
        return "length"
    return "tool_calls" if answer.calls_tools else "stop"


def usage(stats: AnswerStats) -> dict[str, Any]:
    """Return the token counts of an answer, with those of llama-server's timings that clients show."""
    completion = stats.reasoning_tokens + stats.answer_tokens
    return {
        "prompt_tokens": stats.prompt_tokens,
        "completion_tokens": completion,
        "total_tokens": stats.prompt_tokens + completion,
        "prompt_tokens_details": {"cached_tokens": stats.reused_tokens},
        "completion_tokens_details": {"reasoning_tokens": stats.reasoning_tokens},
    }


def timings(stats: AnswerStats) -> dict[str, Any]:
    """Return the speeds as llama-server reports them."""
    completion = stats.reasoning_tokens + stats.answer_tokens
    return {
        "cache_n": stats.reused_tokens,
        "prompt_n": stats.reread_tokens,
        "prompt_ms": stats.prefill_s * 1000,
        "prompt_per_second": stats.reread_tokens / stats.prefill_s if stats.prefill_s else 0.0,
        "predicted_n": completion,
        "predicted_ms": stats.decode_s * 1000,
        "predicted_per_second": stats.decode_tok_s,
    }


def chat_body(head: AnswerHead, answer: WrittenAnswer) -> dict[str, Any]:
    """Return the body of an answer that isn't streamed."""
    message: dict[str, Any] = {"role": "assistant", "content": answer.text if answer.text or not answer.calls else None}
    if answer.reasoning:
        message["reasoning_content"] = answer.reasoning
    if answer.calls:
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments_json}}
            for call in answer.calls
        ]
    logprobs = chat_logprobs(head.question, answer.logprobs)
    choice = {"index": 0, "message": message, "logprobs": logprobs, "finish_reason": finish_reason(answer)}
    return {
        "id": f"chatcmpl-{head.key}",
        "object": "chat.completion",
        "created": head.created_s,
        "model": head.model,
        "system_fingerprint": FINGERPRINT,
        "choices": [choice],
        "usage": usage(answer.stats),
        "timings": timings(answer.stats),
    }


class ChatWriter:
    """Writes one answer as chunks."""

    def __init__(self, head: AnswerHead) -> None:
        self._head = head
        self._begun_calls: set[int] = set()

    def begin(self) -> Iterator[Frame]:
        yield self._chunk({"role": "assistant", "content": ""})

    def write(self, item: AnswerItem) -> Iterator[Frame]:
        match item:
            case Delta(kind="reasoning", text=text):
                yield self._chunk({"reasoning_content": text})
            case Delta(text=text, logprobs=tokens):
                yield self._chunk({"content": text}, logprobs=chat_logprobs(self._head.question, tokens))
            case CallDelta(index=index, name=name, arguments=arguments):
                call: dict[str, Any] = {"index": index, "function": {"arguments": arguments}}
                if name:
                    self._begun_calls.add(index)
                    call |= {"id": self._head.call_id(index), "type": "function"}
                    call["function"] = {"name": name, "arguments": arguments}
                yield self._chunk({"tool_calls": [call]})
            case Called(call=None, is_finished=True) if item.index not in self._begun_calls:
                yield self._chunk({"content": unreadable_call(item)})

    def wait(self) -> Frame:
        return WAITING

    def end(self, answer: WrittenAnswer) -> Iterator[Frame]:
        yield self._chunk({}, finish_reason(answer))
        if self._head.question.include_usage:
            last = self._base() | {"choices": [], "usage": usage(answer.stats), "timings": timings(answer.stats)}
            yield StreamEvent(last)
        yield DONE

    def fail(self, refused: Refused) -> Iterable[Frame]:
        return (StreamEvent(error_body(refused, "openai")), DONE)

    def _base(self) -> dict[str, Any]:
        return {
            "id": f"chatcmpl-{self._head.key}",
            "object": "chat.completion.chunk",
            "created": self._head.created_s,
            "model": self._head.model,
            "system_fingerprint": FINGERPRINT,
        }

    def _chunk(
        self, delta: dict[str, Any], reason: str | None = None, logprobs: dict[str, Any] | None = None
    ) -> StreamEvent:
        choice = {"index": 0, "delta": delta, "logprobs": logprobs, "finish_reason": reason}
        return StreamEvent(self._base() | {"choices": [choice]})
