"""Limits on the memory and time of one rendering of a chat template, and the meter that enforces them."""

import time
from collections.abc import Collection
from typing import Any

import msgspec

from qwendesk.core.errors import BadRequest
from qwendesk.core.translation import mark

MAX_NUMBER_BITS = 65_536
TEXT_TOO_LONG = mark("It was stopped because it makes texts too long for any prompt.")


class TemplateSandboxLimits(msgspec.Struct, frozen=True):
    """How much one rendering may use."""

    value_chars: int = 32 * 1024**2
    """Characters of the longest text, and of the whole output."""
    total_chars: int = 512 * 1024**2
    """Characters of all texts together that joining, repeating, padding and the like produce."""
    items: int = 1_000_000
    """Items of the longest list, and values inside a value that is written as text."""
    seconds: float = 10.0


class TemplateTooCostly(BadRequest):
    """The template needs more memory or time than any prompt should. Rendering it again does not help."""

    def __init__(self, sentence: str, *values: object) -> None:
        super().__init__(mark("The chat template asks for too much"), sentence, *values)


class Meter:
    """Measures what one rendering uses. Every method raises TemplateTooCostly if that is too much."""

    def __init__(self, limits: TemplateSandboxLimits) -> None:
        self._limits = limits
        self._deadline = time.monotonic() + limits.seconds
        self._made_chars = 0

    def tick(self) -> None:
        """Check the elapsed time."""
        if time.monotonic() > self._deadline:
            raise TemplateTooCostly(
                mark("It was stopped because it ran for more than {0} seconds."), f"{self._limits.seconds:g}"
            )

    def allow_chars(self, n_chars: int) -> None:
        """Check and count a text of up to `n_chars` characters before it is created."""
        self._made_chars += max(0, n_chars)
        if n_chars > self._limits.value_chars or self._made_chars > self._limits.total_chars:
            raise TemplateTooCostly(TEXT_TOO_LONG)
        self.tick()

    def allow_items(self, n_items: int) -> None:
        """Check a list of `n_items` before it is created."""
        if n_items > self._limits.items:
            raise TemplateTooCostly(mark("It was stopped because it makes lists too long for any prompt."))
        self.tick()

    def allow_number(self, n_bits: int) -> None:
        """Check an integer of `n_bits` before it is computed."""
        if n_bits > MAX_NUMBER_BITS:
            raise TemplateTooCostly(mark("It was stopped because it computes with numbers too large for any prompt."))

    def shown_chars(self, value: Any) -> int:
        """Return the approximate length of `value` as text. Values that it contains several times count each time."""
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
