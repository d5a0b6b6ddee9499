"""What the app keeps is for its user alone, whatever the umask; links and files of others are left alone."""

import logging
import os
import re
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from qwendesk.core import paths
from qwendesk.core.files import locked, write_whole
from qwendesk.core.permissions import create_own, make_folder, restrict_own_folders

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has access lists, which are inherited")


@pytest.fixture(params=[0o022, 0o002, 0o000], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user without files."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for variable, folder in {
        "XDG_DATA_HOME": "data",
        "XDG_CONFIG_HOME": "config",
        "XDG_CACHE_HOME": "cache",
        "XDG_STATE_HOME": "state",
    }.items():
        monkeypatch.setenv(variable, str(tmp_path / folder))
    return tmp_path


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def open_to_others(*folders: Path) -> list[str]:
    """Return folders and files, in these folders and they themselves, that other users may use."""
    found = [*folders, *(path for folder in folders for path in folder.rglob("*"))]
    return [f"{path} {mode(path):o}" for path in found if not path.is_symlink() and mode(path) & 0o077]


def test_files_in_the_apps_folders_are_private_to_the_user(home: Path, umask: int) -> None:
    for folder in paths.own_folders():
        write_whole(folder / "a" / "b" / "settings.json", b"{}")
        make_folder(folder / "made" / "below")
        create_own(folder / "part").close()
        with locked(folder / "chats.db"):
            assert open_to_others(folder) == []
    assert open_to_others(*paths.own_folders()) == []


def test_files_in_folders_chosen_by_the_user_follow_the_umask(home: Path, umask: int) -> None:
    write_whole(home / "Documents" / "exports" / "chat.md", b"# A chat")
    assert mode(home / "Documents" / "exports" / "chat.md") == 0o666 & ~umask
    assert mode(home / "Documents" / "exports") == 0o777 & ~umask


def old_installation(data: Path) -> Path:
    """Return the folder of data as an earlier version left it under the usual umask."""
    for name in ("chats.db", "chats.db-wal", "attachments/ab/abcd.png", "models/owner/repo/a.gguf", "engines/x/lib.so"):
        path = data / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"12345")
        path.chmod(0o664)
    for folder in (data, *(path for path in data.rglob("*") if path.is_dir())):
        folder.chmod(0o775)
    return data


def test_an_existing_installation_is_restricted(home: Path) -> None:
    data = old_installation(paths.data_folder())
    paths.log_folder().mkdir(parents=True)
    (paths.log_folder() / "window.log").touch(0o644)
    around = (mode(home), mode(home / "data"), mode(home / "state"))

    restrict_own_folders(with_contents=True)

    assert open_to_others(*(folder for folder in paths.own_folders() if folder.exists())) == []
    assert (mode(data), mode(data / "chats.db"), mode(data / "chats.db-wal")) == (0o700, 0o600, 0o600)
    assert (mode(home), mode(home / "data"), mode(home / "state")) == around, "only what belongs to the app"


def test_folders_can_be_restricted_without_their_files(home: Path) -> None:
    data = old_installation(paths.data_folder())
    restrict_own_folders(with_contents=False)
    assert (mode(data), mode(data / "chats.db")) == (0o700, 0o664)


def test_permissions_are_not_changed_through_links(home: Path, caplog: pytest.LogCaptureFixture) -> None:
    outside = old_installation(home / "drive")
    data = old_installation(paths.data_folder())
    (data / "linked").symlink_to(outside, target_is_directory=True)
    (data / "linked.db").symlink_to(outside / "chats.db")
    (data / "second.db").hardlink_to(outside / "chats.db-wal")
    paths.cache_folder().parent.mkdir(parents=True)
    paths.cache_folder().symlink_to(outside, target_is_directory=True)

    with caplog.at_level(logging.WARNING):
        restrict_own_folders(with_contents=True)

    assert {mode(path) for path in (outside, *outside.rglob("*"))} == {0o775, 0o664}
    assert f"{paths.cache_folder()} is a link to {outside}" in caplog.text
    assert mode(data / "chats.db") == 0o600


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() != 0, reason="only root can give a file away")
def test_files_of_other_users_are_not_changed(home: Path) -> None:
    data = old_installation(paths.data_folder())
    os.chown(data / "attachments", 65534, 65534)
    os.chown(data / "chats.db", 65534, 65534)
    restrict_own_folders(with_contents=True)
    assert (mode(data / "attachments"), mode(data / "chats.db")) == (0o775, 0o664)
    assert mode(data / "chats.db-wal") == 0o600


def test_deeply_nested_folders_are_handled(home: Path) -> None:
    make_folder(paths.data_folder())
    deep = paths.data_folder() / "/".join("d" * 300)
    deep.mkdir(parents=True)
    restrict_own_folders(with_contents=True)
    assert mode(paths.data_folder()) == 0o700


CREATING = re.compile(r"""\.(mkdir|makedirs|touch|write_text|write_bytes)[(,]|\bopen\(.*["'][wax]b?\+?["']|O_CREAT""")
DELETING = re.compile(r"rmtree[(,]")
ALLOWED = {
    "core/permissions.py": "decides",
    "core/links.py": "asks whether a link is in the way",
    "decoding/main.py": "its own standard output",
    "cli/terminal.py": "the null device",
    "chat/view/answer/highlight.py": "the null device",
    "app/window/demo_tour.py": "a picture where the user wants it",
    "chat/view/thread/pictures/picture_viewer.py": "a picture where the user wants it",
    "chat/view/answer/code_card.py": "code where the user wants it",
    "chat/exchange/pictures.py": "in a temporary folder, which is private",
    "server/setups/programs.py": "in a temporary folder, which is private",
    "server/clips.py": "in a temporary folder, which is private",
    "hub/model_import.py": "asks for the mode",
    "engines/packs.py": "asks for the mode; deletes what the same call has made",
    "engines/engine_updates.py": "deletes what it has downloaded itself",
    "toolbox/contained_files.py": "replaces and deletes files of the user, which keep their permissions",
    "engines/pack_file.py": "deletes what it has made itself",
}


def test_only_listed_modules_create_or_delete_files() -> None:
    """A new place of the code that does must ask core/permissions.py or core/links.py too, or be named above."""
    package = Path(paths.__file__).parent.parent
    found = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        for line in path.read_text(encoding="utf-8").splitlines()
        if (CREATING.search(line) or DELETING.search(line)) and "permissions import" not in line
    }
    assert found == ALLOWED.keys(), f"{sorted(found ^ ALLOWED.keys())}"
