"""The user's presets in the inspector and in the composer."""

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAction
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QComboBox, QLineEdit, QMenu, QPlainTextEdit, QPushButton, QSlider, QWidget

from qwendesk.core import paths
from tests.window_desk import Desk

TEMPERATURE = "inspector.sampling.sampling.temperature"
GRAMMAR = "inspector.sampling.output.grammar"


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("config", "data", "cache"):
        monkeypatch.setattr(paths, f"{name}_folder", lambda name=name: tmp_path / name)


async def open_sampling(desk: Desk) -> None:
    choose(desk, "action.inspector")
    await desk.until(lambda: desk.is_shown("inspector.tab.sampling"))
    desk.click("inspector.tab.sampling")


def choose(desk: Desk, name: str) -> None:
    action = desk.window.findChild(QAction, name)
    assert action is not None, name
    assert action.isEnabled(), name
    action.trigger()


def checked(desk: Desk) -> list[str]:
    """What the composer's menu marks."""
    actions = desk.find("composer.preset", QPushButton).menu().actions()
    return [action.objectName() for action in actions if action.isChecked()]


def has_action(desk: Desk, name: str) -> bool:
    return desk.window.findChild(QAction, name) is not None


def type_into(desk: Desk, name: str, text: str) -> None:
    field = desk.find(name, QLineEdit)
    field.selectAll()
    QTest.keyClicks(field, text)
    QTest.keyClick(field, Qt.Key.Key_Return)


async def test_presets_are_saved_used_updated_renamed_and_deleted(desk: Desk) -> None:
    await open_sampling(desk)
    type_into(desk, TEMPERATURE, "0.3")
    choose(desk, "composer.preset.keep")
    assert desk.find("inspector.presets.name", QWidget).isVisible()
    type_into(desk, "inspector.presets.name", "General")
    assert "built-in style" in desk.text_of("inspector.presets.words")
    type_into(desk, "inspector.presets.name", "Dry & cold")
    assert not desk.is_shown("inspector.presets.name")
    assert desk.text_of("composer.preset") == "Dry && cold"
    assert not desk.is_shown(f"{TEMPERATURE}.mark"), "it is what the preset says"
    desk.parts.chat.new_chat()
    desk.parts.chat.set_style("general")
    assert checked(desk) == ["composer.preset.general"]
    choose(desk, "composer.preset.own.Dry & cold")
    assert checked(desk) == ["composer.preset.own.Dry & cold"]
    await desk.ask("Hi")
    asked = desk.client.asked
    assert asked[-1].options.temperature == 0.3
    type_into(desk, TEMPERATURE, "0.5")
    assert desk.text_of("inspector.presets") == desk.text_of("composer.preset") == "Dry && cold, changed"
    assert checked(desk) == ["composer.preset.custom"]
    choose(desk, "inspector.presets.update")
    assert desk.text_of("inspector.presets") == "Dry && cold"
    choose(desk, "inspector.presets.rename.Dry & cold")
    type_into(desk, "inspector.presets.name", "Cool")
    assert desk.text_of("composer.preset") == "Cool"
    choose(desk, "inspector.presets.delete.Cool")
    assert not has_action(desk, "inspector.presets.use.Cool")
    assert desk.parts.chat.options().temperature == 0.5
    desk.click("inspector.presets.undo")
    assert has_action(desk, "inspector.presets.use.Cool")
    await desk.until(lambda: not desk.is_shown("inspector.presets.undo"))
    choose(desk, "inspector.presets.card.precise.instruct")
    chat = desk.parts.chat
    assert (chat.thinking, chat.style, chat.settings.preset_name) == (False, "precise", "")


async def test_a_new_chat_starts_from_the_preset_and_the_changes_stay_in_their_chat(desk: Desk) -> None:
    await open_sampling(desk)
    usual = desk.find(TEMPERATURE, QLineEdit).text()
    assert not desk.is_shown("inspector.sampling.changes")
    type_into(desk, TEMPERATURE, "0.3")
    desk.parts.chat.set_thinking_budget(512)
    desk.window.chat_page.toggle_thinking()
    assert "Temperature 0.3, Thinking budget 512 tokens" in desk.text_of("inspector.sampling.changes")
    assert desk.is_shown("inspector.sampling.thinking.thinking_budget"), "a changed option can be reset where it is"
    await desk.ask("Hi")
    changed_chat = desk.parts.chat.chat_id
    choose(desk, "action.new_chat")
    assert desk.find(TEMPERATURE, QLineEdit).text() == usual
    assert desk.text_of("composer.thinking").endswith("On")
    assert not desk.is_shown("inspector.sampling.changes")
    assert desk.parts.chat.chat_id != changed_chat


async def test_thinking_can_be_off_in_new_chats(desk: Desk) -> None:
    desk.parts.services.settings.change({"think_in_new_chats": False})
    choose(desk, "action.new_chat")
    assert desk.text_of("composer.thinking").endswith("Thinking: Off")
    desk.window.chat_page.toggle_thinking()
    choose(desk, "action.new_chat")
    assert desk.text_of("composer.thinking").endswith("Thinking: Off")


async def test_changes_for_this_chat_are_reset_together(desk: Desk) -> None:
    await open_sampling(desk)
    desk.parts.chat.set_overrides({"temperature": desk.find(TEMPERATURE, QLineEdit).text()})
    assert not desk.is_shown("inspector.sampling.changes"), "the value of the preset is no change"
    type_into(desk, TEMPERATURE, "0.3")
    desk.click("inspector.sampling.reset")
    assert desk.parts.chat.settings.overrides == {}
    assert not desk.is_shown("inspector.sampling.changes")


async def test_menus_do_not_pile_up_while_options_change(desk: Desk) -> None:
    desk.parts.chats.services.presets.save("Mine")
    before = len(desk.window.findChildren(QMenu))
    for temperature in ("0.1", "0.2", "0.3"):
        desk.parts.chat.set_sampling({"temperature": temperature})
    assert len(desk.window.findChildren(QMenu)) == before


async def test_a_slider_changes_a_sampling_value_of_this_chat(desk: Desk) -> None:
    await open_sampling(desk)
    slider = desk.find(f"{TEMPERATURE}.slider", QSlider)
    slider.setFocus()
    QTest.keyClick(slider, Qt.Key.Key_Home)
    QTest.keyClick(slider, Qt.Key.Key_Right)
    assert desk.parts.chat.options().temperature == 0.05
    assert desk.find(TEMPERATURE, QLineEdit).text() == "0.05"
    type_into(desk, TEMPERATURE, "5")
    assert slider.value() == slider.maximum()


async def test_a_saved_prompt_with_a_style_replaces_the_preset(desk: Desk) -> None:
    await open_sampling(desk)
    type_into(desk, TEMPERATURE, "0.3")
    choose(desk, "inspector.presets.keep")
    type_into(desk, "inspector.presets.name", "Mine")
    desk.click("inspector.tab.system")
    kept = desk.find("inspector.system.kept", QComboBox)
    for prompt, shown in (("Short answers", "Mine"), ("Code review", "Coding")):
        kept.setCurrentIndex(next(row for row in range(kept.count()) if kept.itemText(row).startswith(prompt)))
        kept.activated.emit(kept.currentIndex())
        assert desk.text_of("composer.preset") == shown, prompt
    assert desk.parts.chat.settings.preset_values == {}


async def test_a_grammar_that_the_engine_cannot_stand_is_refused_and_another_is_sent(desk: Desk) -> None:
    await open_sampling(desk)
    desk.click("inspector.sampling.advanced")
    field = desk.find(GRAMMAR, QPlainTextEdit)
    field.setPlainText('root ::= "a"{3,2}')
    QTest.keyClick(field, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    assert "the lower one comes first" in desk.text_of(f"{GRAMMAR}.error")
    assert field.toPlainText() == 'root ::= "a"{3,2}', "what was typed stays to be put right"
    text = 'root ::= "yes"\n  # or\n'
    field.setPlainText(text)
    QTest.keyClick(field, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    assert not desk.is_shown(f"{GRAMMAR}.error")
    await desk.ask("Hi")
    assert desk.client.asked[-1].options.grammar == text
    desk.click("inspector.tab.system")
    desk.find("inspector.system.schema", QPlainTextEdit).setPlainText("{}")
    assert "either a JSON schema or a grammar" in desk.text_of("inspector.system.complaint")
    desk.parts.chat.set_style("precise")
    assert desk.parts.chat.options().grammar == text, "a style is no reason to lose it"
    desk.parts.chat.new_chat()
    assert (desk.parts.chat.options().grammar, field.toPlainText()) == ("", "")


async def test_a_closing_text_must_end_thinking(desk: Desk) -> None:
    await open_sampling(desk)
    desk.click("inspector.sampling.advanced")
    name = "inspector.sampling.thinking.thinking_close"
    field = desk.find(name, QPlainTextEdit)
    before = desk.parts.chat.options().thinking_close
    assert field.toPlainText() == before
    field.setPlainText("Enough.")
    QTest.keyClick(field, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    assert "</think>" in desk.text_of(f"{name}.error")
    assert desk.parts.chat.options().thinking_close == before
    QTest.keyClick(field, Qt.Key.Key_Escape)
    assert field.toPlainText() == before
    field.setPlainText("Enough.\n</think>\n\n")
    QTest.keyClick(field, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    assert desk.parts.chat.options().thinking_close == "Enough.\n</think>\n\n"
