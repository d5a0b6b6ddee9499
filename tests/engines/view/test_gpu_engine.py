"""The engine for an NVIDIA card comes by itself, or is offered; another engine answers meanwhile."""

from pathlib import Path

import pytest

from qwendesk.core.engine_manifest import EnginePack
from qwendesk.engines.gpu_engine import wish_of
from qwendesk.engines.packs import this_platform
from tests.engines.view.engines_desk import EnginesDesk, MakeDesk
from tests.fakes.engine_folders import VERSION, Tries, make_engine
from tests.fakes.pack_server import PackServer, pack_of


def fitting(server: PackServer) -> EnginePack:
    return pack_of(server, package_version=VERSION, platform=this_platform())


async def begun(make: MakeDesk, tries: Tries, folder: Path, *packs: EnginePack, option: str = "ask") -> EnginesDesk:
    """A window whose Vulkan engine uses the card."""
    make_engine(folder / "app", "vulkan", "vulkan")
    desk = make(tries, *packs)
    desk.parts.services.settings.change({"gpu_engine": option})
    await desk.begin()
    desk.parts.begin()
    return desk


@pytest.mark.parametrize(
    ("option", "engine", "wish"),
    [
        ("ask", "", "ask"),
        ("ask", "auto", "automatic"),
        ("ask", "CUDA", "automatic"),
        ("ask", "vulkan", "never"),
        ("ask", "cpu", "never"),
        ("never", "auto", "never"),
        ("automatic", "vulkan", "automatic"),
    ],
)
def test_run_cmd_says_it_and_the_settings_come_first(option: str, engine: str, wish: str) -> None:
    assert wish_of(option, engine) == wish  # type: ignore[arg-type]


async def test_engine_is_ready_in_the_background_and_used_when_wanted(
    make_engines_desk: MakeDesk, server: PackServer, tmp_path: Path
) -> None:
    desk = await begun(make_engines_desk, Tries(), tmp_path, fitting(server), option="automatic")
    await desk.until(lambda: desk.is_shown("gpuengine"))
    assert desk.text_of("gpuengine.title") == "A faster engine for your card is ready"
    assert desk.text_of("gpuengine.sentence") == "NVIDIA CUDA 12 is used from the next start."
    assert desk.engines.engines.chosen == "vulkan"
    desk.click("gpuengine.use")
    await desk.until(lambda: desk.engines.engines.chosen == "cuda-12")
    await desk.until_quiet()


async def test_next_start_uses_it_and_goes_back_to_vulkan_with_a_sentence(
    make_engines_desk: MakeDesk, server: PackServer, tmp_path: Path
) -> None:
    """ggml-cuda.dll died of an access violation while it looked for cards (ollama#17375)."""
    first = await begun(make_engines_desk, Tries(), tmp_path, fitting(server), option="automatic")
    await first.until(lambda: first.is_shown("gpuengine"))
    await first.until_quiet()
    works = make_engines_desk(Tries(), fitting(server))
    await works.begin()
    assert works.engines.engines.chosen == "cuda-12"
    crashes = make_engines_desk(Tries(cuda_12="crash"), fitting(server))
    await crashes.begin()
    crashes.parts.begin()
    await crashes.until(lambda: crashes.is_shown("gpuengine"))
    assert crashes.engines.engines.chosen == "vulkan"
    assert crashes.text_of("gpuengine.title") == "NVIDIA CUDA 12 doesn't run on this PC"
    assert crashes.text_of("gpuengine.sentence") == "It crashed. QwenDesk uses the next best engine."


async def test_engine_that_starts_but_cannot_answer_is_set_aside(
    make_engines_desk: MakeDesk, server: PackServer, tmp_path: Path
) -> None:
    """A ready engine may use instructions that only its build machine had."""
    tries = Tries()
    tries.faults["cuda-12"] = "It uses instructions that this CPU doesn't have."
    desk = await begun(make_engines_desk, tries, tmp_path, fitting(server), option="automatic")
    await desk.until(lambda: desk.is_shown("gpuengine"))
    assert "instructions that this CPU doesn't have" in desk.text_of("gpuengine.sentence")
    desk.window.show_page("engine")
    assert desk.state_of("cuda-12") == "Set aside"
    await desk.until_quiet()
    later = make_engines_desk(tries, fitting(server))
    await later.begin()
    assert later.engines.engines.chosen == "vulkan"
    tries.faults.clear()
    later.click("engine.list.cuda-12.try")
    await later.until(lambda: later.engines.engines.chosen == "cuda-12")
    await later.until_quiet()


async def test_offer_takes_one_click(make_engines_desk: MakeDesk, server: PackServer, tmp_path: Path) -> None:
    desk = await begun(make_engines_desk, Tries(), tmp_path, fitting(server))
    await desk.until(lambda: desk.is_shown("gpuengine"))
    assert desk.text_of("gpuengine.title") == "There is a faster engine for your card"
    assert "(licence: MIT)" in desk.text_of("gpuengine.sentence")
    assert server.ranges == []
    desk.click("gpuengine.get")
    await desk.until(lambda: desk.has("gpuengine.use"))
    assert desk.parts.services.settings.options.gpu_engine == "automatic"
    await desk.until_quiet()


async def test_offer_can_be_refused_for_good(make_engines_desk: MakeDesk, server: PackServer, tmp_path: Path) -> None:
    desk = await begun(make_engines_desk, Tries(), tmp_path, fitting(server))
    await desk.until(lambda: desk.is_shown("gpuengine"))
    desk.click("gpuengine.never")
    desk.parts.services.settings.flush()
    again = make_engines_desk(Tries(), fitting(server))
    await again.begin()
    again.parts.begin()
    await again.until_quiet()
    assert not again.has("gpuengine")
    assert server.ranges == []


@pytest.mark.parametrize("state", ["offline", "metered", "never", "another engine is chosen"])
async def test_nothing_is_downloaded_where_it_is_not_wanted(
    make_engines_desk: MakeDesk, server: PackServer, tmp_path: Path, state: str
) -> None:
    make_engine(tmp_path / "app", "vulkan", "vulkan")
    desk = make_engines_desk(Tries(), fitting(server))
    settings, gpu_engine = desk.parts.services.settings, desk.parts.services.installed.gpu_engine
    settings.change(
        {
            "gpu_engine": "never" if state == "never" else "automatic",
            "offline": state == "offline",
            "engine": "vulkan" if state == "another engine is chosen" else "",
        }
    )
    gpu_engine.set_metered(state == "metered")
    await desk.begin()
    desk.parts.begin()
    await desk.until_quiet()
    assert server.ranges == []
    assert not desk.has("gpuengine")


async def test_broken_download_goes_on_at_the_next_start(
    make_engines_desk: MakeDesk, server: PackServer, tmp_path: Path
) -> None:
    pack = fitting(server)
    server.hold_after = 1000
    desk = await begun(make_engines_desk, Tries(), tmp_path, pack, option="automatic")
    packs = desk.parts.services.installed.packs
    await desk.until(lambda: packs.states[0].done_bytes >= 1000)
    packs.cancel("cuda-12")
    await desk.until_quiet()
    assert not desk.has("gpuengine")
    server.ranges.clear()
    later = make_engines_desk(Tries(), pack)
    await later.begin()
    later.parts.begin()
    await later.until(lambda: later.is_shown("gpuengine"))
    assert server.ranges[0] == "bytes=1000-"
    await later.until_quiet()


async def test_deleted_engine_does_not_come_back(
    make_engines_desk: MakeDesk, server: PackServer, tmp_path: Path
) -> None:
    desk = await begun(make_engines_desk, Tries(), tmp_path, fitting(server), option="automatic")
    await desk.until(lambda: desk.is_shown("gpuengine"))
    await desk.until_quiet()
    desk.window.show_page("engine")
    desk.click("engine.list.cuda-12.delete")
    desk.answer_box("engine.deletion.yes")
    await desk.until(lambda: not (tmp_path / "own" / "cuda-12").exists())
    await desk.until_quiet()
    assert desk.parts.services.settings.options.gpu_engine == "never"
    await desk.until(lambda: desk.is_shown("engine.pack.cuda-12.get"))


async def test_engine_emptied_by_a_virus_scanner_is_said_and_not_downloaded_at_each_start(
    make_engines_desk: MakeDesk, server: PackServer, tmp_path: Path
) -> None:
    desk = await begun(make_engines_desk, Tries(), tmp_path, fitting(server), option="automatic")
    await desk.until(lambda: desk.is_shown("gpuengine"))
    await desk.until_quiet()
    (tmp_path / "own" / "cuda-12" / "libmtmd.so").unlink()
    server.ranges.clear()
    later = make_engines_desk(Tries(), fitting(server))
    await later.begin()
    later.parts.begin()
    await later.until(lambda: later.is_shown("gpuengine"))
    assert "libmtmd.so is missing. An antivirus program may have removed it." in later.text_of("gpuengine.sentence")
    await later.until_quiet()
    assert server.ranges == []
    later.window.show_page("engine")
    later.click("engine.pack.cuda-12.get")
    await later.until(lambda: later.engines.engines.chosen == "cuda-12")
    await later.until_quiet()


async def test_wrong_download_is_not_repeated_at_each_start(
    make_engines_desk: MakeDesk, server: PackServer, tmp_path: Path
) -> None:
    pack = fitting(server)
    server.archives["/engine.whl"] = bytes(len(server.archives["/engine.whl"]))
    desk = await begun(make_engines_desk, Tries(), tmp_path, pack, option="automatic")
    await desk.until(lambda: desk.is_shown("gpuengine"))
    assert desk.text_of("gpuengine.title") == "NVIDIA (CUDA 12) was not installed"
    assert "sent wrong content" in desk.text_of("gpuengine.sentence")
    assert desk.text_of("gpuengine.sentence").endswith("It is not downloaded again automatically.")
    await desk.until_quiet()
    assert desk.parts.services.settings.options.gpu_engine == "never"
