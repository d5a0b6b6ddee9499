"""The first start, driven as a person does: on a good PC, without room, without a network, without a GPU."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from PySide6.QtWidgets import QFileDialog, QLabel, QPushButton

from qwendesk.app.meters_part import MeterSource
from qwendesk.app.parts import build
from qwendesk.core.failures import EngineDeath, LoadFailure
from qwendesk.core.options import LoadOptions
from qwendesk.core.units import GIB
from qwendesk.hardware.looking import Looking
from qwendesk.hardware.probes.base import Ask, Found
from qwendesk.hardware.snapshot import GpuReading
from qwendesk.hub.queue_state import DownloadItem, Kept, QueueFile
from qwendesk.hub.remote import RemoteFile
from qwendesk.services.engine.service import EngineService
from qwendesk.services.models.drives import free_on_drive
from qwendesk.services.models.ranking import Offer
from qwendesk.ui.bridges.engine import EngineBridge
from qwendesk.ui.frame.actions import installed
from qwendesk.ui.kit.theme_keeper import ThemeKeeper
from qwendesk.ui.models.no_model_strip import NoModelStrip
from tests.fakes.engine import FakeEngineClient
from tests.gguf_files import model_values, tensor, write_model
from tests.ui.desk import Desk
from tests.ui.models.start_desk import CARD, first_start, with_folder


@pytest.fixture
def client(client: FakeEngineClient) -> FakeEngineClient:
    client.devices = (CARD, *client.devices)
    return client


def a_download(offer: Offer, n_done: int) -> DownloadItem:
    """The offer's file on its way."""
    quant = offer.recommended
    assert quant is not None
    file = RemoteFile(quant.repo, quant.path, "0" * 40, 20 * GIB, "a" * 64, "a" * 64, None)
    return DownloadItem(Kept("one", (QueueFile(file, "/models/x.gguf"),), "running"), n_done, "downloading")


async def test_it_names_the_pc_one_model_its_size_place_and_time(make_desk: Callable[[], Desk]) -> None:
    desk = await first_start(make_desk)
    assert desk.text_of("start.pc").startswith("Your PC: RTX 3090, 24 GB VRAM")
    assert desk.text_of("start.name") == "Qwen3.5-35B-A3B, reads pictures"
    assert (desk.text_of("start.model"), desk.text_of("start.model.size")) == ("UD-Q4_K_L", "18.8 GB")
    assert desk.text_of("start.mmproj") == "mmproj-F16"
    assert desk.text_of("start.folder.size") == "500.0 GB free"
    expect = desk.text_of("start.expect")
    assert "minutes at 50 MB/s (assumed)" in expect
    assert "55–80 in long chats" in expect
    assert desk.text_of("start.quick").startswith("Chat in a minute: Qwen3.5-2B, ")
    assert not desk.is_shown("composer.text")


async def test_nothing_is_typed_unseen_and_the_demo_of_a_command_is_asked_at_once(
    make_desk: Callable[[], Desk],
) -> None:
    desk = make_desk()
    desk.window.hide()  # as one that opens behind others: its composer has the keys when the first start covers it
    desk.parts.first.begin()
    desk.window.show()
    desk.window.activateWindow()
    await desk.until(desk.window.isActiveWindow)
    assert desk.window.focusWidget() is not desk.composer_text
    installed(desk.window)["demo"].trigger()
    await desk.until(lambda: desk.parts.engine.state.report is not None)
    assert desk.composer_text.hasFocus()


async def test_the_demo_is_offered_as_a_demo_and_leads_to_the_chat(make_desk: Callable[[], Desk]) -> None:
    desk = await first_start(make_desk)
    assert "knows a few topics" in desk.text_of("start.demo")
    assert desk.parts.engine.state.wanted is None, "nobody asked for the demo yet"
    desk.click("start.demo")
    await desk.until(lambda: desk.parts.engine.state.report is not None)
    assert not desk.is_shown("start.demo")
    await desk.ask("Hello")
    assert "You said: Hello" in desk.message(1).answer_view.markdown


async def test_pictures_can_be_left_out(make_desk: Callable[[], Desk]) -> None:
    desk = await first_start(make_desk)
    desk.click("start.pictures")
    await desk.until(lambda: desk.text_of("start.mmproj") == "None")
    assert desk.text_of("start.name") == "Qwen3.5-35B-A3B"


async def test_without_room_it_says_how_much_is_missing_and_takes_another_folder(
    make_desk: Callable[[], Desk], tmp_path: Path
) -> None:
    desk = await first_start(make_desk, free_bytes=3 * GIB)
    assert not desk.find("start.download", QPushButton).isEnabled()
    assert "lacks 17." in desk.text_of("start.problem")
    desk.parts.first.bridge._service._free_bytes = lambda _folder: 100 * GIB
    desk.click("start.change")
    dialog = desk.find("start.folderdialog", QFileDialog)
    before = desk.parts.models.models.folders
    try:
        dialog.fileSelected.emit(str(tmp_path))
        dialog.close()
        await desk.until(lambda: desk.text_of("start.folder") == str(tmp_path))
        await desk.until(lambda: desk.find("start.download", QPushButton).isEnabled())
        assert desk.parts.models.models.folders.models[0] == str(tmp_path)
    finally:
        await desk.parts.models.models.set_folders(before)


async def test_offline_it_says_so_and_the_other_ways_stay(make_desk: Callable[[], Desk]) -> None:
    desk = await first_start(make_desk)
    desk.parts.settings.change({"offline": True})
    try:
        desk.click("start.download")
        await desk.until(lambda: desk.is_shown("start.problem"))
        assert "offline" in desk.text_of("start.problem")
        assert "the demo work" in desk.text_of("start.problem")
        desk.click("start.files")
        assert desk.is_shown("models.tabs")
        assert desk.parts.models.page.shown_tab == "mine"
    finally:
        desk.parts.settings.change({"offline": False})


async def test_without_a_gpu_it_is_honest(make_desk: Callable[[], Desk], client: FakeEngineClient) -> None:
    client.devices = client.devices[1:]
    desk = await first_start(make_desk)
    assert "no GPU that the engine can use" in desk.text_of("start.pc")
    if desk.parts.first.bridge.start.offers.hero is not None:
        assert desk.text_of("start.fit").startswith("On the CPU")


async def test_an_engine_that_does_not_start_is_no_dead_end(
    make_desk: Callable[[], Desk], client: FakeEngineClient
) -> None:
    client.start_result = EngineDeath(1, "A library is missing.")
    desk = await first_start(make_desk)
    assert "A library is missing." in desk.text_of("start.pc")
    assert desk.is_shown("start.demo")
    assert desk.is_shown("start.files")


async def test_a_failed_load_comes_back_here(make_desk: Callable[[], Desk], client: FakeEngineClient) -> None:
    client.load_result = LoadFailure("other", "It failed", "For a test.")
    desk = await first_start(make_desk)
    desk.parts.engine.load_model("/models/x.gguf")
    await desk.until(lambda: desk.is_shown("banner"))
    assert desk.is_shown("start.demo")


async def test_the_last_model_is_loaded_instead(make_desk: Callable[[], Desk], tmp_path: Path) -> None:
    model = tmp_path / "model.gguf"
    model.write_bytes(b"x")
    desk = make_desk()
    desk.parts.engine.load_model(str(model))
    await desk.until(lambda: desk.parts.engine.state.report is not None)
    again = make_desk()
    try:
        again.parts.first.begin()
        await again.until(lambda: again.parts.engine.state.wanted is not None)
        wanted = again.parts.engine.state.wanted
        assert wanted is not None
        assert wanted.model == str(model)
        assert not again.is_shown("start.demo")
        await again.until(lambda: again.parts.engine.state.report is not None)
    finally:
        model.unlink()


async def test_a_model_that_was_chosen_meanwhile_is_not_replaced_by_the_last(
    make_desk: Callable[[], Desk], monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = make_desk()
    first, engine = desk.parts.first, desk.parts.engine
    monkeypatch.setattr(first.last_model, "read", lambda: LoadOptions(model="/models/last.gguf"))
    async with engine._service._one_load:  # as while the devices are asked for
        engine.load(LoadOptions(model="/models/chosen.gguf"))
        first.begin()
        await desk.until(lambda: len(desk.parts.tasks._running) < 2)
    await desk.until(lambda: engine.state.report is not None)
    assert engine.state.report is not None
    assert engine.state.report.options.model == "/models/chosen.gguf"


def test_room_is_that_of_the_drive_also_for_a_folder_that_is_to_be(tmp_path: Path) -> None:
    free = free_on_drive(tmp_path / "not" / "yet")
    assert free is not None
    assert free > 0


async def test_progress_stands_in_the_card(make_desk: Callable[[], Desk]) -> None:
    """A download on its way: percent, a bar, and a button that pauses."""
    desk = await first_start(make_desk)
    hero = desk.parts.first.bridge.start.offers.hero
    assert hero is not None
    item = a_download(hero, n_done=2 * GIB)
    service = desk.parts.first.bridge._service
    service._change(downloads=(item,))
    assert desk.is_shown("start.progress")
    assert desk.text_of("start.download") == "Pause"
    assert "10%" in desk.text_of("start.expect")
    stopped = msgspec.structs.replace(item.kept, state="failed", sentence="The connection broke.")
    service._change(downloads=(msgspec.structs.replace(item, kept=stopped),))
    assert desk.text_of("start.download") == "Try again"
    assert desk.text_of("start.problem") == "The connection broke."


async def test_a_model_that_is_here_already_is_offered_first(make_desk: Callable[[], Desk], tmp_path: Path) -> None:
    folder = tmp_path / "someone" / "Model-GGUF"
    folder.mkdir(parents=True)
    write_model(folder / "Model-Q4_K_M.gguf", model_values(), [tensor("blk.0.attn_q.weight", 64, 64)])
    desk = await first_start(make_desk)
    before = await with_folder(desk, tmp_path)
    try:
        await desk.until(lambda: desk.is_shown("start.use"))
        assert "Model-Q4_K_M" in desk.text_of("start.found")
        desk.click("start.use")
        await desk.until(lambda: desk.parts.engine.state.report is not None)
        wanted = desk.parts.engine.state.wanted
        assert wanted is not None
        assert wanted.model == str(folder / "Model-Q4_K_M.gguf")
    finally:
        await desk.parts.models.models.set_folders(before)


async def test_without_a_network_it_says_so_and_can_be_tried_again(
    make_desk: Callable[[], Desk], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    desk = await first_start(make_desk)
    desk.click("start.download")
    await desk.until(lambda: desk.is_shown("start.problem"))
    assert desk.text_of("start.problem").startswith("No connection to 127.0.0.1:9")
    assert "the demo work" in desk.text_of("start.problem")
    assert desk.find("start.download", QPushButton).isEnabled()
    assert desk.is_shown("start.quick")


class OneCard:
    """A probe that sees a card which the engine of these tests, one for the processor, cannot use."""

    def read(self, _ask: Ask) -> Found:
        card = GpuReading(pci="0000:01:00.0", name="Radeon RX 7800 XT", vendor="amd", total_bytes=16 * GIB)
        return Found(gpus=(card,))

    def close(self) -> None:
        """Nothing stays open."""


async def test_a_card_that_the_engine_cannot_use_is_said_with_what_to_do(
    qt_loop: asyncio.Runner, keeper: ThemeKeeper, client: FakeEngineClient
) -> None:
    client.devices = client.devices[1:]
    parts = build(client, keeper, meter_source=MeterSource(looking=Looking((OneCard(),))))
    desk = Desk(parts, client)
    try:
        desk.window.show()
        parts.first.begin()
        parts.models.offers.look()
        await desk.until(lambda: parts.first.bridge.start.offers.state == "ready")
        assert not desk.is_shown("start.gpu"), "nobody has looked yet"
        await parts.meters.bridge.look()
        assert desk.text_of("start.gpu").startswith("Radeon RX 7800 XT is in this PC")
        desk.click("start.gpu.help")
        guide = parts.help.shown
        assert guide is not None
        assert guide.page == "engine"
        assert "make run ENGINE=vulkan" in guide.view.toPlainText()
    finally:
        await parts.close()


async def test_of_a_card_in_use_nothing_is_said(make_desk: Callable[[], Desk]) -> None:
    desk = await first_start(make_desk)
    await desk.parts.meters.bridge.look()
    assert not desk.is_shown("start.gpu")


async def test_an_old_chat_without_a_model_says_what_suits_this_pc(
    make_desk: Callable[[], Desk], keeper: ThemeKeeper, client: FakeEngineClient
) -> None:
    desk = await first_start(make_desk)
    await desk.load_demo()
    await desk.ask("hello")
    assert not desk.is_shown("nomodel")

    idle = EngineBridge(EngineService(FakeEngineClient()), desk.parts.tasks)
    strip = NoModelStrip(keeper, idle, desk.parts.chat, desk.parts.first.bridge)
    asked: list[bool] = []
    strip.all_asked.connect(lambda: asked.append(True))
    strip.begin()
    words = strip.findChild(QLabel, "nomodel.words")
    get, every = (strip.findChild(QPushButton, name) for name in ("nomodel.download", "nomodel.all"))
    assert not strip.isHidden()
    assert "Qwen3.5-35B-A3B, 19.6 GB, suits this PC" in words.text()
    assert not get.isHidden()
    every.click()
    assert asked == [True]
    await idle.close()
    strip.deleteLater()
