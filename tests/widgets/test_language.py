"""Language files: what is taken from them, and what happens with one that cannot be used."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QCollator, QCoreApplication, QLocale, Qt, QTranslator
from PySide6.QtGui import QFontDatabase, QKeySequence
from PySide6.QtWidgets import QApplication

from qwendesk.core.number_format import ENGLISH_FORMAT, install_number_format, show_count, show_date, show_decimal
from qwendesk.core.translation import (
    PLURALS,
    choose_language,
    install_translator,
    join_list,
    join_sentences,
    language_names,
    name_order,
    tr,
    tr_n,
    translation_problem,
)
from qwendesk.core.units import show_bytes, show_duration, show_expected, show_rate, show_tokens
from qwendesk.widgets.language import number_format_of, show_language
from qwendesk.widgets.theme import mono_families, ui_families, use_language_fonts

TEXTS = {"Send": "Schick", "Remove {0}": "{0} weg", "{0} page|{0} pages": ["{0} Blatt", "{0} Blätter"]}


@pytest.fixture
def folder(app: QApplication, tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    for translator in app.findChildren(QTranslator):
        app.removeTranslator(translator)
        translator.deleteLater()
    app.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
    install_translator(None)
    install_number_format(ENGLISH_FORMAT)
    QLocale.setDefault(QLocale.c())
    use_language_fonts(())


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


def test_numbers_sizes_and_dates_are_in_the_language(app: QApplication, folder: Path) -> None:
    write(folder, "de")
    english = (show_count(12345), show_bytes(22011707392), show_decimal(1234.5, 1), show_date("2026-02-07T10:00:00"))
    assert english == ("12,345", "20.5 GB", "1,234.5", "2026-02-07")
    show_language(app, "de", folder)
    assert (show_count(12345), show_bytes(22011707392), show_decimal(1234.5, 1)) == ("12.345", "20,5 GB", "1.234,5")
    assert show_date("2026-02-07T10:00:00") == "07.02.2026"
    assert (show_tokens(12345), show_duration(0.25), show_rate(3.14)) == ("12,1K", "0,2 s", "3,1")
    assert show_expected((1.24, 16123.0)) == "1,2–16.000"
    assert tr_n("{0} page", "{0} pages", 12345) == "12.345 Blätter"
    assert QLocale().decimalPoint() == ","


def test_a_date_that_cannot_be_read_is_shown_unchanged() -> None:
    assert [show_date(text) for text in ("", "soon", "2026-13-40")] == ["", "soon", "2026-13-40"]


@pytest.mark.parametrize(
    ("locale", "date"),
    [
        ("fr_FR", "07/02/2026"),
        ("fi_FI", "7.2.2026"),
        ("sv_SE", "2026-02-07"),
        ("zh_CN", "2026/2/7"),
        ("bg_BG", "2026-02-07"),
    ],
)
def test_dates_have_the_order_of_the_locale_and_a_whole_year(locale: str, date: str) -> None:
    install_number_format(number_format_of(QLocale(locale)))
    shown = show_date("2026-02-07")
    install_number_format(ENGLISH_FORMAT)
    assert shown == date


def test_english_counts_are_right_without_any_file() -> None:
    said = [tr_n("{0} page of {1}", "{0} pages of {1}", count, "a.pdf") for count in (0, 1, 2)]
    assert said == ["0 pages of a.pdf", "1 page of a.pdf", "2 pages of a.pdf"]


def test_right_to_left_language_mirrors_the_window(app: QApplication, folder: Path) -> None:
    write(folder, "xx", direction="rtl")
    show_language(app, "xx", folder)
    assert app.layoutDirection() == Qt.LayoutDirection.RightToLeft


@pytest.mark.parametrize(
    "content",
    ["", "{", '{"name": "x"}', '{"name": "x", "texts": []}', '{"name": "x", "texts": {}, "plural": "odd"}'],
)
def test_unusable_file_falls_back_to_english_and_is_logged(
    content: str, app: QApplication, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (folder / "xx.json").write_text(content, encoding="utf-8")
    with caplog.at_level(logging.WARNING):
        assert show_language(app, "xx", folder) == "en"
    assert "xx.json" in caplog.text
    assert tr("Send") == "Send"
    assert list(language_names(folder)) == ["en"]


def test_missing_language_falls_back_to_english_and_is_logged(
    app: QApplication, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert show_language(app, "zz", folder) == "en"
    assert "'zz'" in caplog.text


def test_translation_with_other_placeholders_is_skipped(
    app: QApplication, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bad = {"Remove {0}": "{1} weg", "{0} page|{0} pages": ["{0} Blatt"]}
    write(folder, "xx", texts={**TEXTS, **bad})
    assert show_language(app, "xx", folder) == "xx"
    assert tr("Remove {0}", "a.png") == "Remove a.png"
    assert tr_n("{0} page", "{0} pages", 1) == "1 page"
    assert tr("Send") == "Schick"
    assert "placeholders" in caplog.text


def test_system_language_is_the_default() -> None:
    there = ("en", "de", "pt_BR")
    assert choose_language("", there, ["fr-FR", "de-AT", "en-US"]) == "de"
    assert choose_language("", there, ["pt-BR"]) == "pt_BR"
    assert choose_language("", there, ["en-US", "de-DE"]) == "en"
    assert choose_language("", there, ["ja-JP"]) == "en"
    assert choose_language("de", there, ["en-US"]) == "de"


# What Qt names for each system.
_SYSTEMS = {
    "zh_CN": ["zh-Hans-CN", "zh-CN", "zh-Hans", "zh"],
    "zh_SG": ["zh-Hans-SG", "zh-SG", "zh-Hans", "zh"],
    "zh_Hans": ["zh-Hans-CN", "zh-CN", "zh-Hans", "zh"],
    "zh_TW": ["zh-Hant-TW", "zh-TW", "zh-Hant", "zh"],
    "zh_HK": ["zh-Hant-HK", "zh-HK", "zh-Hant", "zh"],
}


@pytest.mark.parametrize(
    ("system", "code"),
    [("zh_CN", "zh_Hans"), ("zh_SG", "zh_Hans"), ("zh_Hans", "zh_Hans"), ("zh_TW", "en"), ("zh_HK", "en")],
)
def test_simplified_chinese_is_for_systems_that_write_it(system: str, code: str) -> None:
    assert QLocale(system).uiLanguages() == _SYSTEMS[system]
    assert choose_language("", ("en", "de", "zh_Hans"), _SYSTEMS[system]) == code


def test_language_without_its_script_is_found() -> None:
    assert choose_language("zh", ("en", "zh_Hans"), []) == "zh_Hans"
    assert choose_language("z", ("en", "zh_Hans"), []) == "en"


def test_language_without_a_font_for_it_is_shown_in_english(
    app: QApplication, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(folder, "xx", name="\U000e0fff")  # no letter, so that no font has it
    assert show_language(app, "xx", folder) == "en"
    assert "No font" in caplog.text
    assert tr("Send") == "Send"


def test_fonts_of_the_language_follow_those_of_the_window(app: QApplication, folder: Path) -> None:
    family = QFontDatabase.families()[0]
    write(folder, "xx", fonts=["No such family", family])
    show_language(app, "xx", folder)
    assert (ui_families()[-1], mono_families()[-1]) == (family, family)
    assert "No such family" not in ui_families()
    show_language(app, "en", folder)
    assert mono_families()[-1] == "monospace"


def test_names_are_in_the_order_of_the_language(app: QApplication, folder: Path) -> None:
    names = ["zebra", "Äpfel", "Birnen"]
    assert sorted(names, key=name_order) == ["Birnen", "zebra", "Äpfel"]
    write(folder, "de")
    show_language(app, "de", folder)
    assert sorted(names, key=name_order) == ["Äpfel", "Birnen", "zebra"]


def test_chinese_names_are_in_the_order_of_their_sound(app: QApplication, folder: Path) -> None:
    names = ["中文", "工作", "北京"]
    write(folder, "zh_Hans")
    show_language(app, "zh", folder)
    if QCollator(QLocale("zh_CN")).compare("工", "中") > 0:
        pytest.skip("the system has no order of Chinese, as Wine has none: it sorts by code")
    assert sorted(names, key=name_order) == ["北京", "工作", "中文"]


def test_texts_of_qt_are_in_the_language(app: QApplication, folder: Path) -> None:
    write(folder, "zh_Hans")
    show_language(app, "zh", folder)
    assert QCoreApplication.translate("QPlatformTheme", "Cancel") == "取消"


@pytest.mark.parametrize(("latin_keys", "shown"), [(True, "Ctrl+Enter"), (False, "Ctrl+回车")])
def test_keys_are_named_as_on_the_keyboards_of_the_language(
    latin_keys: bool, shown: str, app: QApplication, folder: Path
) -> None:
    write(folder, "zh_Hans", latin_keys=latin_keys)
    show_language(app, "zh", folder)
    assert QKeySequence("Ctrl+Enter").toString(QKeySequence.SequenceFormat.NativeText) == shown
    assert QCoreApplication.translate("QPlatformTheme", "Cancel") == "取消"


@pytest.mark.parametrize(
    ("value", "shown"),
    [("a.gguf", "把 a.gguf 移到回收站"), ("游戏", "把游戏移到回收站"), ("1 GB（假定）", "把 1 GB（假定）移到回收站")],
)
def test_no_blank_between_chinese_text_and_a_chinese_value(
    value: str, shown: str, app: QApplication, folder: Path
) -> None:
    write(folder, "xx", texts={"Move {0}": "把 {0} 移到回收站"})
    show_language(app, "xx", folder)
    assert tr("Move {0}", value) == shown


def test_lists_and_sentences_are_joined_as_the_language_writes_them(app: QApplication, folder: Path) -> None:
    assert join_list(["a", "", "b"]) == "a, b"
    assert join_sentences("One.", "", "Two.") == "One. Two."
    write(folder, "xx", texts={", ": "、"})
    show_language(app, "xx", folder)
    assert join_list(["甲", "乙"]) == "甲、乙"
    assert join_sentences("一。", "二。", "Three.", "四。") == "一。二。Three. 四。"


def test_named_placeholders_keep_their_names() -> None:
    assert translation_problem("{name} has {size}.", "{size} hat {name}.", 2) == ""
    assert translation_problem("{name} has {size}.", "{name} hat {größe}.", 2) != ""


def test_one_plural_form_may_omit_the_count() -> None:
    assert translation_problem("{0} page|{0} pages", ["one page", "{0} pages"], 2) == ""
    assert translation_problem("{0} page in {1}|{0} pages in {1}", ["one page", "{0} pages in {1}"], 2) != ""


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
def test_translation_that_cannot_be_formatted_is_skipped(
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
def test_counts_use_the_plural_forms_of_the_language(rule: str, forms: dict[int, int]) -> None:
    assert {count: PLURALS[rule].form(count) for count in forms} == forms
    assert max(forms.values()) == PLURALS[rule].n_forms - 1
