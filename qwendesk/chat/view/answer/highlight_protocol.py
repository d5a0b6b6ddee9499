"""The protocol between the window and its highlighter process: one JSON object per line. No Qt, no Pygments.

The process writes an empty line when it is ready. Then it gets one request at a time and writes one result for each.
"""

import re

import msgspec

# The theme role of code without a colour of its own.
PLAIN = "code_text"
# Maximum length of a line. Code with longer lines stays plain: many lexers take quadratic or cubic time for them.
MAX_LINE_LENGTH = 500
# Maximum number of characters. Longer code stays plain.
MAX_CODE_LENGTH = 24_000

# Surrogates, which JSON cannot represent.
_SURROGATE = re.compile("[\ud800-\udfff]")


class ColourRun(msgspec.Struct, frozen=True, gc=False):
    """A run of code in one colour: its number of characters and its theme role."""

    length: int
    role: str


class HighlightRequest(msgspec.Struct, frozen=True):
    """Code to highlight. The process exits if that takes longer than `limit_s`."""

    code: str
    language: str
    limit_s: float


class Highlighted(msgspec.Struct, frozen=True):
    """Runs that together make up the code. The first `settled_length` characters keep their colours."""

    runs: tuple[ColourRun, ...]
    settled_length: int = 0

    @property
    def length(self) -> int:
        """Number of characters the runs cover."""
        return sum(run.length for run in self.runs)


def plain(code: str) -> Highlighted:
    """Return `code` without colours."""
    return Highlighted((ColourRun(len(code), PLAIN),) if code else ())


def is_highlightable(code: str) -> bool:
    """Return whether `code` is text that is short enough, as a whole and in each line, to be highlighted."""
    is_short = len(code) <= MAX_CODE_LENGTH and all(len(line) <= MAX_LINE_LENGTH for line in code.split("\n"))
    return is_short and _SURROGATE.search(code) is None
