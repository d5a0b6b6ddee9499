"""The model picker below the model button."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QFileDialog, QLabel, QLineEdit, QListWidget, QWidget

from qwendesk.widgets.text_layout import ElidedLabel
from tests.fakes.engine import FakeEngineClient
from tests.gguf_files import model_values, tensor, write_model
from tests.models.view.start_desk import CARD, with_folder
from tests.window_desk import Desk

OPENED = "Qwen3.6-27B-Q4_K_M"


@pytest.fixture
def client(client: FakeEngineClient) -> FakeEngineClient:
    client.devices = (CARD, *client.devices)
    return client


@pytest.fixture
def library_desk(qt_loop: asyncio.Runner, make_desk: Callable[[], Desk], tmp_path: Path) -> Iterator[Desk]:
    """Return a window whose library has two models, neither of them loaded."""
    for name in ("Qwen3.5-4B-Q4_K_M", "Qwen3.5-9B-Q8_0"):
        write_model(tmp_path / f"{name}.gguf", model_values(), [tensor("blk.0.attn_q.weight", 64, 64)])
    desk = make_desk()
    models = desk.parts.services.models
    before = qt_loop.run(with_folder(desk, tmp_path))
    qt_loop.run(models.offers.update())
    qt_loop.run(desk.until(lambda: len(models.list.state.value.entries) == 2))
    yield desk
    qt_loop.run(models.library.set_folders(before))


async def open_picker(desk: Desk) -> QWidget:
    desk.press(Qt.Key.Key_L, Qt.KeyboardModifier.ControlModifier)
    await desk.until(lambda: desk.is_shown("model.picker"))
    return desk.find("model.picker", QWidget)


def names(desk: Desk) -> list[str]:
    rows = desk.find("model.picker.list", QListWidget)
    shown = (rows.itemWidget(rows.item(index)) for index in range(rows.count()))
    return [label.text() for row in shown for label in row.findChildren(ElidedLabel, "model.picker.name")]


def shown_states(desk: Desk) -> list[str]:
    chips = desk.find("model.picker.list", QListWidget).findChildren(QLabel, "model.picker.state")
    return [chip.text() for chip in chips if chip.isVisible()]


async def test_models_show_size_fit_and_whether_they_are_loaded(library_desk: Desk, tmp_path: Path) -> None:
    desk = library_desk
    path = str(tmp_path / "Qwen3.5-4B-Q4_K_M.gguf")
    desk.window.load_model(path)
    await desk.until(lambda: desk.parts.engine.state.report is not None)
    await open_picker(desk)
    assert sorted(names(desk)) == ["Built-in demo", "Qwen3.5-4B-Q4_K_M", "Qwen3.5-9B-Q8_0"]
    await desk.until(lambda: desk.is_shown("model.picker.fit"))
    assert desk.text_of("model.picker.fit") == "Fits in VRAM"
    assert "KB" in desk.text_of("model.picker.details")
    rows = desk.find("model.picker.list", QListWidget)
    spoken = [rows.item(index).data(Qt.ItemDataRole.AccessibleTextRole) for index in range(rows.count())]
    assert [text for text in spoken if "Loaded" in text] == [text for text in spoken if "4B" in text]
    assert all("Fits in VRAM" in text for text in spoken if "Qwen" in text)


@pytest.mark.parametrize("query", ["demo", "Built-in", "few topics"])
async def test_a_search_finds_the_demo(library_desk: Desk, query: str) -> None:
    desk = library_desk
    await open_picker(desk)
    field = desk.find("model.picker.query", QLineEdit)
    field.setText(query)
    assert names(desk) == ["Built-in demo"]
    QTest.keyClick(field, Qt.Key.Key_Return)
    await desk.until(lambda: desk.is_shown("model.demo"))


async def test_picker_follows_a_load_that_ends_while_it_is_open(library_desk: Desk, tmp_path: Path) -> None:
    desk = library_desk
    await open_picker(desk)
    seen = [(shown_states(desk), desk.is_shown("model.picker.cancel"))]
    engine = desk.parts.engine
    engine.subscribe(lambda _state: seen.append((shown_states(desk), desk.is_shown("model.picker.cancel"))))
    desk.window.load_model(str(tmp_path / "Qwen3.5-4B-Q4_K_M.gguf"))
    await desk.until(lambda: engine.state.report is not None)
    assert seen[0] == ([], False)
    assert (["Loading"], True) in seen
    assert seen[-1] == (["Loaded"], False)
    assert desk.is_shown("model.picker.mmproj")


async def test_model_used_last_is_first_and_marked_after_eject(library_desk: Desk, tmp_path: Path) -> None:
    desk = library_desk
    desk.window.load_model(str(tmp_path / "Qwen3.5-9B-Q8_0.gguf"))
    await desk.until(lambda: desk.parts.engine.state.report is not None)
    desk.click("model.eject")
    await desk.until(lambda: desk.parts.engine.state.report is None)
    await open_picker(desk)
    assert names(desk)[0] == "Qwen3.5-9B-Q8_0"
    assert shown_states(desk) == ["Used last"]


async def opened_elsewhere(desk: Desk, folder: Path) -> Path:
    """Open a model file from a folder that isn't searched, and eject it again."""
    file = write_model(folder / f"{OPENED}.gguf", model_values(), [tensor("blk.0.attn_q.weight", 64, 64)])
    desk.window.load_model(str(file))
    await desk.until(lambda: desk.parts.engine.state.report is not None)
    desk.click("model.eject")
    await desk.until(lambda: desk.parts.engine.state.report is None)
    return file


@pytest.mark.parametrize(("is_ejected", "state"), [(False, "Loaded"), (True, "Used last")])
async def test_the_demo_is_what_was_used_last_after_another_model(
    library_desk: Desk, tmp_path: Path, state: str, *, is_ejected: bool
) -> None:
    desk = library_desk
    desk.window.load_model(str(tmp_path / "Qwen3.5-9B-Q8_0.gguf"))
    await desk.until(lambda: desk.parts.engine.state.report is not None)
    desk.window.load_demo()
    await desk.until(lambda: desk.text_of("model.button").startswith("Built-in demo"))
    if is_ejected:
        desk.click("model.eject")
        await desk.until(lambda: desk.parts.engine.state.report is None)
    await open_picker(desk)
    rows = desk.find("model.picker.list", QListWidget)
    assert state in rows.item(rows.count() - 1).data(Qt.ItemDataRole.AccessibleTextRole)
    assert shown_states(desk) == [state], "the model before the demo wasn't used last"


async def test_a_file_that_is_gone_is_not_listed(
    library_desk: Desk, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    desk = library_desk
    file = await opened_elsewhere(desk, tmp_path_factory.mktemp("elsewhere"))
    await open_picker(desk)
    await desk.until(lambda: OPENED in names(desk))
    desk.find("model.picker", QWidget).close()
    await desk.until(lambda: not desk.has("model.picker"))

    file.unlink()
    (tmp_path / "Qwen3.5-9B-Q8_0.gguf").unlink()
    await open_picker(desk)

    await desk.until(lambda: names(desk) == ["Qwen3.5-4B-Q4_K_M", "Built-in demo"])
    assert desk.parts.services.models.last_model.last.value is None, "it isn't offered anywhere else"


async def test_model_that_was_opened_as_a_file_is_listed(
    library_desk: Desk, tmp_path_factory: pytest.TempPathFactory
) -> None:
    desk = library_desk
    file = await opened_elsewhere(desk, tmp_path_factory.mktemp("elsewhere"))
    await open_picker(desk)
    await desk.until(lambda: names(desk)[0] == OPENED)
    # The rows of the list as it was before go a moment later.
    await desk.until(lambda: desk.text_of("model.picker.details").endswith(str(file.parent)))
    QTest.keyClick(desk.find("model.picker.query", QLineEdit), Qt.Key.Key_Return)
    await desk.until(lambda: desk.parts.engine.state.report is not None)
    wanted = desk.parts.engine.state.requested
    assert wanted is not None
    assert wanted.model == str(file)


async def test_keyboard_finds_and_loads_a_model(library_desk: Desk) -> None:
    desk = library_desk
    picker = await open_picker(desk)
    search = desk.find("model.picker.query", QLineEdit)
    assert picker.focusWidget() is search
    QTest.keyClick(search, Qt.Key.Key_Down)
    assert desk.find("model.picker.list", QListWidget).currentRow() == 1
    QTest.keyClicks(search, "9b")
    assert names(desk) == ["Qwen3.5-9B-Q8_0"]
    QTest.keyClick(search, Qt.Key.Key_Return)
    await desk.until(lambda: desk.parts.engine.state.report is not None)
    wanted = desk.parts.engine.state.requested
    assert wanted is not None
    assert Path(wanted.model).name == "Qwen3.5-9B-Q8_0.gguf"
    assert not desk.is_shown("model.picker")


async def test_get_models_and_open_a_file_lead_on(desk: Desk) -> None:
    await open_picker(desk)
    desk.click("model.picker.get")
    assert (desk.window.page, desk.parts.models_page.page().shown_tab) == ("models", "pc")
    await desk.until(lambda: not desk.has("model.picker"))
    desk.window.activateWindow()  # Windows may have taken the keys from it with the picker
    await desk.until(desk.window.isActiveWindow)
    await open_picker(desk)
    desk.click("model.picker.file")
    dialogs = desk.window.findChildren(QFileDialog)
    assert [dialog.isVisible() for dialog in dialogs] == [True]
    dialogs[0].close()


@pytest.mark.parametrize("button", ["model.demo", "welcome.choose"])
async def test_users_of_the_demo_are_led_to_models_for_this_pc(desk: Desk, button: str) -> None:
    desk.parts.models_page.page().show_tab("mine")
    desk.click(button)
    assert (desk.window.page, desk.parts.models_page.page().shown_tab) == ("models", "pc")


async def test_load_options_of_a_model_are_shown_without_loading_it(library_desk: Desk, tmp_path: Path) -> None:
    desk = library_desk
    await open_picker(desk)
    desk.click("model.picker.options.Qwen3.5-9B-Q8_0")
    pending = desk.parts.services.pending_load
    await desk.until(lambda: desk.is_shown("inspector.load.unloaded"))
    assert pending.pending.requested is not None
    assert pending.pending.requested.model == str(tmp_path / "Qwen3.5-9B-Q8_0.gguf")
    assert desk.parts.engine.state.requested is None


async def test_inspector_without_a_model_lets_the_user_choose_one_for_its_options(library_desk: Desk) -> None:
    desk = library_desk
    desk.window.chat_area.show_inspector()
    desk.click("inspector.load.choose")
    await desk.until(lambda: desk.is_shown("model.picker"))
    assert "Built-in demo" not in names(desk)
    QTest.keyClicks(desk.find("model.picker.query", QLineEdit), "9b")
    QTest.keyClick(desk.find("model.picker.query", QLineEdit), Qt.Key.Key_Return)
    await desk.until(lambda: desk.is_shown("inspector.load.unloaded"))
    assert desk.parts.engine.state.requested is None
