"""Servers in the window: found and added, their models chosen and used, trouble with them said."""

import ssl

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QLabel, QLineEdit, QToolButton, QWidget

from qwendesk.engine.state import Phase
from qwendesk.hub.access_tokens import load_token
from qwendesk.models.view.model_picker import ModelPicker
from qwendesk.remote.servers import ServerList
from qwendesk.server.certificates import own_certificate
from qwendesk.server.service import ServerOptions
from tests.remote import made_up_server


def enter(desk, name, text):
    field = desk.find(name, QLineEdit)
    field.setFocus()
    field.clear()
    QTest.keyClicks(field, text)


async def test_a_server_on_this_pc_is_found_added_and_its_model_answers(remote_window):
    desk = remote_window.desk
    remote_window.serve(made_up_server.llama_server())
    remote_window.open_tab()
    await desk.until(lambda: desk.is_shown("engines.found.1"))
    assert "llama-server" in desk.text_of("engines.found.1")
    desk.click("engines.found.1")
    await desk.until(lambda: desk.is_shown("engines.server.1.model.1.load"))
    assert not desk.is_shown("engines.found.1"), "it is in the list now"
    desk.click("engines.server.1.model.1.load")
    await desk.until(lambda: remote_window.engine.state.phase is Phase.READY)
    assert not desk.is_shown("engines.server.1.model.1.load"), "it is in use"
    assert "Qwen3.8-27B · 8K · llama-server (127.0.0.1:" in desk.text_of("model.button")
    desk.window.go_to("chat")
    await desk.ask("Hi")
    assert desk.parts.chat.conversation.turns[-1].answer.text == "Hello."


async def test_a_server_with_a_key_is_added_by_its_address(remote_window):
    desk = remote_window.desk
    server = remote_window.serve(made_up_server.ollama(), key="secret")
    remote_window.open_tab()
    enter(desk, "engines.address", server.address.removeprefix("http://"))
    desk.click("engines.add.button")
    await desk.until(lambda: desk.is_shown("engines.problem"))
    assert "key" in desk.text_of("engines.problem")
    enter(desk, "engines.key", "secret")
    desk.click("engines.add.button")
    await desk.until(lambda: desk.is_shown("engines.server.1"))
    assert desk.find("engines.server.1.status", QLabel).text() == "2 models"
    assert load_token(server.address) == "secret"
    await desk.until(lambda: not desk.find("engines.key", QLineEdit).text())
    assert not desk.find("engines.address", QLineEdit).text()


async def test_no_other_server_is_added_while_one_is_asked(remote_window):
    desk = remote_window.desk
    remote_window.open_tab()
    desk.parts.services.remote.state.update(is_adding=True)
    enter(desk, "engines.address", "192.168.1.5:8080")
    assert not desk.find("engines.add.button", QAbstractButton).isEnabled()
    desk.parts.services.remote.state.update(is_adding=False)
    assert desk.find("engines.add.button", QAbstractButton).isEnabled()


async def test_a_server_has_the_name_that_the_user_gives_it(remote_window):
    desk = remote_window.desk
    server = remote_window.serve(made_up_server.llama_server())
    await remote_window.add(server)
    remote_window.open_tab()
    title, own = "engines.server.1.title", desk.parts.services.remote.state.value.servers[0].server.title
    await desk.until(lambda: desk.find("engines.server.1.rename", QToolButton).isEnabled())
    desk.click("engines.server.1.rename")
    enter(desk, "engines.server.1.name", "Cellar")
    QTest.keyClick(desk.find("engines.server.1.name", QLineEdit), Qt.Key.Key_Return)
    await desk.until(lambda: desk.text_of(title) == "Cellar")
    await desk.until(lambda: [each.name for each in ServerList().read()] == ["Cellar"])

    await desk.until(lambda: desk.find("engines.server.1.rename", QToolButton).isEnabled())
    desk.click("engines.server.1.rename")
    enter(desk, "engines.server.1.name", "Attic")
    QTest.keyClick(desk.find("engines.server.1.name", QLineEdit), Qt.Key.Key_Escape)
    assert desk.text_of(title) == "Cellar"

    await desk.until(lambda: desk.find("engines.server.1.rename", QToolButton).isEnabled())
    desk.click("engines.server.1.rename")
    enter(desk, "engines.server.1.name", "")
    QTest.keyClick(desk.find("engines.server.1.name", QLineEdit), Qt.Key.Key_Return)
    await desk.until(lambda: desk.text_of(title) == own)


async def test_an_address_that_others_could_read_along_warns_before_anything_is_sent(remote_window):
    desk = remote_window.desk
    remote_window.open_tab()
    enter(desk, "engines.address", "192.168.1.5:8080")
    assert "Not encrypted" in desk.text_of("engines.warning")
    enter(desk, "engines.address", "https://pc.example")
    assert not desk.is_shown("engines.warning")


async def test_the_model_picker_has_the_models_of_servers(remote_window):
    desk = remote_window.desk
    await remote_window.add(remote_window.serve(made_up_server.ollama()))
    desk.click("model.button")
    picker = desk.find("model.picker", ModelPicker)
    QTest.keyClicks(desk.find("model.picker.query", QLineEdit), "ollama gemma")
    await desk.until(lambda: picker._list.count() == 1)
    picker._choose_current()
    await desk.until(lambda: remote_window.engine.state.phase is Phase.READY)
    assert remote_window.engine.state.report.name == "gemma3:12b"


async def test_the_picker_leads_to_where_servers_are_added(remote_window):
    desk = remote_window.desk
    desk.click("model.button")
    desk.click("model.picker.server")
    assert desk.is_shown("engines.address")


async def test_a_removed_server_is_gone_after_a_question(remote_window):
    desk = remote_window.desk
    await remote_window.add(remote_window.serve(made_up_server.llama_server()))
    remote_window.open_tab()
    desk.click("engines.server.1.remove")
    desk.click("engines.question.yes")
    await desk.until(lambda: not desk.is_shown("engines.server.1"))
    assert not desk.parts.services.remote.state.value.servers


async def test_a_server_that_is_off_says_so_with_a_next_step(remote_window):
    desk = remote_window.desk
    server = remote_window.serve(made_up_server.llama_server())
    await remote_window.add(server)
    server.stop()
    remote_window.open_tab()
    await desk.until(lambda: desk.is_shown("engines.server.1.problem"))
    assert "Start the server" in desk.text_of("engines.server.1.problem")


async def test_an_unknown_certificate_is_shown_and_trusted_only_when_the_user_says_so(remote_window, tmp_path):
    desk = remote_window.desk
    certificate = own_certificate(tmp_path / "server", "127.0.0.1")
    context = certificate.context()
    assert isinstance(context, ssl.SSLContext)
    server = remote_window.serve(made_up_server.llama_server(), tls=context)
    remote_window.open_tab()
    enter(desk, "engines.address", server.address)
    desk.click("engines.add.button")
    await desk.until(lambda: desk.is_shown("engines.certificate"))
    assert certificate.fingerprint() in desk.find("engines.certificate.consequence", QLabel).text()
    desk.click("engines.certificate.cancel")
    assert not desk.has("engines.server.1")
    await desk.until(lambda: not desk.has("engines.certificate"))
    desk.click("engines.add.button")
    await desk.until(lambda: desk.is_shown("engines.certificate"))
    desk.click("engines.certificate.trust")
    await desk.until(lambda: desk.is_shown("engines.server.1"))


async def test_a_model_of_a_server_is_offered_again_at_the_next_start(remote_window, make_desk):
    await remote_window.use(remote_window.serve(made_up_server.llama_server()), "Qwen3.8-27B")
    await remote_window.desk.parts.services.models.last_model.close()
    again = make_desk()
    again.parts.begin()
    await again.until(lambda: again.parts.engine.state.phase is Phase.READY)
    assert again.parts.engine.state.report.served_by is not None
    assert isinstance(again.find("model.button", QWidget), QWidget)


async def test_a_server_that_is_off_at_a_load_is_tried_again(remote_window):
    desk = remote_window.desk
    server = remote_window.serve(made_up_server.llama_server())
    await remote_window.add(server)
    port = server.port
    server.stop()
    desk.window.load_served(f"http://127.0.0.1:{port}#Qwen3.8-27B")
    await desk.until(lambda: desk.is_shown("banner.again"))
    assert "Start the server" in remote_window.engine.state.failure.sentence
    assert not desk.is_shown("banner.choose"), "no file is to blame"
    remote_window.serve(made_up_server.llama_server(), port=port)
    desk.click("banner.again")
    await desk.until(lambda: remote_window.engine.state.phase is Phase.READY)


async def test_the_server_of_this_app_is_not_its_own_engine(remote_window):
    services = remote_window.desk.parts.services
    state = await services.server.start(ServerOptions(port=0))
    assert not await services.remote.add(state.address, state.keys[0].key)
    assert "server of this app" in services.remote.state.value.problem
    await services.server.stop()
