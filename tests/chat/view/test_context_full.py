"""A chat that fills the context: the notice with its buttons, the gauge, and the way to a longer context."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QWidget

from qwendesk.engine.protocol import ServedBy
from tests.fakes.engine import DEMO_REPORT, FakeEngineClient, ScriptedAnswer
from tests.window_desk import Desk

N_CTX = 70
LONG = "word " * 42


async def full_desk(
    make_desk: Callable[[], Desk], client: FakeEngineClient, longest: int = 8 * N_CTX, architecture: str = "qwen35moe"
) -> Desk:
    """A chat of three turns, whose last answer stopped because the context is full.

    `longest` is the context length that the model was trained on.
    """
    client.report = msgspec.structs.replace(DEMO_REPORT, n_ctx=N_CTX, n_ctx_train=longest, architecture=architecture)
    desk = make_desk()
    await desk.load_demo()
    for text in ("One.", "Two."):
        client.answers.append(ScriptedAnswer(text=text))
        await desk.ask("Hi")
    client.answers.append(ScriptedAnswer(text=LONG, stop_reason="context_full"))
    await desk.ask("Tell me more")
    return desk


async def test_full_context_is_said_and_half_of_the_chat_can_be_skipped(
    make_desk: Callable[[], Desk], client: FakeEngineClient
) -> None:
    desk = await full_desk(make_desk, client)
    assert "context is full" in desk.text_of("composer.notice")
    gauge = desk.find("meter.context", QAbstractButton)
    await desk.until(lambda: gauge.property("tone") == "bad")
    desk.click("composer.skip")
    assert desk.parts.chat.settings.left_out_turns == 2
    assert "2 oldest questions" in desk.text_of("composer.notice")
    await desk.until(lambda: gauge.property("tone") != "bad")
    QTest.mouseClick(gauge, Qt.MouseButton.LeftButton)
    await desk.until(lambda: desk.is_shown("context.sheet") and "tokens" in desk.text_of("context.total"))
    total = desk.text_of("context.total").split()[0]
    assert gauge.text() == f"Context {total} / {N_CTX}"


async def test_full_chat_says_so_when_it_is_opened(make_desk: Callable[[], Desk], client: FakeEngineClient) -> None:
    desk = await full_desk(make_desk, client)
    chat = desk.parts.chat
    full = chat.chat_id, chat.tree, chat.settings
    chat.new_chat()
    assert not desk.is_shown("composer.notice")
    chat.open(*full)
    await desk.until(lambda: desk.is_shown("composer.notice"))
    assert desk.text_of("composer.notice") == "The context is full. Make room, then continue."
    assert desk.is_shown("composer.length")
    desk.click("composer.skip")
    assert chat.settings.left_out_turns == 2


async def test_longer_context_is_not_offered_if_the_model_allows_none(
    make_desk: Callable[[], Desk], client: FakeEngineClient
) -> None:
    desk = await full_desk(make_desk, client, longest=N_CTX, architecture="gemma3")
    assert desk.is_shown("composer.skip")
    assert not desk.is_shown("composer.length")


async def test_longer_context_is_offered_if_yarn_reaches_it(
    make_desk: Callable[[], Desk], client: FakeEngineClient
) -> None:
    desk = await full_desk(make_desk, client, longest=N_CTX)
    assert desk.is_shown("composer.length")


def test_a_model_on_a_server_is_not_loaded_from_here_with_a_longer_context() -> None:
    report = msgspec.structs.replace(DEMO_REPORT, n_ctx=N_CTX, n_ctx_train=8 * N_CTX)
    assert report.can_lengthen
    served = ServedBy(name="My server", address="http://127.0.0.1:1", program="llama-server")
    assert not msgspec.structs.replace(report, served_by=served).can_lengthen


async def test_gauge_shows_the_number_of_the_sheet_before_and_after(desk: Desk) -> None:
    desk.client.answers.append(ScriptedAnswer(reasoning="a b c", text="d e f g"))
    await desk.ask("Count")
    gauge = desk.find("meter.context", QAbstractButton)
    await desk.until(lambda: gauge.text() == "Context 18 / 32K")
    QTest.mouseClick(gauge, Qt.MouseButton.LeftButton)
    assert desk.text_of("context.total").startswith("18 of ")
    desk.click("context.turns")
    await desk.until(lambda: desk.text_of("context.total").startswith("5 of "))
    assert gauge.text() == "Context 5 / 32K"


async def test_a_message_that_no_longer_fits_is_kept_with_the_ways_to_make_room(
    make_desk: Callable[[], Desk], client: FakeEngineClient
) -> None:
    desk = await full_desk(make_desk, client)
    asked = len(client.asked)
    desk.send("And then one more thing")
    await desk.until(lambda: "context holds" in desk.text_of("composer.notice"))
    assert len(client.asked) == asked
    assert desk.composer_text.toPlainText() == "And then one more thing"
    desk.click("composer.skip")
    desk.press(Qt.Key.Key_Return)
    await desk.until(lambda: len(client.asked) > asked and not desk.parts.chat.busy)


async def test_skipping_is_not_offered_for_a_message_that_would_not_fit_alone(
    make_desk: Callable[[], Desk], client: FakeEngineClient
) -> None:
    desk = await full_desk(make_desk, client)
    desk.send("word " * (N_CTX + 10))
    await desk.until(lambda: "context holds" in desk.text_of("composer.notice"))
    assert desk.is_shown("composer.length")
    assert not desk.is_shown("composer.skip")


@pytest.mark.parametrize("way", ["message", "document"])
async def test_no_sentence_advises_a_longer_context_than_the_model_allows(
    make_desk: Callable[[], Desk], client: FakeEngineClient, tmp_path: Path, way: str
) -> None:
    desk = await full_desk(make_desk, client, longest=N_CTX, architecture="gemma3")
    text = "word " * (N_CTX + 10)
    if way == "message":
        desk.send(text)
    else:
        document = tmp_path / "long.txt"
        document.write_text(text, encoding="utf-8")
        desk.drop(document)
    await desk.until(lambda: "context holds" in desk.text_of("composer.notice"))
    assert desk.text_of("composer.notice").endswith("Shorten it, attach less, or start a new chat.")
    assert not desk.is_shown("composer.length")


@pytest.mark.parametrize("way", ["notice", "sheet"])
async def test_longer_context_leads_to_its_control(
    make_desk: Callable[[], Desk], client: FakeEngineClient, way: str
) -> None:
    desk = await full_desk(make_desk, client)
    if way == "sheet":
        QTest.mouseClick(desk.find("meter.context", QAbstractButton), Qt.MouseButton.LeftButton)
        await desk.until(lambda: desk.is_shown("context.sheet"))
    desk.click("composer.length" if way == "notice" else "context.length")
    field = desk.find("inspector.load.n_ctx", QWidget)
    await desk.until(lambda: QApplication.focusWidget() is field)
    await desk.until(lambda: field.visibleRegion().boundingRect().height() == field.height())
