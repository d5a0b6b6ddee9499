"""Render a conversation with its chat template. Message texts are hidden from the template or made harmless."""

import re
import secrets
import string
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal

import msgspec

from qwendesk.core.errors import BadRequest
from qwendesk.core.json_decoding import decode_json, whole_characters
from qwendesk.core.messages import ImagePart, Message, ToolCall
from qwendesk.core.translation import mark
from qwendesk.engine.worker.template import ChatTemplate, TemplateTooCostly

# Where a template may write characters directly before or after a text, which could complete a special token.
AdjacentText = Literal["nothing", "either end", "both ends at once"]


class SpecialTexts:
    """The texts of a vocabulary's special tokens, longest first: llama.cpp searches for them in this order."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.texts = tuple(sorted(set(texts) - {""}, key=lambda text: (-len(text.encode()), text)))

    def cut(self, text: str) -> list[tuple[str, bool]]:
        """Split `text` into fragments, and say for each whether it is one of the special texts. No fragment is empty.

        All occurrences of the longest text are cut out first, then those of the next longest in the rest.
        """
        fragments = [(text, False)] if text else []
        for special in self.texts:
            if special in text:
                fragments = [piece for fragment in fragments for piece in _cut_one(fragment, special)]
        return fragments

    def split_inert(self, text: str) -> list[str]:
        """Split `text` into as few fragments as possible so that none of them contains a whole special text.

        Each special text is cut after its first character, so one of a single character cannot be made inert.
        """
        present = [special for special in self.texts if special in text]
        if not present:
            return [text]
        # A lookahead finds overlapping special texts too.
        starts = re.finditer(f"(?={'|'.join(map(re.escape, present))})", text)
        cuts = [0, *(match.start() + 1 for match in starts), len(text)]
        return [text[start:end] for start, end in pairwise(cuts) if start < end]

    def weak_spots(self, text: str, adjacent: AdjacentText) -> set[int]:
        """Return the indexes of the characters in `text` that must be hidden so that it forms no special text.

        That holds in upper and lower case, for `text` alone and for `text` with the template's text around it.
        """
        folded = fold(text)
        present = [special for special in self._folded if special in folded]
        spots: set[int] = set()
        if present:
            spots.update(match.start() for match in re.finditer(f"(?={'|'.join(map(re.escape, present))})", folded))
        if adjacent == "nothing" or not folded:
            return spots
        reach = min(len(folded), max(map(len, self._folded), default=0))
        spots.update(at for at in range(len(folded) - reach, len(folded)) if folded[at:] in self._beginnings)
        spots.update(next(([n - 1] for n in range(1, reach + 1) if folded[:n] in self._endings), []))
        if adjacent == "both ends at once" and any(folded in special for special in self._folded):
            spots.add(0)
        return spots

    @cached_property
    def _folded(self) -> tuple[str, ...]:
        return tuple(map(fold, self.texts))

    @cached_property
    def _beginnings(self) -> frozenset[str]:
        return frozenset(text[:n] for text in self._folded for n in range(1, len(text)))

    @cached_property
    def _endings(self) -> frozenset[str]:
        return frozenset(text[n:] for text in self._folded for n in range(1, len(text)))


def fold(text: str) -> str:
    """Return `text` without case distinctions. Each character is folded by itself, so the length does not change."""
    if text.isascii():
        return text.lower()
    return "".join(folded if len(folded := char.upper().casefold()) == 1 else char for char in text)


def _cut_one(fragment: tuple[str, bool], special: str) -> Iterable[tuple[str, bool]]:
    text, is_special = fragment
    if is_special or special not in text:
        yield fragment
        return
    first, *others = text.split(special)
    if first:
        yield first, False
    for other in others:
        yield special, True
        if other:
            yield other, False


# The end of Unicode's last private-use area, which icon fonts do not use.
_FIRST_MARK, _LAST_MARK = 0x10A000, 0x10FFFD
_MARK = re.compile(f"[{chr(_FIRST_MARK)}-{chr(_LAST_MARK)}]")
_NUMBER_LENGTH = 8

# The boundary at the start of a user or tool message. That of the first user message ends the system prompt.
TurnKind = Literal["system", "user_turn", "tool_turn"]


class HiddenContent(msgspec.Struct, frozen=True, kw_only=True):
    """What a placeholder replaces: a text or an image. It can also be empty and only mark a position."""

    text: str = ""
    picture: ImagePart | None = None
    opens_turn: TurnKind | None = None
    """Set if a user or tool message begins with this."""
    role: Literal["message", "reasoning", "other"] = "other"
    """True if this is content of a message, earlier reasoning, or anything else."""


class Placeholders:
    """The placeholders of one rendering.

    A whole text is replaced by a random name, which nobody can guess and type. The name has letters in both cases, so
    that a template that changes texts (to upper case, for example) damages it, which can be detected. If texts are not
    hidden, single characters, positions and images are each replaced by one private-use character, which such a
    template leaves unchanged. A typed character of that range gets a placeholder too, so it cannot be mistaken for one.
    """

    def __init__(self) -> None:
        self._name = "xX" + "".join(secrets.choice(string.ascii_letters) for _ in range(20))
        self._by_name: list[HiddenContent] = []
        self._by_mark: list[HiddenContent] = []
        self._characters: dict[str, str] = {}

    def name(self, hidden: HiddenContent) -> str:
        """Return a name for `hidden` that a template cannot change without being detected."""
        self._by_name.append(hidden)
        return f"{self._name}{len(self._by_name) - 1:0{_NUMBER_LENGTH}d}"

    def mark(self, hidden: HiddenContent) -> str:
        """Return one private-use character for `hidden`. Raise BadRequest if none is left."""
        if len(self._by_mark) > _LAST_MARK - _FIRST_MARK:
            raise BadRequest(
                mark("Too many pictures"), mark("This chat has more pictures than a prompt can hold. Remove some.")
            )
        self._by_mark.append(hidden)
        return chr(_FIRST_MARK + len(self._by_mark) - 1)

    def protect(self, text: str, spots: set[int]) -> str:
        """Replace the characters of `text` at `spots`, and any that look like placeholders, by placeholders."""
        spots = spots.union(match.start() for match in _MARK.finditer(text))
        if not spots:
            return text
        characters = list(text)
        for spot in spots:
            characters[spot] = self._character(characters[spot])
        return "".join(characters)

    def split(self, rendered: str) -> list[str | HiddenContent]:
        """Split a template's output, in order, into the text of the template and what the placeholders replaced."""
        first, *others = rendered.split(self._name)
        pieces = self._split_marks(first)
        for other in others:
            number, rest = other[:_NUMBER_LENGTH], other[_NUMBER_LENGTH:]
            if number.isdecimal() and len(number) == _NUMBER_LENGTH:
                pieces += [self._by_name[int(number)], *self._split_marks(rest)]
            else:
                pieces.append(self._name + other)
        return [piece for piece in pieces if piece]

    def has_damaged_names(self, pieces: Sequence[str | HiddenContent]) -> bool:
        """Return whether the template changed a name, such as its case, so that `split` did not recognize it."""
        name = self._name.lower()
        return any(isinstance(piece, str) and name in piece.lower() for piece in pieces)

    def _character(self, character: str) -> str:
        if character not in self._characters:
            self._characters[character] = self.mark(HiddenContent(text=character))
        return self._characters[character]

    def _split_marks(self, text: str) -> list[str | HiddenContent]:
        pieces: list[str | HiddenContent] = []
        end = 0
        for match in _MARK.finditer(text):
            index = ord(match[0]) - _FIRST_MARK
            if index < len(self._by_mark):  # otherwise the template itself wrote this character
                pieces += [text[end : match.start()], self._by_mark[index]]
                end = match.end()
        return [*pieces, text[end:]]


PICTURE_TOKENS = ("<|vision_start|>", "<|image_pad|>", "<|vision_end|>")
# What Qwen's templates, and the built-in one, write for an image among a message's parts.
_PICTURE = "".join(PICTURE_TOKENS)

PicturesAs = Literal["parts", "text"]

# Text that the template wrote, or something hidden that is put back.
RenderedPiece = str | HiddenContent


class RenderedConversation(msgspec.Struct, frozen=True):
    """A rendered conversation.

    If not `texts_are_hidden`, the text pieces contain the messages' texts too, with one character of each special token
    in them hidden.
    """

    pieces: tuple[RenderedPiece, ...]
    texts_are_hidden: bool


def render_conversation(
    template: ChatTemplate,
    messages: Sequence[Message],
    *,
    tools_json: Sequence[str],
    typed: SpecialTexts,
    variables: Mapping[str, Any],
) -> RenderedConversation:
    """Render `messages` in the first way that works with `template`.

    Every ordinary template works with texts hidden as a whole and images as parts. Templates that do not support images
    get them as text. Templates that change, repeat or reorder texts get the texts themselves, with only the special
    tokens in `typed` made harmless. Raise BadRequest if no way works.
    """
    has_pictures = any(message.images for message in messages)
    ways: tuple[PicturesAs, ...] = ("parts", "text") if has_pictures else ("text",)
    failure = BadRequest(
        mark("The chat template leaves out a picture"), mark("Choose another template, or remove the picture.")
    )
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
                    return RenderedConversation(tuple(pieces), hide_texts)
    raise failure


class _Attempt:
    """One way to pass a conversation to a template."""

    def __init__(self, typed: SpecialTexts, *, hide_texts: bool, pictures_as: PicturesAs) -> None:
        self._typed = typed
        self._hide_texts = hide_texts
        self._pictures_as = pictures_as
        self._placeholders = Placeholders()
        self._pictures: list[HiddenContent] = []
        self._expected: list[HiddenContent] = []
        """Each of these must be in the output exactly once, in this order."""
        self._turn_texts: list[tuple[str, TurnKind]] = []
        """The texts at the start of user and tool messages, if texts are not hidden."""
        self._open_calls: list[tuple[str, str]] = []
        self._n_calls = 0

    def render(
        self,
        template: ChatTemplate,
        messages: Sequence[Message],
        tools_json: Sequence[str],
        variables: Mapping[str, Any],
    ) -> list[RenderedPiece] | None:
        """Return the pieces in order, or None if this way does not work with the template. Raise BadRequest."""
        first_user = next((i for i, message in enumerate(messages) if message.role == "user"), -1)
        kinds: dict[str, TurnKind] = {"user": "user_turn", "tool": "tool_turn"}
        turns: list[TurnKind | None] = [
            "system" if i == first_user else kinds.get(message.role) for i, message in enumerate(messages)
        ]
        rendered = template.render(
            [self._message(message, turn) for message, turn in zip(messages, turns, strict=True)],
            tools=[self._definition(text) for text in tools_json] or None,
            add_generation_prompt=True,
            variables=variables,
        )
        pieces = self._placeholders.split(self._mark_turns(rendered))
        if self._pictures_as == "parts":
            n_shown = sum(piece.count(_PICTURE) for piece in pieces if isinstance(piece, str))
            if n_shown != len(self._pictures):
                return None
            pieces = list(self._insert_pictures(pieces))
        return pieces if self._is_complete(pieces) else None

    def _is_complete(self, pieces: Sequence[RenderedPiece]) -> bool:
        """Return whether the template left nothing out and changed, repeated or moved nothing."""
        hidden = [piece for piece in pieces if isinstance(piece, HiddenContent)]
        if not self._hide_texts:
            return {id(picture) for picture in self._pictures} <= {id(piece) for piece in hidden}
        in_order = [id(piece) for piece in hidden if piece.role == "message"]
        reasonings = [id(piece) for piece in hidden if piece.role == "reasoning"]
        return (
            in_order == [id(piece) for piece in self._expected]
            and len(reasonings) == len(set(reasonings))
            and not self._placeholders.has_damaged_names(pieces)
        )

    def _mark_turns(self, rendered: str) -> str:
        """Mark the starts of turns in `rendered`, but only where the turn's first text occurs exactly once."""
        places = {rendered.index(text): kind for text, kind in self._turn_texts if rendered.count(text) == 1}
        pieces, end = [], 0
        for place in sorted(places):
            pieces += [rendered[end:place], self._placeholders.mark(HiddenContent(opens_turn=places[place]))]
            end = place
        return "".join([*pieces, rendered[end:]])

    def _insert_pictures(self, pieces: Sequence[RenderedPiece]) -> Iterator[RenderedPiece]:
        """Yield `pieces` with the conversation's images in place of the text that the template writes for an image."""
        pictures = iter(self._pictures)
        for piece in pieces:
            if isinstance(piece, HiddenContent):
                yield piece
                continue
            before, *others = piece.split(_PICTURE)
            yield before
            for other in others:
                yield next(pictures)
                yield other

    def _message(self, message: Message, turn: TurnKind | None) -> dict[str, Any]:
        """Return the message in the form that templates expect."""
        passed: dict[str, Any] = {"role": message.role, "content": self._content(message, turn)}
        if message.role == "assistant" and (reasoning := whole_characters(message.reasoning).strip()):
            passed["reasoning_content"] = self._text(reasoning, "reasoning", None)
        if message.tool_calls:
            passed["tool_calls"] = [self._call(call) for call in message.tool_calls]
        if message.role == "tool" and self._open_calls:
            passed["tool_call_id"], passed["name"] = self._open_calls.pop(0)
        return passed

    def _content(self, message: Message, turn: TurnKind | None) -> str | list[dict[str, str]]:
        parts: list[tuple[bool, str]] = []
        for part in _trim_parts(message):
            opens = None if parts else turn
            if isinstance(part, str):
                parts.append((False, self._text(part, "message", opens)))
                continue
            in_text = self._pictures_as == "text"
            picture = HiddenContent(picture=part, opens_turn=opens, role="message" if in_text else "other")
            self._pictures.append(picture)
            if in_text:
                self._expected.append(picture)
            parts.append((True, self._placeholders.mark(picture) if in_text else ""))
        if self._pictures_as == "text" or not message.images:
            return "".join(text for _, text in parts)
        return [{"type": "image"} if is_picture else {"type": "text", "text": text} for is_picture, text in parts]

    def _text(self, text: str, role: Literal["message", "reasoning"], opens: TurnKind | None) -> str:
        """Return what the template gets instead of a text of a message."""
        if not self._hide_texts:
            passed = self._protect(text, "either end")
            if opens:
                self._turn_texts.append((passed, opens))
            return passed
        hidden = HiddenContent(text=text, opens_turn=opens, role=role)
        if role == "message":
            self._expected.append(hidden)
        return self._placeholders.name(hidden)

    def _call(self, call: ToolCall) -> dict[str, Any]:
        """Return the call in the form of the OpenAI API, with an object of arguments and an id made of its number."""
        self._n_calls += 1
        call_id, name = f"call{self._n_calls:05d}", self._protect(whole_characters(call.name), "both ends at once")
        self._open_calls.append((call_id, name))
        arguments = _read_object(
            call.arguments_json or "{}",
            f"A call of the tool {call.name}",
            lambda text: self._protect(whole_characters(text), "both ends at once"),
        )
        return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}

    def _definition(self, tool_json: str) -> Any:
        # Templates compare texts of a definition with words such as "object", and write them in quotes, as JSON.
        return _read_object(
            tool_json, "A tool's definition", lambda text: self._protect(whole_characters(text), "nothing")
        )

    def _protect(self, text: str, adjacent: AdjacentText) -> str:
        """Hide those characters of `text` without which it cannot form a special token."""
        return self._placeholders.protect(text, self._typed.weak_spots(text, adjacent))


def _trim_parts(message: Message) -> list[str | ImagePart]:
    """Return the parts of a message with adjacent texts joined and both ends stripped; empty parts are left out."""
    parts: list[str | ImagePart] = []
    for part in message.parts:
        if isinstance(part, ImagePart):
            parts.append(part)
        elif parts and isinstance(parts[-1], str):
            parts[-1] += whole_characters(part.text)
        else:
            parts.append(whole_characters(part.text))
    if parts and isinstance(parts[0], str):
        parts[0] = parts[0].lstrip()
    if parts and isinstance(parts[-1], str):
        parts[-1] = parts[-1].rstrip()
    return [part for part in parts if part != ""]


def _read_object(text: str, what: str, change: Callable[[str], str]) -> Any:
    """Parse a JSON object and apply `change` to every string and key in it. Raise BadRequest if that fails."""
    try:
        value = decode_json(text)
        changed = _map_texts(value, change)
    except msgspec.DecodeError as error:
        raise BadRequest(mark("Invalid tool"), mark("{0} can't be read as JSON: {1}."), what, error) from error
    if not isinstance(value, dict):
        raise BadRequest(mark("Invalid tool"), mark("{0} isn't a JSON object."), what)
    return changed


def _map_texts(value: Any, change: Callable[[str], str]) -> Any:
    match value:
        case str():
            return change(value)
        case list():
            return [_map_texts(item, change) for item in value]
        case dict():
            return {change(key): _map_texts(item, change) for key, item in value.items()}
        case _:
            return value
