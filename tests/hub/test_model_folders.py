"""The user's model folders and where files belong in them."""

from pathlib import Path, PurePosixPath

import msgspec
import pytest

from qwendesk.core import paths
from qwendesk.core.errors import QwenDeskError
from qwendesk.hub import model_folders
from qwendesk.hub.model_folders import ModelFolders


@pytest.fixture(autouse=True)
def own_settings(monkeypatch, tmp_path):
    monkeypatch.setattr(paths, "config_folder", lambda: tmp_path / "settings")


def test_default_models_folder_is_in_the_data_folder():
    assert model_folders.read_folders() == ModelFolders((str(paths.data_folder() / "models"),))


def test_chosen_folders_are_remembered(tmp_path):
    chosen = ModelFolders((str(tmp_path / "Modèles"),), added=(str(tmp_path / "old"),), other_apps=False)
    model_folders.write_folders(chosen)
    assert model_folders.read_folders() == chosen
    assert [path.name for path in (tmp_path / "settings").iterdir()] == ["model-folders.json"]


def test_unreadable_folders_file_is_logged_and_ignored(tmp_path, caplog):
    (tmp_path / "settings").mkdir()
    (tmp_path / "settings" / "model-folders.json").write_text('{"models": 5}')
    assert model_folders.read_folders().models == (str(model_folders.default_models_folder()),)
    assert "model-folders.json" in caplog.text


def test_folder_spelled_in_two_ways_counts_once(tmp_path):
    """As with `D:/models` from a dialog of Qt and `D:\\models` from the system."""
    models, other = str(tmp_path / "models"), str(tmp_path / "other")
    twice = {"models": [f"{tmp_path}//models/", models], "added": [f"{other}/.", other, f"{models}/"]}
    (tmp_path / "settings").mkdir()
    (tmp_path / "settings" / "model-folders.json").write_bytes(msgspec.json.encode(twice))
    assert model_folders.read_folders() == ModelFolders((models,), added=(other,))
    chosen = msgspec.structs.replace(ModelFolders((models,)), models=(f"{other}/", models, other))
    assert chosen.models == (other, models)


def test_each_repository_has_its_own_folder():
    models = Path("models")
    first = model_folders.repo_file(models, "unsloth/Qwen3.5-2B-GGUF", "mmproj-F16.gguf")
    second = model_folders.repo_file(models, "bartowski/Qwen3.5-2B-GGUF", "mmproj-F16.gguf")
    assert first == models / "unsloth" / "Qwen3.5-2B-GGUF" / "mmproj-F16.gguf"
    assert first != second


@pytest.mark.parametrize(
    "name",
    ["../up.gguf", "a/../b.gguf", "/a.gguf", "C:\\a.gguf", "a\\b.gguf", "a//b.gguf", "", "aux.gguf", "a.", "b ", "x\0"],
)
def test_unsafe_file_names_are_refused(name):
    with pytest.raises(QwenDeskError):
        model_folders.repo_file(Path("models"), "owner/repo", name)


def test_repository_is_derived_from_the_path():
    models = PurePosixPath("/m")
    assert model_folders.repo_of(models, models / "o/r/BF16/a.gguf") == ("o/r", "BF16/a.gguf")
    assert model_folders.repo_of(models, models / "o/a.gguf") is None
    assert model_folders.repo_of(models, PurePosixPath("/elsewhere/o/r/a.gguf")) is None
