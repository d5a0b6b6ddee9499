"""The thread follows a streaming answer only while it is scrolled to the end."""

import pytest

from qwendesk.chat.view.thread.assistant_message import AssistantMessage
from tests.fakes.engine import ScriptedAnswer
from tests.window_desk import Desk

LONG = "\n\n".join(f"Paragraph {number} of a long answer." for number in range(80))


async def test_thread_scrolls_with_a_streaming_answer(desk: Desk) -> None:
    desk.client.answers.append(ScriptedAnswer(text=LONG))
    await desk.ask("Long")
    bar = desk.window.chat_page.thread_view.verticalScrollBar()
    await desk.until(lambda: bar.maximum() > 500 and bar.value() == bar.maximum())
    assert not desk.is_shown("thread.latest")


async def test_thread_does_not_scroll_if_the_user_scrolled_up(desk: Desk) -> None:
    view = desk.window.chat_page.thread_view
    bar = view.verticalScrollBar()
    desk.client.answers += [ScriptedAnswer(text=LONG), ScriptedAnswer(text=LONG, tokens_per_second=300)]
    await desk.ask("Long")
    await desk.until(lambda: bar.maximum() > 500 and bar.value() == bar.maximum())
    desk.send("More")
    await desk.until(lambda: desk.has("thread.message.2") and bool(desk.message(2).answer_view.markdown))
    bar.setValue(100)
    before = bar.maximum()
    assert desk.is_shown("thread.latest")
    await desk.until(lambda: not desk.parts.chat.busy)
    assert bar.maximum() >= before  # a slow machine may have written it all before
    assert bar.value() == 100
    desk.click("thread.latest")
    assert bar.value() == bar.maximum()
    assert not desk.is_shown("thread.latest")


async def test_a_long_streaming_answer_draws_finished_blocks_once(desk: Desk) -> None:
    desk.client.answers.append(ScriptedAnswer(text=LONG, chunk=3))
    await desk.ask("Long")
    view = desk.message(1).answer_view
    await desk.until(lambda: view.is_complete)
    assert sum(len(section.blocks) for section in view.sections) == 80
    assert 0 < view.blocks_written <= 80  # those that were never near the view are not drawn at all


async def test_pieces_of_text_are_combined_before_they_reach_the_widgets(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    handed_on: list[str] = []
    monkeypatch.setattr(AssistantMessage, "write", lambda _message, _kind, text: handed_on.append(text))
    desk.client.answers.append(ScriptedAnswer(text="word " * 2000))
    await desk.ask("Fast")
    assert "".join(handed_on).split() == ["word"] * 2000
    assert len(handed_on) < 500
