"""How long the message that is being typed is, in tokens of the loaded model."""

import asyncio

import msgspec
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from qwendesk.engine.protocol import Measure, ServedBy
from tests.fakes.engine import DEMO_REPORT, ScriptedAnswer
from tests.window_desk import Desk


def counted(desk: Desk, text: str) -> int:
    """Return how often the engine was asked for the length of this text."""
    asked = [request for request in desk.client.requests if isinstance(request, Measure)]
    return sum(len(each.messages) == 1 and each.messages[0].text == text for each in asked)


async def test_the_tokens_of_what_is_typed_are_shown_after_a_pause(desk: Desk) -> None:
    assert not desk.is_shown("composer.tokens")
    desk.type("one two three")
    await desk.until(lambda: desk.is_shown("composer.tokens"))
    assert desk.text_of("composer.tokens") == "3 tokens"
    desk.type(" four")
    await desk.until(lambda: desk.text_of("composer.tokens") == "4 tokens")
    assert counted(desk, "one two three") == 1, "not for each key"
    desk.composer_text.clear()
    assert not desk.is_shown("composer.tokens")


async def test_a_message_that_is_typed_during_an_answer_is_counted_after_it(desk: Desk) -> None:
    desk.client.answers.append(ScriptedAnswer(text="word " * 5000, tokens_per_second=300))
    desk.send("Write a lot")
    await desk.until(lambda: desk.has("thread.message.1"))
    desk.type("a b")
    desk.window.chat_page._typed_tokens._count()
    assert counted(desk, "a b") == 0
    QTest.keyClick(desk.composer_text, Qt.Key.Key_Escape)
    await desk.until(lambda: desk.is_shown("composer.tokens"))
    assert desk.text_of("composer.tokens") == "2 tokens"


async def test_a_server_gets_nothing_before_it_is_sent(desk: Desk) -> None:
    tokens = desk.window.chat_page._typed_tokens
    served = ServedBy(name="My server", address="http://127.0.0.1:11434", program="Ollama")
    tokens.show_report(msgspec.structs.replace(DEMO_REPORT, served_by=served))
    desk.type("a secret")
    tokens._count()
    for _ in range(5):
        await asyncio.sleep(0)  # what was started would have asked by now
    assert counted(desk, "a secret") == 0
    assert not desk.is_shown("composer.tokens")
