"""The tab "My models" on real files: what is said of them, and what the buttons do."""

import asyncio
import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QDialog, QLineEdit, QMenu

from qwendesk.core import input_files
from qwendesk.core.units import GIB
from qwendesk.engine.protocol import LoadReport
from qwendesk.engine.state import Phase
from qwendesk.hub import model_deletion
from qwendesk.hub.file_hashes import hash_file
from qwendesk.hub.model_folders import ModelFolders
from qwendesk.widgets.theme_keeper import ThemeKeeper
from tests.fakes.engine import FakeEngineClient
from tests.hub.conftest import fake_hub
from tests.hub.hub_server import FakeHub
from tests.hub.verified import BROKEN_TEMPLATE, FIXED_TEMPLATE, lay_record, mmproj, mxfp4, qwen, unsloth
from tests.models.library import make_model_home
from tests.models.view.library_desk import LibraryDesk

__all__ = ["fake_hub"]
REPO, NAME = "unsloth/Qwen3.5-35B-A3B-GGUF", "Qwen3.5-35B-A3B-Q4_K_M.gguf"
OLD = "Qwen3.5-35B-A3B-UD-Q4_K_XL.gguf"


@pytest.fixture
def desk(
    qt_loop: asyncio.Runner,
    keeper: ThemeKeeper,
    client: FakeEngineClient,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[LibraryDesk]:
    async def make() -> LibraryDesk:
        return LibraryDesk(make_model_home(tmp_path, monkeypatch), client)

    desk = qt_loop.run(make())
    desk.page.show_tab("mine")
    yield desk
    qt_loop.run(desk.close())


def sound(desk: LibraryDesk, repo: str = REPO, name: str = NAME) -> Path:
    path = unsloth(desk.model_home.ours / repo / name)
    mmproj(path.with_name("mmproj-F16.gguf"))
    return path


def template_of(report: LoadReport) -> str:
    return Path(report.options.chat_template_file).read_text(encoding="utf-8")


def choose(desk: LibraryDesk, path: Path, action: str) -> None:
    """An entry of the row's menu."""
    desk.click(desk.name(path, "menu"))
    menu = desk.page.findChild(QMenu, "models.my.menu")
    assert menu is not None
    found = menu.findChild(QAction, f"models.my.menu.{action}")
    assert found is not None
    assert found.isEnabled()
    menu.close()
    found.trigger()


async def test_empty_list_says_what_to_do(desk: LibraryDesk) -> None:
    await desk.open()
    await desk.until(lambda: desk.is_shown("models.my.empty.folder"))

    assert desk.text("models.my.empty.title") == "No models on this PC yet"
    assert not desk.is_shown("models.alerts")


async def test_empty_list_offers_a_folder_first_and_shows_the_searched_ones(desk: LibraryDesk) -> None:
    await desk.open()
    await desk.until(lambda: desk.is_shown("models.my.empty.folder"))
    add, offers = desk.find("models.my.empty.folder"), desk.find("models.my.empty.offers")
    await desk.until(lambda: add.width() > 0 and add.geometry().right() < offers.x())
    assert desk.find("models.my.empty.file").isVisible()
    (folder,) = desk.model_home.models.folders.models
    assert desk.text("models.my.empty.place.0") == f"{folder} (QwenDesk)"


async def test_a_model_is_listed_with_its_state_and_verified_on_request(desk: LibraryDesk) -> None:
    path = sound(desk)
    lay_record(path, hash_file(path))
    desk.model_home.settings.change({"offline": True})
    await desk.open()
    assert desk.text(desk.name(path, "name")) == path.stem
    assert "sees pictures" in desk.text(desk.name(path, "details"))
    assert desk.text(desk.name(path, "state")) == "Not verified"
    assert len(desk.my_models.rows) == 1

    desk.click(desk.name(path, "fix"))
    await desk.until(lambda: desk.text(desk.name(path, "state")) == "Verified")

    assert not desk.is_shown(desk.name(path, "fix"))
    assert "offline" in desk.text("models.my.notice")


async def test_a_check_can_be_cancelled_from_its_row(desk: LibraryDesk) -> None:
    path = sound(desk)
    await desk.open()
    checks = desk.services.checks
    await checks._one_full_check.acquire()
    desk.click(desk.name(path, "fix"))
    await desk.until(lambda: desk.is_shown(desk.name(path, "cancel")))
    assert desk.text(desk.name(path, "work")) == "Waiting to verify"

    desk.click(desk.name(path, "cancel"))
    checks._one_full_check.release()
    await desk.until(lambda: not desk.is_shown(desk.name(path, "cancel")))

    assert desk.text(desk.name(path, "state")) == "Not verified"


async def test_load_includes_the_mmproj(desk: LibraryDesk) -> None:
    path = sound(desk)
    await desk.open()

    desk.click(desk.name(path, "load"))
    await desk.until(lambda: desk.engine.state.phase is Phase.READY)
    await desk.until(lambda: desk.text(desk.name(path, "load")) == "Chat")

    report = desk.engine.state.report
    assert report is not None
    assert report.options.mmproj == str(path.with_name("mmproj-F16.gguf"))


async def test_model_that_cannot_be_loaded_says_why(desk: LibraryDesk) -> None:
    path = sound(desk)
    path.write_bytes(path.read_bytes()[:-40])
    await desk.open()

    assert desk.text(desk.name(path, "state")) == "Corrupt"
    load = desk.find(desk.name(path, "load"))
    assert not load.isEnabled()
    assert load.toolTip()


async def test_a_model_that_onedrive_keeps_in_the_cloud_is_never_opened_and_says_what_to_do(
    desk: LibraryDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading one byte of it would start a download of gigabytes, and keep the scan waiting for it."""
    path, local = sound(desk), sound(desk, "a/a-GGUF", "here.gguf")
    recalled = path.stat().st_ino
    really_open = input_files.open_regular

    def open_others(file: Path, limit_bytes: int | None = None) -> io.FileIO:
        assert file != path
        return really_open(file, limit_bytes)

    monkeypatch.setattr(input_files, "is_online_only", lambda status: status.st_ino == recalled)
    monkeypatch.setattr(input_files, "open_regular", open_others)
    await desk.open()

    sentence = desk.text(desk.name(path, "sentence"))
    assert "only in the cloud, not on this PC" in sentence
    assert "“Always keep on this device”" in sentence
    assert not desk.find(desk.name(path, "load")).isEnabled()
    assert desk.find(desk.name(local, "load")).isEnabled()


async def test_alerts_are_shown_above_every_tab_but_my_models(desk: LibraryDesk) -> None:
    path, good = sound(desk), sound(desk, "a/a-GGUF", "a good one.gguf")
    path.write_bytes(path.read_bytes()[:-40])
    await desk.open()
    assert not desk.is_shown("models.alert.1")
    assert [entry.model.path for entry in desk.services.list.state.value.entries][:2] == [str(path), str(good)]

    desk.page.show_tab("pc")
    assert desk.text("models.alert.1.name") == path.stem
    assert desk.text("models.alert.1.state") == "Corrupt"
    desk.click("models.alert.1.dismiss")
    assert not desk.is_shown("models.alert.1")


async def test_dismissed_alert_returns_for_another_problem(desk: LibraryDesk) -> None:
    path = sound(desk)
    whole = path.read_bytes()
    path.write_bytes(whole[:-40])
    await desk.open()
    desk.page.show_tab("pc")
    desk.click("models.alert.1.dismiss")
    assert not desk.is_shown("models.alerts")

    path.write_bytes(b"<!doctype html>" + whole)
    await desk.model_home.models.refresh()
    await desk.until(lambda: desk.is_shown("models.alert.1"))

    assert "web page" in desk.text("models.alert.1.sentence")


async def test_outdated_file_is_replaced_from_the_hub(desk: LibraryDesk, fake_hub: FakeHub) -> None:
    path = unsloth(desk.model_home.ours / REPO / OLD, [mxfp4("blk.0.attn_qkv.weight")])
    pictures = mmproj(path.with_name("mmproj-F16.gguf"))
    fixed = unsloth(desk.model_home.root / "upload" / OLD).read_bytes()
    fake_hub.add(REPO, OLD, fixed)
    fake_hub.add(REPO, pictures.name, pictures.read_bytes())
    desk.model_home.settings.change({"hub_endpoint": fake_hub.endpoint})
    desk.services.downloads.start()
    await desk.open()
    desk.page.show_tab("pc")
    assert desk.text("models.alert.1.state") == "Outdated"

    desk.click("models.alert.1.fix")
    desk.page.show_tab("mine")
    await desk.until(lambda: desk.text(desk.name(path, "state")) == "Verified")
    assert path.read_bytes() == fixed
    desk.page.show_tab("pc")
    assert not desk.is_shown("models.alerts")
    assert pictures.exists()


async def test_outdated_file_of_another_app_is_kept_beside_the_new_copy(desk: LibraryDesk, fake_hub: FakeHub) -> None:
    theirs = unsloth(desk.model_home.lm_studio / REPO / OLD, [mxfp4("blk.0.attn_qkv.weight")])
    before = theirs.read_bytes()
    fixed = unsloth(desk.model_home.root / "upload" / OLD).read_bytes()
    fake_hub.add(REPO, OLD, fixed)
    desk.model_home.settings.change({"hub_endpoint": fake_hub.endpoint})
    desk.services.downloads.start()
    await desk.open()
    assert desk.text(desk.name(theirs, "place")) == "LM Studio"
    assert desk.text(desk.name(theirs, "fix")) == "Download a fixed copy (20.7 GB)"
    assert "The file of LM Studio won't be changed." in desk.text(desk.name(theirs, "sentence"))

    desk.click(desk.name(theirs, "fix"))
    copy = desk.model_home.ours / REPO / OLD
    await desk.until(lambda: bool(desk.number(copy)) and desk.text(desk.name(copy, "state")) == "Verified")

    assert copy.read_bytes() == fixed
    assert theirs.read_bytes() == before
    await desk.until(lambda: "already" in desk.text(desk.name(theirs, "sentence")))
    assert not desk.is_shown(desk.name(theirs, "fix"))


async def test_broken_template_is_replaced_by_that_of_the_base_model(desk: LibraryDesk, fake_hub: FakeHub) -> None:
    path = unsloth(desk.model_home.ours / REPO / NAME, tokenizer__chat_template=BROKEN_TEMPLATE)
    mmproj(path.with_name("mmproj-F16.gguf"))
    fake_hub.plain.add("chat_template.jinja")
    fake_hub.add("Qwen/Qwen3.5-35B-A3B", "chat_template.jinja", FIXED_TEMPLATE.encode())
    desk.model_home.settings.change({"hub_endpoint": fake_hub.endpoint})
    await desk.open()
    assert desk.text(desk.name(path, "state")) == "Broken template"

    desk.click(desk.name(path, "fix"))
    await desk.until(lambda: desk.text(desk.name(path, "state")) == "Not verified")
    desk.click(desk.name(path, "load"))
    await desk.until(lambda: desk.engine.state.phase is Phase.READY)

    report = desk.engine.state.report
    assert report is not None
    assert template_of(report) == FIXED_TEMPLATE


async def test_fix_while_offline_says_so(desk: LibraryDesk) -> None:
    path = unsloth(desk.model_home.ours / REPO / OLD, [mxfp4("blk.0.attn_qkv.weight")])
    desk.model_home.settings.change({"offline": True})
    await desk.open()

    desk.click(desk.name(path, "fix"))
    await desk.until(lambda: desk.is_shown("models.my.notice"))
    assert "offline" in desk.text("models.my.notice")

    desk.page.show_tab("pc")
    desk.click("models.alert.1.fix")
    await desk.until(lambda: desk.is_shown("models.alerts.notice"))
    assert "offline" in desk.text("models.alerts.notice")


async def test_delete_asks_first_and_uses_the_trash(desk: LibraryDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    path = sound(desk)
    trashed: list[str] = []
    monkeypatch.setattr(model_deletion, "_to_trash", lambda each: (trashed.append(each.name), each.unlink()))
    await desk.open()

    choose(desk, path, "delete")
    await desk.until(lambda: desk.page.findChild(QDialog, "models.delete") is not None)
    assert NAME in desk.text("models.delete.consequence")
    assert "bytes" in desk.text("models.delete.consequence") or "KB" in desk.text("models.delete.consequence")
    assert path.exists()
    desk.click("models.delete.yes")
    await desk.until(lambda: desk.is_shown("models.my.empty"))

    assert trashed == [NAME, "mmproj-F16.gguf"]


async def test_a_deletion_can_be_declined(desk: LibraryDesk) -> None:
    path = sound(desk)
    await desk.open()

    choose(desk, path, "delete")
    await desk.until(lambda: desk.page.findChild(QDialog, "models.delete") is not None)
    desk.press("models.delete.no", Qt.Key.Key_Escape)
    await desk.until(lambda: desk.page.findChild(QDialog, "models.delete") is None)

    assert path.exists()


async def test_moved_model_stays_verified(desk: LibraryDesk) -> None:
    path = sound(desk)
    lay_record(path, hash_file(path))
    other = desk.model_home.root / "other drive"
    other.mkdir()
    await desk.model_home.models.set_folders(ModelFolders((str(desk.model_home.ours), str(other))))
    await desk.open()
    await desk.services.checks.verify(str(path))

    choose(desk, path, "bring.2")
    target = other / REPO / NAME
    await desk.until(lambda: bool(desk.number(target)))

    assert not path.exists()
    assert (other / REPO / "mmproj-F16.gguf").exists()
    await desk.until(lambda: "other drive" in desk.text("models.my.notice"))
    await desk.until(lambda: desk.entry(target).state.kind != "checking")
    check = desk.services.checks.state.value.checks[str(target)]
    assert check is not None
    assert check.is_hashed


async def test_menu_shows_free_space_of_each_folder(desk: LibraryDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    path = sound(desk)
    folders = [desk.model_home.root / name for name in ("wide", "full")]
    free = {str(desk.model_home.ours): GIB, str(folders[0]): 3 * GIB, str(folders[1]): 10}
    monkeypatch.setattr("qwendesk.models.library_service.free_on_drive", lambda folder: free[str(folder)])
    for folder in folders:
        folder.mkdir()
    await desk.model_home.models.set_folders(ModelFolders((str(desk.model_home.ours), *map(str, folders))))
    await desk.open()

    desk.click(desk.name(path, "menu"))
    menu = desk.page.findChild(QMenu, "models.my.menu")
    assert menu is not None
    wide, full = (menu.findChild(QAction, f"models.my.menu.bring.{number}") for number in (2, 3))
    assert "3.0 GB free" in wide.text()
    assert wide.isEnabled()
    assert not full.isEnabled()
    assert "more needed" in full.toolTip()
    menu.close()


async def test_an_added_folder_is_used_in_place(desk: LibraryDesk) -> None:
    path = qwen(desk.model_home.root / "elsewhere" / "mine.gguf")
    await desk.open()

    desk.actions.use_in_place(str(path.parent))
    await desk.until(lambda: bool(desk.number(path)))

    assert desk.text(desk.name(path, "place")) == "Added folder"


async def test_other_apps_files_can_be_left_out(desk: LibraryDesk) -> None:
    theirs = unsloth(desk.model_home.lm_studio / REPO / NAME)
    await desk.open()
    assert desk.number(theirs)

    desk.click("models.my.apps")
    await desk.until(lambda: not desk.number(theirs))

    assert theirs.exists()


async def test_500_models_are_listed_while_scrolling_and_found_by_name(desk: LibraryDesk) -> None:
    for number in range(500):
        qwen(desk.model_home.ours / "o" / f"m{number}-GGUF" / f"model-{number:03}.gguf")
    await desk.model_home.models.refresh()
    desk.page.show()
    await desk.until(lambda: len(desk.services.list.state.value.entries) == 500)
    await desk.until(lambda: len(desk.my_models.rows) >= 16)
    assert len(desk.my_models.rows) < 100

    search = desk.find("models.my.search")
    assert isinstance(search, QLineEdit)
    search.setText("model-437")
    await desk.until(lambda: [each.model.name for each in desk.my_models.rows.values()] == ["model-437"])
    await desk.services.checks.wait_until_settled()
