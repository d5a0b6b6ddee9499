"""Tools see the folders that the user picked, and nothing else."""

import os
import sys
from pathlib import Path

import pytest

from qwendesk.toolbox.folder_access import FolderAccess
from qwendesk.toolbox.folder_files import MOST_LINES, list_files, read_file
from qwendesk.toolbox.text_search import TextSearch
from qwendesk.toolbox.tool import ToolError
from tests.links import skip_without_links


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "game"
    (folder / "src").mkdir(parents=True)
    (folder / "notes.txt").write_text("buy milk\nfix the boat\n")
    (folder / "src/loop.py").write_text("".join(f"line {number}\n" for number in range(1, 1001)) + "step(dt)\n")
    (folder / ".env").write_text("KEY=1")
    (folder / "server.pem").write_text("secret")
    (folder / ".git").mkdir()
    (folder / ".git/config").write_text("url")
    (folder / "picture.png").write_bytes(b"\x89PNG\0\0")
    (tmp_path / "outside.txt").write_text("private")
    return folder


@pytest.fixture
def access(folder: Path) -> FolderAccess:
    return FolderAccess([str(folder)])


def test_listing_shows_no_hidden_and_secret_files(access: FolderAccess) -> None:
    assert list_files(access, ".") == "src/\nnotes.txt\npicture.png"
    assert list_files(access, "src") == "loop.py"


def test_paths_may_be_relative_named_or_absolute(access: FolderAccess, folder: Path) -> None:
    for name in ("notes.txt", "./notes.txt", "game/notes.txt", str(folder / "notes.txt"), "src/../notes.txt"):
        assert read_file(access, name) == "buy milk\nfix the boat"


@pytest.mark.parametrize(
    "name",
    [
        "../outside.txt",
        "src/../../outside.txt",
        "/etc/passwd",
        ".env",
        ".git/config",
        "server.pem",
        "\0",
        "a\0b",
    ],
)
def test_what_is_outside_hidden_or_secret_is_refused(access: FolderAccess, name: str) -> None:
    with pytest.raises(ToolError):
        read_file(access, name)
    with pytest.raises(ToolError):
        access.find(name, must_exist=False)


def test_links_out_of_the_folder_are_refused(access: FolderAccess, folder: Path, tmp_path: Path) -> None:
    skip_without_links(tmp_path)
    (folder / "link.txt").symlink_to(tmp_path / "outside.txt")
    (folder / "up").symlink_to(tmp_path)
    (folder / "loop").symlink_to(folder / "loop")
    (folder / "inside.txt").symlink_to(folder / "notes.txt")
    for name in ("link.txt", "up/outside.txt", "loop"):
        with pytest.raises(ToolError):
            read_file(access, name)
    assert read_file(access, "inside.txt").startswith("buy milk")
    assert list_files(access, ".").split() == ["src/", "inside.txt", "notes.txt", "picture.png"]
    with pytest.raises(ToolError):
        TextSearch().find(access, "private")


def test_long_files_are_read_in_parts(access: FolderAccess) -> None:
    whole = read_file(access, "src/loop.py")
    assert whole.splitlines()[-1] == f"(lines 1 to {MOST_LINES} of 1001)"
    assert read_file(access, "src/loop.py", 500, 501) == "line 500\nline 501\n(lines 500 to 501 of 1001)"
    assert read_file(access, "src/loop.py", 1001) == "step(dt)\n(lines 1001 to 1001 of 1001)"
    for first, last in ((1002, None), (5, 3), (0, 3)):
        with pytest.raises(ToolError):
            read_file(access, "src/loop.py", first, last)


@pytest.mark.parametrize("name", ["picture.png", "src", "nothing.txt"])
def test_what_is_no_text_is_refused_with_a_next_step(access: FolderAccess, name: str) -> None:
    with pytest.raises(ToolError):
        read_file(access, name)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes are files on Unix only")
def test_pipe_does_not_block(access: FolderAccess, folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    with pytest.raises(ToolError):
        read_file(access, "pipe")


def test_no_folder_is_said(folder: Path) -> None:
    with pytest.raises(ToolError, match="picked no folder"):
        list_files(FolderAccess([]), ".")


def test_long_lines_end_a_part_where_they_fit(access: FolderAccess, folder: Path) -> None:
    (folder / "wide.txt").write_text("".join(f"{number:04} {'x' * 95}\n" for number in range(1, 401)))
    text = read_file(access, "wide.txt", most_characters=5000)
    *lines, note = text.splitlines()
    assert note == f"(lines 1 to {len(lines)} of 400)"
    assert lines[-1].startswith(f"{len(lines):04}")
    assert len(text) <= 5000
    rest = read_file(access, "wide.txt", len(lines) + 1, most_characters=5000)
    assert rest.startswith(f"{len(lines) + 1:04}")
    (folder / "one.txt").write_text("y" * 9000)
    assert read_file(access, "one.txt", most_characters=5000).endswith("(lines 1 to 1 of 1)")


@pytest.mark.parametrize(
    "name",
    ["prod.env", "server.pem.bak", "passwords.md", "passwords (1).txt", "client_secret.json", "service-account.json"],
)
def test_names_of_secrets_are_refused(access: FolderAccess, folder: Path, name: str) -> None:
    (folder / name).write_text("boat key")
    with pytest.raises(ToolError):
        read_file(access, name)
    assert name not in list_files(access, ".")
    assert name not in TextSearch().find(access, "boat")


@pytest.mark.parametrize(
    "name", ["password_reset.py", "tokenizer.md", "environment.txt", "keyboard.txt", "secretary.md"]
)
def test_names_that_only_sound_like_secrets_are_read(access: FolderAccess, folder: Path, name: str) -> None:
    (folder / name).write_text("ordinary")
    assert read_file(access, name) == "ordinary"


def test_paths_with_a_server_or_a_drive_never_reach_the_disk(
    access: FolderAccess, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolved: list[Path] = []
    plain = Path.resolve
    monkeypatch.setattr(Path, "resolve", lambda path, *_: resolved.append(path) or plain(path))
    for name in ("//evil.example/share/secret", "/etc/hostname", "~/notes.txt", "\0"):
        with pytest.raises(ToolError):
            access.find(name)
    assert not [path for path in resolved if "evil" in str(path) or str(path).startswith("/etc")]


def test_accents_do_not_hide_a_line(access: FolderAccess, folder: Path) -> None:
    (folder / "notes.txt").write_text("Großer Ärger\n")
    assert TextSearch().find(access, "arger") == "notes.txt:1: Großer Ärger"


@pytest.mark.skipif(os.name == "nt" or sys.platform == "darwin", reason="names are Unicode there")
def test_file_whose_name_is_no_text_does_not_end_the_search(access: FolderAccess, folder: Path) -> None:
    (folder / os.fsdecode(b"caf\xe9.txt")).write_text("boat")
    assert TextSearch().find(access, "boat") == "notes.txt:2: fix the boat"


def test_search_names_file_and_line(access: FolderAccess) -> None:
    search = TextSearch()
    assert search.find(access, "BOAT fix") == "notes.txt:2: fix the boat"
    assert "src/loop.py:1001: step(dt)" in search.find(access, "step dt")
    for query in ("kayak", "", "!?", 'a" OR "b'):
        with pytest.raises(ToolError):
            search.find(access, query)
    search.close()


def test_search_sees_changed_new_and_deleted_files(access: FolderAccess, folder: Path) -> None:
    search = TextSearch()
    search.find(access, "boat")
    (folder / "notes.txt").write_text("sell the kayak today\n")
    (folder / "new.txt").write_text("kayak again\n")
    assert sorted(search.find(access, "kayak").splitlines()) == [
        "new.txt:1: kayak again",
        "notes.txt:1: sell the kayak today",
    ]
    (folder / "new.txt").unlink()
    assert search.find(access, "kayak") == "notes.txt:1: sell the kayak today"
    with pytest.raises(ToolError):
        search.find(access, "boat")


def test_several_folders_have_their_names(tmp_path: Path, folder: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "plan.txt").write_text("boat plan")
    both = FolderAccess([str(folder), str(other)])
    assert list_files(both, ".") == "game/\nother/"
    assert read_file(both, "other/plan.txt") == "boat plan"
    assert set(TextSearch().find(both, "boat").splitlines()) == {
        "game/notes.txt:2: fix the boat",
        "other/plan.txt:1: boat plan",
    }
    with pytest.raises(ToolError):
        TextSearch().find(FolderAccess([str(other)]), "milk")
    assert both.find("other/new.txt", must_exist=False) == other / "new.txt"
