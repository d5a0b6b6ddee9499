"""The catalog's look-ups: by the button, once a week if wanted, and never offline; on a Hub that a test scripts."""

import asyncio
import datetime
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio

from qwendesk.core.errors import QwenDeskError
from qwendesk.hub.catalog import Catalog
from qwendesk.hub.catalog_schema import CatalogFile
from qwendesk.hub.catalog_updates import CatalogChanges, CatalogStore, LastLookUp
from qwendesk.hub.network import HubError, Network, offline_error
from qwendesk.hub.remote import FoundRepo, Hub, RemoteFile
from qwendesk.models import catalog_service
from qwendesk.models.catalog_service import CatalogService, LookUpProgress, result_text
from qwendesk.models.new_models import owners_of
from qwendesk.settings.service import SettingsService
from tests.fakes.waits import Waits
from tests.hub.conftest import fake_hub
from tests.hub.hub_server import FakeHub
from tests.hub.verified import NEW, OLD, REPO, catalog
from tests.models.new_hub import add_qwen4

__all__ = ["fake_hub"]
OTHER_REPO = "bartowski/Qwen_Qwen3.5-35B-A3B-GGUF"
Q4, Q8 = "Qwen3.5-35B-A3B-Q4_K_M.gguf", "Qwen3.5-35B-A3B-Q8_0.gguf"
NOW = datetime.datetime(2026, 11, 24, 12, 0, tzinfo=datetime.UTC)
DAY = datetime.timedelta(days=1)


def two_repositories() -> Catalog:
    one = catalog(files=[CatalogFile(Q4, 10, quant="Q4_K_M", sha256=OLD, is_exact=True)])
    (ours,) = one.repositories
    other = msgspec.structs.replace(ours, repo=OTHER_REPO)
    return Catalog(msgspec.structs.replace(one.contents, repositories=(ours, other)))


def listed(repo: str, path: str, sha256: str, n_bytes: int = 10) -> RemoteFile:
    return RemoteFile(repo, path, "c1", n_bytes, sha256, sha256, "2026-11-20T10:00:00+00:00")


class ScriptedHub:
    """Repositories with a Q4_K_M and a picture file; `extra` is what else they have."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.extra: dict[str, tuple[RemoteFile, ...]] = {}
        self.errors: dict[str, HubError] = {}
        self.on_asked: Callable[[], None] = lambda: None

    def files_since(self, repo: str, revision: str) -> tuple[RemoteFile, ...] | None:
        self.asked.append((repo, revision))
        self.on_asked()
        if repo in self.errors:
            raise self.errors[repo]
        files = (listed(repo, Q4, OLD), listed(repo, "mmproj-F16.gguf", NEW, 899_283_648), *self.extra.get(repo, ()))
        return None if files[0].revision == revision else files

    def newest(self, owner: str, words: str, *, limit: int) -> tuple[FoundRepo, ...]:
        if owner in self.errors:
            raise self.errors[owner]
        return ()


class Desk:
    def __init__(self, folder: Path) -> None:
        self.hub, self.waits, self.now = ScriptedHub(), Waits(), NOW
        self.settings = SettingsService(folder / "settings.json")
        self.store = CatalogStore(two_repositories, folder)
        self.service = self.make(self.store)

    def make(self, store: CatalogStore) -> CatalogService:
        return CatalogService(
            store, self.settings, lambda: self.hub, now=lambda: self.now, wait=self.waits.wait, gap_s=0
        )

    async def look_up(self) -> None:
        self.service.look_up()
        await self.service.wait_until_settled()

    async def after_start(self) -> None:
        """Start, and let the first minute pass."""
        self.service.start()
        await self.hour_passes()

    async def hour_passes(self) -> None:
        await self.waits.end()
        await self.service.wait_until_settled()


@pytest_asyncio.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    desk = Desk(tmp_path)
    yield desk
    await desk.service.close()


async def test_look_up_finds_what_is_new_and_saves_it(desk: Desk, tmp_path: Path) -> None:
    desk.hub.extra[REPO] = (listed(REPO, Q8, NEW),)
    shown: list[LookUpProgress | None] = []
    desk.service.state.subscribe(lambda state: shown.append(state.progress))

    await desk.look_up()

    state = desk.service.state.value
    assert state.changes == CatalogChanges(n_new=1)
    assert state.last == LastLookUp(done=NOW, tried=NOW)
    assert state.catalog is not None
    assert state.catalog.find_file(REPO, Q8) is not None
    assert shown[0] == LookUpProgress(0, 0)
    assert shown[-1] is None
    again = CatalogStore(two_repositories, tmp_path)
    assert again.catalog.find_file(REPO, Q8) is not None
    assert again.read_last() == state.last


async def test_repositories_without_a_new_commit_are_not_listed_again(desk: Desk) -> None:
    await desk.look_up()
    assert desk.hub.asked == [(REPO, ""), (OTHER_REPO, "")]
    desk.hub.asked.clear()
    desk.now += 8 * DAY

    await desk.look_up()

    assert desk.hub.asked == [(REPO, "c1"), (OTHER_REPO, "c1")]
    assert desk.service.state.value.changes == CatalogChanges()
    assert {update.day for update in desk.store.updates.values()} == {"2026-12-02"}


async def test_failure_is_remembered_and_keeps_what_was_answered(desk: Desk, tmp_path: Path) -> None:
    desk.hub.extra[REPO] = (listed(REPO, Q8, NEW),)
    desk.hub.errors[OTHER_REPO] = HubError("no_connection", "No connection", "No connection to the Hub.")

    await desk.look_up()

    state = desk.service.state.value
    assert (state.last, state.changes) == (LastLookUp(tried=NOW, problem="No connection to the Hub."), None)
    assert state.catalog is not None
    assert state.catalog.find_file(REPO, Q8) is not None
    assert CatalogStore(two_repositories, tmp_path).read_last() == state.last


async def test_repository_that_is_gone_does_not_stop_the_others(desk: Desk) -> None:
    desk.hub.errors[REPO] = HubError("not_found", "Not found", "It is gone.")
    await desk.look_up()
    assert (desk.service.state.value.last.done, desk.service.state.value.last.problem) == (NOW, "")

    desk.hub.errors[OTHER_REPO] = desk.hub.errors[REPO]
    desk.now += DAY
    await desk.look_up()
    assert desk.service.state.value.last == LastLookUp(NOW, NOW + DAY, "It is gone.")


async def test_nothing_is_looked_up_by_itself_unless_chosen(desk: Desk) -> None:
    await desk.after_start()
    await desk.hour_passes()
    assert desk.hub.asked == []

    desk.settings.change({"look_up_weekly": True})
    await desk.hour_passes()
    assert len(desk.hub.asked) == 2


async def test_weekly_look_up_waits_for_a_week(desk: Desk) -> None:
    desk.settings.change({"look_up_weekly": True})
    await desk.after_start()
    assert len(desk.hub.asked) == 2
    assert desk.waits.seconds[0] == 60

    desk.now += 7 * DAY - datetime.timedelta(hours=1)
    await desk.hour_passes()
    assert len(desk.hub.asked) == 2
    desk.now += datetime.timedelta(hours=1)
    await desk.hour_passes()
    assert len(desk.hub.asked) == 4


async def test_weekly_look_up_counts_from_the_last_one_before_the_start(desk: Desk) -> None:
    desk.settings.change({"look_up_weekly": True})
    desk.store.save_last(LastLookUp(NOW - 2 * DAY, NOW - 2 * DAY))
    await desk.after_start()
    assert desk.hub.asked == []


async def test_failed_weekly_look_up_is_tried_again_the_next_day(desk: Desk) -> None:
    desk.settings.change({"look_up_weekly": True})
    desk.hub.errors[REPO] = HubError("busy", "Server busy", "Try again later.")
    await desk.after_start()
    await desk.hour_passes()
    assert len(desk.hub.asked) == 1

    desk.hub.errors.clear()
    desk.now += DAY
    await desk.hour_passes()
    assert desk.service.state.value.last == LastLookUp(NOW + DAY, NOW + DAY)


async def test_date_in_the_future_does_not_stop_the_look_ups(desk: Desk) -> None:
    desk.settings.change({"look_up_weekly": True})
    desk.store.save_last(LastLookUp(NOW + 900 * DAY, NOW + 900 * DAY))
    await desk.after_start()
    assert desk.service.state.value.last.done == NOW


async def test_nothing_is_looked_up_by_itself_offline_or_on_a_metered_connection(desk: Desk) -> None:
    desk.settings.change({"look_up_weekly": True, "offline": True})
    await desk.after_start()
    await desk.look_up()
    assert desk.hub.asked == []
    assert desk.service.state.value.is_offline
    assert desk.service.state.value.last == LastLookUp()

    desk.settings.change({"offline": False})
    desk.service.set_metered(True)
    await desk.hour_passes()
    assert desk.hub.asked == []
    await desk.look_up()
    assert len(desk.hub.asked) == 2, "the button is a yes"


@pytest.mark.parametrize("change", ["offline", "not_weekly", "metered", "cancel"])
async def test_look_up_stops_when_it_may_not_go_on(desk: Desk, change: str) -> None:
    loop, asked, answer = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

    def hold() -> None:
        loop.call_soon_threadsafe(asked.set)
        answer.wait()

    desk.settings.change({"look_up_weekly": True})
    desk.hub.on_asked = hold
    desk.service.start()
    await desk.waits.end()
    await asked.wait()
    match change:
        case "offline":
            desk.settings.change({"offline": True})
            desk.hub.errors[REPO] = offline_error()
        case "not_weekly":
            desk.settings.change({"look_up_weekly": False})
        case "metered":
            desk.service.set_metered(True)
        case "cancel":
            desk.service.cancel()
    answer.set()
    await desk.service.wait_until_settled()

    assert desk.hub.asked == [(REPO, "")]
    state = desk.service.state.value
    assert (state.last, state.changes, state.progress) == (LastLookUp(), None, None)
    assert (REPO in desk.store.updates) is (change != "offline"), "what was answered is kept"


async def test_cancelled_weekly_look_up_is_not_begun_again_within_a_day(desk: Desk) -> None:
    desk.settings.change({"look_up_weekly": True})
    desk.hub.on_asked = desk.service.cancel
    await desk.after_start()
    assert len(desk.hub.asked) == 1
    desk.hub.on_asked = lambda: None

    desk.now += datetime.timedelta(hours=1)
    await desk.hour_passes()
    assert len(desk.hub.asked) == 1

    desk.now += DAY
    await desk.hour_passes()
    assert desk.service.state.value.last.done == desk.now


async def test_button_looks_up_right_after_a_cancel(desk: Desk) -> None:
    desk.hub.on_asked = desk.service.cancel
    await desk.look_up()
    desk.hub.on_asked = lambda: None
    await desk.look_up()
    assert desk.service.state.value.last.done == NOW


async def test_answer_that_is_later_than_closing_waits_is_not_saved(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, asked, answer = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

    def hold() -> None:
        loop.call_soon_threadsafe(asked.set)
        answer.wait()

    monkeypatch.setattr(catalog_service, "_CLOSING_S", 0.0)
    desk.hub.on_asked = hold
    desk.service.look_up()
    await asked.wait()
    await desk.service.close()
    answer.set()
    await loop.shutdown_default_executor()  # returns when the thread has ended

    found = CatalogStore(two_repositories, tmp_path)
    assert (found.updates, found.read_last()) == ({}, LastLookUp()), "Delete everything has deleted them by now"


async def test_damaged_catalog_is_reported(tmp_path: Path) -> None:
    def damaged() -> Catalog:
        raise QwenDeskError("The model catalog is damaged", "Install QwenDesk again.")

    desk = Desk(tmp_path)
    service = desk.make(CatalogStore(damaged, tmp_path))
    service.look_up()
    await service.wait_until_settled()
    assert service.state.value.last.problem == "Install QwenDesk again."
    for each in (service, desk.service):
        await each.close()


async def test_new_models_are_found_saved_and_counted_once(fake_hub: FakeHub, tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    hub = Hub(Network(endpoint=fake_hub.endpoint))

    def service() -> CatalogService:
        return CatalogService(CatalogStore(two_repositories, tmp_path), desk.settings, lambda: hub, gap_s=0)

    add_qwen4(fake_hub)
    fake_hub.add(REPO, Q4, b"four bits")
    first = service()
    await first.load()
    assert first.state.value.new == ()
    first.look_up()
    await first.wait_until_settled()
    assert [model.name for model in first.state.value.new] == ["Qwen4-27B"]
    assert result_text(first.state.value).startswith("1 model is new. ")
    first.look_up()
    await first.wait_until_settled()
    assert result_text(first.state.value) == "Nothing has changed."

    later = service()
    await later.load()
    assert later.state.value.new == first.state.value.new
    for each in (first, later, desk.service):
        await each.close()


async def test_failure_to_list_new_models_is_told_and_keeps_what_is_known(desk: Desk) -> None:
    desk.hub.errors["bartowski"] = HubError("busy", "Server busy", "Try again later.")
    await desk.look_up()
    assert desk.service.state.value.last == LastLookUp(tried=NOW, problem="Try again later.")
    assert REPO in desk.store.updates


async def test_a_hub_is_asked_once_for_a_repository_that_has_not_changed(fake_hub: FakeHub, tmp_path: Path) -> None:
    fake_hub.add(REPO, Q8, b"eight bits")
    fake_hub.add(OTHER_REPO, Q4, b"four bits")
    desk = Desk(tmp_path)
    hub = Hub(Network(endpoint=fake_hub.endpoint))
    service = CatalogService(desk.store, desk.settings, lambda: hub, gap_s=0)
    service.look_up()
    await service.wait_until_settled()
    found = desk.store.catalog.find_file(REPO, Q8)
    assert found is not None
    assert found.n_bytes == len(b"eight bits")
    n_lists = len(owners_of(desk.store.catalog))
    assert (len(fake_hub.requests("GET")), len(fake_hub.requests("POST"))) == (2 + n_lists, 2)

    service.look_up()
    await service.wait_until_settled()
    assert (len(fake_hub.requests("GET")), len(fake_hub.requests("POST"))) == (2 * (2 + n_lists), 2)
    for each in (service, desk.service):
        await each.close()
