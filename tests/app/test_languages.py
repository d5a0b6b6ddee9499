"""The window in a made-up language: no text escapes translation, and none that is 40% longer is cut off."""

import asyncio
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent
from PySide6.QtGui import QTextCursor
from PySide6.QtWidgets import QAbstractButton, QApplication, QWidget

from qwendesk.core.app_options import AppOptions
from qwendesk.core.failures import LoadFailure
from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.options import LoadOptions
from qwendesk.core.settings import table
from qwendesk.core.translation import install_translator
from qwendesk.help.view.crash_notices import CrashDialog
from qwendesk.hub.catalog import load_catalog
from qwendesk.hub.model_deletion import ModelDeletion
from qwendesk.models.view.model_actions import ask_deletion
from qwendesk.settings.view.privacy_section import PrivacySection
from tests.app.pseudo import PseudoTranslator, name_of, plain_words, texts_of, too_small
from tests.chat.documents.test_document_reader import pdf
from tests.fakes.engine import ScriptedAnswer
from tests.window_desk import Desk
from tools.i18n import sources

_SAME_EVERYWHERE = frozenset(
    # names
    "QwenDesk Qwen llama cpp python Hugging Face Windows NVIDIA Ollama vLLM Markdown LM Studio Jan unsloth Demo server"  # noqa: SIM905
    " SGLang MLX gguf"
    # keys
    " Ctrl Shift Alt Return Enter Esc Del Tab Up Down Left Right End PgUp PgDown"
    # units and terms of the field that are values
    " bytes GB MB KB MiB GiB ms min px tok CPU GPU AVX GGUF Fake".split()
)
_ENGLISH_YET = (
    "inspector.load.sentence",  # made by engines/pending_load.py
    "inspector.load.unloaded",  # names a model file
    "command.text",  # examples of commands
    "settings.appearance.language",  # each language in its own words
    "help",  # the guide's pages
    "inspector.system.kept > QListView",  # the prompts that come with the app
    "serve.program.continue",  # the name of a program that is also a word
)
OPENED = ("find", "context", "load_options", "system_prompt", "palette", "model_menu", "shortcuts", "guide", "privacy")
INSPECTOR_TABS = ("load", "sampling", "system")
_TERMS = frozenset(
    word
    for options in (AppOptions, LoadOptions, GenerationOptions)
    for each in table(options).values()
    for value in (*each.choices, each.setting.placeholder)
    for word in plain_words(str(value))
)
"""Choices and examples that are the field's own terms; others have words of ours (widgets/rows/option_texts.py)."""


_PROGRAMS = {"Claude Code", "Codex", "Cline", "opencode", "Zed", "Brave Search", "DuckDuckGo", "SearXNG"}


def _catalog_names() -> set[str]:
    """Names that are the same in every language: of programs, of models, of their licences and of quants."""
    catalog = load_catalog()
    quants = {file.quant for repository in catalog.repositories for file in repository.files if file.quant}
    others = {
        name for each in catalog.contents.other_speeds for name in (each.engine, each.source, each.quant, *each.gpus)
    }
    names = {name for model in catalog.contents.models for name in (model.id, model.licence.name)}
    return _PROGRAMS | quants | others | names


_CATALOG_NAMES = re.compile("|".join(re.escape(name) for name in sorted(_catalog_names(), key=len, reverse=True)))
_TURNS = 300
"""As long as something may still be cut off; only what is wrong takes them all."""
PAGES = ("page_chat", "page_models", "page_engine", "page_bench", "page_server", "page_settings")


@pytest.fixture
def pseudo_language() -> Iterator[None]:
    install_translator(PseudoTranslator(sources()))
    yield
    install_translator(None)


async def settle() -> None:
    """Let pending layout requests take effect."""
    for _ in range(3):
        await asyncio.sleep(0)
        send_layout_requests()


def send_layout_requests() -> None:
    """Let widgets take the places that were asked for.

    No other events: on Windows they include those of timers without a delay, and a task that runs inside of another
    one is lost.
    """
    QApplication.sendPostedEvents(None, QEvent.Type.LayoutRequest.value)


async def fill_window(desk: Desk, picture: Path) -> None:
    """Show a chat with everything a turn can have, the inspector, a banner and the search bar; open every list once."""
    desk.client.answers.append(ScriptedAnswer(reasoning="1", text="2\n\n```\n3\n```\n"))
    desk.drop(picture)
    await desk.until(lambda: desk.has("composer.attachment.1"))
    await desk.ask("4")
    desk.client.load_result = LoadFailure("other", "5", "6", ("7",))
    desk.parts.window.load_mmproj("/models/x.gguf")
    await desk.until(lambda: desk.is_shown("banner"))


async def show_catalog(desk: Desk) -> None:
    """Fill the tabs For this PC and Hugging Face."""
    services = desk.parts.services.models
    await services.catalog.load()
    await services.offers.update()
    await services.search.show_catalog()


async def run(desk: Desk, command: str) -> None:
    next(each for each in desk.window.actions() if each.objectName() == f"action.{command}").trigger()
    await settle()


def escaped(desk: Desk) -> list[str]:
    """Every text of the window, and of the dialogs and menus over it, with words that were not translated."""
    found = []
    for widget in QApplication.allWidgets():
        if not _belongs_to(widget, desk.window) or name_of(widget).startswith(_ENGLISH_YET):
            continue
        for kind, text in texts_of(widget):
            if words := plain_words(_CATALOG_NAMES.sub(" ", text)) - _SAME_EVERYWHERE - _TERMS:
                found.append(f"{name_of(widget)}: {kind} {text!r}: {sorted(words)}")
    return found


def _belongs_to(widget: QWidget, window: QWidget) -> bool:
    """Return whether `widget` is `window`, or has it among its parents: not what an earlier test still keeps alive."""
    each: QWidget | None = widget
    while each is not None and each is not window:
        each = each.parentWidget()
    return each is window


async def cut_off(desk: Desk) -> list[str]:
    """What is still cut off when layouts, and what waits for a timer, have had many turns of the loop."""
    found: list[str] = []
    turns = iter(range(_TURNS))

    def is_settled() -> bool:
        send_layout_requests()
        found[:] = _cut_off_now(desk)
        return not found or next(turns, None) is None

    await desk.until(is_settled)
    return found


def _cut_off_now(desk: Desk) -> list[str]:
    found = [(each, too_small(each)) for each in desk.window.findChildren(QWidget)]
    return [f"{name_of(each)}: {each.text()!r} {why}" for each, why in found if why]


async def test_pages_are_translated_and_not_cut_off(
    pseudo_language: None, desk: Desk, shape_picture: Callable[..., Path], tmp_path: Path
) -> None:
    await fill_window(desk, shape_picture("red", "circle").rename(tmp_path / "7.png"))
    await show_catalog(desk)
    found: set[str] = set()
    for size in ((1280, 800), (560, 640)):
        desk.window.resize(*size)
        for page in PAGES:
            await run(desk, page)
            found.update(f"{size[0]}: {each}" for each in await cut_off(desk))
            for tab in desk.window.findChildren(QAbstractButton):
                if page in ("page_models", "page_server") and tab.objectName().startswith(f"{page[5:]}.tab."):
                    tab.click()
                    await settle()
                    found.update(f"{size[0]}: {each}" for each in await cut_off(desk))
    desk.window.resize(1280, 800)

    async def check_texts(place: str) -> None:
        for button in desk.window.findChildren(QAbstractButton):
            if button.objectName().endswith(".advanced"):
                button.setChecked(True)
        await settle()
        found.update(escaped(desk))
        found.update(f"{place}: {each}" for each in await cut_off(desk))

    await run(desk, "page_chat")
    await run(desk, "inspector")
    for tab in INSPECTOR_TABS:
        desk.click(f"inspector.tab.{tab}")
        await check_texts(f"inspector, {tab}")
    for command in OPENED:
        await run(desk, command)
        await check_texts(command)
    is_right = not found
    assert is_right, "\n".join(sorted(found))


async def test_dialogs_and_menus_are_translated_and_not_cut_off(
    pseudo_language: None, desk: Desk, shape_picture: Callable[..., Path], tmp_path: Path
) -> None:
    picture = shape_picture("red", "circle").rename(tmp_path / "7.png")
    await fill_window(desk, picture)
    page = desk.window.chat_page
    (tmp_path / "8.pdf").write_bytes(pdf("9"))

    def ask_deletion_of_a_model() -> None:
        ask_deletion(desk.parts.model_actions, ModelDeletion("1", (), ""), desk.window)

    desk.parts.settings_page.page()  # is built without being opened
    ways: dict[str, Callable[[], object]] = {
        "privacy.dialog": desk.find("settings.privacy", PrivacySection).ask,
        "models.delete": ask_deletion_of_a_model,
        "crash.dialog": CrashDialog((), desk.window).open,
        "picture.viewer": lambda: page.open_picture(str(picture)),
        "composer.custom": lambda: page.composer.style_chosen.emit("custom"),
        "meter.history": desk.window.meter_bar.show_history,
        "chats.more_menu": lambda: desk.click("chats.more"),
        "pdf.sheet": lambda: desk.drop(tmp_path / "8.pdf"),
    }
    found: set[str] = set()
    for name, opens in ways.items():
        opens()
        await desk.until(lambda name=name: desk.is_shown(name))  # type: ignore[misc]
        await settle()
        found.update(escaped(desk))
        found.update(f"{name}: {each}" for each in await cut_off(desk))
        desk.find(name, QWidget).close()
        await settle()
    is_right = not found
    assert is_right, "\n".join(sorted(found))


@pytest.mark.parametrize(("text", "is_right"), [("שלום world", True), ("مرحبا", True), ("Hello שלום", False)])
async def test_question_is_aligned_by_its_first_letter(desk: Desk, text: str, is_right: bool) -> None:
    field = desk.composer_text
    field.setPlainText(text)
    field.moveCursor(QTextCursor.MoveOperation.Start)
    assert (field.cursorRect().x() > field.viewport().width() / 2) == is_right
