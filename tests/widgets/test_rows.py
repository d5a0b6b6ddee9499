"""Every option of every table has a row that shows its value and takes it back as it is."""

from collections.abc import Callable, Iterator

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QAction, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QLabel, QLineEdit, QSlider

from qwendesk.core.app_options import AppOptions
from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.options import LoadOptions
from qwendesk.core.settings import Entry, parse, table
from qwendesk.widgets.buttons import ChevronButton
from qwendesk.widgets.controls import Switch
from qwendesk.widgets.rows.option_texts import choice_text, edit_text
from qwendesk.widgets.rows.row_factory import make_row
from qwendesk.widgets.rows.setting_row import AUTO_WIDTH, VALUE_WIDTH, SettingRow
from qwendesk.widgets.rows.sliding_row import SlidingRow
from qwendesk.widgets.theme_keeper import ThemeKeeper

ENTRIES = {
    f"{options.__name__}.{key}": entry
    for options in (AppOptions, LoadOptions, GenerationOptions)
    for key, entry in table(options).items()
}


class Shown:
    """One row, and what the user chose in it."""

    def __init__(self, entry: Entry) -> None:
        self.row: SettingRow = make_row(entry, "test")
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
        shown.append(Shown(entry))
        shown[-1].row.show_value(entry.default if value is None else value)
        shown[-1].row.show()
        return shown[-1]

    yield make
    for each in shown:
        each.row.deleteLater()


@pytest.mark.parametrize("name", ENTRIES)
def test_default_value_is_unmarked_and_restored_unchanged(show, name):
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


def test_number_with_a_named_value_has_a_button_for_it(show):
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


@pytest.mark.parametrize(("key", "word"), [("max_tokens", "Unlimited"), ("seed", "Random")])
def test_minus_one_is_shown_as_its_word(show: Callable[..., Shown], key: str, word: str) -> None:
    shown = show(ENTRIES[f"GenerationOptions.{key}"])
    field = shown.row.findChild(QLineEdit)
    assert (field.text(), field.placeholderText()) == ("", word)
    shown.type("7")
    shown.row.show_value(7)
    assert word in shown.row.findChild(QAbstractButton, f"{shown.row.name}.reset").toolTip()
    field.clear()
    field.setModified(True)
    QTest.keyClick(field, Qt.Key.Key_Return)
    assert shown.chosen == [7, -1]
    assert not shown.error()


def test_many_choices_are_in_a_menu(show):
    shown = show(entry_of("LoadOptions.type_k"), "q8_0")
    actions = {each.text(): each for each in shown.row.findChildren(QAction) if each.objectName()}
    assert actions["q8_0"].isChecked()
    actions["q4_0"].trigger()
    assert shown.chosen == ["q4_0"]


def test_list_items_may_contain_commas(show):
    shown = show(entry_of("GenerationOptions.stop"))
    shown.type("one; two, three")
    assert shown.chosen == [("one", "two, three")]
    for value in (("a,b",), ("a", "b,c"), ()):
        assert parse(entry_of("GenerationOptions.stop"), edit_text(value)) == value


def test_invalid_value_is_refused_with_a_message(show):
    shown = show(entry_of("GenerationOptions.top_p"))
    shown.type("3")
    assert "from 0 up to 1" in shown.error()
    shown.type("x")
    assert "Accepted: a number" in shown.error()
    assert shown.chosen == []
    field = shown.row.findChild(QLineEdit)
    shown.row.show_value(0.95)
    assert field.text() == "x", "the user can correct it, whatever else changes meanwhile"
    assert shown.error()
    QTest.keyClick(field, Qt.Key.Key_Escape)
    assert (field.text(), shown.error()) == ("0.95", "")
    shown.type("x")
    shown.row.show_value(0.5)
    assert (field.text(), shown.error()) == ("0.5", "")


def test_switch_reports_its_new_value(show):
    shown = show(entry_of("GenerationOptions.cache_prompt"))
    QTest.mouseClick(shown.row.findChild(Switch), Qt.MouseButton.LeftButton)
    assert shown.chosen == [False]


def test_a_row_is_found_by_label_flag_key_and_help(show):
    row = show(entry_of("LoadOptions.n_cpu_moe")).row
    assert all(row.matches(query) for query in ("expert", "--n-cpu-moe", "n_cpu", "Lowest cost", "experts RAM"))
    assert not row.matches("experts on the moon")


LISTS = [name for name, entry in ENTRIES.items() if entry.setting.placeholder]


@pytest.mark.parametrize("name", LISTS)
def test_the_example_in_an_empty_field_is_accepted(show: Callable[..., Shown], name: str) -> None:
    shown = show(ENTRIES[name])
    field = shown.row.findChild(QLineEdit)
    shown.type(field.placeholderText())
    assert shown.chosen
    assert not shown.error()


def test_the_wheel_over_a_slider_scrolls_the_panel(keeper: ThemeKeeper, app: QApplication) -> None:
    row = SlidingRow(ENTRIES["GenerationOptions.temperature"], "test", (0.0, 0.5, 1.0))
    row.show_value(0.5)
    slider = row.findChild(QSlider)
    down = QPoint(0, -120)
    none = (Qt.MouseButton.NoButton, Qt.KeyboardModifier.NoModifier, Qt.ScrollPhase.NoScrollPhase)
    wheel = QWheelEvent(QPointF(5, 5), QPointF(5, 5), down, down, *none, False)
    app.sendEvent(slider, wheel)
    assert slider.value() == 1
    assert not wheel.isAccepted()


def test_the_help_of_a_narrow_row_is_behind_a_question_mark(show: Callable[..., Shown]) -> None:
    row = show(ENTRIES["GenerationOptions.temperature"]).row
    row.stack()
    assert not row._help.isVisible()
    row.findChild(QAbstractButton, f"{row.name}.help").click()
    assert row._help.isVisible()


@pytest.mark.parametrize("name", [name for name in ENTRIES if name.startswith("LoadOptions")])
def test_rows_of_a_table_line_up_and_show_what_auto_takes(keeper: ThemeKeeper, name: str) -> None:
    row = make_row(ENTRIES[name], "test", in_table=True)
    row.show_value(ENTRIES[name].default)
    row.show_auto("0 of 40")
    row.resize(560, row.sizeHint().height())
    row.show()
    auto = row.findChild(QLabel, f"{row.name}.auto")
    assert (auto.text(), auto.width()) == ("0 of 40", AUTO_WIDTH)
    editors = [each for each in (*row.findChildren(QLineEdit), *row.findChildren(ChevronButton)) if each.isVisible()]
    assert len(editors) + len(row.findChildren(Switch)) == 1, "one editor for each option"
    lefts = {each.mapTo(row, QPoint()).x() for each in (*editors, *row.findChildren(Switch))}
    assert lefts == {560 - AUTO_WIDTH - VALUE_WIDTH - 12}
    row.deleteLater()


def test_the_word_of_a_number_in_a_table_is_typed_or_left_empty(keeper: ThemeKeeper) -> None:
    row, chosen = make_row(ENTRIES["LoadOptions.n_gpu_layers"], "test", in_table=True), []
    row.chosen.connect(chosen.append)
    field = row.findChild(QLineEdit)
    row.show_value("auto")
    assert (field.text(), field.placeholderText()) == ("", "Auto")
    for text in ("all", "12", ""):
        field.setText(text)
        field.setModified(True)
        QTest.keyClick(field, Qt.Key.Key_Return)
    assert chosen == ["all", 12, "auto"]
    row.deleteLater()


@pytest.mark.parametrize("entry", [e for e in table(AppOptions).values() if e.choices], ids=lambda entry: entry.key)
def test_choices_of_the_settings_page_are_words(entry: Entry) -> None:
    """Only options of the load and of the generation have llama.cpp's terms."""
    written_as_stored = [each for each in entry.choices if each and choice_text(each) == each]

    assert not written_as_stored
