"""Downloads as the window sees them, against a Hub of our own."""

import asyncio
import random
from pathlib import Path

import pytest
import pytest_asyncio

from qwendesk.core import paths
from qwendesk.core.errors import QwenDeskError
from qwendesk.hub.download_control import RetryPolicy
from qwendesk.hub.library_places import HostEnvironment
from qwendesk.hub.model_folders import ModelFolders, write_folders
from qwendesk.hub.network import HubError
from qwendesk.models.downloads import DownloadsService
from qwendesk.models.library_service import LibraryService
from qwendesk.models.network import NetworkService, TokenService
from qwendesk.settings.service import SettingsService
from tests.gguf_files import mmproj_values, model_values, tensor, write_model
from tests.hub.hub_server import FakeHub, running_hub

REPO = "someone/Model-4B-GGUF"
QUICK = RetryPolicy(tries=3, first_wait_s=0.001, longest_wait_s=0.001)
BIG = random.Random(1).randbytes(300_000)


class Desk:
    """What the window has, on a Hub of our own; `restart` begins anew with what is on disk."""

    def __init__(self, hub: FakeHub, folder: Path) -> None:
        self.hub, self.folder = hub, folder
        self.restart()

    def restart(self) -> None:
        self.settings = SettingsService(self.folder / "settings.json")
        self.network = NetworkService(self.settings)
        self.models = LibraryService(HostEnvironment("linux", self.folder / "home", {}))
        self.downloads = DownloadsService(
            self.network, self.models, state_file=self.folder / "downloads.json", retry_policy=QUICK
        )
        self.told = asyncio.Event()
        self.downloads.state.subscribe(lambda _state: self.told.set())
        self.downloads.subscribe_finished(lambda _item: self.told.set())

    def target(self, name: str) -> Path:
        return self.folder / "ours" / REPO / name

    def states(self) -> list[str]:
        return [item.saved.state for item in self.downloads.state.value.items]

    async def until(self, condition) -> None:
        """Returns once a state that was told of fulfils `condition`."""
        while not condition():
            self.told.clear()
            await self.told.wait()

    async def under_way(self) -> None:
        """Until the first download has got bytes."""
        await self.until(
            lambda: any(item.phase == "downloading" and item.n_done for item in self.downloads.state.value.items)
        )

    async def close(self) -> None:
        await self.downloads.close()
        self.network.close()


@pytest_asyncio.fixture
async def desk(tmp_path, monkeypatch):
    from huggingface_hub.utils import close_session

    monkeypatch.setattr(paths, "config_folder", lambda: tmp_path / "settings")
    monkeypatch.setattr(paths, "cache_folder", lambda: tmp_path / "cache")
    monkeypatch.delenv("HF_TOKEN", raising=False)
    write_folders(ModelFolders((str(tmp_path / "ours"),)))
    with running_hub() as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.endpoint)
        hub.add(REPO, "big-4B.gguf", BIG)
        small = write_model(tmp_path / "small.gguf", model_values(), [tensor("token_embd.weight", 64)])
        hub.add(REPO, "small-4B.gguf", small.read_bytes())
        hub.add(REPO, "mmproj-F16.gguf", write_model(tmp_path / "mmproj.gguf", mmproj_values(64)).read_bytes())
        desk = Desk(hub, tmp_path)
        yield desk
        hub.hold.set()
        await desk.close()
        close_session()


async def test_finished_download_is_in_the_library_with_its_mmproj(desk):
    finished = []
    desk.downloads.subscribe_finished(lambda item: finished.append((item, desk.models.current.models)))
    desk.downloads.start()
    identity = await desk.downloads.add(REPO, "small-4B.gguf")
    await desk.until(lambda: bool(finished))
    ((item, library),) = finished
    assert item.saved.id == identity
    assert [model.name for model in library] == ["small-4B"]
    assert desk.target("mmproj-F16.gguf").is_file()


async def test_download_that_finishes_at_once_is_announced(desk, monkeypatch):
    queue = desk.downloads._queue
    start = queue.start

    def start_and_finish():
        start()
        for run in tuple(queue._runs.values()):
            run.thread.join()

    monkeypatch.setattr(queue, "start", start_and_finish)
    finished = []
    desk.downloads.subscribe_finished(finished.append)
    await desk.downloads.add(REPO, "small-4B.gguf", with_mmproj=False)
    desk.downloads.start()
    await asyncio.wait_for(desk.until(lambda: bool(finished)), 30)


async def test_mmproj_can_be_declined_and_another_folder_chosen(desk, tmp_path):
    desk.downloads.start()
    await desk.downloads.add(REPO, "small-4B.gguf", with_mmproj=False, models_folder=tmp_path / "second")
    await desk.until(lambda: desk.states() == ["done"])
    assert [path.name for path in (tmp_path / "second" / REPO).iterdir() if path.is_file()] == ["small-4B.gguf"]


async def test_a_new_token_takes_effect_while_a_download_runs(desk):
    desk.hub.faults = ["stall"]
    desk.downloads.start()
    await desk.downloads.add(REPO, "big-4B.gguf", with_mmproj=False)
    await desk.under_way()
    await TokenService(desk.network).save("secret")
    await desk.until(lambda: desk.states() == ["done"])
    sent = {place.split("/")[0]: headers.get("Authorization") for _, place, headers in desk.hub.seen}
    assert sent == {"endpoint": "Bearer secret", "store": None}
    await TokenService(desk.network).delete()


async def test_unavailable_file_is_refused_before_queueing(desk):
    desk.hub.gated.add(REPO)
    desk.downloads.start()
    for path, repo, words in (
        ("none.gguf", REPO, "has no none.gguf"),
        ("a.gguf", "someone/Missing", "has no repository"),
    ):
        with pytest.raises(HubError, match=words):
            await desk.downloads.add(repo, path)
    assert desk.downloads.state.value.items == ()


async def test_file_changed_on_the_hub_is_replaced_by_the_current_one(desk):
    desk.hub.faults = ["stall"]
    desk.downloads.start()
    identity = await desk.downloads.add(REPO, "big-4B.gguf", with_mmproj=False)
    await desk.under_way()
    await desk.downloads.pause(identity)
    new = desk.hub.add(REPO, "big-4B.gguf", BIG[::-1])
    await desk.downloads.resume(identity)
    await desk.until(lambda: desk.states() == ["failed"])
    assert desk.downloads.state.value.items[0].saved.trouble == "changed"
    await desk.downloads.resume(identity)
    await desk.until(lambda: desk.states() == ["done"])
    assert desk.target("big-4B.gguf").read_bytes() == new


async def test_second_window_does_not_run_the_downloads(desk):
    desk.downloads.start()
    second = DownloadsService(desk.network, desk.models, state_file=desk.folder / "downloads.json")
    second.start()
    with pytest.raises(QwenDeskError, match="Another QwenDesk window"):
        await second.add(REPO, "small-4B.gguf")
    await second.close()
    await desk.downloads.add(REPO, "small-4B.gguf")


async def test_the_speed_limit_is_a_setting(desk):
    desk.settings.change({"download_limit_mb_s": 3})
    desk.downloads.start()
    assert desk.network.connection.limit_bytes_per_s == 3 * 1024**2
