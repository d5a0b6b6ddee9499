"""The user guide: its pages in the order of the index, their sections, and a search.

The English pages are in the guide's folder, those of another language in a subfolder named by its code. A translation
has the same sections as the English page, in the same order, so links from the app work in every language.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from qwendesk.core.errors import QwenDeskError
from qwendesk.core.translation import tr

INDEX = "index"
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\((?P<page>[a-z-]+)\.md[^)]*\)")
_PICTURE = re.compile(r"!\[(?P<words>[^\]]*)\]\([^)]*\)")
_MARKS = re.compile(r"[*`|#]|\]\([^)]*\)|\[")


class GuideSection(msgspec.Struct, frozen=True):
    """A heading and the text below it."""

    id: str
    """The anchor of the section on the English page; the app links to it."""
    anchor: str
    """The anchor in the page's own language, as GitHub makes it; the guide's pages link to it."""
    title: str
    text: str
    """Without Markdown."""


class GuidePage(msgspec.Struct, frozen=True):
    """One file of the guide. `name` is the file name without ".md", the same in every language."""

    name: str
    title: str
    markdown: str
    sections: tuple[GuideSection, ...]

    def section_id(self, anchor: str) -> str:
        """Return the id of the section with this anchor or id; "" if there is none."""
        return next((each.id for each in self.sections if anchor in (each.id, each.anchor)), "")


class GuideHit(msgspec.Struct, frozen=True):
    """A section that contains every word of a search."""

    page: str
    section: str
    title: str


class Guide(msgspec.Struct, frozen=True):
    """All pages, the index first, then in the order in which the index links to them."""

    pages: tuple[GuidePage, ...]
    folder: str
    """The guide's folder, which contains the pictures."""

    def find(self, name: str) -> GuidePage | None:
        return next((page for page in self.pages if page.name == name), None)

    def search(self, words: str) -> tuple[GuideHit, ...]:
        """Return the sections that contain all of `words`, those with a word in their title first."""
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


def read_guide(folder: Path, language: str = "en") -> Guide:
    """Read the guide in `folder`; pages that are missing in `language` are in English. Blocks briefly.

    Raises QwenDeskError if there is no guide.
    """
    try:
        english = _read_pages(folder)
        translated = _read_pages(folder / language)
    except (OSError, UnicodeDecodeError) as error:
        raise QwenDeskError(tr("The guide can't be read"), tr("{0}. Install QwenDesk again.", error)) from error
    if INDEX not in english:
        raise QwenDeskError(tr("The guide is missing"), tr("There is no guide in {0}. Install QwenDesk again.", folder))
    linked = [INDEX, *(match["page"] for match in _LINK.finditer(english[INDEX]))]
    order = [name for name in dict.fromkeys([*linked, *english]) if name in english]
    pages = (parse_page(name, english[name], translated.get(name)) for name in order)
    return Guide(tuple(pages), str(folder))


def _read_pages(folder: Path) -> Mapping[str, str]:
    return {path.stem: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.md"))}


def parse_page(name: str, english: str, translation: str | None = None) -> GuidePage:
    """Return the page of this Markdown or its translation, whose pictures and missing pages are in the folder above."""
    markdown = english if translation is None else translation.replace("](../", "](")
    ids = [anchor for anchor, _, _ in _sections(english)]
    sections = list(_sections(markdown))
    if len(ids) != len(sections):
        ids = [anchor for anchor, _, _ in sections]
    made = tuple(GuideSection(id_, *section) for id_, section in zip(ids, sections, strict=True))
    return GuidePage(name, made[0].title if made else name, markdown, made)


def heading_anchor(title: str) -> str:
    """Return the anchor that GitHub makes of a heading, such as "what-is-vram" for "What is VRAM?"."""
    kept = re.sub(r"[^\w\- ]", "", plain_text(title).casefold())
    return kept.strip().replace(" ", "-")


def plain_text(markdown: str) -> str:
    """Return the text of `markdown` on one line, without its formatting."""
    return " ".join(_MARKS.sub("", _PICTURE.sub(r"\g<words>", markdown)).split())


def _sections(markdown: str) -> Iterator[tuple[str, str, str]]:
    """Yield the anchor, title and text of each section."""
    title, lines = "", list[str]()
    for line in [*markdown.splitlines(), "# "]:
        if re.match(r"#{1,3} ", line):
            if title:
                yield heading_anchor(title), plain_text(title), plain_text("\n".join(lines))
            title, lines = line.lstrip("#").strip(), []
        else:
            lines.append(line)
