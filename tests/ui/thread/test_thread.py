"""The conversation's scrolling: it follows its end only while the reader is there."""

from tests.fakes.engine import ScriptedAnswer
from tests.ui.desk import Desk

LONG = "\n\n".join(f"Paragraph {number} of a long answer." for number in range(80))


async def test_it_follows_a_streaming_answer(desk: Desk) -> None:
    desk.client.answers.append(ScriptedAnswer(text=LONG))
    await desk.ask("Long")
    bar = desk.window.chat_page.thread_view.verticalScrollBar()
    await desk.until(lambda: bar.maximum() > 500 and bar.value() == bar.maximum())
    assert not desk.is_shown("thread.latest")


async def test_a_reader_who_scrolled_up_is_left_alone(desk: Desk) -> None:
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
    assert desk.message(1).answer_view.blocks_written == 80


async def test_pieces_are_joined_before_they_reach_the_widgets(desk: Desk) -> None:
    handed_on: list[str] = []
    desk.parts.chat.wrote.connect(lambda _turn, _kind, text: handed_on.append(text))
    desk.client.answers.append(ScriptedAnswer(text="word " * 2000))
    await desk.ask("Fast")
    assert "".join(handed_on).split() == ["word"] * 2000
    assert len(handed_on) < 500
