"""Short texts that stand for others while a chat template runs, so that it cannot look into or change them."""

import re
import secrets
import string
from collections.abc import Sequence
from typing import Literal

import msgspec

from qwendesk.core.errors import BadRequest
from qwendesk.core.messages import ImagePart

_FIRST_MARK, _LAST_MARK = 0x10A000, 0x10FFFD
"""The end of Unicode's last private-use area, far from where icon fonts have their characters."""
_MARK = re.compile(f"[{chr(_FIRST_MARK)}-{chr(_LAST_MARK)}]")
_NUMBER_LENGTH = 8

TurnKind = Literal["system", "user_turn"]
"""The boundary a user or tool message begins with: the first user message's is the end of the system prompt."""


class Hidden(msgspec.Struct, frozen=True, kw_only=True):
    """What a stand-in stands for: text, or one picture, or only a place."""

    text: str = ""
    picture: ImagePart | None = None
    opens_turn: TurnKind | None = None
    """Set when a user or tool message begins with this."""
    role: Literal["message", "reasoning", "other"] = "other"
    """Whether it is content of a message, or an earlier thought."""


class StandIns:
    """The stand-ins of one rendering.

    A whole text is hidden behind a name drawn at random, so that nobody can type it. Its letters are in both cases: a
    template that changes texts (upper case, say) destroys the name, which shows. Where texts are not hidden, single
    characters, places and pictures are behind one private-use character each, which such a template leaves as it is.
    A character of that range that somebody typed gets a stand-in too, so these cannot be typed either.
    """

    def __init__(self) -> None:
        self._name = "xX" + "".join(secrets.choice(string.ascii_letters) for _ in range(20))
        self._by_name: list[Hidden] = []
        self._by_mark: list[Hidden] = []
        self._characters: dict[str, str] = {}

    def name(self, hidden: Hidden) -> str:
        """A name for `hidden` that a template cannot change unseen."""
        self._by_name.append(hidden)
        return f"{self._name}{len(self._by_name) - 1:0{_NUMBER_LENGTH}d}"

    def mark(self, hidden: Hidden) -> str:
        """One character for `hidden`."""
        if len(self._by_mark) > _LAST_MARK - _FIRST_MARK:
            raise BadRequest("Too many pictures", "The conversation has more pictures than a prompt can hold.")
        self._by_mark.append(hidden)
        return chr(_FIRST_MARK + len(self._by_mark) - 1)

    def protect(self, text: str, spots: set[int]) -> str:
        """`text` with the characters at `spots`, and any that could be taken for stand-ins, behind stand-ins."""
        spots = spots.union(match.start() for match in _MARK.finditer(text))
        if not spots:
            return text
        characters = list(text)
        for spot in spots:
            characters[spot] = self._character(characters[spot])
        return "".join(characters)

    def split(self, rendered: str) -> list[str | Hidden]:
        """What was rendered, in order: the template's own text, and what the stand-ins in it stand for."""
        first, *others = rendered.split(self._name)
        pieces = self._split_marks(first)
        for other in others:
            number, rest = other[:_NUMBER_LENGTH], other[_NUMBER_LENGTH:]
            if number.isdecimal() and len(number) == _NUMBER_LENGTH:
                pieces += [self._by_name[int(number)], *self._split_marks(rest)]
            else:
                pieces.append(self._name + other)
        return [piece for piece in pieces if piece]

    def left_damaged(self, pieces: Sequence[str | Hidden]) -> bool:
        """Whether the template's own text has a name in it that was changed."""
        name = self._name.lower()
        return any(isinstance(piece, str) and name in piece.lower() for piece in pieces)

    def _character(self, character: str) -> str:
        if character not in self._characters:
            self._characters[character] = self.mark(Hidden(text=character))
        return self._characters[character]

    def _split_marks(self, text: str) -> list[str | Hidden]:
        pieces: list[str | Hidden] = []
        end = 0
        for match in _MARK.finditer(text):
            index = ord(match[0]) - _FIRST_MARK
            if index < len(self._by_mark):  # else the template itself writes this character
                pieces += [text[end : match.start()], self._by_mark[index]]
                end = match.end()
        return [*pieces, text[end:]]
