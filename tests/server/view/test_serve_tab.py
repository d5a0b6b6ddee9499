"""The tab Share this model as a user sees it."""

import asyncio
import json
import socket
from typing import Any

import aiohttp
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QLineEdit, QPlainTextEdit, QScrollArea, QWidget

from qwendesk.core import paths
from qwendesk.server.access import KEY_VARIABLE
from qwendesk.server.service import ServerState
from qwendesk.server.switch import SwitchState
from qwendesk.server.view.address_card import AddressCard
from qwendesk.widgets.tasks import window_tasks
from qwendesk.widgets.theme_keeper import app_theme
from tests.fakes.answer_stream import ScriptedAnswer
from tests.server.setups.programs import write_program
from tests.server.view.conftest import ServerDesk, free_port


async def ask(desk: ServerDesk, key: str = "", **headers: str) -> tuple[int, dict[str, Any]]:
    """Ask a question as a program does, and return the status and the body."""
    state = desk.services.server.state
    sent = {"Authorization": f"Bearer {key or state.keys[0].key}", "User-Agent": "claude-cli/2.1", **headers}
    body = {"messages": [{"role": "user", "content": "Hello"}]}
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{state.address}/v1/chat/completions", json=body, headers=sent) as response,
    ):
        return response.status, await response.json()


def state_of(desk: ServerDesk, line: int) -> str:
    """Return what a line of the list says of its request; "" if there is no such line."""
    name = f"serve.request.{line}.6"
    return desk.text_of(name) if desk.has(name) else ""


def copied() -> str:
    return QApplication.clipboard().text()


async def test_it_is_off_until_the_user_switches_it_on_and_programs_then_get_answers(desk: ServerDesk) -> None:
    assert desk.text_of("serve.title") == "Off"
    port = desk.services.settings.options.server_port
    assert desk.text_of("serve.openai") == f"http://127.0.0.1:{port}/v1", "it is known before"
    assert not desk.find("serve.key.copy", QAbstractButton).isEnabled()
    assert not desk.find("serve.program.claude.setup", QAbstractButton).isEnabled()

    await desk.switch_on()

    assert (desk.text_of("serve.title"), desk.text_of("serve.reach")) == ("On", "This PC only")
    address = desk.services.server.state.address
    assert desk.text_of("serve.openai") == f"{address}/v1"
    desk.click("serve.openai.copy")
    assert copied() == f"{address}/v1"
    status, answer = await ask(desk)
    assert (status, answer["choices"][0]["message"]["content"]) == (200, "You said: Hello")

    desk.click("serve.on")
    await desk.until(lambda: not desk.services.server.state.is_on)
    assert desk.text_of("serve.title") == "Off"
    assert not desk.services.settings.options.serve


async def test_the_key_is_hidden_until_it_is_asked_for(desk: ServerDesk) -> None:
    await desk.switch_on()
    key = desk.services.server.state.keys[0].key
    assert key not in desk.text_of("serve.key")
    assert desk.text_of("serve.key").endswith(key[-4:])

    desk.click("serve.key.copy")
    assert copied() == key
    assert desk.text_of("serve.key.copy") == "Copied"
    desk.click("serve.key.show")
    assert desk.text_of("serve.key") == key
    desk.click("serve.key.show")
    assert key not in desk.text_of("serve.key")


async def test_a_new_key_is_made_after_a_question_and_the_old_one_is_refused(desk: ServerDesk) -> None:
    await desk.switch_on()
    old = desk.services.server.state.keys[0].key
    desk.click("serve.key.new")
    desk.click("serve.key.question.no")
    await desk.until(lambda: not desk.has("serve.key.question"))
    assert desk.services.server.state.keys[0].key == old

    desk.click("serve.key.new")
    desk.click("serve.key.question.yes")
    await desk.until(lambda: desk.services.server.state.is_on and desk.services.server.state.keys[0].key != old)

    assert (await ask(desk, old))[0] == 401
    await desk.until(lambda: desk.has("serve.request.1.6"))
    await desk.until(lambda: state_of(desk, 1).startswith("refused: The key is wrong"))
    assert (await ask(desk))[0] == 200


async def test_a_key_of_the_environment_is_not_replaced(desk: ServerDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, "a-key-of-the-environment")
    said: list[str] = []
    window_tasks().refused.connect(said.append)
    await desk.switch_on()
    desk.click("serve.key.new")
    desk.click("serve.key.question.yes")
    await desk.until(lambda: bool(said))
    assert KEY_VARIABLE in said[0]
    assert not (paths.config_folder() / "server.key").exists()
    assert (await ask(desk, "a-key-of-the-environment"))[0] == 200


async def test_a_port_that_is_taken_is_a_sentence_and_one_click_finds_another(desk: ServerDesk) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", desk.services.settings.options.server_port))
        other.listen()
        desk.click("serve.on")
        await desk.until(lambda: desk.is_shown("serve.problem"))
        assert str(desk.services.settings.options.server_port) in desk.text_of("serve.problem")
        assert "taken by another program" in desk.text_of("serve.problem")
        assert desk.text_of("serve.title") == "Couldn't start"
        assert not desk.is_shown("serve.about"), "it would say to turn on what is on"

        desk.click("serve.freeport")
        await desk.until(lambda: desk.services.server.state.is_on)

    assert not desk.is_shown("serve.problem")
    assert (await ask(desk))[0] == 200


async def test_a_server_that_starts_is_not_to_be_turned_on(desk: ServerDesk) -> None:
    card = desk.find("serve.card", AddressCard)
    busy = SwitchState(is_busy=True)
    card.show_state(ServerState(), busy, is_wanted=True, port=8765, lets_in=False, model="Built-in demo")
    assert desk.text_of("serve.title") == "Starting…"
    assert desk.text_of("serve.about") == ""


async def test_a_port_can_be_entered(desk: ServerDesk) -> None:
    await desk.switch_on()
    field, port = desk.find("serve.port", QLineEdit), free_port()
    field.setFocus()
    field.selectAll()
    QTest.keyClicks(field, str(port))
    QTest.keyClick(field, Qt.Key.Key_Return)
    await desk.until(lambda: desk.services.server.state.address.endswith(f":{port}"))
    assert desk.text_of("serve.anthropic").endswith(f":{port}")

    field.selectAll()
    QTest.keyClicks(field, "80")
    QTest.keyClick(field, Qt.Key.Key_Return)
    assert field.text() == str(port)


async def test_other_pcs_get_in_after_a_question_with_tls_and_a_fingerprint(desk: ServerDesk) -> None:
    await desk.switch_on()
    desk.click("serve.network")
    desk.click("serve.network.question.no")
    await desk.until(lambda: not desk.has("serve.network.question"))
    assert not desk.services.server.state.network_addresses

    desk.click("serve.network")
    desk.click("serve.network.question.yes")
    await desk.until(lambda: bool(desk.services.server.state.network_addresses))

    state = desk.services.server.state
    assert desk.text_of("serve.reach") == "Your network too"
    assert desk.text_of("serve.fingerprint") == state.fingerprint
    assert desk.text_of("serve.network.1").startswith("https://")
    assert desk.text_of("serve.certificate") == state.certificate_file
    assert (await ask(desk))[0] == 200  # programs on this PC need no certificate
    address = f"https://127.0.0.1:{desk.services.settings.options.server_port + 1}/health"
    fingerprint = aiohttp.Fingerprint(bytes.fromhex(state.fingerprint.replace(":", "")))
    async with aiohttp.ClientSession() as session, session.get(address, ssl=fingerprint) as response:
        assert response.status == 200

    desk.click("serve.network")
    await desk.until(lambda: not desk.services.server.state.network_addresses and desk.services.server.state.is_on)
    assert desk.text_of("serve.reach") == "This PC only"


async def test_requests_are_listed_with_their_tokens_and_can_be_stopped(desk: ServerDesk) -> None:
    await desk.switch_on()
    await desk.until(lambda: desk.is_shown("serve.requests.none"))
    assert desk.text_of("serve.requests.none") == "Nothing yet. Press Test to see one here."
    assert (await ask(desk))[0] == 200
    await desk.until(lambda: state_of(desk, 1) == "done")
    assert desk.text_of("serve.request.1.0") == "Claude Code"
    assert desk.text_of("serve.request.1.4") == "6"

    desk.client.answers = [ScriptedAnswer(text="word " * 5000, tokens_per_second=20)]
    running = asyncio.ensure_future(ask(desk))
    await desk.until(lambda: state_of(desk, 1) == "writing")
    assert state_of(desk, 2) == "done"
    assert desk.text_of("serve.requests.summary").startswith("1 running")
    desk.click("serve.request.1.stop")
    with pytest.raises(aiohttp.ServerDisconnectedError):
        await running
    await desk.until(lambda: state_of(desk, 1) == "stopped")
    assert not desk.is_shown("serve.request.1.stop")
    desk.click("serve.requests.clear")
    await desk.until(lambda: desk.is_shown("serve.requests.none"))


async def test_only_the_latest_refusal_is_red_and_more_than_four_requests_are_scrolled(desk: ServerDesk) -> None:
    await desk.switch_on()
    for key in ("wrong-key-of-somebody", "another-wrong-key"):
        assert (await ask(desk, key, **{"User-Agent": key}))[0] == 401
    for _ in range(4):
        assert (await ask(desk))[0] == 200
    await desk.until(lambda: desk.has("serve.request.6.6") and state_of(desk, 6).startswith("refused"))
    kinds = [desk.find(f"serve.request.{line}.6", QWidget).property("kind") for line in (5, 6)]
    assert kinds == ["error", "dim"]
    area = next(
        each
        for each in desk.window.findChildren(QScrollArea)
        if each.isAncestorOf(desk.find("serve.request.1.6", QWidget))
    )
    await desk.until(lambda: area.verticalScrollBar().maximum() > 0)


async def test_web_pages_are_let_in_by_a_setting_without_a_restart(desk: ServerDesk) -> None:
    desk.services.settings.change({"server_origins": ("http://localhost:3000/",)})
    await desk.switch_on()
    address, page = desk.services.server.state.address, {"Origin": "http://localhost:3000"}
    assert (await ask(desk, **page))[0] == 200
    assert (await ask(desk, Origin="https://other.example"))[0] == 403

    desk.services.settings.change({"server_origins": ("HTTPS://Other.example",)})
    assert (await ask(desk, **page))[0] == 403
    assert (await ask(desk, Origin="https://other.example"))[0] == 200
    assert desk.services.server.state.address == address, "it is the same server"

    desk.click("serve.origins")
    await desk.until(lambda: desk.is_shown("settings.server.server_origins"))


async def test_the_meter_shows_the_speed_of_an_answer_for_another_program(desk: ServerDesk) -> None:
    await desk.switch_on()
    desk.client.answers = [ScriptedAnswer(text="word " * 5000, tokens_per_second=50)]
    running = asyncio.ensure_future(ask(desk))
    await desk.until(lambda: state_of(desk, 1) == "writing")
    meter = desk.services.meters.service
    while meter.state.value.tok_s is None:  # until a second word has come
        await meter.sample()
    assert meter.state.value.answering
    desk.click("serve.request.1.stop")
    with pytest.raises(aiohttp.ServerDisconnectedError):
        await running
    await meter.sample()
    assert not meter.state.value.answering


async def test_a_program_is_found_and_tried(desk: ServerDesk) -> None:
    script = "import json, sys, urllib.request\nsettings = json.load(open(sys.argv[2]))['env']\n"
    script += (
        "body = json.dumps({'max_tokens': 10, 'messages': [{'role': 'user', 'content': sys.argv[-1]}]}).encode()\n"
    )
    script += "address = settings['ANTHROPIC_BASE_URL'] + '/v1/messages'\n"
    script += "headers = {'Authorization': 'Bearer ' + settings['ANTHROPIC_AUTH_TOKEN']}\n"
    script += "answer = json.load(urllib.request.urlopen(urllib.request.Request(address, body, headers)))\n"
    script += "print(answer['content'][-1]['text'])"
    write_program(desk.home / "bin", "claude", script)
    await desk.switch_on()
    await desk.until(lambda: desk.text_of("serve.program.claude.state") == "ready")
    assert desk.text_of("serve.program.codex.state") == "not found"

    assert desk.text_of("serve.program.claude.detail").endswith("qwendesk start claude")
    desk.click("serve.program.claude.copy")
    assert copied().endswith("qwendesk start claude")

    desk.click("serve.program.claude.try")
    await desk.until(lambda: desk.text_of("serve.program.claude.state") in ("works", "didn't answer"))
    assert desk.text_of("serve.program.claude.state") == "works"
    assert "You said: Reply" in desk.text_of("serve.program.claude.detail")
    assert [each.name for each in desk.home.iterdir()] == ["bin"]  # nothing of the program was changed


async def test_settings_are_shown_to_copy_without_the_key(desk: ServerDesk) -> None:
    await desk.switch_on()
    desk.click("serve.program.opencode.setup")
    await desk.until(lambda: desk.is_shown("serve.setup.copy"))
    key = desk.services.server.state.keys[0].key
    assert key not in desk.find("serve.setup.text", QPlainTextEdit).toPlainText()
    assert "plain text" in desk.text_of("serve.setup.warning")
    assert "opencode.json" in desk.text_of("serve.setup.file")

    desk.click("serve.setup.copy")
    assert json.loads(copied())["provider"]["qwendesk"]["options"]["apiKey"] == key
    desk.click("serve.setup.close")


async def test_it_can_be_switched_off_and_on_at_once_at_the_same_port(desk: ServerDesk) -> None:
    await desk.switch_on()
    address = desk.services.server.state.address
    async with aiohttp.ClientSession() as session, session.get(f"{address}/health") as response:
        assert response.status == 200
        desk.click("serve.on")
        await desk.until(lambda: not desk.services.server.state.is_on)  # it closes the connection that is still open
        await desk.switch_on()
    assert desk.services.server.state.address == address
    assert not desk.is_shown("serve.problem")


async def test_it_runs_again_after_the_next_start(desk: ServerDesk) -> None:
    desk.services.settings.change({"serve": True})
    desk.parts.start()
    await desk.until(lambda: desk.services.server.state.is_on)
    assert desk.text_of("serve.title") == "On"


async def test_a_start_that_fails_is_told_on_other_pages_too(desk: ServerDesk) -> None:
    desk.window.go_to("models")
    desk.services.settings.change({"serve": True})
    with socket.socket() as other:
        other.bind(("127.0.0.1", desk.services.settings.options.server_port))
        other.listen()
        desk.parts.start()
        await desk.until(lambda: desk.is_shown("trouble.sentence"))
    assert "taken by another program" in desk.text_of("trouble.sentence")


async def test_no_button_of_a_program_is_cut_off_where_there_is_little_room(desk: ServerDesk) -> None:
    await desk.switch_on()
    keeper = app_theme()
    try:
        keeper.set_text_scale(1.5)
        line = desk.find("serve.program.claude", QWidget)
        line.window().resize(700, 720)
        await desk.until(lambda: line.window().width() <= 900)

        def is_whole(name: str) -> bool:
            widget = desk.find(f"serve.program.claude.{name}", QWidget)
            end = widget.mapTo(line, widget.rect().topRight()).x()
            return widget.width() >= widget.sizeHint().width() and end < line.width()

        await desk.until(lambda: is_whole("setup") and is_whole("state"))
    finally:
        keeper.set_text_scale(1.0)
