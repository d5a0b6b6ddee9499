"""Language files: what is taken from them, and what happens with one that cannot be used."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt, QTranslator
from PySide6.QtWidgets import QApplication

from qwendesk.ui.kit.language import choose, languages, problem_of, show_language
from qwendesk.ui.kit.plurals import PLURALS
from qwendesk.ui.kit.text import tr, tr_n

TEXTS = {"Send": "Schick", "Remove {0}": "{0} weg", "{0} page|{0} pages": ["{0} Blatt", "{0} Blätter"]}


@pytest.fixture
def folder(app: QApplication, tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    for translator in app.findChildren(QTranslator):
        app.removeTranslator(translator)
        translator.deleteLater()
    app.setLayoutDirection(Qt.LayoutDirection.LeftToRight)


def write(folder: Path, code: str, **fields: object) -> None:
    (folder / f"{code}.json").write_text(json.dumps({"name": "Test", "texts": TEXTS, **fields}), encoding="utf-8")


def test_texts_and_counts_are_in_the_language(app: QApplication, folder: Path) -> None:
    write(folder, "xx")
    assert show_language(app, "xx", folder) == "xx"
    assert tr("Send") == "Schick"
    assert tr("Remove {0}", "a.png") == "a.png weg"
    assert tr_n("{0} page", "{0} pages", 1) == "1 Blatt"
    assert tr_n("{0} page", "{0} pages", 1200) == "1,200 Blätter"
    assert tr("Not in the file") == "Not in the file"


def test_english_counts_are_right_without_any_file() -> None:
    said = [tr_n("{0} page of {1}", "{0} pages of {1}", count, "a.pdf") for count in (0, 1, 2)]
    assert said == ["0 pages of a.pdf", "1 page of a.pdf", "2 pages of a.pdf"]


def test_a_language_from_right_to_left_turns_the_window_round(app: QApplication, folder: Path) -> None:
    write(folder, "xx", direction="rtl")
    show_language(app, "xx", folder)
    assert app.layoutDirection() == Qt.LayoutDirection.RightToLeft


@pytest.mark.parametrize(
    "content",
    ["", "{", '{"name": "x"}', '{"name": "x", "texts": []}', '{"name": "x", "texts": {}, "plural": "odd"}'],
)
def test_a_file_that_cannot_be_used_leaves_english_and_a_line_in_the_log(
    content: str, app: QApplication, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (folder / "xx.json").write_text(content, encoding="utf-8")
    with caplog.at_level(logging.WARNING):
        assert show_language(app, "xx", folder) == "en"
    assert "xx.json" in caplog.text
    assert tr("Send") == "Send"
    assert list(languages(folder)) == ["en"]


def test_a_language_that_is_not_there_is_english_and_said_in_the_log(
    app: QApplication, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert show_language(app, "zz", folder) == "en"
    assert "'zz'" in caplog.text


def test_a_translation_with_other_placeholders_is_left_out_and_the_rest_is_used(
    app: QApplication, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bad = {"Remove {0}": "{1} weg", "{0} page|{0} pages": ["{0} Blatt"]}
    write(folder, "xx", texts={**TEXTS, **bad})
    assert show_language(app, "xx", folder) == "xx"
    assert tr("Remove {0}", "a.png") == "Remove a.png"
    assert tr_n("{0} page", "{0} pages", 1) == "1 page"
    assert tr("Send") == "Schick"
    assert "placeholders" in caplog.text


def test_the_system_s_language_is_taken_when_none_is_wanted() -> None:
    there = ("en", "de", "pt_BR")
    assert choose("", there, ["fr-FR", "de-AT", "en-US"]) == "de"
    assert choose("", there, ["pt-BR"]) == "pt_BR"
    assert choose("", there, ["en-US", "de-DE"]) == "en"
    assert choose("", there, ["ja-JP"]) == "en"
    assert choose("de", there, ["en-US"]) == "de"


def test_one_form_may_leave_the_count_out() -> None:
    assert problem_of("{0} page|{0} pages", ["one page", "{0} pages"], 2) == ""
    assert problem_of("{0} page in {1}|{0} pages in {1}", ["one page", "{0} pages in {1}"], 2) != ""


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("Remove {0}", "{0} weg {"),
        ("Remove {0}", "{0} weg }"),
        ("Remove {0}", "{0} weg {name}"),
        ("Remove {0}", "{0:d} {0} weg"),
        ("{0} page|{0} pages", ["{0} Blatt", "{0} Blätter {"]),
        ("{0} page|{0} pages", ["", "{0} Blätter"]),
    ],
)
def test_a_translation_that_could_not_be_shown_is_left_out(
    source: str, text: str | list[str], app: QApplication, folder: Path
) -> None:
    write(folder, "xx", texts={source: text})
    show_language(app, "xx", folder)
    assert tr("Remove {0}", "a.png") == "Remove a.png"
    assert [tr_n("{0} page", "{0} pages", count) for count in (1, 2)] == ["1 page", "2 pages"]


@pytest.mark.parametrize(
    ("rule", "forms"),
    [
        # CLDR's own examples of each category.
        ("same", {0: 0, 1: 0, 5: 0}),
        ("one", {0: 1, 1: 0, 2: 1}),
        ("zero_or_one", {0: 0, 1: 0, 2: 1}),
        ("slavic", {1: 0, 21: 0, 2: 1, 24: 1, 0: 2, 11: 2, 12: 2, 112: 2, 5: 2}),
        ("polish", {1: 0, 2: 1, 22: 1, 0: 2, 12: 2, 21: 2, 101: 2}),
        ("czech", {1: 0, 2: 1, 4: 1, 0: 2, 5: 2, 22: 2}),
        ("arabic", {0: 0, 1: 1, 2: 2, 3: 3, 110: 3, 11: 4, 199: 4, 100: 5, 202: 5}),
    ],
)
def test_counts_take_the_form_of_their_language(rule: str, forms: dict[int, int]) -> None:
    assert {count: PLURALS[rule].form(count) for count in forms} == forms
    assert max(forms.values()) == PLURALS[rule].n_forms - 1
