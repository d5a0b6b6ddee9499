"""Short texts that replace other texts while a chat template runs, so that it cannot read or change them."""

import re
import secrets
import string
from collections.abc import Sequence
from typing import Literal

import msgspec

from qwendesk.core.errors import BadRequest
from qwendesk.core.messages import ImagePart
from qwendesk.core.translation import mark

_FIRST_MARK, _LAST_MARK = 0x10A000, 0x10FFFD
"""The end of Unicode's last private-use area, which icon fonts do not use."""
_MARK = re.compile(f"[{chr(_FIRST_MARK)}-{chr(_LAST_MARK)}]")
_NUMBER_LENGTH = 8

TurnKind = Literal["system", "user_turn", "tool_turn"]
"""The boundary at the start of a user or tool message. That of the first user message ends the system prompt."""


class HiddenContent(msgspec.Struct, frozen=True, kw_only=True):
    """What a placeholder replaces: a text or an image. It can also be empty and only mark a position."""

    text: str = ""
    picture: ImagePart | None = None
    opens_turn: TurnKind | None = None
    """Set if a user or tool message begins with this."""
    role: Literal["message", "reasoning", "other"] = "other"
    """Whether this is content of a message, earlier reasoning, or anything else."""


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
