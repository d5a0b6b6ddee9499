"""The list of engines in the window: choose, try again, get, pause, delete, on made-up engines and a server of ours."""

import asyncio
from pathlib import Path

import pytest
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QRadioButton

from qwendesk.core.devices import DeviceInfo
from qwendesk.core.units import GIB
from qwendesk.engine.state import Phase
from qwendesk.engines.packs import this_platform
from tests.engines.view.engines_desk import EnginesDesk, MakeDesk
from tests.fakes.engine import FakeEngineClient, ScriptedAnswer
from tests.fakes.engine_folders import CPU, VERSION, Tries, make_engine
from tests.fakes.pack_server import PackServer, pack_of

IRIS = DeviceInfo("Vulkan0", "Intel(R) Iris(R) Xe Graphics", "igpu", "Vulkan", 8 * GIB, 7 * GIB)


async def test_choosing_another_engine_reloads_the_model(make_engines_desk: MakeDesk, tmp_path: Path) -> None:
    make_engine(tmp_path / "own", "cuda-12", "cuda")
    make_engine(tmp_path / "own", "vulkan", "vulkan")
    make_engine(tmp_path / "app", "cpu-avx2", needs=("avx2",))
    desk = make_engines_desk(Tries(cuda_12="The graphics driver is too old for it."))
    await desk.begin()
    await desk.load_demo()
    assert [desk.text_of(f"engine.list.{name}.use") for name in ("cuda-12", "vulkan", "cpu-avx2")] == [
        "NVIDIA CUDA 12", "Vulkan", "CPU, AVX2",
    ]  # fmt: skip
    assert [desk.state_of(name) for name in ("cuda-12", "vulkan", "cpu-avx2")] == [
        "Can't run here", "In use", "Not tried",
    ]  # fmt: skip
    assert "too old" in desk.text_of("engine.list.cuda-12.sentence")
    assert not desk.find("engine.list.cuda-12.use", QRadioButton).isEnabled()
    assert desk.is_wanted("best")
    assert "Now: Vulkan" in desk.text_of("engine.list.best.details")

    desk.click("engine.list.cpu-avx2.use")
    await desk.until(lambda: desk.loads == 2)
    await desk.until_quiet()
    assert (desk.state_of("cpu-avx2"), desk.state_of("vulkan")) == ("In use", "Runs here")
    assert desk.is_wanted("cpu-avx2")
    assert not desk.is_wanted("best")
    assert desk.engines.environment()["LLAMA_CPP_LIB_PATH"] == str(tmp_path / "app" / "cpu-avx2")
    assert desk.parts.services.settings.options.engine == "cpu-avx2"
    assert desk.parts.engine.state.report is not None, "the demo was loaded again"


async def test_failing_engine_is_replaced_with_a_note(make_engines_desk: MakeDesk, tmp_path: Path) -> None:
    make_engine(tmp_path / "own", "vulkan", "vulkan")
    make_engine(tmp_path / "app", "cpu")
    desk = make_engines_desk(Tries())
    desk.parts.services.settings.change({"engine": "cpu"})
    await desk.begin()
    assert desk.state_of("vulkan") == "Not tried"
    desk.tries.runs["vulkan"] = "crash"
    desk.click("engine.list.vulkan.use")
    await desk.until(lambda: desk.state_of("vulkan") == "Crashed")
    await desk.until_quiet()
    assert desk.state_of("cpu") == "In use"
    assert desk.text_of("engine.note") == "Vulkan doesn't run here right now, so CPU is used."
    desk.click("engine.list.vulkan.try")
    await desk.until(lambda: desk.tries.started.count("vulkan") == 2)
    await desk.until_quiet()
    desk.tries.runs.clear()
    desk.click("engine.list.vulkan.try")
    await desk.until(lambda: desk.state_of("vulkan") == "In use")
    await desk.until_quiet()
    assert not desk.is_shown("engine.note")


@pytest.mark.parametrize("button", ["after", "now", "keep"])
async def test_changing_the_engine_during_an_answer_asks_first(
    make_engines_desk: MakeDesk, client: FakeEngineClient, tmp_path: Path, button: str
) -> None:
    make_engine(tmp_path / "own", "vulkan", "vulkan")
    make_engine(tmp_path / "app", "cpu")
    desk = make_engines_desk(Tries())
    await desk.begin()
    await desk.load_demo()
    desk.window.show_page("chat")
    client.answers = [ScriptedAnswer(text="one two three", tokens_per_second=0.001)]
    desk.send("count")
    await desk.until(lambda: desk.parts.engine.state.phase is Phase.ANSWERING)
    desk.window.show_page("engine")
    desk.click("engine.list.cpu.use")
    desk.answer_box(f"engine.when.{button}")
    if button == "after":
        await desk.until(lambda: desk.text_of("engine.note").startswith("The engine changes after the current answer"))
    if button != "now":
        assert desk.loads == 1
        await desk.parts.chat.stop()
    await desk.until(lambda: not desk.parts.chat.busy)
    await desk.until_quiet()
    assert (desk.engines.engines.chosen == "cpu") is (button != "keep")
    assert desk.loads == (1 if button == "keep" else 2)


async def test_change_waits_for_an_answer_that_began_during_trials(
    make_engines_desk: MakeDesk, client: FakeEngineClient, tmp_path: Path
) -> None:
    make_engine(tmp_path / "own", "vulkan", "vulkan")
    make_engine(tmp_path / "app", "cpu")
    tries, driver_is_awake = Tries(), asyncio.Event()
    tries.wait_for["cpu"] = driver_is_awake
    desk = make_engines_desk(tries)
    await desk.begin()
    await desk.load_demo()
    desk.click("engine.list.cpu.use")
    await desk.until(lambda: desk.engines.engines.trying == "cpu")
    client.answers = [ScriptedAnswer(text="one two three", tokens_per_second=0.001)]
    desk.window.show_page("chat")
    desk.send("count")
    await desk.until(lambda: desk.parts.engine.state.phase is Phase.ANSWERING)
    driver_is_awake.set()
    presenter = desk.parts.engines
    assert presenter is not None
    await desk.until(lambda: presenter._switch.is_waiting.value)
    assert desk.engines.engines.chosen == "cpu"
    assert desk.parts.engine.state.phase is Phase.ANSWERING
    assert desk.loads == 1
    await desk.parts.chat.stop()
    await desk.until(lambda: desk.loads == 2)
    await desk.until_quiet()


async def test_idle_unloaded_model_stays_unloaded_on_another_engine(
    make_engines_desk: MakeDesk, tmp_path: Path
) -> None:
    make_engine(tmp_path / "own", "vulkan", "vulkan")
    make_engine(tmp_path / "app", "cpu")
    desk = make_engines_desk(Tries())
    await desk.begin()
    await desk.load_demo()
    await desk.parts.engine.unload_idle()
    desk.click("engine.list.cpu.use")
    await desk.until(lambda: desk.engines.engines.chosen == "cpu")
    await desk.until_quiet()
    assert desk.parts.engine.state.idle_unloaded is not None
    assert desk.loads == 1


async def test_pack_is_installed_used_and_deleted(
    make_engines_desk: MakeDesk, client: FakeEngineClient, server: PackServer, tmp_path: Path
) -> None:
    make_engine(tmp_path / "app", "cpu")
    desk = make_engines_desk(Tries(), pack_of(server, package_version=VERSION, platform=this_platform()))
    await desk.begin()
    await desk.load_demo()
    details = desk.text_of("engine.pack.cuda-12.details")
    assert "licence: MIT" in details
    assert "compute capability 8.6" in details
    assert "driver 525" in details
    desk.click("engine.pack.cuda-12.get")
    await desk.until(lambda: desk.has("engine.list.cuda-12") and desk.state_of("cuda-12") == "In use")
    await desk.until_quiet()
    assert not desk.is_shown("engine.pack.cuda-12")
    assert desk.loads == 2
    assert "gpu" in desk.text_of("engine.list.cuda-12.details").lower()

    desk.click("engine.list.cuda-12.delete")
    desk.answer_box("engine.deletion.no")
    assert desk.state_of("cuda-12") == "In use"
    desk.click("engine.list.cuda-12.delete")
    desk.answer_box("engine.deletion.yes")
    await desk.until(lambda: desk.engines.engines.chosen == "cpu")
    await desk.until_quiet()
    assert not (tmp_path / "own" / "cuda-12").exists()
    assert desk.is_shown("engine.pack.cuda-12.get")
    assert desk.loads == 3


async def test_pack_download_can_be_paused_resumed_and_fail(
    make_engines_desk: MakeDesk, server: PackServer, tmp_path: Path
) -> None:
    make_engine(tmp_path / "app", "cpu")
    desk = make_engines_desk(Tries(), pack_of(server, package_version=VERSION, platform=this_platform()))
    await desk.begin()
    desk.parts.services.settings.change({"offline": True})
    desk.click("engine.pack.cuda-12.get")
    await desk.until(lambda: desk.is_shown("engine.pack.cuda-12.problem"))
    assert desk.text_of("engine.pack.cuda-12.problem") == "QwenDesk is set to offline, so no engine is downloaded."
    server.hold_after = 1000
    desk.click("engine.pack.cuda-12.online")
    await desk.until(lambda: desk.text_of("engine.pack.cuda-12.state") == "Downloading")
    desk.click("engine.pack.cuda-12.pause")
    await desk.until(lambda: desk.text_of("engine.pack.cuda-12.state") == "Paused")
    await desk.until_quiet()
    assert not desk.parts.services.settings.options.offline
    whole = dict(server.archives)
    server.archives.clear()
    assert desk.text_of("engine.pack.cuda-12.get") == "Resume"
    desk.click("engine.pack.cuda-12.get")
    await desk.until(lambda: desk.text_of("engine.pack.cuda-12.state") == "Failed")
    assert "no longer has this file" in desk.text_of("engine.pack.cuda-12.problem")
    server.archives |= whole
    await desk.until_quiet()
    desk.click("engine.pack.cuda-12.get")
    await desk.until(lambda: desk.engines.engines.chosen == "cuda-12")
    await desk.until_quiet()
    assert "bytes=1000-" in server.ranges


async def test_gpu_without_an_engine_is_shown_with_advice(
    make_engines_desk: MakeDesk, client: FakeEngineClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: opened.append(url.toLocalFile()))
    make_engine(tmp_path / "app", "cpu")
    desk = make_engines_desk(Tries())
    await desk.begin()
    sentence = desk.text_of("engine.unserved")
    assert "RTX 3090" in sentence
    assert "ENGINE=cuda" in sentence
    assert str(tmp_path / "own") in sentence
    desk.click("engine.folder")
    await desk.until(lambda: bool(opened))
    assert [Path(each) for each in opened] == [tmp_path / "own"]
    assert (tmp_path / "own").is_dir()


async def test_first_start_installs_the_engine_and_plans_for_the_gpu(
    make_engines_desk: MakeDesk, client: FakeEngineClient, server: PackServer, tmp_path: Path
) -> None:
    make_engine(tmp_path / "app", "cpu")
    desk = make_engines_desk(Tries(), pack_of(server, package_version=VERSION, platform=this_platform()))
    client.devices = (CPU,)
    await desk.begin()
    desk.window.show_page("chat")
    desk.parts.begin()
    desk.parts.tasks.start(desk.parts.services.models.offers.update())
    await desk.until(lambda: desk.is_shown("start.pack.get"))
    assert desk.text_of("start.gpu").startswith("RTX 3090 needs a separate engine")
    assert "NVIDIA (CUDA 12)" in desk.text_of("start.pack.title")
    assert not desk.is_shown("start.gpu.help")
    client.devices = (DeviceInfo("CUDA0", "RTX 3090", "gpu", "CUDA", 24 * GIB, 23 * GIB), CPU)
    desk.click("start.pack.get")
    await desk.until(lambda: desk.engines.engines.chosen == "cuda-12" and not desk.is_shown("start.gpu"))
    await desk.until_quiet()
    assert not desk.is_shown("start.pack.get")
    assert desk.parts.services.models.offers.state.value.pc.gpus, "the offers were made again, for the card"


async def test_installed_engine_that_does_not_run_says_why_at_the_first_start(
    make_engines_desk: MakeDesk, client: FakeEngineClient, server: PackServer, tmp_path: Path
) -> None:
    make_engine(tmp_path / "app", "cpu")
    tries = Tries(cuda_12="The graphics driver is too old for it: install the newest one.")
    desk = make_engines_desk(tries, pack_of(server, package_version=VERSION, platform=this_platform()))
    client.devices = (CPU,)
    await desk.begin()
    desk.window.show_page("chat")
    desk.parts.begin()
    desk.parts.tasks.start(desk.parts.services.models.offers.update())
    await desk.until(lambda: desk.is_shown("start.pack.get"))
    desk.click("start.pack.get")
    await desk.until(lambda: "driver is too old" in desk.text_of("start.gpu"))
    await desk.until_quiet()
    assert desk.is_shown("start.gpu.help")
    assert desk.engines.engines.chosen == "cpu"


async def hybrid_laptop(make: MakeDesk, client: FakeEngineClient, folder: Path, *seen: DeviceInfo) -> EnginesDesk:
    """The first start on a laptop with a card of which the Vulkan engine sees only `seen`."""
    make_engine(folder / "app", "cpu")
    make_engine(folder / "app", "vulkan", "vulkan")
    tries = Tries(vulkan="" if seen else "It runs, but finds no graphics card that it can use.")
    tries.devices["vulkan"] = client.devices = (*seen, CPU)
    desk = make(tries)
    await desk.begin()
    desk.window.show_page("chat")
    desk.parts.begin()
    desk.parts.tasks.start(desk.parts.services.models.offers.update())
    await desk.until(lambda: desk.is_shown("start.gpu"))
    return desk


@pytest.mark.parametrize("seen", [(IRIS,), ()], ids=["only the integrated GPU is seen", "the driver is too old"])
async def test_card_that_the_engine_does_not_see_is_named_with_what_to_do(
    make_engines_desk: MakeDesk, client: FakeEngineClient, tmp_path: Path, seen: tuple[DeviceInfo, ...]
) -> None:
    desk = await hybrid_laptop(make_engines_desk, client, tmp_path, *seen)

    first_start = desk.text_of("start.gpu")
    assert first_start.startswith("This PC has RTX 3090, but the installed engine can't use it.")
    desk.window.show_page("engine")
    for text in (first_start, desk.text_of("engine.unserved")):
        assert "install the newest graphics driver" in text
        assert "“iGPU only”" in text
        assert "ENGINE=" not in text, "another build would not see it either"


async def test_settings_link_to_the_engine_list(make_engines_desk: MakeDesk, tmp_path: Path) -> None:
    make_engine(tmp_path / "app", "cpu")
    desk = make_engines_desk(Tries())
    await desk.begin()
    desk.window.show_page("settings")
    desk.click("settings.advanced")
    assert desk.text_of("settings.models.engine") == "Automatic (recommended)…"
    desk.click("settings.models.engine")
    assert desk.is_shown("engine.list")
