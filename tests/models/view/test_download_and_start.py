"""From "Download and start" to the loaded model: room on the drive, and what else was loaded meanwhile."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QPushButton, QWidget

from qwendesk.core.failures import LoadFailure
from qwendesk.core.paths import is_demo
from qwendesk.core.units import GIB
from qwendesk.engine.state import Phase
from qwendesk.engines.engine_service import EngineService
from qwendesk.hub.download_queue import DownloadItem
from qwendesk.hub.model_folders import read_folders, write_folders
from tests.fakes.engine import FakeEngineClient, ScriptedAnswer
from tests.gguf_files import header_of, mmproj_values, model_values, tensor
from tests.hub.hub_server import FakeHub, running_hub
from tests.models.view.start_desk import first_start, with_folder
from tests.window_desk import Desk

REPO, PATH = "unsloth/Qwen3.6-35B-A3B-GGUF", "Qwen3.6-35B-A3B-UD-IQ4_XS.gguf"


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    from huggingface_hub.utils import close_session

    with running_hub() as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.endpoint)
        yield hub
        close_session()


async def test_freed_space_is_noticed_when_the_window_is_activated(make_desk: Callable[[], Desk]) -> None:
    desk = await first_start(make_desk, free_bytes=3 * GIB)
    other = QWidget()
    try:
        other.show()
        other.activateWindow()
        await desk.until(other.isActiveWindow)
        desk.parts.services.models.first_start._free_bytes = lambda _folder: 100 * GIB
        desk.window.activateWindow()
        await desk.until(lambda: desk.find("start.download", QPushButton).isEnabled())
        assert desk.text_of("start.problem") == ""
        assert desk.text_of("start.free") == "· 100.0 GB free"
    finally:
        other.close()
        other.deleteLater()


async def test_freed_space_is_noticed_when_the_page_is_shown_again(make_desk: Callable[[], Desk]) -> None:
    desk = await first_start(make_desk, free_bytes=3 * GIB)
    desk.window.show_page("models")
    desk.parts.services.models.first_start._free_bytes = lambda _folder: 100 * GIB
    desk.window.show_page("chat")
    await desk.until(lambda: desk.find("start.download", QPushButton).isEnabled())


async def test_small_model_is_refused_only_without_space(make_desk: Callable[[], Desk]) -> None:
    desk = await first_start(make_desk, free_bytes=1 * GIB)
    service = desk.parts.services.models.first_start
    quick = service.state.value.offers.quick
    assert quick is not None
    desk.click("start.quick")
    await desk.until(lambda: " more space" in service.state.value.problem)
    service._free_bytes = lambda _folder: 10 * GIB
    await service.update_free_space()
    assert service.state.value.problem == ""
    service._free_bytes = lambda _folder: 2 * GIB
    await service.download(quick)
    assert " more space" in service.state.value.problem, "the room is that of the click"
    assert service.state.value.free_bytes == 2 * GIB


async def asked_for(hub: FakeHub, make_desk: Callable[[], Desk], folder: Path) -> Desk:
    """The window after a click on "Download and start": the download waits until `downloads.start`."""
    header = header_of(model_values(), [tensor("blk.0.attn_q.weight", 64, 64)])
    hub.add(REPO, PATH, header + bytes(64 * 64 * 4))
    hub.add(REPO, "mmproj-F16.gguf", header_of(mmproj_values(64)))
    desk = await first_start(make_desk)
    await with_folder(desk, folder)
    desk.click("start.download")
    await desk.until(lambda: bool(desk.parts.services.models.first_start._wanted))
    return desk


async def arrived(desk: Desk) -> None:
    """The download runs, and its model is loaded or not."""
    done: list[DownloadItem] = []
    desk.parts.services.models.downloads.subscribe_finished(done.append)
    desk.parts.services.models.downloads.start()
    await desk.until(lambda: bool(done))
    await desk.parts.services.models.downloads.clear_done()


def loaded(desk: Desk) -> str:
    """Path of the loaded model, "" for none."""
    report = desk.parts.engine.state.report
    return report.options.model if report is not None else ""


@pytest.fixture
def folders_again() -> Iterator[None]:
    """The model folders of the next test are those of before."""
    before = read_folders()
    yield
    write_folders(before)


@pytest.mark.usefixtures("folders_again")
async def test_download_and_start_ends_in_a_loaded_model(
    hub: FakeHub, make_desk: Callable[[], Desk], tmp_path: Path
) -> None:
    desk = await asked_for(hub, make_desk, tmp_path)
    await arrived(desk)
    await desk.until(lambda: loaded(desk) == str(tmp_path / REPO / PATH))
    assert not desk.is_shown("start.download")
    assert desk.is_shown("composer.text")


@pytest.mark.usefixtures("folders_again")
async def test_downloaded_model_replaces_the_demo_after_its_answer(
    hub: FakeHub,
    make_desk: Callable[[], Desk],
    client: FakeEngineClient,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    desk = await asked_for(hub, make_desk, tmp_path)
    await desk.load_demo()
    client.answers.append(ScriptedAnswer(text="one two three", tokens_per_second=0.01))
    desk.send("Count")
    await desk.until(lambda: desk.parts.engine.state.phase is Phase.ANSWERING)
    looked: list[EngineService] = []
    wait_until_settled = EngineService.wait_until_settled

    async def wait_and_note(engine: EngineService) -> None:
        await wait_until_settled(engine)
        looked.append(engine)

    monkeypatch.setattr(EngineService, "wait_until_settled", wait_and_note)
    await arrived(desk)
    await desk.until(lambda: bool(looked))
    assert is_demo(loaded(desk)), "its answer is not cut off"
    await desk.parts.chat.stop()
    await desk.until(lambda: loaded(desk) == str(tmp_path / REPO / PATH))
    assert desk.parts.chat.conversation.turns[-1].answer.stop_reason == "cancelled"


@pytest.mark.usefixtures("folders_again")
async def test_downloaded_model_loads_after_a_failed_load(
    hub: FakeHub, make_desk: Callable[[], Desk], client: FakeEngineClient, tmp_path: Path
) -> None:
    desk = await asked_for(hub, make_desk, tmp_path)
    client.load_result = LoadFailure("other", "It failed", "For a test.")
    desk.parts.window.load_model("/models/x.gguf")
    await desk.until(lambda: desk.parts.engine.state.failure is not None)
    client.load_result = None
    await arrived(desk)
    await desk.until(lambda: loaded(desk) == str(tmp_path / REPO / PATH))


@pytest.mark.usefixtures("folders_again")
async def test_downloaded_model_is_not_loaded_after_an_eject(
    hub: FakeHub, make_desk: Callable[[], Desk], tmp_path: Path
) -> None:
    desk = await asked_for(hub, make_desk, tmp_path)
    desk.parts.window.load_model("/models/x.gguf")
    await desk.until(lambda: desk.parts.engine.state.report is not None)
    desk.parts.window.eject()
    await desk.until(lambda: desk.parts.engine.state.report is None)
    await arrived(desk)
    await desk.until(lambda: not desk.parts.services.models.first_start._loads)
    assert desk.parts.engine.state.report is None


@pytest.mark.usefixtures("folders_again")
@pytest.mark.parametrize("rests", [False, True])
async def test_model_loaded_during_the_download_stays(
    rests: bool, hub: FakeHub, make_desk: Callable[[], Desk], client: FakeEngineClient, tmp_path: Path
) -> None:
    desk = await asked_for(hub, make_desk, tmp_path)
    client.load_delay_s = 0.05
    desk.parts.window.load_model("/models/x.gguf")
    if rests:
        await desk.until(lambda: desk.parts.engine.state.report is not None)
        await desk.parts.engine.unload_idle()
    await arrived(desk)
    await desk.until(lambda: not desk.parts.services.models.first_start._loads)
    wanted = desk.parts.engine.state.requested
    assert wanted is not None
    assert Path(wanted.model) == Path("/models/x.gguf")
    assert (desk.parts.engine.state.idle_unloaded is not None) == rests
