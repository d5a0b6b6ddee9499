"""The card that gets a newer llama.cpp: found by a button, agreed to, compared, used, and left again by one click."""

import sys
from pathlib import Path

import pytest
from PySide6.QtWidgets import QAbstractButton

from qwendesk.core.engine_manifest import EngineFolder
from qwendesk.engines.engine_comparison import EngineComparison
from qwendesk.engines.engine_updates import EngineUpdates
from qwendesk.hub.network import Network
from tests.engine.worker.test_struct_layouts import changed_abi
from tests.engines.conftest import server
from tests.engines.test_engine_updates import ARCHIVE, GOOD, NAME, NEW
from tests.engines.test_release_pack import linux
from tests.engines.view.engines_desk import EnginesDesk, MakeDesk
from tests.fakes.engine_folders import Tries, make_engine
from tests.fakes.llama_releases import addresses, publish, sources_of
from tests.fakes.pack_server import PackServer

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the made-up archive is one for Linux")
__all__ = ["server"]


async def compared(_before: EngineFolder | None, _after: EngineFolder) -> EngineComparison:
    return EngineComparison(GOOD, GOOD)


async def opened(make_desk: MakeDesk, folder: Path, server: PackServer) -> EnginesDesk:
    """The Engine page of a window whose updates come from a made-up GitHub."""
    make_engine(folder / "app", "cpu")
    desk = make_desk(Tries())
    installed = desk.parts.services.installed
    assert installed is not None
    installed.updates = EngineUpdates(  # type: ignore[misc]
        desk.engines, installed.installer, installed.switch.add_pack_file,
        desk.parts.services.settings.state, Network, server=addresses(server), platform="linux-x64",
        compare_with=compared,
    )  # fmt: skip
    await desk.begin()
    await desk.until(lambda: desk.has("engine.update.look"))
    return desk


def shows(desk: EnginesDesk, name: str) -> bool:
    return desk.find(name, QAbstractButton).isVisibleTo(desk.window)


async def test_a_newer_release_is_found_agreed_to_used_and_left(
    make_engines_desk: MakeDesk, tmp_path: Path, server: PackServer
) -> None:
    publish(server, NEW, {ARCHIVE: linux()}, sources_of())
    desk = await opened(make_engines_desk, tmp_path, server)
    assert not shows(desk, "engine.update.get")
    assert server.headers == [], "nothing is asked before the click"
    desk.click("engine.update.look")
    await desk.until(lambda: shows(desk, "engine.update.get"))
    assert desk.text_of("engine.update.status").startswith(f"{NEW} of ")
    assert desk.text_of("engine.update.status").endswith("In use: b11312.")

    desk.click("engine.update.get")
    await desk.until(lambda: desk.has("engine.update.question"))
    said = desk.text_of("engine.update.question.consequence")
    assert "Saved chat states are of no use" in said
    assert "native code" in said
    desk.answer_box("engine.update.question.no")
    await desk.until(lambda: not desk.has("engine.update.question"))
    assert not (tmp_path / "own" / NAME).exists()

    desk.click("engine.update.get")
    await desk.until(lambda: desk.has("engine.update.question"))
    desk.answer_box("engine.update.question.yes")
    await desk.until(lambda: shows(desk, "engine.update.use"))
    assert desk.engines.engines.chosen == "cpu"
    assert "It passes 1 of 1 tests." in desk.text_of("engine.update.findings")
    desk.click("engine.update.use")
    await desk.until(lambda: desk.engines.engines.chosen == NAME)
    await desk.until(lambda: shows(desk, "engine.update.back"))
    desk.click("engine.update.back")
    await desk.until(lambda: desk.engines.engines.chosen == "cpu")
    await desk.until_quiet()
    assert not shows(desk, "engine.update.back")


async def test_a_release_that_does_not_fit_is_refused_by_name(
    make_engines_desk: MakeDesk, tmp_path: Path, server: PackServer
) -> None:
    publish(server, NEW, {ARCHIVE: linux()}, sources_of(changed_abi(r"bool vocab_only;", "int32 vocab_only;")))
    desk = await opened(make_engines_desk, tmp_path, server)
    desk.click("engine.update.look")
    await desk.until(lambda: shows(desk, "engine.update.get"))
    desk.click("engine.update.get")
    await desk.until(lambda: desk.has("engine.update.question"))
    desk.answer_box("engine.update.question.yes")
    await desk.until(lambda: "vocab_only" in desk.text_of("engine.update.problem"))
    assert desk.engines.engines.chosen == "cpu"


@pytest.mark.parametrize("answer", [b"", b"<html>Log in</html>"])
async def test_a_network_that_lies_is_told(
    make_engines_desk: MakeDesk, tmp_path: Path, server: PackServer, answer: bytes
) -> None:
    server.archives["/api/releases?per_page=10"] = answer
    desk = await opened(make_engines_desk, tmp_path, server)
    desk.click("engine.update.look")
    await desk.until(lambda: bool(desk.text_of("engine.update.problem")))
    assert shows(desk, "engine.update.look"), "it can be tried again"
