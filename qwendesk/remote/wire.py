"""Requests in the form of OpenAI's chat completions, with pictures, in the dialect of each kind of server.

Not every server reads WebP or turns a photo as its EXIF data says, and the place where it was taken is nobody's
business. So every picture is decoded here and written anew. Frames of a clip are pictures with their times before them.
"""

import base64
import io
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from qwendesk.core.clips import parts_with_times
from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.json_decoding import decode_json
from qwendesk.core.messages import DocumentPart, ImagePart, Message, TextPart, ToolCall
from qwendesk.core.settings import table
from qwendesk.core.units import MIB
from qwendesk.decoding.images import decode_image
from qwendesk.engine.protocol import Begun, Generate
from qwendesk.remote.dialects import ServerDialect

_QUALITY: Final = 92
_MOST_KEPT_CHARACTERS: Final = 64 * MIB

# Returns the data URL of a picture. Blocks; raises BadRequest if the picture can't be read.
EncodePicture = Callable[[ImagePart], str]


class PictureEncoder:
    """Remembers the last pictures, because a chat sends its pictures again with every question. One thread at a time.

    Those of incognito chats, which come as bytes, are not remembered.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[str, str] = OrderedDict()
        self._n_characters = 0

    def data_url(self, part: ImagePart) -> str:
        """Return the picture as a data URL. Blocks. Raises BadRequest if it can't be read."""
        kept = self._kept.get(part.sha256) if part.sha256 and not part.data else None
        if kept is not None:
            self._kept.move_to_end(part.sha256)
            return kept
        url = _data_url(part)
        if part.sha256 and not part.data:
            self._kept[part.sha256] = url
            self._n_characters += len(url)
            while self._n_characters > _MOST_KEPT_CHARACTERS:
                _, dropped = self._kept.popitem(last=False)
                self._n_characters -= len(dropped)
        return url


def _data_url(part: ImagePart) -> str:
    from PIL import Image

    decoded = decode_image(Path(part.path), part.data or None)
    facts = decoded.facts
    image = Image.frombytes(facts.mode, (facts.pixel_width, facts.pixel_height), decoded.pixels)
    content = io.BytesIO()
    if facts.format == "JPEG" and facts.mode == "RGB":
        image.save(content, "JPEG", quality=_QUALITY)
        kind = "image/jpeg"
    else:
        image.save(content, "PNG")
        kind = "image/png"
    return f"data:{kind};base64,{base64.b64encode(content.getvalue()).decode('ascii')}"


def request_body(
    request: Generate, model: str, dialect: ServerDialect, picture: EncodePicture, *, can_think: bool
) -> dict[str, Any]:
    """Return the body of a streamed request. Reads picture files; blocks. Raises BadRequest if one can't be read.

    `can_think` is whether this model's thinking can be switched; if not, the model is left to itself.
    """
    options, begun = request.options, request.begun
    body: dict[str, Any] = {
        "model": model,
        "messages": [*wire_messages(request.messages, dialect, picture, keep_reasoning=options.preserve_thinking)],
        "stream": True,
        "stream_options": {"include_usage": True},
        **_sampling(options, dialect),
    }
    if request.tools_json:
        body["tools"] = [decode_json(tool) for tool in request.tools_json]
        body["tool_choice"] = _tool_choice(request)
        if request.may_call:
            body["parallel_tool_calls"] = options.parallel_tool_calls
    if options.json_schema.strip():
        schema = decode_json(options.json_schema)
        body["response_format"] = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
    if can_think:
        body |= _thinking(options, dialect)
    if "progress" in dialect.extras:
        body["return_progress"] = True
        body["cache_prompt"] = options.cache_prompt
    if begun is not None and not begun.is_empty:
        body |= _continuation(body["messages"], begun, dialect)
    return body


def wire_messages(
    messages: Sequence[Message], dialect: ServerDialect, picture: EncodePicture, *, keep_reasoning: bool
) -> Iterator[dict[str, Any]]:
    """Yield the messages. Reasoning of earlier turns is left out unless it is to be kept; that of tool rounds stays.

    Calls get ids by their number. A result whose call could not be read has no call that it could answer, so the
    results of such a step are passed on as a user's message.
    """
    last_question = max((index for index, each in enumerate(messages) if each.role == "user"), default=0)
    n_calls, index = 0, 0
    while index < len(messages):
        message = messages[index]
        written: dict[str, Any] = {"role": message.role, "content": _content(message, picture)}
        if message.role == "assistant" and message.reasoning and (keep_reasoning or index > last_question):
            written[dialect.reasoning_key] = message.reasoning
        index += 1
        if message.role != "assistant":
            yield written
            continue
        results = []
        while index < len(messages) and messages[index].role == "tool":
            results.append(messages[index].text)
            index += 1
        if len(results) != len(message.tool_calls):
            yield written
            yield {"role": "user", "content": "\n\n".join(f"Result of a tool:\n{each}" for each in results)}
            continue
        ids = [f"call_{n_calls + number}" for number in range(len(results))]
        n_calls += len(results)
        if ids:
            written["tool_calls"] = [_call(each, name) for each, name in zip(message.tool_calls, ids, strict=True)]
        yield written
        for name, result in zip(ids, results, strict=True):
            yield {"role": "tool", "tool_call_id": name, "content": result}


def _tool_choice(request: Generate) -> str | dict[str, Any]:
    if not request.may_call:
        return "none"
    if not request.must_call:
        return "auto"
    return "required" if request.must_call == "*" else {"type": "function", "function": {"name": request.must_call}}


def _call(call: ToolCall, name: str) -> dict[str, Any]:
    return {"id": name, "type": "function", "function": {"name": call.name, "arguments": call.arguments_json}}


def _content(message: Message, picture: EncodePicture) -> str | list[dict[str, Any]]:
    if not message.images:
        return message.for_engine().text
    timed = parts_with_times(message.for_engine().parts, in_pairs=False)
    return [_part(part, picture) for parts in timed for part in parts if not isinstance(part, DocumentPart)]


def _part(part: TextPart | ImagePart, picture: EncodePicture) -> dict[str, Any]:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    return {"type": "image_url", "image_url": {"url": picture(part)}}


def _sampling(options: GenerationOptions, dialect: ServerDialect) -> dict[str, Any]:
    named = {key: entry.setting.openai for key, entry in table(GenerationOptions).items() if entry.setting.openai}
    body: dict[str, Any] = {name: getattr(options, key) for key, name in named.items()}
    if options.seed < 0:
        del body["seed"]
    if options.stop:
        body["stop"] = [*options.stop]
    if options.max_tokens > 0:
        body["max_tokens"] = options.max_tokens
    for field, key in dialect.sampling.items():
        value = getattr(options, field)
        if value == "" or (field in ("penalty_last_n", "dry_penalty_last_n") and value == -1):
            continue  # the server's own default: for it -1 would count the prompt too
        if field == "top_k" and value == 0 and dialect.title in ("vLLM", "SGLang"):
            value = -1
        body[key] = value
    return body


def _thinking(options: GenerationOptions, dialect: ServerDialect) -> Mapping[str, Any]:
    if dialect.thinking == "effort":
        return {} if options.enable_thinking else {"reasoning_effort": "none"}
    if dialect.thinking != "template":
        return {}
    variables: dict[str, Any] = {"enable_thinking": options.enable_thinking}
    if options.preserve_thinking:
        variables["preserve_thinking"] = True
    if options.enable_thinking and options.reasoning_effort != "auto":
        variables["reasoning_effort"] = options.reasoning_effort
    body: dict[str, Any] = {"chat_template_kwargs": variables}
    if options.enable_thinking and "answer_now" in dialect.extras:
        body["reasoning_control"] = True
    if options.enable_thinking and options.thinking_budget >= 0 and "budget" in dialect.extras:
        body["thinking_budget_tokens"] = options.thinking_budget
        message = options.thinking_close.replace("</think>", "").strip()
        if message:
            body["reasoning_budget_message"] = message
    return body


def _continuation(messages: list[dict[str, Any]], begun: Begun, dialect: ServerDialect) -> Mapping[str, Any]:
    """Add the partial answer to the messages, and return what says that it is to be continued."""
    message: dict[str, Any] = {"role": "assistant", "content": begun.text}
    if begun.reasoning:
        message[dialect.reasoning_key] = begun.reasoning
    messages.append(message)
    if dialect.continues == "flag":
        return {"continue_final_message": True, "add_generation_prompt": False}
    field = "reasoning_content" if begun.thought_is_open else "content"
    return {"continue_final_message": field, "add_generation_prompt": False}
