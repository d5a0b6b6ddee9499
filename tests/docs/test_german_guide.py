"""The German guide says what the English one says, with the labels of the German window."""

import re

import pytest

from qwendesk.core.paths import guide_folder
from qwendesk.core.translation import languages_folder, read_language
from qwendesk.help.guide import GuidePage, read_guide
from tests.docs.commands import command_lines, without_blocks
from tests.docs.test_guide import FREE_LABELS, REWRITE, links, pictures
from tests.docs.window import is_label, unknown_shortcuts
from tools.guide_numbers import phrases_of
from tools.guide_pcs import in_german, tables_of

ENGLISH = read_guide(guide_folder())
GERMAN = read_guide(guide_folder(), "de")
PAGES = pytest.mark.parametrize(
    ("english", "german"),
    list(zip(ENGLISH.pages, GERMAN.pages, strict=True)),
    ids=[page.name for page in ENGLISH.pages],
)


def bold(page: GuidePage) -> list[str]:
    return re.findall(r"\*\*([^*]+)\*\*", page.markdown)


def backticks(page: GuidePage) -> list[str]:
    return re.findall(r"`([^`]+)`", without_blocks(page.markdown))


def german_labels() -> set[str]:
    language = read_language(languages_folder() / "de.json")
    assert language is not None
    found = set()
    for text in language.texts.values():
        for form in [text] if isinstance(text, str) else text:
            found |= {form, form.removesuffix("…"), form.partition(": {")[0], *form.splitlines()}
    return found


@PAGES
def test_every_page_is_translated_section_by_section(english: GuidePage, german: GuidePage) -> None:
    assert (guide_folder() / "de" / f"{german.name}.md").is_file()
    assert [section.id for section in german.sections] == [section.id for section in english.sections]
    assert {section.anchor for section in german.sections} != {section.anchor for section in english.sections}


@PAGES
def test_bold_words_are_labels_of_the_german_window(english: GuidePage, german: GuidePage) -> None:
    known = german_labels()
    assert len(bold(german)) == len(bold(english))
    for theirs, ours in zip(bold(english), bold(german), strict=True):
        if theirs not in FREE_LABELS:
            # A title that the window shows in English is quoted in English.
            assert ours in known or (ours == theirs and is_label(ours)), f"{german.name}.md: “{ours}” for “{theirs}”"


@PAGES
def test_pictures_commands_and_shortcuts_match_the_english_page(english: GuidePage, german: GuidePage) -> None:
    assert pictures(german) == pictures(english)
    assert sorted(backticks(german)) == sorted(backticks(english))
    assert command_lines(german.markdown) == command_lines(english.markdown)
    assert not unknown_shortcuts(german.markdown)


@PAGES
def test_every_link_leads_to_the_same_page_as_in_english(english: GuidePage, german: GuidePage) -> None:
    def targets(page: GuidePage) -> list[str]:
        return [target for _, target, _ in links(page)]

    assert targets(german) == targets(english)
    for words, target, section in links(german):
        page = GERMAN.find(target.removesuffix(".md"))
        assert page is not None
        assert not section or section in {each.anchor for each in page.sections}, f"{words}: {target}#{section}"


@PAGES
def test_tables_match_the_planner(english: GuidePage, german: GuidePage) -> None:
    for table in tables_of(english.name):
        assert in_german(table) in german.markdown, REWRITE


@PAGES
def test_numbers_in_sentences_are_those_of_the_catalog(english: GuidePage, german: GuidePage) -> None:
    for phrase in phrases_of(english.name):
        assert phrase.written(german=True) in german.markdown, REWRITE


@PAGES
def test_every_line_has_the_numbers_of_the_english_one(english: GuidePage, german: GuidePage) -> None:
    for line, (theirs, ours) in enumerate(
        zip(english.markdown.splitlines(), german.markdown.splitlines(), strict=True), 1
    ):
        assert numbers(ours) == numbers(theirs), f"{german.name}.md:{line}"


def numbers(line: str) -> list[str]:
    """Every number of a line without its separators: "3.5" and "3,5" are the same, "1,010,000" and "1.010.000" too."""
    return sorted(re.sub("[.,]", "", number) for number in re.findall(r"\d[\d.,]*", re.sub(r"\]\([^)]*\)", "", line)))


def test_every_german_page_has_an_english_page() -> None:
    assert {path.stem for path in (guide_folder() / "de").glob("*.md")} == {page.name for page in ENGLISH.pages}
