"""That "Delete everything" leaves nothing, follows no link, and that what it could not delete is not forgotten."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from qwendesk.core import paths
from qwendesk.hub.access_tokens import SEARCH_HOST
from qwendesk.hub.model_folders import ModelFolders, write_folders
from qwendesk.settings import deletion
from qwendesk.settings.deletion import DeletionLeftover, delete_everything, note_deletion, note_file, take_leftovers
from tests.app.deletion_kit import everything, use_folders, write
from tests.links import skip_without_links


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return use_folders(tmp_path, monkeypatch)


def forget_nothing(_host: str) -> None:
    pass


def test_deletion_without_any_data_leaves_nothing(folders: Path) -> None:
    assert delete_everything(models=True, forget_token=forget_nothing) == ()
    assert not any(folder.exists() for folder in paths.own_folders())


def test_everything_but_kept_models_is_deleted(folders: Path) -> None:
    everything(folders)
    hosts: list[str] = []
    assert delete_everything(models=False, forget_token=hosts.append, hosts=("mirror.example",)) == ()
    assert {path.name for path in folders.rglob("*") if path.is_file()} == {"a.gguf"}
    assert {"huggingface.co", "mirror.example", SEARCH_HOST} <= set(hosts)


def test_everything_and_the_models_are_deleted(folders: Path) -> None:
    everything(folders)
    assert delete_everything(models=True, forget_token=forget_nothing) == ()
    assert not any(folder.exists() for folder in paths.own_folders())


def test_link_is_deleted_without_its_target(folders: Path) -> None:
    skip_without_links(folders)
    outside = write(folders / "outside" / "thesis.txt")
    (folders / "data").mkdir()
    (folders / "data" / "attachments").symlink_to(outside.parent, target_is_directory=True)
    assert delete_everything(models=True, forget_token=forget_nothing) == ()
    assert outside.exists()
    assert not (folders / "data").exists()


def test_kept_models_survive_in_nested_folders(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "config_folder", paths.data_folder)
    monkeypatch.setattr(paths, "log_folder", lambda: folders / "data" / "Logs")
    write(folders / "data" / "models" / "a.gguf")
    write(folders / "data" / "Logs" / "window.log")
    kinds = {stored.kind: stored.n_bytes for stored in deletion.find_stored_data()}
    assert kinds["logs"] == 5
    assert kinds["other"] == 0
    assert delete_everything(models=False, forget_token=forget_nothing) == ()
    assert [path.name for path in folders.rglob("*") if path.is_file()] == ["a.gguf"]


@pytest.fixture
def refusing(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Makes the system refuse to delete files of this name, as Windows does while they are open."""
    unlink = Path.unlink

    def refuse(name: str) -> None:
        def refused(self: Path, **options: bool) -> None:
            if self.name == name:
                raise PermissionError(13, "in use")
            unlink(self, **options)

        monkeypatch.setattr(Path, "unlink", refused)

    return refuse


def test_leftovers_are_reported_now_and_at_the_next_start(folders: Path, refusing: Callable[[str], None]) -> None:
    everything(folders)
    stuck = (DeletionLeftover(str(folders / "data" / "attachments" / "ab" / "abcd"), "in use"),)
    refusing("abcd")

    assert delete_everything(models=True, forget_token=forget_nothing) == stuck
    assert [path.name for path in (folders / "data").rglob("*") if path.is_file()] == ["abcd"], "all others are gone"
    assert take_leftovers() == stuck
    assert take_leftovers() == (), "it is said once"


def test_leftovers_that_are_gone_at_the_next_start_are_not_reported(
    folders: Path, refusing: Callable[[str], None]
) -> None:
    stuck = write(folders / "data" / "chats.db")
    refusing("chats.db")
    delete_everything(models=True, forget_token=forget_nothing)
    stuck.rename(folders / "elsewhere")
    assert take_leftovers() == ()


def test_killed_deletion_is_reported_at_the_next_start(folders: Path) -> None:
    everything(folders)
    note_deletion(models=False)
    told = {each.what for each in take_leftovers()}
    assert str(folders / "data" / "chats.db") in told
    assert str(folders / "data" / "models") not in told, "they were to stay"
    assert str(note_file()) not in told


def test_failing_keyring_does_not_stop_the_deletion(folders: Path) -> None:
    everything(folders)

    def fail(host: str) -> None:
        raise RuntimeError(f"no session for {host}")

    left = delete_everything(models=True, forget_token=fail, hosts=("mirror.example",))
    assert DeletionLeftover("mirror.example", "RuntimeError: no session for mirror.example") in left
    assert [path for path in folders.rglob("*") if path.is_file()] == [note_file()]
    assert take_leftovers() == left


@pytest.fixture
def drive(folders: Path) -> Path:
    """A larger drive to which the user moved folders of the app."""
    write(folders / "drive" / "photos" / "holiday.jpg")
    return folders / "drive"


@pytest.mark.parametrize("is_agreed", [False, True])
def test_a_linked_data_folder_is_emptied_only_when_the_user_agreed(folders: Path, drive: Path, is_agreed: bool) -> None:
    skip_without_links(folders)
    chats = write(drive / "qwendesk" / "chats.db")
    photos = write(folders / "pictures" / "cat.jpg")
    (drive / "qwendesk" / "attachments").symlink_to(photos.parent, target_is_directory=True)
    (folders / "data").symlink_to(drive / "qwendesk", target_is_directory=True)
    emptied = [each.link for each in deletion.find_linked_folders() if each.link == folders / "data"]

    assert len(emptied) == 1
    assert delete_everything(models=True, emptied=emptied if is_agreed else (), forget_token=forget_nothing) == ()

    assert chats.exists() is not is_agreed
    assert photos.exists(), "never through a second link"
    assert (drive / "photos" / "holiday.jpg").exists()
    assert not (folders / "data").is_symlink()


def test_a_linked_data_folder_keeps_its_link_while_models_stay_in_it(folders: Path, drive: Path) -> None:
    skip_without_links(folders)
    model, chats = write(drive / "qwendesk" / "models" / "a.gguf"), write(drive / "qwendesk" / "chats.db")
    (folders / "data").symlink_to(drive / "qwendesk", target_is_directory=True)
    emptied = (folders / "data",)
    assert delete_everything(models=False, emptied=emptied, forget_token=forget_nothing) == ()
    assert model.exists()
    assert not chats.exists()
    assert (paths.data_folder() / "models" / "a.gguf").exists()


def test_a_linked_settings_folder_is_emptied_with_its_link(folders: Path, drive: Path) -> None:
    skip_without_links(folders)
    settings = write(drive / "settings" / "settings.json")
    (folders / "config").symlink_to(drive / "settings", target_is_directory=True)
    assert delete_everything(models=True, emptied=(folders / "config",), forget_token=forget_nothing) == ()
    assert not settings.exists()
    assert list((drive / "settings").iterdir()) == []
    assert not (folders / "config").is_symlink()


def test_a_linked_folder_below_is_emptied_when_the_user_agreed(folders: Path, drive: Path) -> None:
    skip_without_links(folders)
    picture = write(drive / "attachments" / "ab" / "abcd.png")
    (folders / "data").mkdir()
    link = folders / "data" / "attachments"
    link.symlink_to(drive / "attachments", target_is_directory=True)
    assert delete_everything(models=True, emptied=(link,), forget_token=forget_nothing) == ()
    assert not picture.exists()
    assert not (folders / "data").exists()
    assert (drive / "photos" / "holiday.jpg").exists()


def test_a_model_folder_that_the_user_chose_stays_wherever_it_is(folders: Path, drive: Path) -> None:
    skip_without_links(folders)
    model, picture = write(drive / "my models" / "a.gguf"), write(drive / "ab" / "abcd.png")
    write_folders(ModelFolders((str(folders / "data" / "models"),), added=(str(drive / "my models"),)))
    link = folders / "data" / "attachments"
    link.parent.mkdir()
    link.symlink_to(drive, target_is_directory=True)
    assert delete_everything(models=True, emptied=(link,), forget_token=forget_nothing) == ()
    assert model.exists()
    assert not picture.exists()


def test_circular_links_do_not_stop_the_deletion(folders: Path) -> None:
    skip_without_links(folders)
    everything(folders)
    (folders / "data" / "engines-too").symlink_to(folders / "data" / "engines-too")
    link = folders / "data" / "logs"
    link.symlink_to(folders / "data", target_is_directory=True)
    assert delete_everything(models=True, emptied=(link,), forget_token=forget_nothing) == ()
    assert not any(folder.exists() for folder in paths.own_folders())


def test_a_folder_inside_a_linked_one_is_not_reached_through_it(
    folders: Path, drive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On Windows the folders of the cache and of the logs lie in that of the data."""
    skip_without_links(folders)
    monkeypatch.setattr(paths, "cache_folder", lambda: folders / "data" / "Cache")
    monkeypatch.setattr(paths, "log_folder", lambda: folders / "data" / "Logs")
    cached, log = write(drive / "qwendesk" / "Cache" / "a.png"), write(drive / "qwendesk" / "Logs" / "window.log")
    (folders / "data").symlink_to(drive / "qwendesk", target_is_directory=True)
    assert delete_everything(models=True, forget_token=forget_nothing) == ()
    assert cached.exists()
    assert log.exists()
    assert not (folders / "data").is_symlink()


def test_hard_link_elsewhere_keeps_its_content(folders: Path, drive: Path) -> None:
    photo = drive / "photos" / "holiday.jpg"
    (folders / "data" / "attachments").mkdir(parents=True)
    (folders / "data" / "attachments" / "abcd.jpg").hardlink_to(photo)
    assert delete_everything(models=True, forget_token=forget_nothing) == ()
    assert photo.read_bytes() == b"12345"


def test_a_drive_that_is_mounted_in_a_folder_is_not_emptied(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    photo = write(folders / "data" / "attachments" / "holiday.jpg")
    chats = write(folders / "data" / "chats.db")
    is_mount = os.path.ismount
    monkeypatch.setattr(os.path, "ismount", lambda path: path == photo.parent or is_mount(path))
    (left,) = delete_everything(models=True, forget_token=forget_nothing)
    assert left.what == str(photo.parent)
    assert photo.exists()
    assert not chats.exists()
