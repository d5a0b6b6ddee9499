"""An engine pack from a file in the window: the question about it, its trial, and what becomes of the loaded model."""

import hashlib
from pathlib import Path

from PySide6.QtWidgets import QAbstractButton, QFileDialog, QScrollArea

from tests.engines.view.engines_desk import EnginesDesk, MakeDesk
from tests.fakes.engine_folders import Tries, make_engine, make_pack_file


async def choose_file(desk: EnginesDesk, file: Path) -> None:
    """Choose an engine pack in the dialog of the Engine page, and wait for the question about it."""
    desk.click("engine.add")
    dialog = desk.find("engine.adddialog", QFileDialog)
    dialog.fileSelected.emit(str(file))
    dialog.reject()
    await desk.until(lambda: desk.has("engine.addition"))


async def test_engine_from_a_file_is_shown_asked_about_tried_and_used(
    make_engines_desk: MakeDesk, tmp_path: Path
) -> None:
    make_engine(tmp_path / "app", "cpu")
    file = make_pack_file(tmp_path, "vulkan", "vulkan")
    desk = make_engines_desk(Tries())
    await desk.begin()
    await desk.load_demo()

    await choose_file(desk, file)
    asked = desk.text_of("engine.addition.consequence")
    assert hashlib.sha256(file.read_bytes()).hexdigest() in asked.replace(" ", "")
    assert "native code that runs with your user rights" in asked
    desk.answer_box("engine.addition.no")
    await desk.until(lambda: not desk.has("engine.addition"))
    assert not (tmp_path / "own").exists()

    await choose_file(desk, file)
    desk.answer_box("engine.addition.yes")
    await desk.until(lambda: desk.engines.engines.chosen == "vulkan")
    await desk.until_quiet()
    assert desk.state_of("vulkan") == "In use"
    assert (tmp_path / "own" / "vulkan").is_dir()
    assert desk.loads == 2


async def test_engine_in_use_is_replaced_by_one_from_a_file(make_engines_desk: MakeDesk, tmp_path: Path) -> None:
    make_engine(tmp_path / "app", "cpu")
    make_engine(tmp_path / "own", "vulkan", "vulkan", minimum_driver="1")
    desk = make_engines_desk(Tries())
    await desk.begin()
    await desk.load_demo()
    await choose_file(desk, make_pack_file(tmp_path, "vulkan", "vulkan", minimum_driver="2"))
    desk.answer_box("engine.addition.yes")
    await desk.until(lambda: desk.loads == 2)
    await desk.until_quiet()
    used = desk.engines.engines.current
    assert used is not None
    assert used.engine is not None
    assert used.engine.manifest.minimum_driver == "2"


async def test_file_whose_engine_does_not_run_is_refused_with_a_sentence(
    make_engines_desk: MakeDesk, tmp_path: Path
) -> None:
    make_engine(tmp_path / "app", "cpu")
    desk = make_engines_desk(Tries(vulkan="The Vulkan loader is missing: install your graphics driver."))
    refused: list[str] = []
    desk.parts.tasks.refused.connect(refused.append)
    await desk.begin()
    await choose_file(desk, make_pack_file(tmp_path, "vulkan", "vulkan"))
    desk.answer_box("engine.addition.yes")
    await desk.until(lambda: bool(refused))
    await desk.until_quiet()
    assert "was not added. The Vulkan loader is missing" in refused[0]
    assert not desk.has("engine.list.vulkan")
    assert desk.engines.engines.chosen == "cpu"
    assert desk.find("engine.add", QAbstractButton).isEnabled()


async def test_page_fits_a_narrow_window_with_every_link(make_engines_desk: MakeDesk, tmp_path: Path) -> None:
    make_engine(tmp_path / "app", "cpu")
    desk = make_engines_desk(Tries())
    desk.window.resize(560, 700)
    await desk.begin()
    await desk.until(lambda: desk.is_shown("engine.help"))
    page = desk.find("engine.page", QScrollArea)
    # The window without its sidebar and scroll bar; before the first painting the page has not its final width.
    assert page.widget().minimumSizeHint().width() <= 560 - 64 - 12
