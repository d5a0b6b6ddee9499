"""The library as the window and the commands use it."""

import os
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from qwendesk.core import files, paths
from qwendesk.core.errors import QwenDeskError
from qwendesk.hub import model_deletion
from qwendesk.hub.library import LibraryFile, scan
from qwendesk.hub.library_places import HostEnvironment
from qwendesk.hub.model_deletion import DeletedFiles, DeletionFailure, ModelDeletion
from qwendesk.hub.model_folders import ModelFolders, read_folders, write_folders
from qwendesk.hub.model_import import Imported, NotImported
from qwendesk.models.library_service import LibraryService
from tests.gguf_files import mmproj_values, model_values, tensor, write_model


@pytest.fixture
def ours(tmp_path, monkeypatch) -> Path:
    """The app's models folder, empty. The home folder has other apps' folders only as far as a test makes them."""
    monkeypatch.setattr(paths, "config_folder", lambda: tmp_path / "settings")
    monkeypatch.setattr(paths, "cache_folder", lambda: tmp_path / "cache")
    write_folders(ModelFolders((str(tmp_path / "ours"),)))
    (tmp_path / "ours").mkdir()
    return tmp_path / "ours"


@pytest.fixture
def models(ours, tmp_path):
    return LibraryService(HostEnvironment("linux", tmp_path / "home", {}))


def model(path: Path, name: str = "Made up") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return write_model(path, model_values(general__name=name), [tensor("token_embd.weight", 64)])


def mmproj(path: Path, name: str = "") -> Path:
    return write_model(path, mmproj_values(64, general__name=name))


async def test_refresh_announces_a_change_once(models, ours):
    events = []
    models.state.subscribe_field(lambda state: state.library, events.append)
    model(ours / "o" / "r" / "a.gguf")
    await models.refresh()
    await models.refresh()
    assert [[found.name for found in library.models] for library in events] == [["a"]]
    assert models.current == events[0]


async def test_disk_is_never_read_on_the_event_loops_thread(models, ours, monkeypatch):
    threads = []

    def watched_scan(*given):
        threads.append(threading.current_thread())
        return scan(*given)

    monkeypatch.setattr("qwendesk.models.library_service.scan", watched_scan)
    await models.refresh()
    assert threading.main_thread() not in threads
    assert threads


async def test_models_folder_cannot_be_inside_another_apps_folder(models, tmp_path):
    theirs = tmp_path / "home" / ".lmstudio" / "models"
    theirs.mkdir(parents=True)
    before = models.folders
    with pytest.raises(QwenDeskError, match="LM Studio"):
        await models.set_folders(ModelFolders((str(theirs / "mine"),)))
    assert models.folders == read_folders() == before


async def test_a_file_opened_from_anywhere_is_kept_with_its_vision_file_and_can_be_deleted(models, tmp_path):
    folder = tmp_path / "downloads"
    path, beside = model(folder / "a.gguf"), model(folder / "b.gguf", "Another")
    mmproj(folder / "mmproj-F16.gguf")

    await models.add_opened(str(path))

    assert [each.path for each in models.current.models] == [str(path)], "only what was opened"
    found = models.find(str(path))
    assert found.origin == "opened"
    assert found.mmproj is not None
    assert str(folder) in models.current.folders, "it is watched"
    again = LibraryService(HostEnvironment("linux", tmp_path / "home", {}))
    assert [each.path for each in (await again.refresh()).models] == [str(path)], "at the next start, too"
    deletion = models.deletion_of(found)
    assert isinstance(deletion, ModelDeletion)
    await models.delete(deletion, permanently=True)
    assert models.current.models == ()
    assert folder.is_dir()
    await models.add_opened(str(beside))
    assert models.folders.opened == (str(beside),), "what is gone is forgotten"
    await models.forget_opened(str(beside))
    assert models.current.models == ()
    assert beside.exists()


async def test_a_file_opened_in_a_folder_of_another_app_stays_theirs(models, ours, tmp_path):
    path = model(tmp_path / "home" / ".lmstudio" / "models" / "o" / "r" / "a.gguf")
    await models.include_other_apps(included=False)
    await models.add_opened(str(path))
    assert models.find(str(path)).origin == "lmstudio"
    assert not models.find(str(path)).writable
    known = model(ours / "known.gguf")
    await models.refresh()
    await models.add_opened(str(known))
    await models.add_opened(str(tmp_path / "missing.gguf"))
    assert models.folders.opened == (str(path),), "one that is in the library already, or isn't there, isn't added"


async def test_other_apps_files_are_found_in_place_and_not_deleted(models, tmp_path):
    path = model(tmp_path / "home" / ".lmstudio" / "models" / "o" / "r" / "a.gguf")
    await models.refresh()
    found = models.find("A")
    outcome = models.deletion_of(found)
    assert isinstance(outcome, DeletionFailure)
    assert "LM Studio" in outcome.sentence
    assert path.exists()


async def test_models_are_found_by_path_and_by_name(models, ours):
    first, second = model(ours / "o" / "r" / "Same.gguf"), model(ours / "o" / "s" / "Same.gguf")
    model(ours / "Other.gguf")
    await models.refresh()
    assert models.find("other").name == "Other"
    assert models.find(str(second)).path == str(second)
    with pytest.raises(QwenDeskError) as caught:
        models.find("same")
    assert str(first) in caught.value.sentence
    with pytest.raises(QwenDeskError, match="nothing-like-it"):
        models.find("nothing-like-it")


@pytest.mark.parametrize("permanently", [True, False])
async def test_deletion_removes_files_mmproj_and_empty_folder(models, ours, monkeypatch, permanently):
    trashed = []
    monkeypatch.setattr(model_deletion, "_to_trash", lambda path: (trashed.append(path.name), path.unlink())[0])
    path = model(ours / "o" / "r" / "a.gguf")
    pictures = mmproj(path.with_name("mmproj-F16.gguf"))
    n_bytes = path.stat().st_size + pictures.stat().st_size
    await models.refresh()
    deletion = models.deletion_of(models.find("a"))
    assert isinstance(deletion, ModelDeletion)
    assert deletion.n_bytes == n_bytes
    outcome = await models.delete(deletion, permanently=permanently)
    assert outcome == DeletedFiles(n_bytes, in_trash=not permanently)
    assert trashed == ([] if permanently else ["a.gguf", "mmproj-F16.gguf"])
    assert list(ours.iterdir()) == []
    assert models.current.models == ()


async def test_mmproj_used_by_another_model_is_kept(models, ours):
    path = model(ours / "o" / "r" / "a.gguf")
    model(path.with_name("b.gguf"))
    mmproj(path.with_name("mmproj-F16.gguf"))
    await models.refresh()
    deletion = models.deletion_of(models.find("a"))
    assert isinstance(deletion, ModelDeletion)
    await models.delete(deletion, permanently=True)
    assert sorted(file.name for file in path.parent.iterdir()) == ["b.gguf", "mmproj-F16.gguf"]


async def test_failing_trash_deletes_nothing_and_is_reported(models, ours, monkeypatch):
    def full(path: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(model_deletion, "_to_trash", full)
    path = model(ours / "a.gguf")
    await models.refresh()
    deletion = models.deletion_of(models.find("a"))
    assert isinstance(deletion, ModelDeletion)
    outcome = await models.delete(deletion, permanently=False)
    assert isinstance(outcome, DeletionFailure)
    assert outcome.trash_failed
    assert "No space left" in outcome.sentence
    assert path.exists()


async def test_deleting_a_loaded_file_on_windows_says_what_to_do(models, ours, monkeypatch):
    def refuse(path: Path, missing_ok: bool) -> None:
        raise PermissionError(13, "Access is denied", str(path))

    path = model(ours / "a.gguf")
    await models.refresh()
    deletion = models.deletion_of(models.find("a"))
    assert isinstance(deletion, ModelDeletion)
    with monkeypatch.context() as loaded:
        loaded.setattr(files, "_LOCKS_OPEN_FILES", True)
        loaded.setattr(Path, "unlink", refuse)
        outcome = model_deletion.delete(deletion, permanently=True)
    assert isinstance(outcome, DeletionFailure)
    assert outcome.sentence.startswith("a.gguf is in use, probably by the loaded model. Eject the model")
    assert not outcome.trash_failed
    assert path.exists()


class Trash:
    """send2trash as it is on Windows, where only one of its two ways asks what the trash can hold."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, refusal: OSError | None = None) -> None:
        self.taken: list[str] = []
        self._refusal = refusal
        monkeypatch.setattr(sys, "platform", "win32")
        for name in ("send2trash", "send2trash.win"):
            monkeypatch.setitem(sys.modules, name, SimpleNamespace(send2trash=self._destroy))
        monkeypatch.setitem(sys.modules, "send2trash.win.modern", SimpleNamespace(send2trash=self._take))

    def _destroy(self, path: Path) -> None:
        pytest.fail("this way destroys what is too large for the trash")

    def _take(self, path: Path) -> None:
        if self._refusal is not None:
            raise self._refusal
        self.taken.append(path.name)


def one_file(folder: Path) -> ModelDeletion:
    path = folder / "a.gguf"
    path.write_bytes(b"x")
    return ModelDeletion("a", (LibraryFile(str(path), 1, 0),), str(folder))


def test_windows_trash_is_asked_what_it_can_hold(tmp_path, monkeypatch):
    trash = Trash(monkeypatch)
    assert model_deletion.delete(one_file(tmp_path), permanently=False) == DeletedFiles(1, in_trash=True)
    assert trash.taken == ["a.gguf"]


def test_file_too_large_for_the_trash_is_kept(tmp_path, monkeypatch):
    Trash(monkeypatch, OSError(None, "Unspecified error"))
    outcome = model_deletion.delete(one_file(tmp_path), permanently=False)
    assert isinstance(outcome, DeletionFailure)
    assert outcome.trash_failed
    assert "too large for the trash" in outcome.sentence
    assert (tmp_path / "a.gguf").exists()


def test_missing_trash_library_deletes_nothing(tmp_path, monkeypatch):
    Trash(monkeypatch)
    monkeypatch.setitem(sys.modules, "send2trash.win.modern", None)
    outcome = model_deletion.delete(one_file(tmp_path), permanently=False)
    assert isinstance(outcome, DeletionFailure)
    assert "pywin32 is missing" in outcome.sentence
    assert (tmp_path / "a.gguf").exists()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere it would be this user's own trash")
def test_the_systems_trash_takes_a_file(tmp_path):
    """In the data folder of the test session, by the freedesktop rules."""
    path = tmp_path / "a model to be trashed.gguf"
    path.write_bytes(b"x")
    deletion = ModelDeletion("a", (LibraryFile(str(path), 1, 0),), str(tmp_path))
    assert model_deletion.delete(deletion, permanently=False) == DeletedFiles(1, in_trash=True)
    assert not path.exists()
    (trashed,) = Path(os.environ["XDG_DATA_HOME"]).rglob(path.name)
    assert trashed.read_bytes() == b"x"
    trashed.unlink()


async def test_import_goes_to_the_folder_of_its_repository_with_its_mmproj(models, ours, tmp_path):
    theirs = model(tmp_path / "home" / ".lmstudio" / "models" / "unsloth" / "Qwen-GGUF" / "Qwen-Q4_K_M.gguf")
    mmproj(theirs.with_name("mmproj-F16.gguf"))
    outcome = await models.import_model(theirs, "copy")
    assert isinstance(outcome, Imported)
    folder = ours / "unsloth" / "Qwen-GGUF"
    assert outcome.files == (str(folder / "Qwen-Q4_K_M.gguf"), str(folder / "mmproj-F16.gguf"))
    assert sorted(found.origin for found in models.current.models) == ["lmstudio", "ours"]


async def test_file_without_repository_is_moved_into_its_own_folder(models, ours, tmp_path):
    path = model(tmp_path / "Downloads" / "Some Model.gguf")
    model(path.with_name("another.gguf"))
    outcome = await models.import_model(path, "move")
    assert isinstance(outcome, Imported)
    assert outcome.files == (str(ours / "imported" / "Some Model" / "Some Model.gguf"),)
    assert [each.name for each in path.parent.iterdir()] == ["another.gguf"]


async def test_moved_model_leaves_a_shared_mmproj(models, ours, tmp_path):
    path = model(ours / "o" / "r" / "a.gguf")
    model(path.with_name("b.gguf"))
    mmproj(path.with_name("mmproj-F16.gguf"))
    outcome = await models.import_model(path, "move", tmp_path / "second")
    assert isinstance(outcome, Imported)
    assert outcome.files[0] == str(tmp_path / "second" / "o" / "r" / "a.gguf")
    assert sorted(each.name for each in path.parent.iterdir()) == ["b.gguf", "mmproj-F16.gguf"]


async def test_refused_imports_say_why(models, ours, tmp_path):
    lm_studio = tmp_path / "home" / ".lmstudio" / "models"
    theirs = model(lm_studio / "o" / "r" / "a.gguf")
    part = tmp_path / "Big-00001-of-00002.gguf"
    model(part)
    mine = model(ours / "o" / "r" / "mine.gguf")
    for source, how, folder, words in (
        (theirs, "move", None, "belongs to LM Studio"),
        (mine, "copy", lm_studio, "LM Studio"),
        (tmp_path / "gone.gguf", "copy", None, "no model file"),
        (part, "copy", None, "00002-of-00002"),
        (mine, "move", None, "already in this folder"),
    ):
        outcome = await models.import_model(source, how, folder)
        assert isinstance(outcome, NotImported)
        assert words in outcome.sentence
        assert source.exists() == (source.name != "gone.gguf")
