"""The guide says nothing that is not so: links, pictures, labels, settings, commands and the table of cards."""

import functools
import re
from pathlib import Path

import pytest
from PIL import Image

from qwendesk.core.paths import guide_folder
from qwendesk.help.guide import INDEX, GuidePage, read_guide
from tests.docs.commands import check_command_line, command_lines, is_typed, without_blocks
from tests.docs.window import is_label, unknown_shortcuts
from tools.guide_numbers import phrases_of
from tools.guide_pcs import tables_of

ROOT = Path(__file__).resolve().parents[2]
FOLDER = guide_folder()
GUIDE = read_guide(FOLDER)
MOST_BYTES = 120_000
REWRITE = "python tools/guide_pcs.py writes the tables and the numbers"
FOR_THE_README = {"chat-light.png"}


def pages() -> pytest.MarkDecorator:
    return pytest.mark.parametrize("page", GUIDE.pages, ids=lambda page: page.name)


def links(page: GuidePage) -> list[tuple[str, str, str]]:
    """Every link of a page: its words, the page it leads to ("" is this one), the section ("" is its top)."""
    found = re.findall(r"(?<!!)\[([^\]]+)\]\(([^)]+)\)", page.markdown)
    return [(words, *target.partition("#")[::2]) for words, target in found]


def pictures(page: GuidePage) -> list[str]:
    return re.findall(r"!\[[^\]]+\]\(([^)]+)\)", page.markdown)


def test_every_page_is_linked_from_the_index() -> None:
    index = GUIDE.find(INDEX)
    assert index is not None
    named = {target.removesuffix(".md") for _, target, _ in links(index)}
    assert named == {page.name for page in GUIDE.pages} - {INDEX}


@pages()
def test_every_link_leads_to_a_section_of_the_guide(page: GuidePage) -> None:
    for words, target, section in links(page):
        there = page if not target else GUIDE.find(target.removesuffix(".md"))
        assert there is not None, f"{words}: {target}"
        assert not section or section in {each.id for each in there.sections}, f"{words}: {target}#{section}"


@pages()
def test_every_picture_exists_and_is_described(page: GuidePage) -> None:
    assert page.markdown.count("![") == len(pictures(page)), "a picture has no words for those who cannot see it"
    for picture in pictures(page):
        assert re.fullmatch(r"images/[\w-]+\.png", picture)
        assert (FOLDER / picture).is_file(), picture


def test_every_picture_is_small_and_used() -> None:
    shown = {Path(picture).name for page in GUIDE.pages for picture in pictures(page)} | FOR_THE_README
    files = sorted((FOLDER / "images").glob("*.png"))
    assert {path.name for path in files} == shown
    for path in files:
        assert path.stat().st_size < MOST_BYTES, path.name
        with Image.open(path) as picture:
            assert picture.width <= 1280, path.name


def test_pictures_of_the_readme_exist() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = re.findall(r"\((docs/guide/images/[^)]+)\)", text)
    assert shown
    assert all((ROOT / path).is_file() for path in shown)


@pages()
def test_bold_words_are_labels_of_the_app(page: GuidePage) -> None:
    for bold in sorted(set(re.findall(r"\*\*([^*]+)\*\*", page.markdown)) - FREE_LABELS):
        assert is_label(bold), f"{page.name}.md names “{bold}”, which the app does not say"


FREE_LABELS = {
    "From source",
    "In the bundle",
    "Other users",
    "Administrators",
    "Folders that you chose",
    "A folder that you replaced by a link",
    "A second start",
    "Backups",
}
"""Bold only to be found."""


@functools.cache
def options() -> set[str]:
    """Keys of options and the words they take: docs/settings.md is made from the tables of the code."""
    text = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \**[^|]+\** \| `(\w+)` \| [^|]* \| ([^|]*) \|", text, re.MULTILINE)
    return {word for key, takes in rows for word in (key, *re.findall(r"\w+", takes))}


@pages()
def test_words_in_backticks_exist(page: GuidePage) -> None:
    words = set(re.findall(r"`([^`]+)`", without_blocks(page.markdown))) - options()
    assert not {word for word in words if not is_typed(word)}


@pages()
def test_commands_in_blocks_can_be_typed(page: GuidePage) -> None:
    for line in command_lines(page.markdown):
        check_command_line(line)


@pages()
def test_shortcuts_exist_in_the_window(page: GuidePage) -> None:
    assert not unknown_shortcuts(page.markdown)


@pages()
def test_tables_match_the_planner(page: GuidePage) -> None:
    for table in tables_of(page.name):
        assert table in page.markdown, REWRITE


@pages()
def test_numbers_in_sentences_are_those_of_the_catalog(page: GuidePage) -> None:
    for phrase in phrases_of(page.name):
        assert phrase.written("en") in page.markdown, REWRITE


@pages()
def test_guide_needs_no_network(page: GuidePage) -> None:
    assert "://" not in page.markdown
