"""Names and texts that no file can have, and names that few files have: a sentence comes, and every file is read."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from qwendesk.core.chats import ChatSettings
from qwendesk.core.tool_context import CallContext
from qwendesk.toolbox.edit_history import EditHistory
from qwendesk.toolbox.file_tools import edit_file, list_files, read_file
from qwendesk.toolbox.folder_access import FolderAccess
from qwendesk.toolbox.knowledge.folder_indexes import FolderIndexes
from qwendesk.toolbox.tool import ToolError
from tests.field.grid import SERVER, Kind, Way, case
from tests.toolbox.knowledge.test_search import context, indexes, search_folders  # noqa: F401

NAMES = Kind(
    "An odd name ends a tool with Python's words, or hides the file",
    {
        **dict.fromkeys(SERVER, "the server's clients run their tools themselves"),
        Way.MCP: "a server opens its files itself; QwenDesk opens none for it",
        Way.IMPORT: "an import opens the one file that the user picked",
    },
)
BYTES = "maestral#230, sabnzbd#2947, WSL#3564: names of old file systems"
not_windows = pytest.mark.skipif(os.name == "nt", reason="Windows refuses such names in other ways")


@case(NAMES, Way.WINDOW, report="found by attack", before="failed")
@not_windows
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"path": "n" * 300, "old": "", "new": "x"}, "too long"),
        ({"path": "n" * 300, "old": "x", "new": "y"}, "There is no"),
        ({"path": "\ud800", "old": "", "new": "x"}, "half of a character"),
        ({"path": "a\udcff.txt", "old": "", "new": "x"}, "half of a character"),
        ({"path": "a.txt", "old": "", "new": "x\udfff"}, "half of a character"),
        ({"path": "a.txt", "old": "\ud800", "new": ""}, "half of a character"),
    ],
)
def test_edits_of_names_and_texts_that_cannot_be_are_refused_with_a_sentence(
    arguments: dict[str, str], words: str, tmp_path: Path
) -> None:
    context = CallContext("chat", ChatSettings(tool_folders=(str(tmp_path),)))
    for history in (None, EditHistory(tmp_path / "history")):
        with pytest.raises(ToolError, match=words):
            asyncio.run(edit_file(history).run(arguments, context))  # type: ignore[arg-type]


@case(NAMES, Way.WINDOW, report="found by attack", before="held")
@not_windows
def test_a_file_with_the_longest_name_can_be_edited(tmp_path: Path) -> None:
    path = tmp_path / f"{'n' * 251}.txt"
    path.write_text("boat")
    context = CallContext("chat", ChatSettings(tool_folders=(str(tmp_path),)))
    asyncio.run(edit_file().run({"path": path.name, "old": "boat", "new": "ship"}, context))  # type: ignore[arg-type]
    assert path.read_text() == "ship"


ODD = {
    "Latin-1": (b"Gr\xf6\xdfe.txt", "Gr<U+DCF6><U+DCDF>e.txt"),
    "Windows-1251": (b"\xcf\xe8\xf1\xfc\xec\xee.txt", "<U+DCCF><U+DCE8><U+DCF1><U+DCFC><U+DCEC><U+DCEE>.txt"),
    "a line break": (b"plan\nof others.txt", "plan<U+000A>of others.txt"),
    "macOS' narrow blank": ("Note at 9.41\u202fAM.txt".encode(), "Note at 9.41<U+202F>AM.txt"),
    "a mark that turns around": ("\u202etxt.nalp.txt".encode(), "<U+202E>txt.nalp.txt"),
    "half of a tag": (b"a<U+00.txt", "a<U+00.txt"),
}
each_odd = pytest.mark.parametrize("name", ODD)


def written(folder: Path, name: str) -> str:
    """Write a file with one of the odd names, and return the name by which the model knows it."""
    raw, shown = ODD[name]
    folder.mkdir(exist_ok=True)
    try:
        (folder / os.fsdecode(raw)).write_text("Buy bread.")
    except (OSError, UnicodeDecodeError):
        pytest.skip("this file system has no such names")
    return shown


@case(NAMES, Way.WINDOW, Way.CLI, report=BYTES, before="failed")
@each_odd
def test_a_file_can_be_read_by_the_name_in_the_list(tmp_path: Path, name: str) -> None:
    shown = written(tmp_path, name)
    access = FolderAccess([str(tmp_path)])
    assert list_files(access, ".") == shown
    assert read_file(access, shown) == "Buy bread."


@case(NAMES, Way.WINDOW, Way.CLI, report=BYTES, before="failed")
@each_odd
async def test_a_search_finds_a_file_whatever_its_name(
    tmp_path: Path,
    indexes: FolderIndexes,  # noqa: F811
    name: str,
) -> None:
    shown = written(tmp_path / "docs", name)
    found = await search_folders(indexes, "bread", context(tmp_path / "docs"))
    assert f"[1] {shown}" in found
    assert "Buy bread." in found


@case(NAMES, Way.WINDOW, Way.CLI, report=BYTES, before="failed")
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has such names everywhere")
def test_a_folder_and_two_files_that_differ_in_such_bytes_are_told_apart(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"K\xf6ln")
    folder.mkdir()
    for raw in (b"\xcf.txt", b"\xcc.txt"):
        (folder / os.fsdecode(raw)).write_text(str(raw))
    access = FolderAccess([str(tmp_path)])
    assert list_files(access, ".") == "K<U+DCF6>ln/"
    assert list_files(access, "K<U+DCF6>ln").split() == ["<U+DCCC>.txt", "<U+DCCF>.txt"]
    assert read_file(access, "K<U+DCF6>ln/<U+DCCF>.txt") == str(b"\xcf.txt")
    assert read_file(FolderAccess([str(folder), str(tmp_path)]), "K<U+DCF6>ln/<U+DCCC>.txt") == str(b"\xcc.txt")


@case(NAMES, Way.WINDOW, report="found by writing the rule: a code for each character of a path", before="held")
@pytest.mark.parametrize(
    "path",
    [
        "<U+002E><U+002E>/outside/diary.txt", "<U+002E>env", "pass<U+0077>ords.txt", "a<U+0000>.txt",
        "<U+002F>etc<U+002F>passwd", "<U+D800>", "<U+10FFFF>",
    ],
)  # fmt: skip
def test_codes_lead_nowhere_that_the_name_itself_does_not(tmp_path: Path, path: str) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "diary.txt").write_text("private")
    (tmp_path / "picked").mkdir()
    for name in (".env", "passwords.txt"):
        (tmp_path / "picked" / name).write_text("private")
    with pytest.raises(ToolError, match=r"is not in a folder that the user picked|There is no"):
        read_file(FolderAccess([str(tmp_path / "picked")]), path)


@case(NAMES, Way.WINDOW, report="found by writing the rule: a name that has a code in letters", before="held")
@not_windows
def test_a_file_that_is_called_like_a_code_is_that_file(tmp_path: Path) -> None:
    (tmp_path / "<U+0041>.txt").write_text("the code")
    (tmp_path / "A.txt").write_text("the letter")
    assert read_file(FolderAccess([str(tmp_path)]), "<U+0041>.txt") == "the code"


@case(NAMES, Way.WINDOW, report=BYTES, before="failed")
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has such names everywhere")
def test_a_change_that_could_not_be_undone_is_refused_with_a_sentence(tmp_path: Path) -> None:
    shown = written(tmp_path / "docs", "Latin-1")
    context = CallContext("chat", ChatSettings(tool_folders=(str(tmp_path / "docs"),)))
    arguments = {"path": shown, "old": "bread", "new": "gold"}
    with pytest.raises(ToolError, match="its name has bytes that are no text"):
        asyncio.run(edit_file(EditHistory(tmp_path / "history")).run(arguments, context))  # type: ignore[arg-type]


@case(NAMES, Way.WINDOW, Way.CLI, report="found by attack", before="held")
@pytest.mark.parametrize("path", ["n" * 300, "n/" * 3000, "\u6f22" * 86, "\ud800", "a\0b"])
def test_names_that_cannot_be_are_refused_with_a_sentence(tmp_path: Path, path: str) -> None:
    access = FolderAccess([str(tmp_path)])
    for tool in (read_file, list_files):
        with pytest.raises(ToolError, match=r"(?s)\.$"):
            tool(access, path)
