"""What one rendering of a chat template may use, and the meter that says when it has."""

import time
from collections.abc import Collection
from typing import Any

import msgspec

from qwendesk.core.errors import BadRequest

MAX_NUMBER_BITS = 65_536


class TemplateLimits(msgspec.Struct, frozen=True):
    """What one rendering may use. Texts are measured in characters."""

    value_chars: int = 32 * 1024**2
    """The longest text, the whole output included."""
    total_chars: int = 512 * 1024**2
    """All texts made by joining, repeating and padding together."""
    items: int = 1_000_000
    """The longest list, and the most values inside one that is written out."""
    seconds: float = 10.0


class TemplateTooCostly(BadRequest):
    """The template asked for more memory or time than a prompt can need; rendering again is no use."""

    def __init__(self, what: str) -> None:
        super().__init__("The chat template asks for too much", f"It was stopped because it {what}.")


class Meter:
    """What one rendering has used so far. Every method raises TemplateTooCostly when that is too much."""

    def __init__(self, limits: TemplateLimits) -> None:
        self._limits = limits
        self._deadline = time.monotonic() + limits.seconds
        self._made_chars = 0

    def tick(self) -> None:
        """Look at the clock."""
        if time.monotonic() > self._deadline:
            raise TemplateTooCostly(f"ran for more than {self._limits.seconds:g} seconds")

    def allow_chars(self, n_chars: int) -> None:
        """Ask before a text of at most `n_chars` is made."""
        self._made_chars += max(0, n_chars)
        if n_chars > self._limits.value_chars or self._made_chars > self._limits.total_chars:
            raise TemplateTooCostly("makes texts too long for any prompt")
        self.tick()

    def allow_items(self, n_items: int) -> None:
        """Ask before a list of `n_items` is made."""
        if n_items > self._limits.items:
            raise TemplateTooCostly("makes lists too long for any prompt")
        self.tick()

    def allow_number(self, n_bits: int) -> None:
        """Ask before a whole number of `n_bits` is made."""
        if n_bits > MAX_NUMBER_BITS:
            raise TemplateTooCostly("computes with numbers too large for any prompt")

    def shown_chars(self, value: Any) -> int:
        """About the length of `value` written out as text, however its parts are nested or shared."""
        if isinstance(value, str):
            return len(value)
        n_chars, n_items = 0, 0
        waiting = [value]
        while waiting:
            part = waiting.pop()
            if isinstance(part, str):
                n_chars += len(part) + 4
            elif isinstance(part, int):
                n_chars += part.bit_length() // 3 + 4
            elif isinstance(part, Collection) and not isinstance(part, range):
                n_items += len(part)
                self.allow_items(n_items)
                n_chars += 2
                waiting.extend(part)
                if isinstance(part, dict):
                    waiting.extend(part.values())
            else:
                n_chars += 64
        return n_chars
