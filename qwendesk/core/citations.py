"""Citations: the numbered places in files that a search gave the model, and what an answer's [1] stands for."""

import functools
import itertools
import re
from collections.abc import Iterable, Mapping
from typing import Final, Literal

import msgspec

from qwendesk.core.messages import CallRecord, ToolStep

# The tool whose results are numbered.
SEARCH: Final = "search_files"
# Stands before each line of a place, so that no file can make up a header.
INDENT: Final = "    "
# What a document is made of; "" for one that has no such parts.
Unit = Literal["page", "slide", "sheet", "chapter", ""]
_HEADER = re.compile(
    r"^\[(?P<number>\d{1,6})\] (?P<path>.+?), (?:(?P<unit>page|slide|sheet|chapter) (?P<at>\d{1,7}), )?"
    r"(?P<lines>lines|rows|paragraphs) (?P<first>\d{1,9})-(?P<last>\d{1,9})$",
    re.MULTILINE,
)
_MENTION = re.compile(r"\[(\d{1,6}(?:[,;] ?\d{1,6})*)\]")


class Citation(msgspec.Struct, frozen=True):
    """One place in a file."""

    number: int
    """Unique in the chat, from 1."""
    path: str
    """As the model and the user read it."""
    first: int
    """The first line, row or paragraph, from 1."""
    last: int
    lines: str = "lines"
    """Unit of `first` and `last`: "lines", "rows" or "paragraphs"."""
    unit: Unit = ""
    at: int = 0
    """Number of the page, slide, sheet or chapter, from 1; 0 if the file has none."""
    found: tuple[str, ...] = ()
    """The lines from `first` to `last` as the search gave them; the end of a long one may be "…"."""

    @property
    def place(self) -> str:
        """The file, and where in it, as the model reads it."""
        part = f"{self.unit} {self.at}, " if self.unit else ""
        return f"{self.path}, {part}{self.lines} {self.first}-{self.last}"

    @property
    def header(self) -> str:
        """The line that stands above the text of the place."""
        return f"[{self.number}] {self.place}"


class Source(msgspec.Struct, frozen=True):
    """A citation with the text around it."""

    citation: Citation
    lines: tuple[str, ...]
    first: int
    """Number of the first of `lines`."""
    cited: int = 0
    """The number that the first cited line has now; 0 if the file doesn't say that any more."""
    part: str = ""
    """Name of the sheet."""
    file: str = ""
    """Absolute path; "" if the file can't be read any more, and `lines` are those that the search found."""
    obstacle: str = ""
    """Reason why the file can't be read, in a sentence."""
    is_document: bool = False
    """True if it is a PDF or Office file, which another program opens without running it."""

    @property
    def has_page(self) -> bool:
        """Whether it is a page that can be drawn."""
        return self.is_document and self.citation.unit == "page"


@functools.lru_cache(maxsize=512)
def citations_in(result: str) -> tuple[Citation, ...]:
    """Return the places that a result of the search lists."""
    return tuple(
        Citation(
            number=int(found["number"]),
            path=found["path"],
            first=int(found["first"]),
            last=int(found["last"]),
            lines=found["lines"],
            unit=found["unit"] or "",  # type: ignore[arg-type]
            at=int(found["at"] or 0),
            found=_lines_below(result, found),
        )
        for found in _HEADER.finditer(result)
    )


def citations_of(steps: Iterable[ToolStep]) -> dict[int, Citation]:
    """Return the places that the model has found in these steps, by number."""
    records = (record for step in steps for record in step.calls)
    return {each.number: each for record in records for each in _of_record(record)}


def mentions(text: str) -> Iterable[tuple[int, int, int]]:
    """Yield start, end and number of what may be citations in a text, such as [1] and both numbers of [2, 3]."""
    for found in _MENTION.finditer(text):
        inner = re.finditer(r"\d+", found[1])
        numbers = [(found.start(1) + each.start(), found.start(1) + each.end(), int(each[0])) for each in inner]
        if len(numbers) == 1:
            yield found.start(), found.end(), numbers[0][2]
        else:
            yield from numbers


def cited_in(text: str, known: Mapping[int, Citation]) -> tuple[Citation, ...]:
    """Return the places that a text cites, by number."""
    numbers = {number for _, _, number in mentions(text)}
    return tuple(known[number] for number in sorted(numbers) if number in known)


def _lines_below(result: str, header: re.Match[str]) -> tuple[str, ...]:
    """Return the lines of a place. The name of a sheet, which may stand above them, is none of them."""
    block = itertools.takewhile(lambda line: line.startswith(INDENT), result[header.end() + 1 :].split("\n"))
    lines = [line.removeprefix(INDENT) for line in block]
    n_more = len(lines) - (int(header["last"]) - int(header["first"]) + 1)
    return tuple(lines[max(0, n_more) :])


def _of_record(record: CallRecord) -> tuple[Citation, ...]:
    return citations_in(record.result) if record.call.name == SEARCH and record.result else ()
