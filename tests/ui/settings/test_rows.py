"""Every option of every table has a row that shows its value and takes it back as it is."""

from collections.abc import Iterator

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAction
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QLineEdit

from qwendesk.core.app_options import AppOptions
from qwendesk.core.options import GenerationOptions, LoadOptions
from qwendesk.core.settings import Entry, parse, table
from qwendesk.ui.kit.switch import Switch
from qwendesk.ui.kit.theme_keeper import ThemeKeeper
from qwendesk.ui.settings.rows.make import make_row
from qwendesk.ui.settings.rows.row import SettingRow
from qwendesk.ui.settings.rows.words import edit_text

ENTRIES = {
    f"{options.__name__}.{key}": entry
    for options in (AppOptions, LoadOptions, GenerationOptions)
    for key, entry in table(options).items()
}


class Shown:
    """One row, and what a person chose in it."""

    def __init__(self, keeper: ThemeKeeper, entry: Entry) -> None:
        self.row: SettingRow = make_row(keeper, entry, "test")
        self.chosen: list[object] = []
        self.row.chosen.connect(self.chosen.append)

    def type(self, text: str) -> None:
        field = self.row.findChild(QLineEdit)
        field.selectAll()
        QTest.keyClicks(field, text)
        QTest.keyClick(field, Qt.Key.Key_Return)

    def error(self) -> str:
        return "" if self.row._error.isHidden() else self.row._error.text()


@pytest.fixture
def show(keeper: ThemeKeeper) -> Iterator[object]:
    shown: list[Shown] = []

    def make(entry: Entry, value: object = None) -> Shown:
        shown.append(Shown(keeper, entry))
        shown[-1].row.show_value(entry.default if value is None else value)
        shown[-1].row.show()
        return shown[-1]

    yield make
    for each in shown:
        each.row.deleteLater()


@pytest.mark.parametrize("name", ENTRIES)
def test_the_default_is_shown_unmarked_and_goes_back_as_it_came(show, name):
    entry = ENTRIES[name]
    shown = show(entry)
    row = shown.row
    assert not row.findChild(QAbstractButton, f"{row.name}.reset").isVisible()
    editors = [each for kind in (QLineEdit, QAbstractButton) for each in row.findChildren(kind)]
    assert all(each.accessibleName() and each.toolTip() for each in editors)
    field = row.findChild(QLineEdit)
    if field is None or entry.default in entry.choices or not edit_text(entry.default) or "\n" in str(entry.default):
        return
    QTest.keyClick(field, Qt.Key.Key_End)
    field.setModified(True)
    QTest.keyClick(field, Qt.Key.Key_Return)
    assert shown.chosen == [entry.default]


def entry_of(name: str) -> Entry:
    return ENTRIES[name]


def test_a_number_that_may_be_a_word_has_a_button_for_the_word(show):
    shown = show(entry_of("LoadOptions.n_cpu_moe"))
    word = shown.row.findChild(QAbstractButton, f"{shown.row.name}.auto")
    assert word.isChecked()
    shown.type("12")
    assert shown.chosen == [12]
    shown.row.show_value(12)
    assert not word.isChecked()
    assert shown.row.findChild(QAbstractButton, f"{shown.row.name}.reset").isVisible()
    QTest.mouseClick(word, Qt.MouseButton.LeftButton)
    assert shown.chosen == [12, "auto"]


def test_many_choices_are_in_a_menu(show):
    shown = show(entry_of("LoadOptions.type_k"), "q8_0")
    actions = {each.text(): each for each in shown.row.findChildren(QAction) if each.objectName()}
    assert actions["q8_0"].isChecked()
    actions["q4_0"].trigger()
    assert shown.chosen == ["q4_0"]


def test_a_list_comes_back_as_its_items_also_with_commas_in_them(show):
    shown = show(entry_of("GenerationOptions.stop"))
    shown.type("one; two, three")
    assert shown.chosen == [("one", "two, three")]
    for value in (("a,b",), ("a", "b,c"), ()):
        assert parse(entry_of("GenerationOptions.stop"), edit_text(value)) == value


def test_what_does_not_fit_is_refused_in_words_and_nothing_is_chosen(show):
    shown = show(entry_of("GenerationOptions.top_p"))
    shown.type("3")
    assert "from 0 up to 1" in shown.error()
    shown.type("x")
    assert "use a number" in shown.error()
    assert shown.chosen == []
    shown.row.show_value(0.95)
    assert shown.error() == ""


def test_a_switch_tells_what_it_is_now(show):
    shown = show(entry_of("GenerationOptions.cache_prompt"))
    QTest.mouseClick(shown.row.findChild(Switch), Qt.MouseButton.LeftButton)
    assert shown.chosen == [False]


def test_a_row_is_found_by_label_flag_key_and_help(show):
    row = show(entry_of("LoadOptions.n_cpu_moe")).row
    assert all(row.matches(query) for query in ("expert", "--n-cpu-moe", "n_cpu", "Cheapest way", "experts RAM"))
    assert not row.matches("experts on the moon")
