"""Short texts that stand for others while a chat template runs, so that it cannot look into or change them."""

import re
import secrets
import string
from collections.abc import Sequence
from typing import Literal

import msgspec

from qwendesk.core.messages import ImagePart

TurnKind = Literal["system", "user_turn"]
"""The boundary a user or tool message begins with: the first user message's is the end of the system prompt."""


class Hidden(msgspec.Struct, frozen=True, kw_only=True):
    """What a stand-in stands for: text, or one picture."""

    text: str = ""
    picture: ImagePart | None = None
    opens_turn: TurnKind | None = None
    """Set when a user or tool message begins with this."""
    role: Literal["message", "reasoning", "typed"] = "typed"
    """Content of a message, an earlier thought, or a special token's text that somebody typed."""


class StandIns:
    """The stand-ins of one rendering. Their names are drawn at random each time, so nobody can type one.

    Letters in both cases are for texts: a template that changes texts (upper case, say) destroys such a name, which
    shows. Digits are for what must come through such a template unharmed.
    """

    def __init__(self) -> None:
        self._letters = "xX" + "".join(secrets.choice(string.ascii_letters) for _ in range(20))
        self._digits = "".join(secrets.choice(string.digits) for _ in range(30))
        self._name = re.compile(f"(?:{self._letters}|{self._digits})([0-9]{{8}})")
        self._hidden: list[Hidden] = []

    def fragile(self, hidden: Hidden) -> str:
        """A name that does not survive a change of case."""
        return self._letters + self._number(hidden)

    def sturdy(self, hidden: Hidden) -> str:
        """A name that survives a change of case."""
        return self._digits + self._number(hidden)

    def split(self, rendered: str) -> list[str | Hidden]:
        """What was rendered, in order: the template's own text, and what the stand-ins in it stand for."""
        pieces: list[str | Hidden] = list(self._name.split(rendered))
        pieces[1::2] = [self._hidden[int(str(number))] for number in pieces[1::2]]
        return [piece for piece in pieces if piece]

    def left_damaged(self, pieces: Sequence[str | Hidden]) -> bool:
        """Whether the template's own text has a fragile name in it that was changed."""
        name = self._letters.lower()
        return any(isinstance(piece, str) and name in piece.lower() for piece in pieces)

    def _number(self, hidden: Hidden) -> str:
        self._hidden.append(hidden)
        return f"{len(self._hidden) - 1:08d}"
