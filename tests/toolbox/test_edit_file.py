"""A file is changed as the user has seen it, or not at all."""

import asyncio
import os
import stat
from pathlib import Path

import pytest

from qwendesk.core.chats import ChatSettings
from qwendesk.core.messages import ToolCall
from qwendesk.core.tool_context import CallContext
from qwendesk.toolbox.contained_files import overwrite_contained
from qwendesk.toolbox.file_tools import edit_file, planned
from qwendesk.toolbox.folder_access import FolderAccess
from qwendesk.toolbox.service import ToolService
from qwendesk.toolbox.tool import ToolError
from tests.toolbox.test_service import asked, request_of

END = ["\\ No newline at end of file"]
TEXT = "def step():\n    move(1/60)\n    draw()\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "loop.py").write_bytes(TEXT.encode())
    return tmp_path


def change(folder: Path, old: str, new: str, path: str = "loop.py") -> str:
    made = planned({"path": path, "old": old, "new": new}, FolderAccess([str(folder)]))
    overwrite_contained(made.root, made.path, made.after.encode())
    return made.shown


def test_one_passage_is_replaced_and_shown_as_a_difference(folder: Path) -> None:
    diff = change(folder, "move(1/60)", "move(dt)")
    assert (folder / "loop.py").read_bytes() == TEXT.replace("1/60", "dt").encode()
    assert (
        diff == "--- loop.py\n+++ loop.py\n@@ -1,3 +1,3 @@\n def step():\n-    move(1/60)\n+    move(dt)\n     draw()"
    )


def test_line_ends_and_permissions_stay(folder: Path) -> None:
    path = folder / "loop.py"
    path.write_bytes(TEXT.replace("\n", "\r\n").encode())
    path.chmod(0o750)
    before = stat.S_IMODE(path.stat().st_mode)
    change(folder, "    move(1/60)\n    draw()", "    draw()\n    move(dt)")
    assert path.read_bytes() == b"def step():\r\n    draw()\r\n    move(dt)\r\n"
    assert stat.S_IMODE(path.stat().st_mode) == before


def test_windows_line_ends_of_the_model_are_not_doubled(folder: Path) -> None:
    path = folder / "loop.py"
    path.write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n")
    assert "\r" not in change(folder, "two", "2\r\n3")
    assert path.read_bytes() == b"\xef\xbb\xbfone\r\n2\r\n3\r\n", "the byte order mark stays"


@pytest.mark.parametrize("n_kinds", [30, 101])
def test_long_file_with_lines_that_repeat_shows_the_change_alone(folder: Path, n_kinds: int) -> None:
    """Comparing all of it would take minutes, or show all of it as changed."""
    lines = [f"{number % n_kinds}\n" for number in range(300_000)]
    lines[200_000] = "old\n"
    (folder / "log.txt").write_text("".join(lines))
    diff = change(folder, "old", "new", "log.txt").splitlines()
    around = [f" {line.rstrip()}" for line in lines[199_997:200_004]]
    assert diff[2:] == ["@@ -199998,7 +199998,7 @@", *around[:3], "-old", "+new", *around[4:]]


def test_difference_shows_what_cannot_be_seen(folder: Path) -> None:
    (folder / "end.txt").write_bytes(b"one\n")
    assert "\\ No newline at end of file" in change(folder, "one\n", "one", "end.txt")
    assert "<U+202E>" in change(folder, "draw()", "draw(\u202e)")
    assert change(folder, "", "", "empty.txt") == "empty.txt: a new, empty file"


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such names")
def test_name_with_line_breaks_looks_like_no_other_change(folder: Path) -> None:
    diff = change(folder, "", "evil", "a.txt\n@@ -0,0 +1 @@\n+harmless")
    assert diff.splitlines()[1:] == ["+++ a.txt<U+000A>@@ -0,0 +1 @@<U+000A>+harmless", "@@ -0,0 +1 @@", "+evil", *END]


def test_new_files_are_made_where_nothing_is(folder: Path) -> None:
    assert "+hello" in change(folder, "", "hello", "new.txt")
    assert (folder / "new.txt").read_text() == "hello"
    for path in ("loop.py", "no/folder/x.txt", "../outside.txt", ".hidden"):
        with pytest.raises(ToolError):
            change(folder, "", "hello", path)


@pytest.mark.parametrize(("old", "new"), [("absent", "x"), ("\n", "x"), ("draw()", "draw()"), ("(", "[")])
def test_unclear_changes_are_refused(folder: Path, old: str, new: str) -> None:
    with pytest.raises(ToolError):
        change(folder, old, new)
    assert (folder / "loop.py").read_bytes() == TEXT.encode()


def test_other_encodings_are_not_damaged(folder: Path) -> None:
    (folder / "old.txt").write_bytes("Grüße".encode("latin-1"))
    with pytest.raises(ToolError, match="UTF-8"):
        change(folder, "Gr", "gr", "old.txt")
    assert (folder / "old.txt").read_bytes() == "Grüße".encode("latin-1")


async def test_file_that_is_read_only_stays_as_it_is(folder: Path) -> None:
    """Its folder would allow to put another file in its place."""
    (folder / "loop.py").chmod(0o444)
    try:
        record = await asked(ToolService([edit_file()]), *call(folder), "once")
        assert record.error == "loop.py can't be written: read-only file."
        assert (folder / "loop.py").read_bytes() == TEXT.encode()
    finally:
        (folder / "loop.py").chmod(0o644)


def call(folder: Path) -> tuple[ToolCall, CallContext]:
    settings = ChatSettings(tools=("edit_file",), tool_folders=(str(folder),))
    return ToolCall("edit_file", '{"path": "loop.py", "old": "draw()", "new": "draw(1)"}'), CallContext("a", settings)


async def test_user_sees_the_difference_and_decides(folder: Path) -> None:
    service = ToolService([edit_file()])
    seen = []
    service.waiting.subscribe(lambda request: seen.append(request.details) if request else None)

    refused = await asked(service, *call(folder), "refuse")
    assert "did not allow" in refused.error
    assert (folder / "loop.py").read_bytes() == TEXT.encode()

    allowed = await asked(service, *call(folder), "always")
    assert allowed.result == "loop.py was changed."
    assert "-    draw()\n+    draw(1)" in seen[0]
    assert b"draw(1)" in (folder / "loop.py").read_bytes()


async def test_nothing_else_than_what_was_seen_is_changed(folder: Path) -> None:
    service = ToolService([edit_file()])
    task = asyncio.ensure_future(service.run(*call(folder)))
    request = await request_of(service)
    (folder / "loop.py").write_text("# production\ndraw()\n")
    service.decide(request, "once")
    assert "changed meanwhile" in (await task).error
    assert (folder / "loop.py").read_text() == "# production\ndraw()\n"


async def test_allowed_in_this_chat_counts_for_the_next_change_too(folder: Path) -> None:
    service = ToolService([edit_file()])
    await asked(service, *call(folder), "chat")
    again = ToolCall("edit_file", '{"path": "loop.py", "old": "draw(1)", "new": "draw(2)"}')
    _, context = call(folder)
    assert not service.taints("edit_file")
    assert (await service.run(again, context)).result == "loop.py was changed."


async def test_call_that_cannot_work_asks_nobody(folder: Path) -> None:
    settings = ChatSettings(tools=("edit_file",), tool_folders=(str(folder),))
    absent = ToolCall("edit_file", '{"path": "loop.py", "old": "absent", "new": "x"}')
    record = await ToolService([edit_file()]).run(absent, CallContext("a", settings))
    assert "does not occur" in record.error
