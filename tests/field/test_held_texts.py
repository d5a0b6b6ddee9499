"""Texts that are no markup, prices and writing from right to left: shown, copied, sent and kept as they are."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from PySide6.QtWidgets import QAbstractButton, QApplication

from qwendesk.chat.view.thread.user_message import UserMessage
from qwendesk.cli import ask as cli_ask
from qwendesk.cli import main as cli
from qwendesk.mcp.server_config import NewServer
from qwendesk.mcp.service import McpService
from qwendesk.widgets.text_pane import TextPane
from tests.chat.exchange.kit import Kit, gpt_chat, gpt_node
from tests.fakes.answer_stream import ScriptedAnswer
from tests.fakes.engine import FakeEngineClient, ready
from tests.field.grid import SERVER, Kind, Way, case
from tests.mcp.conftest import no_keyring, service  # noqa: F401
from tests.mcp.servers import added, call, friendly
from tests.server.http_desk import http_desk
from tests.window_desk import Desk

TEXTS_AS_THEY_ARE = Kind("Angle brackets, prices, control tokens or right-to-left text are changed or lost")
TEXTS = {
    "angle brackets": "Why is <b>bold</b> no List<int>, and a < b && b > c? </p> <!-- x -->",
    "prices": "Between $5 and $10: $1,000 a month, not $20.",
    "control tokens": "What are <|im_start|> and <|im_end|>, <think>, <tool_call> and [INST]?",
    "Arabic": "مرحبا بالعالم: print(x) تطبع 3 أسطر",
    "Hebrew": "שלום `x < 3` עולם 42%",
    "marks of direction": "abc \u202bדוד\u202c \u200fdef\u200e \u2067مرحبا\u2069 end",
}
each_text = pytest.mark.parametrize("text", TEXTS.values(), ids=list(TEXTS))
ADDRESSES = {"/v1/chat/completions": "messages", "/v1/responses": "input", "/v1/messages": "messages"}
HELD = "fifty public reports of others, of which 23 held"


@case(TEXTS_AS_THEY_ARE, Way.WINDOW, report=HELD, before="held")
@each_text
async def test_the_window_shows_copies_and_sends_a_text_as_it_is(desk: Desk, text: str) -> None:
    await desk.load_demo()
    desk.client.answers = [ScriptedAnswer(text=text)]
    desk.composer_text.setPlainText(text)
    await desk.ask("")

    generated = desk.client.asked
    assert generated[0].messages[-1].text == text
    assert desk.find("thread.question.1", UserMessage).findChildren(TextPane)[0].toPlainText() == text
    assert desk.message(1).answer_view.toPlainText().strip() == text.replace("`", "")
    for name in ("question.copy", "copy"):
        QApplication.clipboard().setText("nothing yet")
        desk.find(f"thread.{name}.1", QAbstractButton).click()
        await desk.until(lambda: QApplication.clipboard().text() != "nothing yet")
        assert QApplication.clipboard().text() == text


PRICES = Kind(
    "A price is drawn as a formula",
    dict.fromkeys((Way.CLI, *SERVER, Way.MCP, Way.IMPORT), "only the window draws formulas"),
)


@case(PRICES, Way.WINDOW, report="found by trying prices of other countries", before="failed")
async def test_a_price_in_an_answer_is_no_formula(desk: Desk) -> None:
    text = "From $5 and 10$, US$3.50 for 2$ worth, $20 USD$, HK$100/2$."
    await desk.load_demo()
    desk.client.answers = [ScriptedAnswer(text=text)]
    await desk.ask("How much?")
    assert desk.message(1).answer_view.toPlainText().strip() == text


@case(TEXTS_AS_THEY_ARE, Way.CLI, report=HELD, before="held")
@each_text
def test_the_command_line_sends_and_prints_a_text_as_it_is(text: str, monkeypatch: Any, capsys: Any) -> None:
    client = FakeEngineClient(answers=[ScriptedAnswer(text=text)])
    monkeypatch.setattr(cli_ask, "preferred_client", lambda: ready(client))
    assert cli.main(["ask", "--json", "--system", text, text]) == 0
    (turn,) = json.loads(capsys.readouterr().out)["turns"]
    assert (turn["prompt"], turn["answer"]) == (text, text)
    (asked,) = client.asked
    assert [each.text for each in asked.messages] == [text, text]


@case(TEXTS_AS_THEY_ARE, *SERVER, report=HELD, before="held")
@pytest.mark.parametrize("path", ADDRESSES)
async def test_the_server_hands_on_a_text_as_it_is(path: str, tmp_path: Path) -> None:
    answers = [ScriptedAnswer(text=text) for text in TEXTS.values()]
    async with http_desk(tmp_path, answers) as desk:
        for text in TEXTS.values():
            body = {ADDRESSES[path]: [{"role": "user", "content": text}], "max_tokens": 99}
            answer = await desk.json("POST", path, body)
            assert desk.client.asked[-1].messages[-1].text == text
            assert text in _strings_in(answer)


def _strings_in(value: Any) -> list[str]:
    if isinstance(value, dict | list):
        return [text for each in (value.values() if isinstance(value, dict) else value) for text in _strings_in(each)]
    return [value] if isinstance(value, str) else []


@case(TEXTS_AS_THEY_ARE, Way.MCP, report=HELD, before="held")
async def test_the_result_of_an_mcp_server_is_a_text_as_it_is(service: McpService) -> None:  # noqa: F811
    server = friendly()
    given = {"TEXTS": "\n".join(TEXTS.values())}
    named = msgspec.structs.replace(server.config, environment=(*server.config.environment, "TEXTS"))
    await added(service, NewServer(named, {**server.secrets, **given}))
    assert await call(service, "variable", name="TEXTS") == given["TEXTS"]


@case(TEXTS_AS_THEY_ARE, Way.IMPORT, report=HELD, before="held")
async def test_an_import_and_an_export_keep_a_text_as_it_is(tmp_path: Path) -> None:
    nodes = [gpt_node(str(at), str(at - 1) if at else None, text=text) for at, text in enumerate(TEXTS.values())]
    kit = Kit(tmp_path)
    await kit.start()
    try:
        await kit.import_value([gpt_chat(*nodes)])
        assert [each.message.text for each in (await kit.tree()).nodes.values()] == [*TEXTS.values()]
        assert await kit.exchange.export(tmp_path / "chats.json", "json") == 1
        other = Kit(tmp_path / "other")
        await other.start()
        await other.exchange.import_from(tmp_path / "chats.json")
        assert [each.message.text for each in (await other.tree()).nodes.values()] == [*TEXTS.values()]
        await other.chat_list.close()
    finally:
        await kit.chat_list.close()
