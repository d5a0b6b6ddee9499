"""A conversation through its chat template, with the texts hidden from the template or at least made harmless."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from qwendesk.core.errors import BadRequest
from qwendesk.core.messages import ImagePart, Message, ToolCall
from qwendesk.engine.worker.literals import Beside, Literals
from qwendesk.engine.worker.stand_ins import Hidden, StandIns, TurnKind
from qwendesk.engine.worker.template import ChatTemplate, TemplateTooCostly

PICTURE_TOKENS = ("<|vision_start|>", "<|image_pad|>", "<|vision_end|>")
_PICTURE = "".join(PICTURE_TOKENS)
"""How Qwen's templates, and ours, show a picture among a message's parts."""

PicturesAs = Literal["parts", "text"]

RenderedPiece = str | Hidden
"""The template's own text, or something hidden that is put back."""


class Rendered(msgspec.Struct, frozen=True):
    """A rendered conversation. Where not `texts_are_hidden`, the pieces of text hold the messages' texts too, with
    one character hidden of each special token in them.
    """

    pieces: tuple[RenderedPiece, ...]
    texts_are_hidden: bool


def render_conversation(
    template: ChatTemplate,
    messages: Sequence[Message],
    *,
    tools_json: Sequence[str],
    typed: Literals,
    variables: Mapping[str, Any],
) -> Rendered:
    """`messages` rendered in the first way that `template` copes with.

    Texts hidden whole, and pictures as parts, is what every ordinary template takes. Pictures as text of their own
    are for templates that know none; texts with only the `typed` special tokens broken are for templates that change,
    repeat or reorder texts. Raises BadRequest when no way works.
    """
    has_pictures = any(message.images for message in messages)
    ways: tuple[PicturesAs, ...] = ("parts", "text") if has_pictures else ("text",)
    failure = BadRequest("The chat template leaves out a picture", "Choose another template or remove the picture.")
    for hide_texts in (True, False):
        for pictures_as in ways:
            attempt = _Attempt(typed, hide_texts=hide_texts, pictures_as=pictures_as)
            try:
                pieces = attempt.render(template, messages, tools_json, variables)
            except TemplateTooCostly:
                raise
            except BadRequest as error:
                failure = error
            else:
                if pieces is not None:
                    return Rendered(tuple(pieces), hide_texts)
    raise failure


class _Attempt:
    """One way of handing a conversation to a template."""

    def __init__(self, typed: Literals, *, hide_texts: bool, pictures_as: PicturesAs) -> None:
        self._typed = typed
        self._hide_texts = hide_texts
        self._pictures_as = pictures_as
        self._stand_ins = StandIns()
        self._pictures: list[Hidden] = []
        self._expected: list[Hidden] = []
        """What must come back once each and in this order."""
        self._turn_texts: list[tuple[str, TurnKind]] = []
        """Texts, not hidden, that user and tool messages begin with."""
        self._open_calls: list[tuple[str, str]] = []
        self._n_calls = 0

    def render(
        self,
        template: ChatTemplate,
        messages: Sequence[Message],
        tools_json: Sequence[str],
        variables: Mapping[str, Any],
    ) -> list[RenderedPiece] | None:
        """The pieces in order; None when the template does not cope with this way. Raises BadRequest."""
        first_user = next((i for i, message in enumerate(messages) if message.role == "user"), -1)
        turns: list[TurnKind | None] = [
            "system" if i == first_user else "user_turn" if message.role in ("user", "tool") else None
            for i, message in enumerate(messages)
        ]
        rendered = template.render(
            [self._message(message, turn) for message, turn in zip(messages, turns, strict=True)],
            tools=[self._definition(text) for text in tools_json] or None,
            add_generation_prompt=True,
            variables=variables,
        )
        pieces = self._stand_ins.split(self._with_turns_marked(rendered))
        if self._pictures_as == "parts":
            n_shown = sum(piece.count(_PICTURE) for piece in pieces if isinstance(piece, str))
            if n_shown != len(self._pictures):
                return None
            pieces = list(self._with_pictures(pieces))
        return pieces if self._is_whole(pieces) else None

    def _is_whole(self, pieces: Sequence[RenderedPiece]) -> bool:
        """Whether nothing that should be there is missing, changed, doubled or moved."""
        hidden = [piece for piece in pieces if isinstance(piece, Hidden)]
        if not self._hide_texts:
            return {id(picture) for picture in self._pictures} <= {id(piece) for piece in hidden}
        in_order = [id(piece) for piece in hidden if piece.role == "message"]
        thoughts = [id(piece) for piece in hidden if piece.role == "reasoning"]
        return (
            in_order == [id(piece) for piece in self._expected]
            and len(thoughts) == len(set(thoughts))
            and not self._stand_ins.left_damaged(pieces)
        )

    def _with_turns_marked(self, rendered: str) -> str:
        """`rendered` with the starts of turns marked that can be told for certain: texts that occur once."""
        places = {rendered.index(text): kind for text, kind in self._turn_texts if rendered.count(text) == 1}
        pieces, end = [], 0
        for place in sorted(places):
            pieces += [rendered[end:place], self._stand_ins.mark(Hidden(opens_turn=places[place]))]
            end = place
        return "".join([*pieces, rendered[end:]])

    def _with_pictures(self, pieces: Sequence[RenderedPiece]) -> Iterator[RenderedPiece]:
        """`pieces` with the conversation's pictures where the template shows one."""
        pictures = iter(self._pictures)
        for piece in pieces:
            if isinstance(piece, Hidden):
                yield piece
                continue
            before, *others = piece.split(_PICTURE)
            yield before
            for other in others:
                yield next(pictures)
                yield other

    def _message(self, message: Message, turn: TurnKind | None) -> dict[str, Any]:
        """The message as templates expect it."""
        given: dict[str, Any] = {"role": message.role, "content": self._content(message, turn)}
        if message.role == "assistant" and (reasoning := _clean(message.reasoning).strip()):
            given["reasoning_content"] = self._text(reasoning, "reasoning", None)
        if message.tool_calls:
            given["tool_calls"] = [self._call(call) for call in message.tool_calls]
        if message.role == "tool" and self._open_calls:
            given["tool_call_id"], given["name"] = self._open_calls.pop(0)
        return given

    def _content(self, message: Message, turn: TurnKind | None) -> str | list[dict[str, str]]:
        parts: list[tuple[bool, str]] = []
        for part in _trimmed(message):
            opens = None if parts else turn
            if isinstance(part, str):
                parts.append((False, self._text(part, "message", opens)))
                continue
            in_text = self._pictures_as == "text"
            picture = Hidden(picture=part, opens_turn=opens, role="message" if in_text else "other")
            self._pictures.append(picture)
            if in_text:
                self._expected.append(picture)
            parts.append((True, self._stand_ins.mark(picture) if in_text else ""))
        if self._pictures_as == "text" or not message.images:
            return "".join(text for _, text in parts)
        return [{"type": "image"} if is_picture else {"type": "text", "text": text} for is_picture, text in parts]

    def _text(self, text: str, role: Literal["message", "reasoning"], opens: TurnKind | None) -> str:
        """What the template gets for a text of a message."""
        if not self._hide_texts:
            given = self._harmless(text, "either end")
            if opens:
                self._turn_texts.append((given, opens))
            return given
        hidden = Hidden(text=text, opens_turn=opens, role=role)
        if role == "message":
            self._expected.append(hidden)
        return self._stand_ins.name(hidden)

    def _call(self, call: ToolCall) -> dict[str, Any]:
        """The call as the OpenAI interface has it, arguments as an object; its number stands in for an id."""
        self._n_calls += 1
        call_id, name = f"call{self._n_calls:05d}", self._harmless(_clean(call.name), "both ends at once")
        self._open_calls.append((call_id, name))
        arguments = _read_object(
            call.arguments_json or "{}",
            f"A call of the tool {call.name}",
            lambda text: self._harmless(_clean(text), "both ends at once"),
        )
        return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}

    def _definition(self, tool_json: str) -> Any:
        # Templates compare texts in a definition ("object") and write it as JSON, in quotes.
        return _read_object(tool_json, "A tool's definition", lambda text: self._harmless(_clean(text), "nothing"))

    def _harmless(self, text: str, beside: Beside) -> str:
        """`text` as it is, but for the characters without which no special token can come of it."""
        return self._stand_ins.protect(text, self._typed.weak_spots(text, beside))


def _trimmed(message: Message) -> list[str | ImagePart]:
    """The parts of a message: neighbouring texts joined, white space at both ends of the message gone, none empty."""
    parts: list[str | ImagePart] = []
    for part in message.parts:
        if isinstance(part, ImagePart):
            parts.append(part)
        elif parts and isinstance(parts[-1], str):
            parts[-1] += _clean(part.text)
        else:
            parts.append(_clean(part.text))
    if parts and isinstance(parts[0], str):
        parts[0] = parts[0].lstrip()
    if parts and isinstance(parts[-1], str):
        parts[-1] = parts[-1].rstrip()
    return [part for part in parts if part != ""]


def _clean(text: str) -> str:
    """`text` as it can be written in UTF-8: halves of surrogate pairs are joined, or replaced by U+FFFD."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _read_object(text: str, what: str, change: Callable[[str], str]) -> Any:
    """The JSON object that `text` is, with every text and every key in it changed. Raises BadRequest."""
    try:
        value = json.loads(text)
        changed = _change_texts(value, change)
    except (ValueError, RecursionError) as error:
        raise BadRequest("Broken tool", f"{what} cannot be read as JSON: {error}.") from error
    if not isinstance(value, dict):
        raise BadRequest("Broken tool", f"{what} is not a JSON object.")
    return changed


def _change_texts(value: Any, change: Callable[[str], str]) -> Any:
    match value:
        case str():
            return change(value)
        case list():
            return [_change_texts(item, change) for item in value]
        case dict():
            return {change(key): _change_texts(item, change) for key, item in value.items()}
        case _:
            return value
