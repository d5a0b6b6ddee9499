"""The first day of a new Qwen, in the window: from New to the first answer, with an engine that this release lacks.

Hub and GitHub are made up; the engines, the model that answers, and every step between them are real.
"""

import asyncio
import os
import platform
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QAbstractButton, QWidget

from qwendesk.app.parts import build
from qwendesk.core import paths
from qwendesk.engine.state import Phase
from qwendesk.engines import engine_updates
from qwendesk.engines.engine_choice import INSTALLED, EngineChoiceService, package_version
from qwendesk.hub.catalog import load_catalog
from qwendesk.hub.model_folders import read_folders, write_folders
from qwendesk.services import Doubles
from qwendesk.settings.service import SettingsService
from qwendesk.widgets.theme_keeper import ThemeKeeper
from tests.engine.worker.test_struct_layouts import changed_abi
from tests.engines.conftest import server
from tests.fakes.llama_releases import addresses, publish_here
from tests.fakes.next_engine import ARCHITECTURE, can_be_made, next_libraries, next_model
from tests.fakes.pack_server import PackServer
from tests.hub.hub_server import FakeHub
from tests.models.new_hub import NAME, REPO, publish
from tests.models.view.catalog_desk import window_hub
from tests.window_desk import Desk

__all__ = ["server"]
pytestmark = [
    pytest.mark.skipif(
        not sys.platform.startswith("linux") or platform.machine() != "x86_64",
        reason="the made-up archive is one for Linux on x86-64",
    ),
    pytest.mark.skipif(not can_be_made(), reason="no C compiler makes the engine"),
    pytest.mark.timeout(900),  # two engines are compared with each other
]
BAD, GOOD = "b99998", "b99999"
FILE = f"{NAME}-Q8_0.gguf"
WAY = f"models.new.{{}}.{REPO}"


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    with window_hub(monkeypatch) as hub:
        known = load_catalog().repositories[0]
        for file in known.files:
            hub.add(known.repo, file.path, b"bytes")
        publish(hub)
        hub.add(REPO, FILE, next_model())
        yield hub


@pytest.fixture
def desk(
    qt_loop: asyncio.Runner,
    keeper: ThemeKeeper,
    hub: FakeHub,
    server: PackServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Desk]:
    """The window with the installed engine and no model, as it is after its start."""
    monkeypatch.setattr(engine_updates, "ReleaseServer", lambda: addresses(server))
    engines = EngineChoiceService(
        paths.engine_places(), package_version(), has_installed=True, crash_file=tmp_path / "crashes.json"
    )
    folders = read_folders()
    client = engines.client()
    settings = SettingsService(tmp_path / "settings.json")
    parts = build(client, engines=engines, settings=settings, doubles=Doubles(packs=()))
    desk = Desk(parts, client)  # type: ignore[arg-type]
    desk.window.show()
    desk.window.activateWindow()
    yield desk
    qt_loop.run(parts.close())
    write_folders(folders)
    shutil.rmtree(paths.data_folder() / "engines", ignore_errors=True)
    shutil.rmtree(paths.data_folder() / "models", ignore_errors=True)


def save_picture(desk: Desk, name: str) -> None:
    """Save the page, for a person to look at, if QWENDESK_TEST_PICTURES names a folder."""
    folder = os.environ.get("QWENDESK_TEST_PICTURES")
    if folder:
        desk.window.resize(1080, 900)
        desk.window.grab().save(str(Path(folder) / f"{name}.png"))


async def shown(desk: Desk, name: str) -> None:
    await desk.until(lambda: desk.is_shown(name))


async def look_for_models(desk: Desk) -> None:
    desk.click("models.catalog.look_up")
    await desk.parts.services.models.catalog.wait_until_settled()


async def look_and_get(desk: Desk, tag: str) -> None:
    """Look for a newer engine, and agree to get it."""
    desk.click("engine.update.look")
    await desk.until(lambda: desk.text_of("engine.update.status").startswith(f"{tag} of "))
    await shown(desk, "engine.update.get")
    desk.click("engine.update.get")
    await shown(desk, "engine.update.question")
    desk.find("engine.update.question.yes", QAbstractButton).click()
    await desk.until(lambda: not desk.has("engine.update.question"))


async def test_from_new_to_the_first_answer(desk: Desk, server: PackServer, tmp_path: Path) -> None:
    models = desk.parts.services.models
    models.catalog._gap_s = 0
    engines = desk.parts.services.installed
    assert engines is not None
    await engines.engines.choose()
    desk.click("rail.models")
    await models.catalog.load()
    await models.offers.update()
    await look_for_models(desk)
    await shown(desk, "models.new")
    assert "which is newer than this engine" in desk.text_of(WAY.format("summary"))
    assert not desk.has(WAY.format("download"))
    save_picture(desk, "1-new")

    desk.click(WAY.format("engine"))
    await shown(desk, "engine.update.look")
    assert not desk.find("engine.update.look", QWidget).visibleRegion().isEmpty()
    save_picture(desk, "2-engine")
    libraries = next_libraries(tmp_path)
    changed = changed_abi("bool vocab_only;", "int32 vocab_only;")
    publish_here(server, BAD, libraries, abi=changed, architectures=("qwen35moe", ARCHITECTURE))
    await look_and_get(desk, BAD)
    await desk.until(lambda: "vocab_only now has the type int32" in desk.text_of("engine.update.problem"))
    assert engines.engines.engines.chosen == INSTALLED
    assert f"which needs a newer engine: {BAD} has it" in desk.text_of(WAY.format("summary"))

    publish_here(server, GOOD, libraries, architectures=("qwen35moe", ARCHITECTURE))
    await look_and_get(desk, GOOD)
    await shown(desk, "engine.update.use")
    assert "It passes 7 of 7 tests." in desk.text_of("engine.update.findings")
    save_picture(desk, "3-tried")
    desk.click("engine.update.use")
    await desk.until(lambda: engines.engines.engines.chosen == f"{GOOD}-cpu")

    desk.click("rail.models")
    await desk.until(lambda: "An engine on this PC knows its tensor type 43" in desk.text_of(WAY.format("summary")))
    await look_for_models(desk)
    await desk.until(lambda: desk.has(WAY.format("download")))
    desk.click(WAY.format("details"))
    save_picture(desk, "4-offered")
    models.downloads.start()
    desk.click(WAY.format("download"))
    await desk.until(lambda: desk.text_of(WAY.format("download")) == "Load")
    desk.click(WAY.format("download"))
    await desk.until(
        lambda: desk.parts.engine.state.phase is Phase.READY or desk.parts.engine.state.failure is not None
    )
    assert desk.parts.engine.state.failure is None
    desk.window.show_page("chat")
    desk.parts.chat.set_overrides({"temperature": "0", "enable_thinking": "false"})
    await desk.ask("What is 2 + 3?")
    save_picture(desk, "5-answer")
    assert desk.parts.chat.conversation.turns[-1].answer.text.startswith("2 + 3 = 5")
