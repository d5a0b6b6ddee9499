"""Try it: the server turned on and asked with one click, and code to copy."""

import asyncio
import json

from PySide6.QtCore import QPoint
from PySide6.QtWidgets import QApplication, QPlainTextEdit, QWidget

from qwendesk.server.try_it import QUESTION
from tests.fakes.answer_stream import ScriptedAnswer
from tests.server.view.conftest import ServerDesk

SILENT = "The answer appears here."


def code(desk: ServerDesk) -> str:
    return desk.find("serve.try.code", QPlainTextEdit).toPlainText()


async def test_one_click_turns_the_server_on_and_shows_the_answer_and_the_request(desk: ServerDesk) -> None:
    assert desk.text_of("serve.try.test") == "Turn on and test"
    assert desk.text_of("serve.requests.none").endswith("Press Turn on and test to see one here.")
    desk.click("serve.try.test")
    await desk.until(lambda: desk.text_of("serve.try.answer") == f"You said: {QUESTION}")
    assert desk.text_of("serve.try.figures").endswith("tok/s")
    assert desk.text_of("serve.try.test") == "Test"
    assert desk.services.settings.options.serve
    await desk.until(lambda: desk.has("serve.request.1.6") and desk.text_of("serve.request.1.6") == "done")
    assert desk.text_of("serve.request.1.0") == "QwenDesk-Test"


async def test_code_hides_the_key_and_the_copy_has_it(desk: ServerDesk) -> None:
    await desk.switch_on()
    key = desk.services.server.state.keys[0].key
    for language, beginning in (("python", "from openai"), ("javascript", "const question"), ("curl", "curl http")):
        desk.click(f"serve.try.{language}")
        assert code(desk).startswith(beginning)
        assert key not in code(desk)
        desk.click("serve.try.copy")
        copied = QApplication.clipboard().text()
        assert copied.replace(key, "") == code(desk).replace(f"{key[:3]}••••••••{key[-4:]}", "")
        assert key in copied
    assert json.dumps(QUESTION) in code(desk).replace('\\"', '"')


async def test_nothing_moves_when_the_server_is_turned_on(desk: ServerDesk) -> None:
    def places() -> list[tuple[int, int]]:
        window = desk.window
        found = (desk.find(name, QWidget) for name in ("serve.try.copy", "serve.try.answer", "serve.key.copy"))
        return [(each.mapTo(window, QPoint()).x(), each.mapTo(window, QPoint()).y()) for each in found]

    before = places()
    await desk.switch_on()
    await desk.until(lambda: desk.text_of("serve.try.test") == "Test")
    await asyncio.sleep(0)

    assert places() == before


async def test_the_key_of_a_server_that_is_off_looks_as_if_it_cannot_be_copied(desk: ServerDesk) -> None:
    copy_address, copy_key = (desk.find(name, QWidget) for name in ("serve.openai.copy", "serve.key.copy"))
    assert not copy_key.isEnabled()
    assert copy_key.grab().toImage() != copy_address.grab().toImage()

    await desk.switch_on()
    assert copy_key.grab().toImage() == copy_address.grab().toImage()


async def test_test_can_be_stopped(desk: ServerDesk) -> None:
    await desk.switch_on()
    desk.client.answers = [ScriptedAnswer(text="word " * 5000, tokens_per_second=20)]
    desk.click("serve.try.test")
    await desk.until(lambda: desk.has("serve.request.1.6") and desk.text_of("serve.request.1.6") == "writing")
    assert desk.text_of("serve.try.test") == "Stop"
    desk.click("serve.try.test")
    await desk.until(lambda: desk.text_of("serve.request.1.6") == "stopped")
    assert (desk.text_of("serve.try.test"), desk.text_of("serve.try.answer")) == ("Test", SILENT)
