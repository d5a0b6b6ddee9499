"""A row of For this PC: another file, a loaded model, a running download, and a narrow window."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtWidgets import QComboBox, QPushButton

from qwendesk.core.units import GIB
from qwendesk.engine.state import Phase
from qwendesk.models.model_list import FileStatuses
from tests.app.test_languages import settle
from tests.models.view.offers_desk import (
    HERO,
    PATH,
    REPO,
    open_tab,
    pick,
    tab_of,
)
from tests.models.view.start_desk import hero_download
from tests.window_desk import Desk


@pytest.fixture
def desk(qt_loop: asyncio.Runner, make_desk: Callable[[], Desk]) -> Desk:
    return qt_loop.run(open_tab(make_desk))


async def test_another_file_changes_the_row_and_its_download(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    added: list[tuple[str, str, bool]] = []

    async def add(repo: str, path: str, *, with_mmproj: bool) -> None:
        added.append((repo, path, with_mmproj))

    monkeypatch.setattr(desk.parts.services.models.downloads, "add", add)
    desk.click(f"models.open.{HERO}")
    assert desk.find(f"models.file.{HERO}", QComboBox).currentText() == "UD-IQ4_XS · 17.3 GB"
    size = desk.text_of(f"models.size.{HERO}")
    pick(desk, HERO, "Q8_0")
    assert desk.text_of(f"models.size.{HERO}") != size
    assert desk.text_of(f"models.place.{HERO}") == "GPU and RAM"
    desk.click(f"models.download.{HERO}")
    await desk.until(lambda: bool(added))
    assert added == [(REPO, f"{HERO}-Q8_0.gguf", True)]


async def test_loaded_model_offers_the_chat(desk: Desk, tmp_path: Path) -> None:
    path = str(tmp_path / PATH)
    tab_of(desk).show_statuses(FileStatuses({(REPO, PATH): path}, frozenset()))
    desk.window.load_model(path)
    await desk.until(lambda: desk.parts.engine.state.phase is Phase.READY)
    desk.click("rail.models")
    assert desk.text_of(f"models.download.{HERO}") == "Chat"
    desk.click(f"models.download.{HERO}")
    assert desk.window.page == "chat"


async def test_progress_is_shown_in_the_place_of_the_button(desk: Desk) -> None:
    item = hero_download(desk, n_done=5 * GIB)
    tab_of(desk).show_statuses(FileStatuses({}, frozenset({(REPO, PATH)})))
    desk.parts.services.models.downloads.state.update(items=(item,))
    assert desk.text_of(f"models.download.{HERO}") == "25%"
    assert not desk.find(f"models.download.{HERO}", QPushButton).isEnabled()


@pytest.mark.parametrize(("width", "has_head", "has_length"), [(1280, True, True), (900, False, False)])
async def test_narrow_table_has_fewer_columns(desk: Desk, width: int, has_head: bool, has_length: bool) -> None:
    desk.window.resize(width, 640)
    await settle()
    assert desk.is_shown("models.head") is has_head
    assert desk.is_shown(f"models.length.{HERO}") is has_length
    assert ("17.3 GB" in desk.text_of(f"models.about.{HERO}")) is not has_head
