"""The library follows the disk: told by the system, never while the window is hidden, once when it is shown again."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import pytest
import pytest_asyncio

from qwendesk.core import paths
from qwendesk.hub.library import Library, scan
from qwendesk.hub.library_places import HostEnvironment
from qwendesk.hub.model_folders import ModelFolders, write_folders
from qwendesk.models import library_watch
from qwendesk.models.library_service import LibraryService
from qwendesk.models.library_watch import LibraryWatch
from tests.gguf_files import model_values, tensor, write_model


class Desk:
    """One folder of models, and a system that reports what the test says."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ours = root / "ours"
        self.ours.mkdir()
        monkeypatch.setattr(paths, "config_folder", lambda: root / "settings")
        monkeypatch.setattr(paths, "cache_folder", lambda: root / "cache")
        write_folders(ModelFolders((str(self.ours),)))
        self.n_scans = 0
        monkeypatch.setattr("qwendesk.models.library_service.scan", self._scan)
        monkeypatch.setattr(library_watch, "_GATHER_S", 0.0)
        self.followed: tuple[str, ...] = ()
        self.reports_all = True
        self.models = LibraryService(HostEnvironment("linux", root / "home", {}))
        self.watch = LibraryWatch(self.models, self._follow)

    def model(self, name: str) -> Path:
        path = self.ours / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return write_model(path, model_values(general__name="x"), [tensor("token_embd.weight", 64)])

    async def heard(self, condition: Callable[[Library], bool]) -> None:
        """Return once the library fulfils `condition`."""
        came = asyncio.Event()

        def look(library: Library) -> None:
            if condition(library):
                came.set()

        unsubscribe = self.models.state.subscribe_field(lambda state: state.library, look)
        look(self.models.current)
        await came.wait()
        unsubscribe()

    def _scan(self, *given: object) -> Library:
        self.n_scans += 1
        return scan(*given)  # type: ignore[arg-type]

    def _follow(self, folders: Sequence[str]) -> bool:
        self.followed = tuple(folders)
        return self.reports_all


def names(library: Library) -> list[str]:
    return [found.name for found in library.models]


@pytest_asyncio.fixture
async def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Desk]:
    desk = Desk(tmp_path, monkeypatch)
    yield desk
    await desk.watch.close()
    assert asyncio.all_tasks() == {asyncio.current_task()}


def never_again_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what is told leads to another look."""
    monkeypatch.setattr(library_watch, "_SETTLE_S", 3600.0)
    monkeypatch.setattr(library_watch, "_CALM_S", 3600.0)


async def test_reported_change_starts_a_scan_and_new_folders_are_followed(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    never_again_by_itself(monkeypatch)
    desk.model("a.gguf")
    desk.watch.start()
    desk.watch.start()
    await desk.heard(lambda library: names(library) == ["a"])
    assert desk.followed == (str(desk.ours),)
    desk.model("owner/repo/b.gguf")
    desk.watch.note_change()
    await desk.heard(lambda library: names(library) == ["a", "b"])
    assert set(desk.followed) == {str(desk.ours), str(desk.ours / "owner"), str(desk.ours / "owner" / "repo")}


async def test_growing_file_is_scanned_again_without_a_report(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library_watch, "_SETTLE_S", 0.01)
    monkeypatch.setattr(library_watch, "_CALM_S", 3600.0)
    path = desk.model("a.gguf")
    desk.watch.start()
    for _ in range(2):
        before = path.stat().st_size
        await desk.heard(lambda library, size=before: [each.n_bytes for each in library.models] == [size])
        with path.open("ab") as file:
            file.write(bytes(100))
        desk.watch.note_change()
    await desk.heard(lambda library: [each.n_bytes for each in library.models] == [path.stat().st_size])


async def test_folders_without_reports_are_scanned_regularly(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library_watch, "_SETTLE_S", 0.01)
    monkeypatch.setattr(library_watch, "_CALM_S", 3600.0)
    desk.reports_all = False
    desk.model("a.gguf")
    desk.watch.start()
    await desk.heard(lambda library: names(library) == ["a"])
    n_scans = desk.n_scans
    while desk.n_scans < n_scans + 3:  # noqa: ASYNC110  (nobody tells of a scan that finds nothing new)
        await asyncio.sleep(0)
    desk.model("b.gguf")
    await desk.heard(lambda library: names(library) == ["a", "b"])


async def test_hidden_window_scans_once_when_shown(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library_watch, "_SETTLE_S", 0.0)
    monkeypatch.setattr(library_watch, "_CALM_S", 0.0)
    desk.model("a.gguf")
    desk.watch.start()
    await desk.heard(lambda library: names(library) == ["a"])
    desk.watch.set_visible(False)
    await desk.models.refresh()  # waits for the look that may be under way
    desk.model("b.gguf")
    n_scans = desk.n_scans
    for _ in range(20):
        desk.watch.note_change()
        await asyncio.to_thread(int)  # long enough for a look that is not waiting
    assert desk.n_scans == n_scans
    never_again_by_itself(monkeypatch)
    desk.watch.set_visible(True)
    await desk.heard(lambda library: names(library) == ["a", "b"])
    assert desk.n_scans == n_scans + 1


async def test_a_hidden_watch_can_be_closed(desk: Desk) -> None:
    desk.watch.start()
    desk.watch.set_visible(False)


async def test_scan_of_a_dead_network_drive_does_not_block_closing(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    looking, answers = threading.Event(), threading.Event()

    def dead(*_given: object) -> Library:
        looking.set()
        answers.wait()
        return Library()

    monkeypatch.setattr("qwendesk.models.library_service.scan", dead)
    monkeypatch.setattr(library_watch, "_SILENT_S", 0.01)
    desk.watch.start()
    await asyncio.to_thread(looking.wait)
    try:
        await desk.watch.close()
    finally:
        answers.set()
