"""The window in a made-up language: no text escapes translation, and none that is 40% longer is cut off."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtGui import QTextCursor
from PySide6.QtWidgets import QAbstractButton, QApplication, QWidget

from qwendesk.core.app_options import AppOptions
from qwendesk.core.failures import LoadFailure
from qwendesk.core.options import GenerationOptions, LoadOptions
from qwendesk.core.settings import table
from qwendesk.hub.deleting import Deletion
from qwendesk.ui.frame.crash_dialog import CrashDialog
from qwendesk.ui.models.delete_question import ask_deletion
from qwendesk.ui.settings.privacy_section import PrivacySection
from tests.fakes.engine import ScriptedAnswer
from tests.services.documents.test_reading import pdf
from tests.ui.desk import Desk
from tests.ui.pseudo import PseudoTranslator, name_of, plain_words, texts_of, too_small
from tools.i18n import sources

_SAME_EVERYWHERE = frozenset(
    # names
    "QwenDesk Qwen llama cpp python Hugging Face Windows NVIDIA Ollama vLLM Markdown LM Studio Jan unsloth Demo server"  # noqa: SIM905
    # keys
    " Ctrl Shift Alt Return Enter Esc Del Tab Up Down Left Right End PgUp PgDown"
    # units and terms of the field that are values
    " bytes GB MB KB MiB GiB ms min px tok CPU GPU AVX Fake".split()
)
_ENGLISH_YET = (
    "inspector.load.sentence",  # made by services/engine/draft.py
    "settings.look.language",  # each language in its own words
    "help",  # the guide's pages
    "inspector.system.kept > QListView",  # the prompts that come with the app
    "context.total",  # made by services/chat/context_fill.py
)
OPENED = ("find", "context", "system_prompt", "palette", "shortcuts", "guide", "privacy", "inspector")
_TERMS = frozenset(
    word
    for options in (AppOptions, LoadOptions, GenerationOptions)
    for each in table(options).values()
    for choice in each.choices
    for word in plain_words(str(choice))
)
"""Choices that are the field's own terms; those that have words of ours (ui/settings/rows/words.py) never show up."""
_TURNS = 300
"""As long as something may still be cut off; only what is wrong takes them all."""
PAGES = ("page_chat", "page_models", "page_engine", "page_settings")


@pytest.fixture
def pseudo_language(app: QApplication) -> Iterator[None]:
    translator = PseudoTranslator(sources())
    app.installTranslator(translator)
    yield
    app.removeTranslator(translator)


async def settle() -> None:
    """Let layouts that were asked for happen."""
    for _ in range(3):
        await asyncio.sleep(0)
        QApplication.sendPostedEvents()


async def a_used_window(desk: Desk, picture: Path) -> None:
    """A chat with all that a turn may have, the inspector, a banner, a running find, every list opened once."""
    desk.client.answers.append(ScriptedAnswer(reasoning="1", text="2\n\n```\n3\n```\n"))
    desk.drop(picture)
    await desk.until(lambda: desk.has("composer.attachment.1"))
    await desk.ask("4")
    desk.client.load_result = LoadFailure("other", "5", "6", ("7",))
    desk.parts.engine.load_mmproj("/models/x.gguf")
    await desk.until(lambda: desk.is_shown("banner"))


async def run(desk: Desk, command: str) -> None:
    next(each for each in desk.window.actions() if each.objectName() == f"action.{command}").trigger()
    await settle()


def escaped() -> list[str]:
    """Every text of the windows that are there with words that were not translated."""
    found = []
    for widget in QApplication.allWidgets():
        if name_of(widget).startswith(_ENGLISH_YET):
            continue
        for kind, text in texts_of(widget):
            if words := plain_words(text) - _SAME_EVERYWHERE - _TERMS:
                found.append(f"{name_of(widget)}: {kind} {text!r}: {sorted(words)}")
    return found


async def cut_off(desk: Desk) -> list[str]:
    """What is still cut off when layouts, and what waits for a timer, have had many turns of the loop."""
    found: list[str] = []
    turns = iter(range(_TURNS))

    def is_settled() -> bool:
        QApplication.sendPostedEvents()
        found[:] = _cut_off_now(desk)
        return not found or next(turns, None) is None

    await desk.until(is_settled)
    return found


def _cut_off_now(desk: Desk) -> list[str]:
    found = [(each, too_small(each)) for each in desk.window.findChildren(QWidget)]
    return [f"{name_of(each)}: {each.text()!r} {why}" for each, why in found if why]


async def test_no_text_escapes_and_none_is_cut_off(
    pseudo_language: None, desk: Desk, shape_picture: Callable[..., Path], tmp_path: Path
) -> None:
    await a_used_window(desk, shape_picture("red", "circle").rename(tmp_path / "7.png"))
    found: set[str] = set()
    for size in ((1280, 800), (560, 640)):
        desk.window.resize(*size)
        for page in PAGES:
            await run(desk, page)
            found.update(f"{size[0]}: {each}" for each in await cut_off(desk))
            for tab in desk.window.findChildren(QAbstractButton):
                if tab.objectName().startswith("models.tab.") and page == "page_models":
                    tab.click()
                    await settle()
                    found.update(f"{size[0]}: {each}" for each in await cut_off(desk))
    desk.window.resize(1280, 800)
    for command in OPENED:
        await run(desk, command)
        for button in desk.window.findChildren(QAbstractButton):
            if button.objectName().endswith(".advanced"):
                button.setChecked(True)
        await settle()
        found.update(escaped())
        found.update(f"{command}: {each}" for each in await cut_off(desk))
    is_right = not found
    assert is_right, "\n".join(sorted(found))


async def test_nor_in_what_opens_over_the_window(
    pseudo_language: None, desk: Desk, shape_picture: Callable[..., Path], tmp_path: Path
) -> None:
    picture = shape_picture("red", "circle").rename(tmp_path / "7.png")
    await a_used_window(desk, picture)
    page = desk.window.chat_page
    (tmp_path / "8.pdf").write_bytes(pdf("9"))

    def ask_deletion_of_a_model() -> None:
        ask_deletion(desk.parts.models.models, Deletion("1", (), ""), desk.window)

    ways: dict[str, Callable[[], object]] = {
        "privacy.dialog": desk.find("settings.privacy", PrivacySection).ask,
        "models.delete": ask_deletion_of_a_model,
        "crash.dialog": CrashDialog((), desk.window).open,
        "picture.viewer": lambda: page.open_picture(str(picture)),
        "composer.custom": lambda: page.composer.style_chosen.emit("custom"),
        "meter.history": desk.window.meter_bar.history_asked.emit,
        "chats.more_menu": lambda: desk.click("chats.more"),
        "pdf.sheet": lambda: desk.drop(tmp_path / "8.pdf"),
    }
    found: set[str] = set()
    for name, opens in ways.items():
        opens()
        await desk.until(lambda name=name: desk.is_shown(name))  # type: ignore[misc]
        await settle()
        found.update(escaped())
        found.update(f"{name}: {each}" for each in await cut_off(desk))
        desk.find(name, QWidget).close()
        await settle()
    is_right = not found
    assert is_right, "\n".join(sorted(found))


@pytest.mark.parametrize(("text", "is_right"), [("שלום world", True), ("مرحبا", True), ("Hello שלום", False)])
async def test_a_question_begins_where_its_letters_do(desk: Desk, text: str, is_right: bool) -> None:
    field = desk.composer_text
    field.setPlainText(text)
    field.moveCursor(QTextCursor.MoveOperation.Start)
    assert (field.cursorRect().x() > field.viewport().width() / 2) == is_right
