"""Commands of other programs: what they mean here, from the inspector and from the composer."""

from pathlib import Path

from PySide6.QtCore import QMimeData
from PySide6.QtWidgets import QPlainTextEdit

from qwendesk.core.conversation import Conversation
from tests.engines.view.load_options.inspector_desk import InspectorDesk
from tests.models.view.start_desk import with_folder
from tools.hollow_model import write_hollow


def paste(desk: InspectorDesk, text: str) -> None:
    """Paste into the composer, as Ctrl+V does."""
    mime = QMimeData()
    mime.setText(text)
    desk.parts.window.chat_page.composer.text.insertFromMimeData(mime)


def composer_text(desk: InspectorDesk) -> str:
    return desk.parts.window.chat_page.composer.text.toPlainText()


async def test_a_pasted_command_shows_what_it_means_and_is_applied(desk: InspectorDesk, model: Path) -> None:
    await desk.open(model)
    desk.click("inspector.paste")
    field = desk.find("command.text", QPlainTextEdit)
    field.setPlainText("Which quant should I take?")
    assert "isn't a command line" in desk.text_of("command.changes")
    assert not desk.is_shown("command.apply")
    field.setPlainText("llama-server -hf a/b:Q4_K_M -c 16384 --n-cpu-moe 20 -np 4 --temp 0.3 --reasoning off")
    assert desk.text_of("command.model") == "Model: a/b:Q4_K_M"
    assert "Context length: 16384 tokens" in desk.text_of("command.changes")
    assert "-np 4: QwenDesk answers one chat at a time" in desk.text_of("command.remarks")
    await desk.until(lambda: desk.is_shown("command.memory.0.fit"))
    assert desk.text_of("command.target") == f"This model isn't on this PC. Applies to {model.stem}:"
    assert desk.is_shown("command.find")
    before, pending = len(desk.loads), desk.parts.services.pending_load
    assert pending.pending.requested is not None
    assert pending.pending.requested.n_ctx == 0, "looking changes nothing"

    desk.click("command.apply")
    await desk.until(lambda: not desk.is_shown("command"))
    assert (pending.pending.requested.n_ctx, pending.pending.requested.n_cpu_moe) == (16_384, 20)
    assert (desk.parts.chat.options().temperature, desk.parts.chat.options().enable_thinking) == (0.3, False)
    assert len(desk.loads) == before, "nothing is loaded yet"


async def test_a_command_is_for_the_model_that_it_names_if_that_is_here(
    desk: InspectorDesk, model: Path, tmp_path: Path
) -> None:
    await desk.open(model)
    folder = tmp_path / "models"
    folder.mkdir()
    named = write_hollow(folder / "Qwen3.5-9B-Q8_0.gguf", "9b")
    before = await with_folder(desk, folder)
    await desk.parts.services.models.library.refresh()
    paste(desk, "llama-server -hf unsloth/Qwen3.5-9B-GGUF:Q8_0 -c 8192")
    desk.click("composer.pasted.show")
    await desk.until(lambda: desk.text_of("command.target") == f"Applies to {named.stem}:")
    assert not desk.is_shown("command.find")
    desk.click("command.apply")
    pending = desk.parts.services.pending_load
    await desk.until(lambda: desk.is_shown("inspector.load.unloaded"))
    assert pending.pending.requested is not None
    assert (pending.pending.requested.model, pending.pending.requested.n_ctx) == (str(named), 8192)
    assert composer_text(desk) == "", "the command was used"
    await desk.parts.services.models.library.set_folders(before)


async def test_the_system_prompt_of_a_modelfile_is_set_for_the_open_chat(desk: InspectorDesk) -> None:
    desk.parts.chats.show_command('FROM qwen3.5:9b\nSYSTEM """\nBe brief.\nBe kind.\n"""\n')
    assert desk.text_of("command.changes") == "System prompt of the open chat: Be brief. Be kind."
    assert desk.parts.chat.settings.system_prompt == "", "looking changes nothing"
    desk.click("command.apply")
    await desk.until(lambda: not desk.is_shown("command"))
    assert desk.parts.chat.settings.system_prompt.strip() == "Be brief.\nBe kind."


async def test_a_link_to_a_model_is_looked_for(desk: InspectorDesk) -> None:
    searched: list[str] = []
    desk.parts.models_page.page().search = searched.append
    desk.parts.chats.show_command("https://huggingface.co/unsloth/Qwen3.5-9B-GGUF")
    assert desk.text_of("command.model") == "Model: unsloth/Qwen3.5-9B-GGUF"
    desk.click("command.find")
    assert searched == ["unsloth/Qwen3.5-9B-GGUF"]


async def test_without_a_model_a_command_still_says_what_it_means(desk: InspectorDesk) -> None:
    desk.parts.chats.show_command("ollama run qwen3.5:35b")
    assert desk.text_of("command.changes") == "This sets no option."
    desk.find("command.text", QPlainTextEdit).setPlainText("llama-server -m /models/a.gguf -c 8192")
    await desk.until(lambda: "Choose a model first" in desk.text_of("command.target"))
    assert not desk.is_shown("command.apply")
    assert not desk.is_shown("command.memory")


async def test_composer_asks_about_a_pasted_command_and_never_blocks(desk: InspectorDesk, model: Path) -> None:
    await desk.load(model)
    command = "llama-server -m a.gguf -c 8192"
    paste(desk, command)
    assert desk.text_of("composer.pasted") == "This is a command for llama-server."
    assert composer_text(desk) == command
    desk.click("composer.pasted.keep")
    assert not desk.is_shown("composer.pasted.show")
    assert composer_text(desk) == command
    desk.parts.window.chat_page.composer.text.clear()

    paste(desk, command)
    assert desk.is_shown("composer.pasted.show")
    desk.click("composer.send")
    await desk.until(lambda: bool(turns(desk.parts.chat.conversation)))
    assert not desk.is_shown("composer.pasted.show")


async def test_composer_leaves_a_question_about_a_command_alone(desk: InspectorDesk) -> None:
    desk.parts.window.chat_page.composer.text.setPlainText("What does this do? ")
    desk.parts.window.chat_page.composer.text.selectAll()
    cursor = desk.parts.window.chat_page.composer.text.textCursor()
    cursor.clearSelection()
    desk.parts.window.chat_page.composer.text.setTextCursor(cursor)
    paste(desk, "llama-server -m a.gguf -c 8192")
    assert not desk.is_shown("composer.pasted.show")


async def test_a_pasted_name_of_a_model_leads_to_its_files(desk: InspectorDesk, model: Path) -> None:
    await desk.load(model)
    searched: list[str] = []
    desk.parts.models_page.page().search = searched.append
    paste(desk, "unsloth/Qwen3.5-35B-A3B-GGUF:UD-Q4_K_XL")
    desk.click("composer.pasted.show")
    assert searched == ["unsloth/Qwen3.5-35B-A3B-GGUF:UD-Q4_K_XL"]
    assert desk.window.page == "models"


def turns(conversation: Conversation) -> tuple[object, ...]:
    return tuple(conversation.turns)
