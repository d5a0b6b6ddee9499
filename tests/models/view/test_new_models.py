"""The part New of For this PC, on a made-up Hub with a made-up Qwen4-27B, driven as a user does."""

import asyncio
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QLabel, QScrollArea, QWidget

from qwendesk.hub.catalog import load_catalog
from tests.hub.hub_server import FakeHub, Hollow
from tests.models.new_hub import CHANGED, MADE, NAME, NEW_SIZE, REPO, TAGS, add_qwen4, add_with_table, hollow, publish
from tests.models.view.catalog_desk import open_for_this_pc, window_hub
from tests.window_desk import Desk

LINE, BUTTON = "models.catalog", "models.catalog.look_up"
UNKNOWN, TABLE = "unsloth/Qwen4-80B-A3B-GGUF", "ggml-org/Qwen4-Flash-GGUF"


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    with window_hub(monkeypatch) as hub:
        for file in load_catalog().repositories[0].files:
            hub.add(load_catalog().repositories[0].repo, file.path, b"bytes")
        yield hub


@pytest.fixture
def desk(qt_loop: asyncio.Runner, hub: FakeHub, make_desk: Callable[[], Desk]) -> Desk:
    return qt_loop.run(open_for_this_pc(make_desk))


async def check(desk: Desk) -> None:
    """Click Check for updates, and wait until what is new is shown."""
    desk.click(BUTTON)
    await desk.parts.services.models.catalog.wait_until_settled()
    await desk.until(lambda: desk.is_shown("models.new"))


def save_picture(desk: Desk, name: str) -> None:
    """Save the page, for a person to look at, if QWENDESK_TEST_PICTURES names a folder."""
    folder = os.environ.get("QWENDESK_TEST_PICTURES")
    if folder:
        desk.window.resize(1080, 1400)
        desk.window.grab().save(str(Path(folder) / f"{name}.png"))


async def test_new_models_are_shown_after_the_recommended_one(hub: FakeHub, desk: Desk) -> None:
    assert not desk.is_shown("models.new")
    add_qwen4(hub)
    add_qwen4(hub, f"bartowski/Qwen_{NAME}-GGUF")
    add_qwen4(hub, UNKNOWN, architecture="qwen4")
    add_with_table(hub, TABLE)
    await check(desk)
    save_picture(desk, "new")

    assert "3 models are new." in desk.text_of(LINE)
    assert desk.text_of(f"models.new.fit.{REPO}").startswith("Fits in VRAM with vision: ")
    assert desk.text_of(f"models.new.summary.{REPO}") == "Fits on the GPU: 17.3 GB. QwenDesk hasn't tested it."
    text = desk.text_of(f"models.new.text.{REPO}")
    assert text.splitlines() == [
        "For this PC: Q4_K_M, 17.3 GB with vision file.",
        "This Qwen is newer than this QwenDesk. Its template, tokens and header are like Qwen3.8's, so it's treated as "
        "one.",
        "Licence: apache-2.0, as its card says.",
        "Also from bartowski.",
    ]
    assert desk.text_of(f"models.new.fit.{UNKNOWN}") == "Can't be loaded here"
    unknown = desk.text_of(f"models.new.text.{UNKNOWN}")
    assert unknown.startswith("The engine doesn't know its architecture, qwen4. A newer engine may know it: ")
    assert desk.text_of(f"models.new.summary.{UNKNOWN}").startswith("The engine doesn't know its architecture, qwen4.")
    assert not desk.has(f"models.new.download.{UNKNOWN}")
    assert "A table of " in desk.text_of(f"models.new.text.{TABLE}")
    hero, new = desk.find("models.download.Qwen3.6-35B-A3B", QWidget), desk.find("models.new", QWidget)
    assert hero.mapToGlobal(hero.rect().topLeft()).y() < new.mapToGlobal(new.rect().topLeft()).y()


async def test_buttons_open_its_card_its_files_and_its_download(
    hub: FakeHub, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_qwen4(hub)
    await check(desk)
    opened: list[str] = []
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: opened.append(url.toString()))
    assert not desk.is_shown(f"models.new.page.{REPO}"), "the row tells only whether it fits"
    desk.click(f"models.new.details.{REPO}")
    desk.click(f"models.new.page.{REPO}")
    assert opened == [f"{hub.endpoint}/Qwen/{NAME}"]

    added: list[tuple[str, str, bool]] = []

    async def add(repo: str, path: str, *, with_mmproj: bool) -> None:
        added.append((repo, path, with_mmproj))

    monkeypatch.setattr(desk.parts.services.models.downloads, "add", add)
    desk.click(f"models.new.download.{REPO}")
    await desk.until(lambda: bool(added))
    assert added == [(REPO, f"{NAME}-Q4_K_M.gguf", True)]

    desk.click(f"models.new.open.{REPO}")
    await desk.until(lambda: desk.is_shown(f"hub.fit.{NAME}-Q4_K_M"))


async def test_new_models_are_there_after_a_restart_without_a_question(
    hub: FakeHub, desk: Desk, make_desk: Callable[[], Desk]
) -> None:
    add_qwen4(hub)
    await check(desk)
    n_seen = len(hub.seen)
    again = await open_for_this_pc(make_desk)
    assert again.text_of(f"models.new.fit.{REPO}").startswith("Fits in VRAM")
    assert len(hub.seen) == n_seen


async def test_what_strangers_wrote_is_plain_text(hub: FakeHub, desk: Desk) -> None:
    repo = "unsloth/Qwen4-b-27B-GGUF"
    publish(hub, repo, createdAt=MADE, lastModified=CHANGED, tags=[*TAGS[2:], "license:<b>free</b>"])
    hub.add(repo, "<b>x</b>-PTQ1_0.gguf", Hollow(b"GGUF", 10))
    hub.add(repo, "<img src=y>-Q8_0.gguf", hollow(NEW_SIZE, "q8_0", "qwen4<h1>"))
    await check(desk)
    save_picture(desk, "hostile")
    labels = desk.find("models.new", QWidget).findChildren(QLabel)
    strange = [each for each in labels if "h1>" in each.text()]
    assert strange
    assert all(each.textFormat().name == "PlainText" for each in strange)
    assert not any("<" in each.text() for each in labels)
    assert "<b>free" not in desk.text_of(f"models.new.text.{repo}")


async def test_page_stays_narrow_with_a_long_name(hub: FakeHub, desk: Desk) -> None:
    repo = f"unsloth/Qwen4-{'x' * 80}-GGUF"
    add_qwen4(hub, repo)
    await check(desk)
    save_picture(desk, "long")
    desk.window.resize(560, 700)
    page = desk.find("models.new", QWidget)
    area = page.parentWidget()
    while not isinstance(area, QScrollArea):
        assert area is not None
        area = area.parentWidget()
    assert area.horizontalScrollBar().maximum() == 0
