"""The guide in other languages says what the English one says, with the labels of the window in that language."""

import functools
import html
import re

import pytest
from markdown_it import MarkdownIt

from qwendesk.core.paths import guide_folder
from qwendesk.core.translation import languages_folder, read_language
from qwendesk.help.guide import Guide, GuidePage, read_guide
from tests.docs.commands import command_lines, without_blocks
from tests.docs.test_guide import FREE_LABELS, REWRITE, links, pictures
from tests.docs.window import is_label, unknown_shortcuts
from tools.guide_numbers import phrases_of
from tools.guide_pcs import tables_of, translated

ENGLISH = read_guide(guide_folder())
TRANSLATED = {
    "de": tuple(page.name for page in ENGLISH.pages),
    "zh_Hans": ("index", "first-chat", "which-model", "coming-from"),
}
"""The pages that each language has."""
PAGES = pytest.mark.parametrize(
    ("language", "name"), [(language, name) for language, names in TRANSLATED.items() for name in names]
)


@functools.cache
def guide_in(language: str) -> Guide:
    return read_guide(guide_folder(), language)


def page_in(language: str, name: str) -> GuidePage:
    page = guide_in(language).find(name)
    assert page is not None
    return page


def bold(page: GuidePage) -> list[str]:
    return re.findall(r"\*\*([^*]+)\*\*", page.markdown)


def backticks(page: GuidePage) -> list[str]:
    return re.findall(r"`([^`]+)`", without_blocks(page.markdown))


@functools.cache
def labels_in(code: str) -> frozenset[str]:
    language = read_language(languages_folder() / f"{code}.json")
    assert language is not None
    found = set()
    for text in language.texts.values():
        for form in [text] if isinstance(text, str) else text:
            found |= {form, form.removesuffix("…"), re.split(r"[:：]\s?\{", form)[0], *form.splitlines()}
    return frozenset(found)


def test_every_language_has_its_pages() -> None:
    folders = {path.name: path for path in guide_folder().iterdir() if path.is_dir() and path.name != "images"}
    found = {name: {page.stem for page in folder.glob("*.md")} for name, folder in folders.items()}
    assert found == {language: set(names) for language, names in TRANSLATED.items()}


@PAGES
def test_every_page_is_translated_section_by_section(language: str, name: str) -> None:
    english, theirs = page_in("en", name), page_in(language, name)
    assert [section.id for section in theirs.sections] == [section.id for section in english.sections]
    assert {section.anchor for section in theirs.sections} != {section.anchor for section in english.sections}


@PAGES
def test_bold_words_are_labels_of_the_window(language: str, name: str) -> None:
    english, theirs = page_in("en", name), page_in(language, name)
    known = labels_in(language)
    assert len(bold(theirs)) == len(bold(english))
    for source, label in zip(bold(english), bold(theirs), strict=True):
        if source not in FREE_LABELS:
            # A title that the window shows in English is quoted in English.
            is_same = label == source and is_label(label)
            assert label in known or is_same, f"{language}/{name}.md: “{label}” for “{source}”"


@PAGES
def test_bold_words_are_shown_bold(language: str, name: str) -> None:
    page = page_in(language, name)
    shown = re.findall("<strong>(.*?)</strong>", MarkdownIt("commonmark").enable("table").render(page.markdown))
    assert [html.unescape(words) for words in shown] == bold(page), "no mark before ** beside a Chinese letter"


@PAGES
def test_pictures_commands_and_shortcuts_match_the_english_page(language: str, name: str) -> None:
    english, theirs = page_in("en", name), page_in(language, name)
    assert pictures(theirs) == pictures(english)
    assert sorted(backticks(theirs)) == sorted(backticks(english))
    assert command_lines(theirs.markdown) == command_lines(english.markdown)
    assert not unknown_shortcuts(theirs.markdown)


@PAGES
def test_every_link_leads_to_the_same_page_as_in_english(language: str, name: str) -> None:
    english, theirs = page_in("en", name), page_in(language, name)
    assert [target for _, target, _ in links(theirs)] == [target for _, target, _ in links(english)]
    for words, target, section in links(theirs):
        page = page_in(language, target.removesuffix(".md"))
        assert not section or section in {each.anchor for each in page.sections}, f"{words}: {target}#{section}"


@PAGES
def test_tables_match_the_planner(language: str, name: str) -> None:
    for table in tables_of(name):
        assert translated(table, language) in page_in(language, name).markdown, REWRITE


@PAGES
def test_numbers_in_sentences_are_those_of_the_catalog(language: str, name: str) -> None:
    for phrase in phrases_of(name):
        assert phrase.written(language) in page_in(language, name).markdown, REWRITE


@PAGES
def test_every_line_has_the_numbers_of_the_english_one(language: str, name: str) -> None:
    english, theirs = page_in("en", name).markdown.splitlines(), page_in(language, name).markdown.splitlines()
    for line, (source, text) in enumerate(zip(english, theirs, strict=True), 1):
        assert numbers(text) == numbers(source), f"{language}/{name}.md:{line}"


def numbers(line: str) -> list[str]:
    """Every number of a line without its separators: "3.5" and "3,5" are the same, "1,010,000" and "1.010.000" too.

    Chinese counts in hundreds of millions: "350 亿" is "35 billion".
    """
    line = re.sub(r"0(?= 亿)", "", re.sub(r"\]\([^)]*\)", "", line))
    return sorted(re.sub("[.,]", "", number) for number in re.findall(r"\d[\d.,]*", line))
