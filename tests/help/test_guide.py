"""The guide as values: order, sections, anchors, search."""

from pathlib import Path

import pytest

from qwendesk.core.errors import QwenDeskError
from qwendesk.core.paths import guide_folder
from qwendesk.help.guide import heading_anchor, parse_page, plain_text, read_guide


def test_the_index_is_first_and_gives_the_order(tmp_path: Path) -> None:
    (tmp_path / "index.md").write_text("# Guide\n\n[Two](two.md) and [One](one.md)\n", encoding="utf-8")
    (tmp_path / "one.md").write_text("# One\n", encoding="utf-8")
    (tmp_path / "two.md").write_text("# Two\n", encoding="utf-8")

    assert [page.title for page in read_guide(tmp_path).pages] == ["Guide", "Two", "One"]


def test_a_folder_without_a_guide_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(QwenDeskError, match="Install QwenDesk again"):
        read_guide(tmp_path)


def test_sections_have_anchors_and_plain_words() -> None:
    page = parse_page(
        "x", "# Title\n\nLead.\n\n## What is *it*?\n\nA [link](y.md) to **Load** and ![a cat](images/c.png).\n"
    )

    assert page.title == "Title"
    assert [(each.id, each.title) for each in page.sections] == [("title", "Title"), ("what-is-it", "What is it?")]
    assert page.sections[1].text == "A link to Load and a cat."


def test_anchors_are_those_of_github() -> None:
    assert heading_anchor("By card, for 35B-A3B") == "by-card-for-35b-a3b"
    assert plain_text("| a | `b` |") == "a b"


def test_a_page_in_another_language_has_the_section_ids_of_the_english_one(tmp_path: Path) -> None:
    (tmp_path / "de").mkdir()
    (tmp_path / "index.md").write_text("# Guide\n\n[Two](two.md) [One](one.md)\n", encoding="utf-8")
    (tmp_path / "two.md").write_text("# Two\n\n## What is it?\n\n![A cat](images/c.png)\n", encoding="utf-8")
    (tmp_path / "one.md").write_text("# One\n", encoding="utf-8")
    (tmp_path / "de" / "two.md").write_text(
        "# Zwei\n\n## Was ist das?\n\n![Eine Katze](../images/c.png)\n", encoding="utf-8"
    )

    guide = read_guide(tmp_path, "de")

    assert [page.title for page in guide.pages] == ["Guide", "Zwei", "One"], "an untranslated page is English"
    page = guide.pages[1]
    assert page.section_id("what-is-it") == page.section_id("was-ist-das") == "what-is-it"
    assert page.section_id("nothing") == ""
    assert "![Eine Katze](images/c.png)" in page.markdown
    assert [(hit.page, hit.section) for hit in guide.search("katze")] == [("two", "what-is-it")]


def test_search_needs_every_word_and_puts_titles_first() -> None:
    hits = read_guide(guide_folder()).search("Spill")

    assert hits[0].page == "spill"
    assert {hit.page for hit in hits} > {"spill", "meter"}
    assert read_guide(guide_folder()).search("spill zebra") == ()
    assert read_guide(guide_folder()).search(" ") == ()
