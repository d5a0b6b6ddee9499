"""Tools see the folders that the user picked, and nothing else."""

import os
from pathlib import Path

import pytest

from qwendesk.toolbox.file_tools import MOST_LINES, list_files, read_file
from qwendesk.toolbox.folder_access import FolderAccess
from qwendesk.toolbox.tool import ToolError
from tests.chat.documents.test_document_reader import pdf
from tests.decoding import office_files
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


def test_several_folders_have_their_names(tmp_path: Path, folder: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "plan.txt").write_text("boat plan")
    both = FolderAccess([str(folder), str(other)])
    assert list_files(both, ".") == "game/\nother/"
    assert read_file(both, "other/plan.txt") == "boat plan"
    assert both.find("other/new.txt", must_exist=False) == other / "new.txt"


def test_folders_of_the_same_name_are_told_apart(tmp_path: Path) -> None:
    for parent, text in (("a", "first"), ("b", "second")):
        (tmp_path / parent / "notes").mkdir(parents=True)
        (tmp_path / parent / "notes/x.txt").write_text(text)
    both = FolderAccess([str(tmp_path / "a/notes"), str(tmp_path / "b/notes")])
    assert list_files(both, ".") == "notes/\nnotes (2)/"
    assert read_file(both, "notes/x.txt") == "first"
    assert read_file(both, "notes (2)/x.txt") == "second"
    assert both.shown(tmp_path / "b/notes/x.txt") == "notes (2)/x.txt"


def test_files_can_be_picked_by_themselves(tmp_path: Path, folder: Path) -> None:
    alone = FolderAccess([str(folder / "notes.txt")])
    assert list_files(alone, ".") == "notes.txt"
    assert read_file(alone, "notes.txt").startswith("buy milk")
    for name in ("src/loop.py", "../outside.txt", "notes.txt/../src/loop.py", str(folder / "src/loop.py")):
        with pytest.raises(ToolError):
            read_file(alone, name)
    with_folder = FolderAccess([str(folder / "src"), str(tmp_path / "outside.txt")])
    assert list_files(with_folder, ".") == "src/\noutside.txt"
    assert read_file(with_folder, "outside.txt") == "private"


def test_documents_are_read_by_page_sheet_and_line(access: FolderAccess, folder: Path) -> None:
    (folder / "paper.pdf").write_bytes(pdf("One", "Two"))
    office_files.docx(folder / "plan.docx", "First", "Second")
    office_files.xlsx(folder / "list.xlsx", {"Prices": [["Boat", 1]]})
    assert read_file(access, "paper.pdf") == "--- page 1 ---\nOne\n--- page 2 ---\nTwo"
    assert read_file(access, "paper.pdf", page=2) == "Two"
    assert read_file(access, "plan.docx", 2) == "Second\n(lines 2 to 2 of 2)"
    assert read_file(access, "list.xlsx") == "--- sheet 1 (Prices) ---\nBoat\t1"
    with pytest.raises(ToolError, match="2 pages"):
        read_file(access, "paper.pdf", page=3)
    (folder / "broken.pdf").write_bytes(b"nothing")
    with pytest.raises(ToolError, match="damaged"):
        read_file(access, "broken.pdf")
