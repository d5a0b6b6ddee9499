"""The window as somebody sees it who has no model."""

from collections.abc import Callable
from pathlib import Path

from qwendesk.core.devices import DeviceInfo
from qwendesk.core.units import GIB
from qwendesk.hub.folders import ModelFolders
from tests.ui.desk import Desk

CARD = DeviceInfo("CUDA0", "RTX 3090", "gpu", "CUDA", 24 * GIB, 23 * GIB)


async def first_start(make_desk: Callable[[], Desk], free_bytes: int | None = 500 * GIB) -> Desk:
    """The window as somebody sees it who has no model: offline, with so much room on the drive."""
    desk = make_desk()
    desk.parts.first.bridge._service._free_bytes = lambda _folder: free_bytes
    desk.parts.first.begin()
    desk.parts.models.offers.look()
    await desk.until(lambda: desk.parts.first.bridge.start.offers.state != "looking")
    await desk.until(lambda: desk.parts.first.bridge.start.free_bytes == free_bytes)
    return desk


async def with_folder(desk: Desk, folder: Path) -> ModelFolders:
    """Models go to `folder` from now on. Returns what was before, to be put back."""
    before = desk.parts.models.models.folders
    await desk.parts.models.models.set_folders(ModelFolders((str(folder),), other_apps=False))
    return before
