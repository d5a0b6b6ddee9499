"""What a server can't do is greyed with the reason, and what belongs to this PC's memory leaves its models alone."""

from pathlib import Path

import pytest
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QWidget

from qwendesk.engine.state import Phase
from tests.pictures import ShapePicture
from tests.remote import made_up_server
from tests.remote.made_up_server import LM_STUDIO_MISSING, Stream, piece

THINKS_FOR_EVER = Stream([piece({"reasoning": "Hm."}), piece({"reasoning": " Hm."})], holds=True)


async def test_thinking_that_ollama_cannot_end_or_limit(remote_window):
    desk = remote_window.desk
    server = remote_window.serve(made_up_server.ollama(THINKS_FOR_EVER))
    await remote_window.use(server, "qwen3.5:27b")
    limits = [desk.window.findChild(QAction, f"composer.thinking.budget.{each}") for each in ("unlimited", "512")]
    assert [each.isEnabled() for each in limits] == [True, False]
    assert "Ollama can't limit" in limits[1].toolTip()
    desk.send("Hi")
    await desk.until(lambda: desk.is_shown("composer.answernow"))
    button = desk.find("composer.answernow", QWidget)
    assert not button.isEnabled()
    assert "Ollama can't end the thinking" in button.toolTip()
    await desk.parts.chat.stop()


async def test_an_answer_that_cannot_be_continued(remote_window):
    desk = remote_window.desk
    server = remote_window.serve(made_up_server.ollama(THINKS_FOR_EVER))
    await remote_window.use(server, "qwen3.5:27b")
    desk.send("Hi")
    await desk.until(lambda: bool(desk.parts.chat.conversation.turns))
    await desk.until(lambda: bool(desk.parts.chat.conversation.turns[0].answer.reasoning))
    await desk.parts.chat.stop()
    await desk.until(lambda: desk.is_shown("thread.continue.1"))
    button = desk.find("thread.continue.1", QWidget)
    assert not button.isEnabled()
    assert "Ollama can't continue" in button.toolTip()
    await remote_window.use_this_pc()
    assert button.isEnabled(), "the engine of this PC can"


async def test_sampling_options_that_are_not_sent(remote_window):
    desk = remote_window.desk
    await remote_window.use(remote_window.serve(made_up_server.ollama()), "qwen3.5:27b")
    desk.window.chat_area.show_inspector()
    desk.click("inspector.tab.sampling")
    assert "Ollama doesn't know" in desk.text_of("inspector.sampling.sampling.top_k.remark")
    assert not desk.is_shown("inspector.sampling.sampling.temperature.remark")
    await remote_window.use_this_pc()
    assert not desk.is_shown("inspector.sampling.sampling.top_k.remark")


async def test_load_options_and_the_command_are_the_servers_own(remote_window):
    desk = remote_window.desk
    await remote_window.use(remote_window.serve(made_up_server.llama_server()), "Qwen3.8-27B")
    desk.window.chat_area.show_inspector()
    desk.click("inspector.tab.load")
    assert "decides how it is loaded" in desk.text_of("inspector.load.nothing")
    assert not desk.is_shown("inspector.load.reload")
    desk.window.go_to("engine")
    assert "runs on llama-server" in desk.find("engine.command.text", QWidget).toPlainText()
    assert "--model" not in desk.find("engine.command.text", QWidget).toPlainText()


@pytest.mark.parametrize(("section", "words"), [("speed", "bench.words"), ("tune", "tune.words")])
async def test_a_model_of_a_server_is_not_measured(remote_window, section, words):
    desk = remote_window.desk
    await remote_window.use(remote_window.serve(made_up_server.llama_server()), "Qwen3.8-27B")
    desk.window.go_to("bench")
    desk.parts.navigation.bench_section_asked.emit(section)
    assert "server" in desk.text_of(words)
    run = desk.find("bench.run" if section == "speed" else "tune.run", QWidget)
    assert not run.isEnabled()


async def test_a_model_without_vision_says_that_the_server_said_so(remote_window, tmp_path):
    desk = remote_window.desk
    server = remote_window.serve(made_up_server.lm_studio(), missing=LM_STUDIO_MISSING)
    await remote_window.use(server, "mistral-7b")
    desk.drop(drawn(tmp_path))
    await desk.until(lambda: bool(desk.window.chat_page.composer.notice))
    assert "LM Studio" in desk.window.chat_page.composer.notice
    assert "mmproj" not in desk.window.chat_page.composer.notice


async def test_a_picture_is_sent_although_no_server_counts_it_before(remote_window, tmp_path):
    desk = remote_window.desk
    server = remote_window.serve(made_up_server.llama_server())
    await remote_window.use(server, "Qwen3.8-27B")
    desk.drop(drawn(tmp_path))
    await desk.until(lambda: desk.is_shown("composer.attachment.1.cost"))
    await desk.ask("What is it?")
    (body,) = server.chats
    assert body["messages"][-1]["content"][0]["image_url"]["url"].startswith("data:image/png;base64,")


async def test_games_and_idle_time_leave_it_alone(remote_window):
    desk = remote_window.desk
    await remote_window.use(remote_window.serve(made_up_server.llama_server()), "Qwen3.8-27B")
    services = desk.parts.services
    services.idle_unload.eject()
    await services.game_mode.look()
    await services.meters.service.sample()
    assert desk.parts.engine.state.phase is Phase.READY
    assert services.meters.service.state.value.state is None, "nothing is said about video memory"


def drawn(folder: Path) -> Path:
    path = folder / "red.png"
    ShapePicture("red", "circle", "white", 64).draw().save(path)
    return path
