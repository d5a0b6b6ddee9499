"""The guard remembers a chat that crashed the app while it was opened, and only that one."""

import subprocess
import sys
from pathlib import Path

import pytest

from qwendesk.chat.reopen_guard import ReopenGuard

_DIES = """
import asyncio, os, sys
from pathlib import Path
from qwendesk.chat.reopen_guard import ReopenGuard
asyncio.run(ReopenGuard(Path(sys.argv[1])).begin(sys.argv[2]))
os._exit(9)
"""


def die_while_opening(folder: Path, chat_id: str) -> None:
    """Run a process that ends without a word while it opens a chat."""
    command = [sys.executable, "-c", _DIES, str(folder), chat_id]
    assert subprocess.run(command, cwd=Path(__file__).resolve().parents[2], check=False).returncode == 9


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


async def test_chat_that_was_being_opened_when_the_app_crashed_has_failed(tmp_path: Path) -> None:
    guard = ReopenGuard(tmp_path)
    assert not await guard.has_failed("chat")
    die_while_opening(tmp_path, "chat")
    assert await guard.has_failed("chat")
    assert await guard.has_failed("chat"), "asking does not forget it"
    assert not await guard.has_failed("another")


async def test_finished_opening_clears_the_failure(tmp_path: Path) -> None:
    die_while_opening(tmp_path, "chat")
    guard = ReopenGuard(tmp_path)
    await guard.finish("another")
    assert await guard.has_failed("chat")
    await guard.finish("chat")
    assert not await guard.has_failed("chat")
    await guard.begin("chat")
    await guard.finish("another")
    assert names(tmp_path) == [], "the user went on to another chat"


async def test_clean_exit_keeps_only_failures_of_earlier_runs(tmp_path: Path) -> None:
    guard = ReopenGuard(tmp_path)
    await guard.begin("chat")
    assert not await guard.has_failed("chat"), "this run still lives"
    guard.end()
    assert names(tmp_path) == []
    die_while_opening(tmp_path, "chat")
    ReopenGuard(tmp_path).end()
    assert await guard.has_failed("chat")


async def test_unusable_file_or_folder_is_logged_and_ignored(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "opening.json").write_bytes(b"\xff{")
    guard = ReopenGuard(tmp_path)
    assert not await guard.has_failed("chat")
    blocked = ReopenGuard(tmp_path / "opening.json")
    await blocked.begin("chat")
    await blocked.finish("chat")
    blocked.end()
    assert "could not be noted" in caplog.text
