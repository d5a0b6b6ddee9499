"""The first start's places, details and keys: nothing moves when the look at the PC ends or a download begins."""

import asyncio
from collections.abc import Callable

import msgspec
import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QPushButton, QScrollArea, QWidget

from qwendesk.core.translation import unbroken
from qwendesk.core.units import GIB
from qwendesk.models.offers import Offers
from qwendesk.models.ranking import Offer
from qwendesk.widgets.theme_keeper import app_theme
from tests.app.test_languages import settle
from tests.models.view.start_desk import first_start, hero_download
from tests.window_desk import Desk

# What stays where it is in every state: main button, folder, choices.
FIXED = ("start.card", "start.download", "start.folder", "start.choices")


@pytest.fixture
def desk(qt_loop: asyncio.Runner, make_desk: Callable[[], Desk]) -> Desk:
    return qt_loop.run(first_start(make_desk))


def places(desk: Desk) -> dict[str, int]:
    """Return the top edge of each part, and the height of the card."""
    page = desk.parts.first_start
    tops = {name: desk.find(name, QWidget) for name in FIXED}
    found = {name: widget.mapTo(page, widget.rect().topLeft()).y() for name, widget in tops.items()}
    return found | {"height": tops["start.card"].height()}


@pytest.mark.parametrize(("width", "text"), [(560, "100%"), (900, "100%"), (1280, "100%"), (1280, "130%")])
async def test_nothing_moves_when_the_state_changes(make_desk: Callable[[], Desk], width: int, text: str) -> None:
    if text == "130%":
        for _ in range(3):
            app_theme().zoom(1)
    await settle()
    desk = make_desk()
    desk.parts.begin()
    desk.window.resize(width, 800)
    service = desk.parts.services.models.first_start
    await desk.until(lambda: service.state.value.free_bytes is not None)
    await settle()
    seen = [places(desk)]
    offers = await desk.parts.services.models.offers.update()
    item = hero_download(desk, n_done=2 * GIB)
    failed = msgspec.structs.replace(item, saved=msgspec.structs.replace(item.saved, state="failed", sentence="Lost."))
    for changes in (
        {"offers": offers},
        {"offers": Offers()},
        {"offers": offers},
        {"is_metered": True},
        {"downloads": (item,)},
        {"downloads": (failed,)},
    ):
        service.state.update(**changes)
        await settle()
        seen.append(places(desk))
    # A label rounds the height of its lines up, which is a pixel here and there.
    assert [each for each in seen if any(abs(each[name] - seen[0][name]) > 1 for name in each)] == []


@pytest.mark.parametrize("width", [560, 1280])
async def test_page_never_scrolls_sideways(make_desk: Callable[[], Desk], width: int) -> None:
    desk = await first_start(make_desk)
    desk.window.resize(width, 640)
    await settle()
    area = desk.parts.first_start.findChild(QScrollArea)
    assert area is not None
    assert area.horizontalScrollBar().maximum() == 0


async def test_details_are_folded_and_tell_files_memory_speed_and_source(desk: Desk) -> None:
    assert not desk.is_shown("start.model")
    desk.click("start.details")
    assert desk.is_shown("start.model")
    assert desk.text_of("start.model") == "UD-IQ4_XS · 16.5 GB"
    assert desk.text_of("start.mmproj").startswith("vision file · ")
    assert desk.find("start.mmproj", QLabel).toolTip() == "mmproj-F16.gguf"
    assert desk.text_of("start.expect") == unbroken("about 118 tok/s (reported by users)")
    assert "at 10K (RTX 3090, CUDA, Qwen3.5-35B-A3B UD-IQ4_XS)" in desk.find("start.expect", QLabel).toolTip()
    assert " GB on the GPU, " in desk.text_of("start.fit")
    assert (desk.text_of("start.source"), desk.text_of("start.licence")) == ("unsloth on Hugging Face", "Apache 2.0")
    desk.click("start.details")
    assert not desk.is_shown("start.model")


async def test_enter_starts_the_download(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[str] = []

    async def download(offer: Offer) -> None:
        started.append(offer.id)

    monkeypatch.setattr(desk.parts.services.models.first_start, "download", download)
    desk.window.activateWindow()
    await desk.until(lambda: desk.find("start.download", QPushButton).hasFocus())
    desk.press(Qt.Key.Key_Return)
    await desk.until(lambda: bool(started))
    assert started == ["Qwen3.6-35B-A3B"]


async def test_tab_follows_the_reading_order(desk: Desk) -> None:
    desk.window.activateWindow()
    await desk.until(lambda: desk.find("start.download", QPushButton).hasFocus())
    names = []
    for _ in range(6):
        focus: QWidget | None = desk.window.focusWidget()
        names.append(focus.objectName() if focus is not None else "")
        desk.press(Qt.Key.Key_Tab)
    wanted = ["download", "details", "change", "quick", "files", "demo"]
    assert names == [f"start.{each}" for each in wanted]


async def test_small_model_that_is_asked_for_while_it_looks_comes_then(
    make_desk: Callable[[], Desk], monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = make_desk()
    started: list[str] = []

    async def download(offer: Offer) -> None:
        started.append(offer.id)

    monkeypatch.setattr(desk.parts.services.models.first_start, "download", download)
    desk.parts.begin()
    await desk.until(lambda: desk.is_shown("start.quick"))
    assert "about 5 seconds" in desk.text_of("start.problem")
    desk.click("start.quick")
    assert not desk.find("start.quick", QPushButton).isEnabled()
    await desk.parts.services.models.offers.update()
    await desk.until(lambda: bool(started))
    assert started == ["Qwen3.5-2B"]


async def test_download_can_be_cancelled(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    cancelled: list[str] = []

    async def cancel(identity: str) -> None:
        cancelled.append(identity)

    monkeypatch.setattr(desk.parts.services.models.downloads, "cancel", cancel)
    assert not desk.is_shown("start.cancel")
    desk.parts.services.models.first_start.state.update(downloads=(hero_download(desk, n_done=GIB),))
    desk.click("start.cancel")
    await desk.until(lambda: bool(cancelled))
    assert cancelled == ["one"]


async def test_list_of_chats_appears_with_the_first_chat(desk: Desk) -> None:
    assert not desk.is_shown("chats.search")
    desk.click("chats.toggle")
    assert desk.is_shown("chats.search"), "whoever opens it sees it"
    desk.click("chats.toggle")
    assert not desk.is_shown("chats.search")
    desk.click("chats.toggle")
    desk.click("start.demo")
    await desk.until(lambda: desk.parts.engine.state.report is not None)
    await desk.ask("Hello")
    assert desk.is_shown("chats.search")


@pytest.mark.parametrize("page", ["models", "chat"])
async def test_load_opens_the_chat_with_the_focus_in_the_message_field(desk: Desk, page: str) -> None:
    desk.window.activateWindow()
    desk.window.show_page(page)
    desk.parts.model_actions.load("/models/x.gguf")
    await desk.until(lambda: desk.parts.engine.state.report is not None)
    assert desk.window.page == "chat"
    assert desk.window.focusWidget() is desk.composer_text
