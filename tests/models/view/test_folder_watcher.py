"""A model that comes into a folder is in the list without a rescan by the clock; a hidden window looks at nothing."""

from collections.abc import Callable
from pathlib import Path

import pytest

from qwendesk.core import paths
from qwendesk.hub.model_folders import ModelFolders, write_folders
from qwendesk.models import library_watch
from qwendesk.models.view.folder_watcher import FolderWatcher
from tests.gguf_files import model_values, tensor, write_model
from tests.window_desk import Desk


@pytest.fixture
def ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(paths, "config_folder", lambda: tmp_path / "settings")
    monkeypatch.setattr(paths, "cache_folder", lambda: tmp_path / "cache")
    monkeypatch.setattr(library_watch, "_SETTLE_S", 3600.0)
    monkeypatch.setattr(library_watch, "_CALM_S", 3600.0)
    monkeypatch.setattr(library_watch, "_GATHER_S", 0.0)
    write_folders(ModelFolders((str(tmp_path / "ours"),), other_apps=False))
    (tmp_path / "ours").mkdir()
    return tmp_path / "ours"


def model(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return write_model(path, model_values(general__name="x"), [tensor("token_embd.weight", 64)])


def names(desk: Desk) -> list[str]:
    return [each.name for each in desk.parts.services.models.library.current.models]


async def test_added_and_removed_files_are_noticed(ours: Path, make_desk: Callable[[], Desk]) -> None:
    model(ours / "first.gguf")
    desk = make_desk()
    desk.parts.library_watch.start()
    await desk.until(lambda: names(desk) == ["first"])
    second = model(ours / "second.gguf")
    await desk.until(lambda: names(desk) == ["first", "second"])
    second.unlink()
    await desk.until(lambda: names(desk) == ["first"])


def test_folders_are_watched_and_released(app: object, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    watcher = FolderWatcher()
    assert watcher.follow([str(one), str(two)])
    assert watcher.follow([str(two)])
    assert watcher.follow([])
    assert not watcher.follow([str(one), str(tmp_path / "gone")])
    watcher.deleteLater()
