"""The first start, driven as a user does: on a good PC, without room, without a network, without a GPU."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from PySide6.QtWidgets import QFileDialog, QLabel, QPushButton

from qwendesk.app.parts import build
from qwendesk.core.failures import EngineExit, LoadFailure
from qwendesk.core.options import LoadOptions
from qwendesk.core.units import GIB
from qwendesk.engine.protocol import Load
from qwendesk.hardware.probes.base import ProbeRequest, ProbeResult
from qwendesk.hardware.snapshot import GpuReading
from qwendesk.hardware.snapshot_reader import SnapshotReader
from qwendesk.hub.library_places import HostEnvironment
from qwendesk.meters.services import MeterSource
from qwendesk.models.library_service import free_on_drive
from qwendesk.models.view.first_start_texts import speed_fact
from qwendesk.services import Doubles
from qwendesk.widgets.actions import installed
from qwendesk.widgets.theme_keeper import ThemeKeeper
from tests.fakes.engine import FakeEngineClient, ScriptedAnswer
from tests.gguf_files import model_values, tensor, write_model
from tests.models.view.start_desk import first_start, hero_download, with_folder
from tests.window_desk import Desk


@pytest.fixture
def desk(qt_loop: asyncio.Runner, make_desk: Callable[[], Desk]) -> Desk:
    return qt_loop.run(first_start(make_desk))


async def test_card_names_pc_model_size_folder_and_time(desk: Desk) -> None:
    assert desk.text_of("start.pc").startswith("RTX 3090 with 24 GB · ")
    assert desk.text_of("start.name") == "Qwen3.6-35B-A3B"
    facts = {each: desk.text_of(f"start.{each}.fact") for each in ("speed", "length", "pictures", "size")}
    assert list(facts.values()) == ["Very fast", "Very long chats", "Sees pictures", "17.3 GB"]
    notes = {each: desk.text_of(f"start.{each}.note") for each in facts}
    assert notes["speed"] == "118 tok/s, 22 times as fast as you read"
    assert notes["length"] == "remembers about 330 pages (128K)"
    assert notes["size"] == "7 to 32 minutes to download"
    assert desk.text_of("start.free") == "· 500.0 GB free"
    assert desk.text_of("start.quick") == "Get 1.8 GB"
    assert desk.text_of("start.quick.words").startswith("Qwen3.5-2B, ready in 1 to 4 minutes.")
    assert not desk.is_shown("composer.text")


@pytest.mark.parametrize("is_behind", [False, True])
async def test_composer_has_no_focus_until_the_demo_is_loaded(make_desk: Callable[[], Desk], is_behind: bool) -> None:
    desk = make_desk()
    if is_behind:  # its composer has the keys when the first start covers it
        desk.window.hide()
    else:
        desk.window.activateWindow()
        await desk.until(desk.composer_text.hasFocus)
    desk.parts.begin()
    desk.window.show()
    desk.window.activateWindow()
    await desk.until(desk.window.isActiveWindow)
    focused = desk.window.focusWidget()
    assert focused is not desk.composer_text
    assert not isinstance(focused, QPushButton), "an outline would recommend it before anything is known"
    installed(desk.window)["demo"].trigger()
    await desk.until(lambda: desk.parts.engine.state.report is not None)
    assert desk.composer_text.hasFocus()


async def test_demo_is_labelled_and_opens_the_chat(desk: Desk) -> None:
    assert "knows only a few topics" in desk.text_of("start.demo.about")
    assert desk.parts.engine.state.requested is None, "nobody asked for the demo yet"
    desk.click("start.demo")
    await desk.until(lambda: desk.parts.engine.state.report is not None)
    assert not desk.is_shown("start.demo")
    await desk.ask("Hello")
    assert "You said: Hello" in desk.message(1).answer_view.markdown


async def test_pictures_can_be_left_out(desk: Desk) -> None:
    desk.click("start.details")
    desk.click("start.pictures")
    await desk.until(lambda: desk.text_of("start.mmproj") == "None")
    assert desk.text_of("start.pictures.fact") == "Text only"


async def test_missing_space_is_shown_and_another_folder_can_be_chosen(
    make_desk: Callable[[], Desk], tmp_path: Path
) -> None:
    desk = await first_start(make_desk, free_bytes=3 * GIB)
    assert not desk.find("start.download", QPushButton).isEnabled()
    assert "Not enough space: 15." in desk.text_of("start.problem")
    desk.parts.services.models.first_start._free_bytes = lambda _folder: 100 * GIB
    desk.click("start.change")
    dialog = desk.find("start.folderdialog", QFileDialog)
    before = desk.parts.services.models.library.folders
    try:
        dialog.fileSelected.emit(str(tmp_path))
        dialog.close()
        await desk.until(lambda: desk.text_of("start.folder") == f"Saved to {tmp_path}")
        await desk.until(lambda: desk.find("start.download", QPushButton).isEnabled())
        assert desk.parts.services.models.library.folders.models[0] == str(tmp_path)
    finally:
        await desk.parts.services.models.library.set_folders(before)


async def test_folder_that_onedrive_would_upload_is_named_and_another_can_be_chosen(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library, start = desk.parts.services.models.library, desk.parts.services.models.first_start
    laptop = HostEnvironment("win", tmp_path, {"OneDrive": str(tmp_path / "OneDrive")})
    monkeypatch.setattr(library, "_machine", laptop)
    before = library.folders
    try:
        await start.choose_folder(str(tmp_path / "OneDrive" / "Documents"))
        assert desk.text_of("start.problem").startswith("OneDrive syncs this folder and would upload the model.")
        assert desk.find("start.download", QPushButton).isEnabled(), "it may be what the user wants"

        await start.choose_folder(str(tmp_path / "models"))
        assert desk.text_of("start.problem") == ""
    finally:
        await library.set_folders(before)


async def test_metered_connection_is_named_before_a_download_of_gigabytes(desk: Desk) -> None:
    assert desk.text_of("start.problem") == ""

    desk.parts.services.models.first_start.set_metered(True)
    assert desk.text_of("start.problem") == "Metered connection: this uses 17.3 GB of your data plan."
    assert desk.find("start.download", QPushButton).isEnabled(), "it may be what the user wants"

    desk.parts.services.models.first_start.set_metered(False)
    assert desk.text_of("start.problem") == ""


async def test_offline_first_start_keeps_the_other_choices(desk: Desk) -> None:
    desk.parts.services.settings.change({"offline": True})
    try:
        desk.click("start.download")
        await desk.until(lambda: bool(desk.text_of("start.problem")))
        assert "offline" in desk.text_of("start.problem")
        assert desk.is_shown("start.demo.open")
        desk.click("start.files")
        assert desk.is_shown("models.tabs")
        assert desk.parts.models_page.page().shown_tab == "mine"
    finally:
        desk.parts.services.settings.change({"offline": False})


async def test_first_start_without_gpu_says_so(make_desk: Callable[[], Desk], client: FakeEngineClient) -> None:
    client.devices = client.devices[1:]
    desk = await first_start(make_desk)
    assert "No usable GPU" in desk.text_of("start.pc")
    desk.parts.services.models.offers._ram_bytes = 64 * GIB
    await desk.parts.services.models.offers.refresh()
    assert desk.text_of("start.fit").endswith(" GB in RAM")


async def test_first_start_without_engine_offers_demo_and_own_files(
    make_desk: Callable[[], Desk], client: FakeEngineClient
) -> None:
    client.start_result = EngineExit(1, "A library is missing.")
    desk = await first_start(make_desk)
    assert desk.text_of("start.gpu") == "A library is missing. Estimates assume CPU only."
    assert desk.is_shown("start.gpu")
    assert desk.is_shown("start.demo")
    assert desk.is_shown("start.files")


async def test_failed_load_returns_to_the_first_start(make_desk: Callable[[], Desk], client: FakeEngineClient) -> None:
    client.load_result = LoadFailure("other", "It failed", "For a test.")
    desk = await first_start(make_desk)
    desk.parts.window.load_model("/models/x.gguf")
    await desk.until(lambda: desk.is_shown("banner"))
    assert desk.is_shown("start.demo")


async def test_the_last_model_is_loaded_instead(make_desk: Callable[[], Desk], tmp_path: Path) -> None:
    model = tmp_path / "model.gguf"
    model.write_bytes(b"x")
    desk = make_desk()
    desk.parts.window.load_model(str(model))
    await desk.until(lambda: desk.parts.services.models.last_model.read() is not None)
    again = make_desk()
    again.parts.begin()
    await again.until(lambda: again.parts.engine.state.requested is not None)
    wanted = again.parts.engine.state.requested
    assert wanted is not None
    assert wanted.model == str(model)
    assert not again.is_shown("start.demo")
    await again.until(lambda: again.parts.engine.state.report is not None)


async def test_a_message_sent_before_the_last_model_loads_is_answered(
    make_desk: Callable[[], Desk], client: FakeEngineClient, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    model = tmp_path / "small.gguf"
    model.write_bytes(b"x")
    desk = make_desk()
    services, client.answers = desk.parts.services.models, [ScriptedAnswer(text="Here I am.")]
    monkeypatch.setattr(services.last_model, "read", lambda: LoadOptions(model=str(model)))
    may_look = asyncio.Event()

    async def look_slowly(last: LoadOptions) -> LoadOptions:
        await may_look.wait()
        return last

    monkeypatch.setattr(services.load_options, "options_again", look_slowly)
    desk.parts.begin()
    assert desk.text_of("model.button") == "small · loads with your next message"
    await desk.ask("Already there?")
    may_look.set()
    (turn,) = desk.parts.chat.conversation.turns
    assert turn.answer.text == "Here I am."
    assert [each.options.model for each in client.requests if isinstance(each, Load)] == [str(model)]


async def test_last_model_does_not_replace_one_chosen_meanwhile(
    make_desk: Callable[[], Desk], monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = make_desk()
    last_model, engine = desk.parts.services.models.last_model, desk.parts.engine
    monkeypatch.setattr(last_model, "read", lambda: LoadOptions(model="/models/last.gguf"))
    async with engine._load_lock:  # as while the devices are asked for
        desk.parts.tasks.start(engine.load(LoadOptions(model="/models/chosen.gguf")))
        desk.parts.begin()
        await desk.until(lambda: len(desk.parts.tasks._running) < 2)
    await desk.until(lambda: engine.state.report is not None)
    assert engine.state.report is not None
    assert engine.state.report.options.model == "/models/chosen.gguf"


def test_free_space_is_known_for_a_folder_to_be_created(tmp_path: Path) -> None:
    free = free_on_drive(tmp_path / "not" / "yet")
    assert free is not None
    assert free > 0


async def test_card_shows_progress(desk: Desk) -> None:
    """A download on its way: percent, a bar, and a button that pauses."""
    item = hero_download(desk, n_done=2 * GIB)
    service = desk.parts.services.models.first_start
    service.state.update(downloads=(item,))
    assert desk.is_shown("start.progress")
    assert desk.text_of("start.download") == "Pause"
    assert desk.text_of("start.done") == "2.0 GB of 20.0 GB"
    stopped = msgspec.structs.replace(item.saved, state="failed", sentence="The connection broke.")
    service.state.update(downloads=(msgspec.structs.replace(item, saved=stopped),))
    assert desk.text_of("start.download") == "Try again"
    assert desk.text_of("start.problem") == "The connection broke. The first 2.0 GB are kept."


async def test_present_model_is_offered_first(make_desk: Callable[[], Desk], tmp_path: Path) -> None:
    folder = tmp_path / "someone" / "Model-GGUF"
    folder.mkdir(parents=True)
    write_model(folder / "Model-Q4_K_M.gguf", model_values(), [tensor("blk.0.attn_q.weight", 64, 64)])
    desk = await first_start(make_desk)
    before = await with_folder(desk, tmp_path)
    try:
        await desk.until(lambda: desk.is_shown("start.use"))
        assert "Model-Q4_K_M" in desk.text_of("start.files.words")
        desk.click("start.use")
        await desk.until(lambda: desk.parts.engine.state.report is not None)
        wanted = desk.parts.engine.state.requested
        assert wanted is not None
        assert wanted.model == str(folder / "Model-Q4_K_M.gguf")
    finally:
        await desk.parts.services.models.library.set_folders(before)


async def test_network_failure_is_shown_and_can_be_retried(
    make_desk: Callable[[], Desk], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    desk = await first_start(make_desk)
    desk.click("start.download")
    await desk.until(lambda: bool(desk.text_of("start.problem")))
    assert desk.text_of("start.problem").startswith("No connection to 127.0.0.1:9")
    assert desk.find("start.download", QPushButton).isEnabled()
    assert desk.is_shown("start.files")
    assert desk.is_shown("start.demo.open")


class OneCard:
    """A probe that sees a card which the engine of these tests, one for the processor, cannot use."""

    def read(self, _request: ProbeRequest) -> ProbeResult:
        card = GpuReading(pci="0000:01:00.0", name="Radeon RX 7800 XT", vendor="amd", total_bytes=16 * GIB)
        return ProbeResult(gpus=(card,))

    def close(self) -> None:
        """Nothing stays open."""


async def test_unusable_gpu_is_named_with_what_to_do(
    qt_loop: asyncio.Runner, keeper: ThemeKeeper, client: FakeEngineClient
) -> None:
    client.devices = client.devices[1:]
    parts = build(client, doubles=Doubles(meters=MeterSource(reader=SnapshotReader((OneCard(),)))))
    desk = Desk(parts, client)
    try:
        desk.window.show()
        parts.begin()
        parts.tasks.start(parts.services.models.offers.update())
        await desk.until(lambda: parts.services.models.first_start.state.value.offers.state == "ready")
        assert not desk.is_shown("start.gpu"), "nobody has looked yet"
        await parts.services.meters.service.sample()
        assert desk.text_of("start.gpu").startswith("This PC has Radeon RX 7800 XT")
        desk.click("start.gpu.help")
        guide = parts.help.shown
        assert guide is not None
        assert guide.page == "engine"
        assert "make run ENGINE=vulkan" in guide.view.toPlainText()
    finally:
        await parts.close()


async def test_used_gpu_is_not_mentioned(desk: Desk) -> None:
    await desk.parts.services.meters.service.sample()
    assert not desk.is_shown("start.gpu")


async def test_old_chat_without_a_model_offers_the_recommended_one(
    desk: Desk, keeper: ThemeKeeper, client: FakeEngineClient
) -> None:
    await desk.load_demo()
    await desk.ask("hello")
    assert not desk.is_shown("nomodel")

    strip = desk.parts.no_model_strip
    desk.parts.services.models.first_start.state.update(has_model=False)
    assert desk.is_shown("nomodel")
    asked: list[str] = []
    desk.parts.navigation.models_tab_asked.connect(asked.append)
    words = strip.findChild(QLabel, "nomodel.words")
    get, every = (strip.findChild(QPushButton, name) for name in ("nomodel.download", "nomodel.all"))
    assert not strip.isHidden()
    assert "Qwen3.6-35B-A3B (17.3 GB)" in words.text()
    assert not get.isHidden()
    every.click()
    assert asked == ["pc"]


def test_a_slow_speed_is_not_praised_for_being_faster_than_reading() -> None:
    assert speed_fact(9.5) == ("Slow", "9.5 tok/s, thinking takes minutes")
    assert speed_fact(14.0) == ("OK", "14 tok/s, 3 times as fast as you read")
