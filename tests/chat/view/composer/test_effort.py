"""The menu of the reasoning effort, which only some chat templates take."""

import msgspec
from PySide6.QtGui import QAction

from qwendesk.chat.view.composer.composer_text import ComposerText
from qwendesk.chat.view.composer.thinking_menu import EffortMenu
from qwendesk.core.options import LoadOptions
from qwendesk.engine.protocol import LoadReport, TemplateAbilities
from tests.fakes.engine import DEMO_REPORT
from tests.window_desk import Desk

WITH_EFFORT = TemplateAbilities(
    source="model",
    enable_thinking=True,
    preserve_thinking=True,
    tools=True,
    preserves_by_default=True,
    reasoning_efforts=("low", "medium", "xhigh"),
    default_effort="xhigh",
)


async def load(desk: Desk, abilities: TemplateAbilities) -> None:
    desk.client.report = msgspec.structs.replace(DEMO_REPORT, template=abilities)
    report = await desk.parts.engine.load(LoadOptions(model="/models/with-effort.gguf"))
    assert isinstance(report, LoadReport)


def menu(desk: Desk) -> EffortMenu:
    return desk.window.findChild(EffortMenu)


async def test_the_effort_is_chosen_among_the_values_of_the_template(desk: Desk) -> None:
    assert not menu(desk).menuAction().isVisible()
    await load(desk, WITH_EFFORT)
    assert (menu(desk).menuAction().isVisible(), menu(desk).title()) == (True, "Effort: Very high")
    assert [action.text() for action in menu(desk).actions()] == ["Low", "Medium", "Very high (default)"]

    desk.window.findChild(QAction, "composer.effort.low").trigger()
    await desk.ask("Why?")

    assert menu(desk).title() == "Effort: Low"
    assert desk.client.asked[-1].options.reasoning_effort == "low"


async def test_the_default_effort_is_left_to_the_template(desk: Desk) -> None:
    await load(desk, WITH_EFFORT)
    desk.window.findChild(QAction, "composer.effort.low").trigger()
    desk.window.findChild(QAction, "composer.effort.xhigh").trigger()
    await desk.ask("Why?")

    assert desk.client.asked[-1].options.reasoning_effort == "auto"


async def test_the_effort_is_hidden_without_thinking(desk: Desk) -> None:
    await load(desk, WITH_EFFORT)
    desk.parts.chat.set_thinking(False)
    assert not menu(desk).menuAction().isVisible()


async def test_earlier_thinking_is_sent_where_the_template_keeps_it_by_itself(desk: Desk) -> None:
    await desk.ask("Why?")
    assert not desk.client.asked[-1].options.preserve_thinking

    await load(desk, WITH_EFFORT)
    await desk.ask("And then?")
    assert desk.client.asked[-1].options.preserve_thinking

    desk.parts.chat.set_overrides({"preserve_thinking": "off"})
    await desk.ask("And now?")
    assert not desk.client.asked[-1].options.preserve_thinking


async def test_typed_switches_of_qwen3_are_answered_with_the_button(desk: Desk) -> None:
    for text in ("/no_think What is 2 + 2?", "Hello /think", "one\n/nothink"):
        desk.find("composer.text", ComposerText).setPlainText(text)
        assert "Thinking button" in desk.text_of("composer.notice"), text
    for text in ("What does /thinking mean?", "a/think", "think"):
        desk.find("composer.text", ComposerText).setPlainText(text)
        assert not desk.is_shown("composer.notice"), text
