"""The line with the catalog's date on For this PC, and its button, driven as a user does."""

import asyncio
import datetime
from collections.abc import Callable, Iterator

import pytest
from PySide6.QtWidgets import QPushButton

from qwendesk.hub.catalog import load_catalog
from qwendesk.hub.catalog_updates import CatalogChanges, CatalogStore, LastLookUp
from qwendesk.models.catalog_service import CatalogState, LookUpProgress, date_text, result_text
from tests.hub.hub_server import FakeHub
from tests.models.view.catalog_desk import open_for_this_pc, window_hub
from tests.window_desk import Desk

MODEL = "Qwen3.5-35B-A3B"
REPO = f"unsloth/{MODEL}-GGUF"
NEW_QUANT = "IQ2_XXS"
LINE, BUTTON = "models.catalog", "models.catalog.look_up"
DONE = datetime.datetime(2026, 11, 22, 12).astimezone()
TODAY = datetime.date(2026, 11, 24)
FAILED = LastLookUp(tried=DONE, problem="No connection to the Hub.")


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    """A Hub with all files of one repository, and a quant that is new."""
    with window_hub(monkeypatch) as hub:
        repository = load_catalog().repository(REPO)
        assert repository is not None
        for file in repository.files:
            hub.add(REPO, file.path, b"bytes of " + file.path.encode())
        hub.add(REPO, f"{MODEL}-{NEW_QUANT}.gguf", b"small")
        yield hub


@pytest.fixture
def desk(qt_loop: asyncio.Runner, hub: FakeHub, make_desk: Callable[[], Desk]) -> Desk:
    return qt_loop.run(open_for_this_pc(make_desk))


def quants(desk: Desk) -> set[str]:
    offer = desk.parts.services.models.offers.state.value.find(MODEL)
    assert offer is not None
    return {quant.quant for quant in offer.quants}


async def test_the_button_brings_new_files_into_the_offers(hub: FakeHub, desk: Desk) -> None:
    assert desk.text_of(LINE) == f"Catalog of {load_catalog().date}."
    assert desk.text_of(BUTTON) == "Check for updates"
    assert NEW_QUANT not in quants(desk)

    desk.click(BUTTON)
    assert desk.text_of(BUTTON) == "Cancel"
    await desk.parts.services.models.catalog.wait_until_settled()

    assert ". Checked today. 1 file is new." in desk.text_of(LINE)
    assert desk.text_of(BUTTON) == "Check for updates"
    await desk.until(lambda: NEW_QUANT in quants(desk))
    assert CatalogStore().catalog.find_file(REPO, f"{MODEL}-{NEW_QUANT}.gguf") is not None


async def test_cancel_ends_the_look_up(hub: FakeHub, desk: Desk) -> None:
    desk.click(BUTTON)
    desk.click(BUTTON)
    await desk.parts.services.models.catalog.wait_until_settled()
    assert desk.text_of(LINE) == f"Catalog of {load_catalog().date}."
    assert desk.text_of(BUTTON) == "Check for updates"


async def test_offline_the_date_is_shown_and_nothing_can_be_looked_up(hub: FakeHub, desk: Desk) -> None:
    desk.parts.services.settings.change({"offline": True})
    date = f"Catalog of {load_catalog().date}."
    assert desk.text_of(LINE) == f"{date} QwenDesk is offline, so it can't check for updates."
    assert not desk.find(BUTTON, QPushButton).isEnabled()

    desk.parts.services.settings.change({"offline": False})
    assert desk.text_of(LINE) == date
    assert desk.find(BUTTON, QPushButton).isEnabled()
    assert hub.seen == []


async def test_closing_the_window_ends_a_look_up(hub: FakeHub, desk: Desk) -> None:
    desk.click(BUTTON)
    await desk.parts.services.models.catalog.close()
    n_seen = len(hub.seen)
    desk.parts.services.models.catalog.look_up()
    await desk.parts.services.models.catalog.wait_until_settled()
    assert len(hub.seen) == n_seen


@pytest.mark.parametrize(
    ("last", "text"),
    [
        (LastLookUp(), "Catalog of 2026-11-01."),
        (FAILED, "Catalog of 2026-11-01."),
        (LastLookUp(DONE, DONE), "Catalog of 2026-11-01. Checked 2 days ago."),
        (LastLookUp(DONE + datetime.timedelta(days=1)), "Catalog of 2026-11-01. Checked 1 day ago."),
        (LastLookUp(DONE + datetime.timedelta(days=2)), "Catalog of 2026-11-01. Checked today."),
        (LastLookUp(DONE + datetime.timedelta(days=9)), "Catalog of 2026-11-01. Checked today."),
        (LastLookUp(DONE - datetime.timedelta(days=30)), "Catalog of 2026-11-01."),
    ],
    ids=["never", "failed", "two days", "one day", "today", "clock was wrong", "older than the catalog"],
)
def test_date_says_when_files_were_looked_up(last: LastLookUp, text: str) -> None:
    assert date_text("2026-11-01", last, TODAY) == text


@pytest.mark.parametrize(
    ("state", "text"),
    [
        (CatalogState(), ""),
        (CatalogState(changes=CatalogChanges()), "Nothing has changed."),
        (CatalogState(changes=CatalogChanges(3, 1, 0)), "3 files are new. 1 file was replaced."),
        (CatalogState(changes=CatalogChanges(n_removed=2)), "2 files were removed."),
        (CatalogState(progress=LookUpProgress(0, 0)), "Checking for updates…"),
        (CatalogState(progress=LookUpProgress(12, 49)), "Checking for updates: 12 of 49…"),
        (CatalogState(last=FAILED), "The check of 2026-11-22 failed. No connection to the Hub."),
        (CatalogState(last=FAILED, is_offline=True), "QwenDesk is offline, so it can't check for updates."),
    ],
    ids=str,
)
def test_result_is_told_in_sentences(state: CatalogState, text: str) -> None:
    assert result_text(state) == text
