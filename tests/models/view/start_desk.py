"""The window as somebody sees it who has no model."""

from collections.abc import Callable
from pathlib import Path

from qwendesk.core.devices import DeviceInfo
from qwendesk.core.units import GIB
from qwendesk.hub.download_queue import DownloadItem, QueueFile, SavedDownload
from qwendesk.hub.model_folders import ModelFolders
from qwendesk.hub.remote import RemoteFile
from tests.window_desk import Desk

CARD = DeviceInfo("CUDA0", "RTX 3090", "gpu", "CUDA", 24 * GIB, 23 * GIB)


async def first_start(make_desk: Callable[[], Desk], free_bytes: int | None = 500 * GIB) -> Desk:
    """The window as somebody sees it who has no model: offline, with so much room on the drive."""
    desk = make_desk()
    desk.parts.services.models.first_start._free_bytes = lambda _folder: free_bytes
    desk.parts.begin()
    desk.parts.tasks.start(desk.parts.services.models.offers.update())
    await desk.until(lambda: desk.parts.services.models.first_start.state.value.offers.state != "looking")
    await desk.until(lambda: desk.parts.services.models.first_start.state.value.free_bytes == free_bytes)
    return desk


async def with_folder(desk: Desk, folder: Path) -> ModelFolders:
    """Models go to `folder` from now on. Returns what was before, to be put back."""
    before = desk.parts.services.models.library.folders
    await desk.parts.services.models.library.set_folders(ModelFolders((str(folder),), other_apps=False))
    return before


def hero_download(desk: Desk, n_done: int) -> DownloadItem:
    """The recommended model on its way."""
    hero = desk.parts.services.models.first_start.state.value.offers.hero
    assert hero is not None
    assert hero.recommended is not None
    quant = hero.recommended
    file = RemoteFile(quant.repo, quant.path, "0" * 40, 20 * GIB, "a" * 64, "a" * 64, None)
    return DownloadItem(SavedDownload("one", (QueueFile(file, "/models/x.gguf"),), "running"), n_done, "downloading")
