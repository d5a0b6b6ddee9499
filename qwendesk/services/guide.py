"""The user guide as values: its pages in the order of the index, their sections, and a search through them."""

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from qwendesk.core.errors import QwenDeskError

INDEX = "index"
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\((?P<page>[a-z-]+)\.md[^)]*\)")
_PICTURE = re.compile(r"!\[(?P<words>[^\]]*)\]\([^)]*\)")
_MARKS = re.compile(r"[*`|#]|\]\([^)]*\)|\[")


class GuideSection(msgspec.Struct, frozen=True):
    """A heading and what stands below it. `id` is its anchor, as GitHub makes it."""

    id: str
    title: str
    text: str
    """Without Markdown's marks."""


class GuidePage(msgspec.Struct, frozen=True):
    """One file of the guide. `name` is the file's, without ".md"."""

    name: str
    title: str
    markdown: str
    sections: tuple[GuideSection, ...]


class GuideHit(msgspec.Struct, frozen=True):
    """A section that has every word looked for."""

    page: str
    section: str
    title: str


class Guide(msgspec.Struct, frozen=True):
    """All pages, the index first, then in the order in which the index names them."""

    pages: tuple[GuidePage, ...]
    folder: str
    """Pictures lie below it."""

    def find(self, name: str) -> GuidePage | None:
        return next((page for page in self.pages if page.name == name), None)

    def search(self, words: str) -> tuple[GuideHit, ...]:
        """Sections that have all of `words`, those with a word in their title first."""
        wanted = words.casefold().split()
        hits: list[tuple[bool, GuideHit]] = []
        for page in self.pages if wanted else ():
            for section in page.sections:
                heading = f"{page.title} {section.title}".casefold()
                text = f"{heading} {section.text.casefold()}"
                if all(word in text for word in wanted):
                    title = page.title if section.title == page.title else f"{page.title}: {section.title}"
                    hits.append((not any(word in heading for word in wanted), GuideHit(page.name, section.id, title)))
        return tuple(hit for _, hit in sorted(hits, key=lambda each: each[0]))


def read_guide(folder: Path) -> Guide:
    """The guide in `folder`. Raises QwenDeskError when it is not there. Blocks for a moment."""
    try:
        texts = {path.stem: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.md"))}
    except (OSError, UnicodeDecodeError) as error:
        raise QwenDeskError("The guide cannot be read", f"{error}. Install QwenDesk again.") from error
    if INDEX not in texts:
        raise QwenDeskError("The guide is missing", f"{folder} has no guide. Install QwenDesk again.")
    named = [INDEX, *(match["page"] for match in _LINK.finditer(texts[INDEX]))]
    order = [name for name in dict.fromkeys([*named, *texts]) if name in texts]
    return Guide(tuple(page_of(name, texts[name]) for name in order), str(folder))


def page_of(name: str, markdown: str) -> GuidePage:
    sections = tuple(_sections(markdown))
    return GuidePage(name, sections[0].title if sections else name, markdown, sections)


def anchor_of(title: str) -> str:
    """ "What is VRAM?" as "what-is-vram"."""
    kept = re.sub(r"[^\w\- ]", "", plain(title).casefold())
    return kept.strip().replace(" ", "-")


def plain(markdown: str) -> str:
    """The words without the marks of Markdown, on one line."""
    return " ".join(_MARKS.sub("", _PICTURE.sub(r"\g<words>", markdown)).split())


def _sections(markdown: str) -> Iterator[GuideSection]:
    title, lines = "", list[str]()
    for line in markdown.splitlines():
        if re.match(r"#{1,3} ", line):
            if title:
                yield GuideSection(anchor_of(title), plain(title), plain("\n".join(lines)))
            title, lines = line.lstrip("#").strip(), []
        else:
            lines.append(line)
    if title:
        yield GuideSection(anchor_of(title), plain(title), plain("\n".join(lines)))
