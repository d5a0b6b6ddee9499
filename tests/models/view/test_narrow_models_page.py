"""The Models page in small windows: its cards and chips wrap, and no text is cut off."""

import functools
from collections.abc import Callable, Iterator

import pytest
from PySide6.QtWidgets import QAbstractButton, QFrame, QLabel, QWidget

from qwendesk.core.translation import ENGLISH, install_translator, languages_folder, read_language
from qwendesk.hub.download_queue import DownloadItem, QueueFile, SavedDownload
from qwendesk.hub.remote import FoundRepo, RemoteFile
from qwendesk.models.repo_files import RepoFile
from qwendesk.models.search import HubSearchHit, OpenedRepo
from qwendesk.models.view.models_page import ORDER
from qwendesk.widgets.text_layout import ElidedLabel
from tests.app.test_languages import settle
from tests.models.view.start_desk import first_start
from tests.window_desk import Desk

HERO = "Qwen3.5-35B-A3B"
LONG_REPO = "somebody-with-a-long-name/Qwen3.5-35B-A3B-abliterated-uncensored-GGUF"


@pytest.fixture(params=["en", "de"])
def language(request: pytest.FixtureRequest) -> Iterator[None]:
    if request.param != ENGLISH:
        install_translator(read_language(languages_folder() / f"{request.param}.json"), request.param)
    yield
    install_translator(None)


def cut_off(page: QWidget) -> set[str]:
    """Return the texts that reach over the page's right edge, or are wider than their widget."""
    found = set()
    for widget in page.findChildren(QWidget):
        if not isinstance(widget, QLabel | QAbstractButton) or isinstance(widget, ElidedLabel):
            continue
        right = widget.mapTo(page, widget.rect().topRight()).x()
        if widget.isVisible() and (right >= page.width() or widget.width() < widget.minimumSizeHint().width()):
            found.add(f"{widget.objectName()}: {widget.text()}")
    return found


async def show_everything(desk: Desk) -> None:
    """Open the longest card, a search result with every chip, and a running download."""
    services = desk.parts.services.models
    desk.parts.tasks.start(services.offers.update())
    desk.click("rail.models")
    await desk.until(lambda: desk.is_shown(f"models.open.{HERO}"))
    desk.click("models.more")
    desk.click(f"models.open.{HERO}")
    desk.click(f"models.why.{HERO}")
    hits = (
        HubSearchHit(
            found=FoundRepo(LONG_REPO, 1_234_567, 333, "2026-03-04", gated=True, marks=("uncensored", "abliterated")),
            may_fit=False,
        ),
    )
    services.search.state.update(state="done", hits=hits)
    file = RemoteFile("unsloth/Qwen3.5-9B-GGUF", "Qwen3.5-9B-Q4_K_M.gguf", "0" * 40, 5 << 30, "a" * 64, "a" * 64, None)
    files = (QueueFile(file, "/models/Qwen3.5-9B-Q4_K_M.gguf"),)
    running = SavedDownload("one", files, "running")
    saved = (
        SavedDownload("two", files, "paused"),
        SavedDownload("three", files, "failed", sentence=f"{LONG_REPO} is gated.", trouble="gated"),
        SavedDownload("four", files, "done"),
    )
    items = DownloadItem(running, 1 << 30, "downloading", bytes_per_s=3e7), *(DownloadItem(each, 0) for each in saved)
    services.downloads.state.update(items=items)


async def test_no_text_of_the_first_start_is_cut_off(make_desk: Callable[[], Desk], language: None) -> None:
    desk = await first_start(make_desk)
    desk.window.resize(560, 800)
    desk.parts.services.models.first_start.state.update(folder="/srv/a-long-name-of-a-folder/share/qwendesk/models")
    await settle()
    assert desk.is_shown("start.download")
    assert cut_off(desk.parts.first_start) == set()


def open_repository(desk: Desk) -> None:
    services = desk.parts.services.models
    offer = services.offers.state.value.find(HERO)
    assert offer is not None
    items = tuple(
        RepoFile(
            path=quant.path, name=quant.path, quant=quant.quant, n_bytes=quant.n_bytes, n_shards=2, date="2026-03-04",
            mmproj_bytes=quant.mmproj_bytes, fit=quant.fit,
        )
        for quant in offer.quants
    )  # fmt: skip
    services.search.state.update(opened=OpenedRepo(repo=LONG_REPO, state="ready", items=items, model=HERO))


@pytest.mark.parametrize("width", [560, 960])
async def test_no_text_of_any_tab_is_cut_off(make_desk: Callable[[], Desk], language: None, width: int) -> None:
    desk = make_desk()
    await show_everything(desk)
    desk.window.resize(width, 800)
    page, found = desk.parts.models_page.page(), set[str]()
    for tab in ORDER:
        page.show_tab(tab)
        await settle()
        found |= cut_off(page)
    page.show_tab("hub")
    open_repository(desk)
    await settle()
    assert desk.is_shown(f"hub.get.{HERO}-UD-Q4_K_L.gguf")
    assert found | cut_off(page) == set()


async def test_tabs_are_in_one_line_in_a_narrow_window(make_desk: Callable[[], Desk]) -> None:
    desk = make_desk()
    desk.click("rail.models")
    tabs = [desk.find(f"models.tab.{tab}", QAbstractButton) for tab in ORDER]
    title = desk.find("models.machine", QWidget)
    for width, is_below in ((1280, False), (560, True), (1280, False)):
        desk.window.resize(width, 800)
        await settle()
        tops = {tab.mapTo(desk.window, tab.rect().topLeft()).y() for tab in tabs}
        assert len(tops) == 1
        assert (tops.pop() > title.mapTo(desk.window, title.rect().bottomLeft()).y()) is is_below


def right_edge(page: QWidget, widget: QWidget) -> int:
    return widget.mapTo(page, widget.rect().topRight()).x()


@pytest.mark.parametrize("width", [560, 820, 960, 1280, 1400])
async def test_every_tab_ends_at_the_right_edge_of_the_header(make_desk: Callable[[], Desk], width: int) -> None:
    desk = make_desk()
    await show_everything(desk)
    desk.window.resize(width, 800)
    page = desk.parts.models_page.page()
    for tab in ORDER:
        page.show_tab(tab)
        # On a busy machine the window gets its new width later, and the layouts after it.
        await desk.until(functools.partial(ends_at_the_edge, desk, page, tab))


def ends_at_the_edge(desk: Desk, page: QWidget, tab: str) -> bool:
    end = right_edge(page, desk.find("models.machine", QWidget))
    parts = [*page.findChildren(QFrame), *page.findChildren(QAbstractButton)]
    edges = [right_edge(page, each) for each in parts if each.isVisible() and is_drawn(each)]
    # Layouts round the halves of a centred column differently.
    return abs(max(edges) - end) <= 1 or (tab == "mine" and max(edges) < end)


def is_drawn(widget: QWidget) -> bool:
    """Return whether the widget has a border or text up to its edge."""
    return isinstance(widget, QAbstractButton) or widget.property("kind") in ("hero", "modelcard")
