"""The Models page, the model picker and the first start, with a GPU and without."""

from functools import partial

import msgspec
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QLineEdit, QScrollArea, QWidget

from qwendesk.hub.download_queue import DownloadItem, QueueFile, SavedDownload
from qwendesk.hub.model_folders import ModelFolders
from qwendesk.hub.remote import RemoteFile
from qwendesk.models.offers import Offers
from tests.hub.hub_server import running_hub
from tools.screenshots.gallery.room import Room
from tools.screenshots.made_up_files import write_models
from tools.screenshots.stage import settle, until

_FOUND = "unsloth/Qwen3.5-9B-GGUF"


async def first_start(room: Room) -> None:
    """Nothing is loaded and no model is here: it looks at the PC, offers a model, downloads it, and fails."""
    service = room.parts.services.models.first_start
    room.parts.begin()
    await until(lambda: service.state.value.free_bytes is not None)
    await settle()
    offers = service.state.value.offers
    service.state.update(offers=Offers())
    await room.shoot(f"first-start-looking{_suffix(room)}")
    service.state.update(offers=offers)
    await room.shoot(f"first-start{_suffix(room)}")
    room.click("start.details")
    await room.shoot(f"first-start-details{_suffix(room)}")
    room.click("start.details")
    item = _download(offers)
    service.state.update(downloads=(item,))
    await room.shoot(f"first-start-busy{_suffix(room)}")
    failed = msgspec.structs.replace(item.saved, state="failed", sentence="No internet connection.")
    service.state.update(downloads=(msgspec.structs.replace(item, saved=failed),))
    await room.shoot(f"first-start-offline{_suffix(room)}")
    service.state.update(downloads=())


def _download(offers: Offers) -> DownloadItem:
    """Return the download of the recommended model, 38% done."""
    quant = offers.hero.recommended if offers.hero is not None else None
    if quant is None:
        raise LookupError("no model is recommended")
    file = RemoteFile(quant.repo, quant.path, "0" * 40, quant.total_bytes, "a" * 64, "a" * 64, None)
    saved = SavedDownload("one", (QueueFile(file, f"/models/{quant.path}"),), "running")
    return DownloadItem(saved, quant.total_bytes * 38 // 100, "downloading", bytes_per_s=51e6)


async def for_this_pc(room: Room) -> None:
    """The table; with the details of a model, its test results, and all models."""
    _show(room, "pc")
    hero = room.parts.services.models.offers.state.value.hero
    if hero is None:
        raise LookupError("no model is recommended")
    await room.shoot(f"models-pc{_suffix(room)}")
    room.click(f"models.open.{hero.id}")
    await settle()
    await room.shoot(f"models-pc-details{_suffix(room)}")
    room.click(f"models.why.{hero.id}")
    await settle()
    await room.shoot(f"models-pc-quants{_suffix(room)}")
    for fold in _folds(room):
        QTest.mouseClick(fold, Qt.MouseButton.LeftButton)
        await settle()
        await room.shoot(f"models-pc-quants-all{_suffix(room)}", partial(_scroll_to, fold))
    room.click(f"models.open.{hero.id}")
    room.click("models.more")
    await settle()
    await room.shoot(f"models-pc-all{_suffix(room)}")
    room.click("models.more")


async def my_models(room: Room) -> None:
    """No model files, then files of which some are wrong; and the picker that lists them."""
    library = room.parts.services.models.library
    folder = room.files / "models"
    folder.mkdir(exist_ok=True)
    await library.set_folders(ModelFolders((str(folder),), other_apps=False))
    await library.refresh()
    _show(room, "mine")
    await room.shoot("my-models-none")
    write_models(folder)
    await library.refresh()
    await room.parts.services.models.checks.wait_until_settled()
    await settle()
    await room.shoot("my-models")
    await room.shoot("my-models-menu", lambda: room.click("models.my.1.menu"))
    room.window.show_page("chat")
    await room.shoot("picker", lambda: room.do("model_menu"))

    def search() -> None:
        room.do("model_menu")
        for field in room.window.findChildren(QLineEdit, "model.picker.query"):
            field.setText("9b")

    await room.shoot("picker-search", search)


async def hugging_face(room: Room) -> None:
    """The tab before a search, and offline."""
    _show(room, "hub")
    await settle()
    await room.shoot("hub")
    await room.shoot("hub-sorts", lambda: room.click("hub.sort"))
    query = room.window.findChild(QLineEdit, "hub.query")
    if query is None:
        raise LookupError("hub.query")
    query.setText("qwen")
    room.click("hub.search")
    await settle()
    await room.shoot("hub-offline")
    room.click(f"hub.open.{_FOUND}")
    await settle()
    await room.shoot("hub-repo")
    room.click("hub.back")


async def downloads(room: Room) -> None:
    """No downloads; then one that stalls, one that waits, and one that failed."""
    _show(room, "downloads")
    await room.shoot("downloads-none")
    settings, service = room.parts.services.settings, room.parts.services.models.downloads
    with running_hub() as hub:
        for name in ("Model-4B-Q4_K_M.gguf", "Model-9B-Q4_K_M.gguf"):
            hub.add("someone/Model-GGUF", name, bytes(3_000_000))
        hub.faults = ["stall"]
        settings.change({"offline": False, "hub_endpoint": hub.endpoint})
        service.start()
        for name in ("Model-4B-Q4_K_M.gguf", "Model-9B-Q4_K_M.gguf"):
            room.parts.tasks.start(service.add("someone/Model-GGUF", name, with_mmproj=False))
        await until(lambda: len(service.state.value.items) == 2)
        await settle()
        await room.shoot("downloads-running")
        room.click("downloads.1.pause")
        await settle()
        settings.change({"offline": True})
        await settle()
        await room.shoot("downloads-offline")
        hub.hold.set()


def _show(room: Room, tab: str) -> None:
    room.window.show_page("models")
    room.parts.models_page.page().show_tab(tab)


def _suffix(room: Room) -> str:
    return "" if room.pc.has_card else "-no-gpu"


def _folds(room: Room) -> list[QAbstractButton]:
    """Return the button of the open quant table that unfolds it; none if every file fits this PC."""
    buttons = room.window.findChildren(QAbstractButton)
    return [each for each in buttons if each.isVisible() and each.objectName().endswith(".fold")]


def _scroll_to(widget: QWidget) -> None:
    parent = widget.parentWidget()
    while parent is not None and not isinstance(parent, QScrollArea):
        parent = parent.parentWidget()
    if parent is not None:
        parent.ensureWidgetVisible(widget)
