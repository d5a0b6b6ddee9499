"""The app is killed while it writes, at random moments: what was on the disk stays, and the file stays whole."""

import random
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from qwendesk.store.opening import FILE_NAME, open_store

ROOT = Path(__file__).resolve().parent.parent.parent


def killed(folder: Path, run: str, after: int) -> list[str]:
    """Lines of a writer that is killed once it has told of so many writes."""
    command = [sys.executable, "-m", "tests.store.writing", str(folder), run]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        told = [process.stdout.readline() for _ in range(after)]
        process.kill()
        told += process.stdout.readlines()
    assert all(told[:after]), "the writer ended by itself"
    # The last line may be cut off in the middle.
    return [line for line in told if line.endswith("\n")]


def check(folder: Path, told: dict[tuple[str, str], int]) -> None:
    store, report = open_store(folder)
    assert report is None
    try:
        trees = {chat: store.chats.load(chat) for chat, _node in told}
        for (chat, node), words in told.items():
            text = trees[chat].nodes[node].message.text.split()
            assert len(text) >= words
            assert text == [str(number) for number in range(len(text))]
    finally:
        store.close()
    with closing(sqlite3.connect(folder / FILE_NAME)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        connection.execute("INSERT INTO messages_fts (messages_fts, rank) VALUES ('integrity-check', 1)")


def kill_often(folder: Path, times: int) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    moments = random.Random(seed)
    told: dict[tuple[str, str], int] = {}
    for run in range(times):
        for line in killed(folder, str(run), moments.randrange(1, 60)):
            chat, node, words = line.split()
            told[chat, node] = max(told.get((chat, node), 0), int(words))
        check(folder, told)


@pytest.mark.parametrize("part", range(4))
def test_five_kills_lose_nothing_that_was_saved(tmp_path: Path, part: int) -> None:
    kill_often(tmp_path, 5)


@pytest.mark.soak
def test_two_hundred_kills_lose_nothing_that_was_saved(tmp_path: Path) -> None:
    kill_often(tmp_path, 200)
