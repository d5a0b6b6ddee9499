"""The Downloads tab as it is used, against a Hub of our own."""

import random
from pathlib import Path

import pytest
from PySide6.QtWidgets import QProgressBar

from qwendesk.core import paths
from qwendesk.hub import download_part
from qwendesk.hub.model_folders import ModelFolders, write_folders
from qwendesk.models.view import download_row
from tests.gguf_files import mmproj_values, model_values, tensor, write_model
from tests.hub.hub_server import running_hub

REPO = "someone/Model-4B-GGUF"
BIG = random.Random(1).randbytes(300_000)
NAMES = ("a-4B.gguf", "b-4B.gguf", "c-4B.gguf")


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A Hub, and folders of this test's own: downloads are remembered from one window to the next."""
    from huggingface_hub.utils import close_session

    for name in ("config", "data", "cache"):
        monkeypatch.setattr(paths, f"{name}_folder", lambda name=name: tmp_path / name)
    monkeypatch.delenv("HF_TOKEN", raising=False)
    write_folders(ModelFolders((str(tmp_path / "ours"),), other_apps=False))
    with running_hub() as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.endpoint)
        for name in NAMES:
            hub.add(REPO, name, BIG)
        small = write_model(tmp_path / "small.gguf", model_values(), [tensor("token_embd.weight", 64)])
        hub.add(REPO, "small-4B.gguf", small.read_bytes())
        hub.add(REPO, "mmproj-F16.gguf", write_model(tmp_path / "mmproj.gguf", mmproj_values(64)).read_bytes())
        yield hub
        hub.hold.set()
        close_session()


@pytest.fixture
def shown(hub, make_desk):
    """Opens a window on the Downloads tab."""

    def show():
        desk = make_desk()
        desk.parts.services.models.downloads.start()
        desk.window.show_page("models")
        desk.parts.models_page.page().show_tab("downloads")
        return desk

    return show


def states(desk) -> list[str]:
    count = len(desk.parts.services.models.downloads.state.value.items)
    return [desk.text_of(f"downloads.{place}.state") for place in range(1, count + 1)]


def under_way(desk, place: int = 1) -> bool:
    return desk.has(f"downloads.{place}.bar") and desk.find(f"downloads.{place}.bar", QProgressBar).value() > 0


async def test_download_pause_resume_and_finish(hub, shown, tmp_path):
    hub.faults = ["stall"]
    desk = shown()
    await desk.until(lambda: desk.is_shown("downloads.empty"))
    desk.parts.tasks.start(desk.parts.services.models.downloads.add(REPO, NAMES[0], with_mmproj=False))
    await desk.until(lambda: under_way(desk))
    assert not desk.is_shown("downloads.empty")
    assert desk.text_of("downloads.1.name") == NAMES[0]
    assert desk.text_of("models.tab.downloads") == "Downloads · 1"
    desk.click("downloads.1.pause")
    await desk.until(lambda: states(desk) == ["Paused"])
    assert "of 293 KB" in desk.text_of("downloads.1.progress")
    desk.click("downloads.1.resume")
    await desk.until(lambda: states(desk) == ["Finished"])
    assert (tmp_path / "ours" / REPO / NAMES[0]).read_bytes() == BIG
    assert desk.text_of("models.tab.downloads") == "Downloads"
    assert desk.is_shown("downloads.1.folder")
    desk.click("downloads.clear")
    await desk.until(lambda: desk.is_shown("downloads.empty"))


async def test_a_finished_model_is_loaded_from_its_row(hub, shown):
    desk = shown()
    desk.parts.tasks.start(desk.parts.services.models.downloads.add(REPO, "small-4B.gguf"))
    await desk.until(lambda: desk.is_shown("downloads.1.load"))
    desk.click("downloads.1.load")
    await desk.until(lambda: desk.parts.engine.state.requested is not None)
    assert desk.parts.engine.state.requested.model.endswith("small-4B.gguf")


async def test_failed_download_says_why_and_can_be_retried(hub, shown):
    hub.head_faults = [404]
    desk = shown()
    desk.parts.tasks.start(desk.parts.services.models.downloads.add(REPO, NAMES[0], with_mmproj=False))
    await desk.until(lambda: desk.is_shown("downloads.1.retry"))
    assert states(desk) == ["Failed"]
    assert f"no longer has this file of {REPO}" in desk.text_of("downloads.1.sentence")
    desk.click("downloads.1.retry")
    await desk.until(lambda: states(desk) == ["Finished"])
    assert not desk.is_shown("downloads.1.sentence")


async def test_a_gated_model_says_what_to_accept_and_where(hub, shown):
    hub.gated.add(REPO)
    desk = shown()
    asked: list[str] = []
    desk.parts.navigation.settings_asked.connect(asked.append)
    desk.parts.tasks.start(desk.parts.services.models.downloads.add(REPO, NAMES[0], with_mmproj=False))
    await desk.until(lambda: desk.is_shown("downloads.1.page"))
    assert f"Open {hub.endpoint}/{REPO}, accept the terms" in desk.text_of("downloads.1.sentence")
    desk.click("downloads.1.token")
    assert asked == ["token"]


async def test_a_full_disk_offers_another_folder(hub, shown, monkeypatch):
    monkeypatch.setattr(download_part, "free_bytes", lambda _folder: 1000)
    desk = shown()
    asked: list[str] = []
    desk.parts.navigation.settings_asked.connect(asked.append)
    desk.parts.tasks.start(desk.parts.services.models.downloads.add(REPO, NAMES[0], with_mmproj=False))
    await desk.until(lambda: desk.is_shown("downloads.1.folders"))
    assert "are missing" in desk.text_of("downloads.1.sentence")
    desk.click("downloads.1.folders")
    assert asked == ["folders"]


async def test_failed_action_is_shown_with_what_to_do(hub, shown):
    hub.head_faults = [404]
    desk = shown()
    desk.parts.tasks.start(desk.parts.services.models.downloads.add(REPO, NAMES[0], with_mmproj=False))
    await desk.until(lambda: desk.is_shown("downloads.1.retry"))
    del hub.repos[REPO]
    desk.click("downloads.1.retry")
    await desk.until(lambda: desk.is_shown("downloads.refused"))
    assert f"has no repository {REPO}" in desk.text_of("downloads.refused.sentence")
    assert desk.is_shown("downloads.refused.page")
    desk.click("downloads.refused.dismiss")
    assert not desk.is_shown("downloads.refused")


async def test_downloads_resume_in_the_next_window(hub, shown):
    hub.faults = ["stall"]
    first = shown()
    first.parts.tasks.start(first.parts.services.models.downloads.add(REPO, NAMES[0], with_mmproj=False))
    await first.until(lambda: under_way(first))
    await first.parts.services.models.downloads.close()
    hub.count_anew()
    second = shown()
    await second.until(lambda: second.has("downloads.1.state") and states(second) == ["Finished"])
    assert 0 < hub.sent_bytes < len(BIG)


async def test_downloads_can_be_reordered_and_cancelled(hub, shown, tmp_path):
    hub.always = "stall"
    desk = shown()
    for count, name in enumerate(NAMES, 1):
        desk.parts.tasks.start(desk.parts.services.models.downloads.add(REPO, name, with_mmproj=False))
        await desk.until(lambda count=count: len(desk.parts.services.models.downloads.state.value.items) == count)
    await desk.until(lambda: under_way(desk, 1) and under_way(desk, 2))
    assert states(desk) == ["Downloading", "Downloading", "Waiting"]
    await desk.until(lambda: desk.is_shown("downloads.3.up"))
    desk.click("downloads.3.up")
    await desk.until(lambda: desk.text_of("downloads.2.name") == NAMES[2])
    desk.click("downloads.1.cancel")
    await desk.until(lambda: len(desk.parts.services.models.downloads.state.value.items) == 2)
    assert not (tmp_path / "ours" / REPO / NAMES[0]).exists()
    await desk.until(lambda: states(desk) == ["Downloading", "Downloading"])
    desk.click("downloads.pause_all")
    await desk.until(lambda: states(desk) == ["Paused", "Paused"])
    hub.hold.set()
    hub.always = ""
    desk.click("downloads.resume_all")
    await desk.until(lambda: states(desk) == ["Finished", "Finished"])


async def test_cancelling_a_large_download_asks_first(hub, shown, monkeypatch):
    monkeypatch.setattr(download_row, "_MUCH_BYTES", 1000)
    hub.always = "stall"
    desk = shown()
    desk.parts.tasks.start(desk.parts.services.models.downloads.add(REPO, NAMES[0], with_mmproj=False))
    await desk.until(lambda: under_way(desk))
    desk.click("downloads.1.cancel")
    assert "Cancel and delete" in desk.text_of("downloads.1.question")
    desk.click("downloads.1.keep")
    assert not desk.is_shown("downloads.1.question")
    desk.click("downloads.1.cancel")
    desk.click("downloads.1.discard")
    await desk.until(lambda: desk.is_shown("downloads.empty"))


async def test_offline_downloads_wait_for_one_click(hub, shown):
    hub.faults = ["stall"]
    desk = shown()
    desk.parts.tasks.start(desk.parts.services.models.downloads.add(REPO, NAMES[0], with_mmproj=False))
    await desk.until(lambda: under_way(desk))
    assert desk.text_of("rail.models.badge") == "1"
    desk.parts.services.settings.change({"offline": True})
    await desk.until(lambda: states(desk) == ["Offline"])
    desk.click("downloads.offline.online")
    await desk.until(lambda: states(desk) == ["Finished"])
    assert not desk.is_shown("rail.models.badge")


async def test_token_button_opens_the_settings(hub, shown):
    hub.gated.add(REPO)
    desk = shown()
    desk.parts.tasks.start(desk.parts.services.models.downloads.add(REPO, NAMES[0], with_mmproj=False))
    await desk.until(lambda: desk.is_shown("downloads.1.token"))
    desk.click("downloads.1.token")
    assert desk.is_shown("settings.token.field")
