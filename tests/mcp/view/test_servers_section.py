"""The card of MCP servers on the settings page: servers are added, pasted, tested, changed and removed."""

import json
from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QDialog, QLabel, QLineEdit, QPlainTextEdit, QWidget

from qwendesk.chat.view.composer.tools_menu import ToolsMenu
from qwendesk.core.files import read_whole
from qwendesk.mcp.server import McpServerState
from qwendesk.mcp.server_config import server_list_file
from qwendesk.widgets.controls import Switch
from tests.window_desk import Desk


async def write(desk: Desk, name: str, text: str) -> None:
    """Replace the text of a field, once it is on screen."""
    await desk.until(lambda: desk.is_shown(name))
    field = desk.find(name, QWidget)
    assert isinstance(field, QLineEdit | QPlainTextEdit)
    field.clear()
    QTest.keyClicks(field, text) if isinstance(field, QLineEdit) else field.setPlainText(text)


def servers(desk: Desk) -> tuple[McpServerState, ...]:
    return desk.parts.services.mcp.state.value.servers


async def add(desk: Desk, name: str, command: str = "server") -> None:
    """Add a program by the form."""
    number = len(servers(desk)) + 1
    desk.click("settings.mcp.add")
    await write(desk, "mcp.form.name", name)
    await write(desk, "mcp.form.command", command)
    desk.click("mcp.form.save")
    await desk.until(lambda: len(servers(desk)) == number and servers(desk)[-1].phase in ("running", "failed"))


def tokens_text() -> str:
    """The file with secrets, as there is no keyring."""
    return read_whole(server_list_file().path.with_name("tokens.json")).decode()


def tool_names(desk: Desk) -> list[str]:
    """What the model calls the tools of the servers."""
    return [tool.name for tool in desk.parts.services.toolbox.added.value]


def in_menu(desk: Desk) -> list[str]:
    """What the menu of tools in the message field offers of servers."""
    menu = desk.find("composer.menu.tools", ToolsMenu)
    menu.open()
    menu.close()
    shown = [each for each in menu.findChildren(Switch) if each.parentWidget().isVisibleTo(menu)]
    switches = [each for each in shown if "composer.tools.mcp/" in each.objectName()]
    return [each.accessibleName() for each in switches]


async def test_program_is_added_by_the_form_and_its_tools_are_listed(page: Desk) -> None:
    assert not page.has("settings.mcp.1")
    page.click("settings.mcp.add")
    await write(page, "mcp.form.name", "Notes")
    await write(page, "mcp.form.command", "notes-server")
    await write(page, "mcp.form.arguments", "--folder\n/data/my notes\n")
    page.click("mcp.form.variables.add")
    await write(page, "mcp.form.variables.1.name", "KEY")
    await write(page, "mcp.form.variables.1.value", "s3cret")
    page.click("mcp.form.save")

    await page.until(lambda: page.has("settings.mcp.1") and page.text_of("settings.mcp.1.status") == "Running, 2 tools")
    assert not page.is_shown("mcp.form")
    assert page.text_of("settings.mcp.1.command") == "notes-server --folder /data/my notes"
    [server] = servers(page)
    assert server.config.arguments == ("--folder", "/data/my notes")
    assert await page.parts.services.mcp.secrets(server.config.id) == {"KEY": "s3cret"}
    assert page.is_shown("settings.mcp.place"), "this PC has no keyring"
    await page.until(server_list_file().path.exists)
    assert "s3cret" not in server_list_file().path.read_text()
    assert not page.is_shown("settings.mcp.1.tool.1.about")
    page.click("settings.mcp.1.open")
    assert page.text_of("settings.mcp.1.about") == "It calls itself made up 1.0. Also: 1 prompt."
    assert page.text_of("settings.mcp.1.tool.1.about") == "Reads a note."


async def test_texts_of_a_server_are_shown_as_they_are(page: Desk) -> None:
    await add(page, "<i>Notes</i>", "<img>")
    page.click("settings.mcp.1.open")

    name, about = page.find("settings.mcp.1.title", QLabel), page.find("settings.mcp.1.tool.2.about", QLabel)
    assert about.text() == "Sends a note to <img src='x'>."
    assert {label.textFormat() for label in (name, about)} == {Qt.TextFormat.PlainText}
    assert page.find("settings.mcp.1.command", QLabel).toolTip() == "<img>", "tooltips show it as it is, too"


async def test_mistakes_in_the_form_are_named_and_nothing_is_added(page: Desk) -> None:
    await add(page, "Notes")
    page.click("settings.mcp.add")
    for name, command, sentence in (
        ("", "npx", "Enter a name for the server."),
        ("Files", "", '"Files" needs either a program (command) or an address (url).'),
        ("Files", "npx -y server", '"Files": the program is npx; -y server belongs to its arguments (args).'),
        ("notes", "npx", 'There is a server "notes" already. Choose another name.'),
    ):
        await write(page, "mcp.form.name", name)
        await write(page, "mcp.form.command", command)
        page.click("mcp.form.save")
        assert page.text_of("mcp.form.error") == sentence
    page.click("mcp.form.remote")
    await write(page, "mcp.form.name", "Far")
    await write(page, "mcp.form.address", "example.org")
    page.click("mcp.form.save")
    assert "is not an address" in page.text_of("mcp.form.error")
    page.click("mcp.form.cancel")
    assert len(servers(page)) == 1


async def test_address_is_added_with_its_header(page: Desk) -> None:
    page.click("settings.mcp.add")
    page.click("mcp.form.remote")
    assert not page.is_shown("mcp.form.command")
    await write(page, "mcp.form.name", "Far")
    await write(page, "mcp.form.address", "https://example.org/mcp")
    page.click("mcp.form.headers.add")
    await write(page, "mcp.form.headers.1.name", "Authorization")
    await write(page, "mcp.form.headers.1.value", "Bearer x")
    page.click("mcp.form.save")

    await page.until(lambda: bool(servers(page)))
    [server] = servers(page)
    assert (server.config.address, server.config.command) == ("https://example.org/mcp", "")
    assert await page.parts.services.mcp.secrets(server.config.id) == {"Authorization": "Bearer x"}


async def test_pasted_json_says_what_it_would_add_or_what_is_wrong(page: Desk) -> None:
    page.click("settings.mcp.paste")
    assert not page.find("mcp.paste.add", QAbstractButton).isEnabled()
    await write(page, "mcp.paste.field", '{"mcpServers": {"files": {"command": "npx" "args": []}}}')
    assert page.text_of("mcp.paste.found").startswith("This isn't valid JSON: Expecting ',' delimiter in line 1")
    assert not page.find("mcp.paste.add", QAbstractButton).isEnabled()
    pasted: dict[str, Any] = {
        "files": {"command": "npx", "args": ["-y", "files"], "env": {"TOKEN": "${input:token}"}},
        "far": {"url": "https://example.org/mcp", "headers": {"Authorization": "Bearer x"}},
    }
    await write(page, "mcp.paste.field", json.dumps({"mcpServers": pasted}))
    assert page.text_of("mcp.paste.found").splitlines() == [
        "files runs: npx -y files",
        "Enter TOKEN afterwards with Change.",
        "far connects to: https://example.org/mcp",
    ]
    assert servers(page) == (), "nothing runs before the user has said so"

    page.click("mcp.paste.add")

    await page.until(lambda: page.has("settings.mcp.2"))
    assert [each.config.name for each in servers(page)] == ["files", "far"]
    page.click("settings.mcp.paste")
    await write(page, "mcp.paste.field", json.dumps({"mcpServers": pasted}))
    assert 'There is a server "files" already.' in page.text_of("mcp.paste.found")
    page.click("mcp.paste.cancel")


async def test_switches_decide_what_the_chat_offers(page: Desk) -> None:
    await add(page, "R&D")
    await page.until(lambda: in_menu(page) == ["R&D (MCP server)"])
    page.click("settings.mcp.1.open")
    page.click("settings.mcp.1.tool.1.on")
    await page.until(lambda: tool_names(page) == ["r_d__b_send_b", "r_d__prompts"])
    page.click("settings.mcp.1.on")
    await page.until(lambda: in_menu(page) == [])
    assert page.text_of("settings.mcp.1.status") == "Off"
    page.click("settings.mcp.1.on")
    await page.until(lambda: in_menu(page) == ["R&D (MCP server)"])
    assert not page.find("settings.mcp.1.tool.1.on", QAbstractButton).isChecked()


async def test_server_that_does_not_run_says_why_and_can_be_tried_again(page: Desk) -> None:
    await add(page, "Broken", "broken")
    assert page.text_of("settings.mcp.1.status") == "Doesn't run"
    assert page.text_of("settings.mcp.1.problem").startswith("broken was started, but didn't answer")
    assert page.text_of("settings.mcp.1.log") == "no key given"
    assert page.is_shown("settings.mcp.1.problem")

    page.click("settings.mcp.1.open")
    page.click("settings.mcp.1.change")
    await page.until(lambda: page.is_shown("mcp.form.command"))
    assert page.find("mcp.form", QDialog).windowTitle() == "Change Broken"
    await write(page, "mcp.form.command", "works")
    page.click("mcp.form.save")

    await page.until(lambda: page.text_of("settings.mcp.1.status") == "Running, 2 tools")
    assert not page.is_shown("settings.mcp.1.problem")
    page.click("settings.mcp.1.test")
    await page.until(lambda: page.text_of("settings.mcp.1.status") == "Running, 2 tools")


async def test_saved_secrets_are_never_shown_and_stay_unless_they_are_typed_anew(page: Desk) -> None:
    page.click("settings.mcp.paste")
    await write(
        page, "mcp.paste.field", '{"files": {"command": "npx", "env": {"A": "secret of A", "B": "secret of B"}}}'
    )
    page.click("mcp.paste.add")
    await page.until(lambda: page.is_shown("settings.mcp.1.open"))
    page.click("settings.mcp.1.open")
    page.click("settings.mcp.1.change")
    await page.until(lambda: page.is_shown("mcp.form.variables.1.value"))
    fields = page.find("mcp.form", QDialog).findChildren(QLineEdit)
    assert not [field.text() for field in fields if "secret" in field.text()]
    await write(page, "mcp.form.variables.2.value", "new")
    page.click("mcp.form.save")

    await page.until(lambda: "secret of B" not in tokens_text() and servers(page)[0].phase == "running")
    assert await page.parts.services.mcp.secrets(servers(page)[0].config.id) == {"A": "secret of A", "B": "new"}


async def test_removal_asks_and_deletes_the_secrets(page: Desk) -> None:
    page.click("settings.mcp.paste")
    await write(page, "mcp.paste.field", '{"files": {"command": "npx", "env": {"A": "secret of A"}}}')
    page.click("mcp.paste.add")
    await page.until(lambda: page.has("settings.mcp.1"))
    await page.until(lambda: page.is_shown("settings.mcp.1.open"))
    assert "secret of A" in tokens_text()
    page.click("settings.mcp.1.open")
    page.click("settings.mcp.1.remove")
    page.click("settings.mcp.question.no")
    await page.until(lambda: not page.has("settings.mcp.question"))
    assert len(servers(page)) == 1

    page.click("settings.mcp.1.remove")
    page.click("settings.mcp.question.yes")

    await page.until(lambda: not servers(page) and "secret of A" not in tokens_text())
    await page.until(lambda: not page.has("settings.mcp.1"))


async def test_card_is_found_by_the_words_that_people_know(page: Desk) -> None:
    for word in ("mcp", "claude desktop", "tools"):
        await write(page, "settings.search", word)
        assert page.is_shown("settings.mcp.add"), word
    await write(page, "settings.search", "density")
    assert not page.is_shown("settings.mcp.add")
