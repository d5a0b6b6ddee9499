"""What the app and the installer wrote: chats, the registry's values, and which engine a process has loaded."""

import re
import shutil
import sqlite3
import tempfile
from pathlib import Path
from typing import NamedTuple

_VALUE = re.compile(r"^\s+(.+?)\s{4}REG_\w+\s{4}(.*)$", re.MULTILINE)
_ENGINE = re.compile(r"/engines/([\w-]+)/llama\.dll$", re.MULTILINE)
_WORD = re.compile(r'"([^"]*)"|(\S+)')


class Answer(NamedTuple):
    """A finished answer in the user's chats."""

    chat: str
    text: str
    model: str


def finished_answers(database: Path) -> list[Answer]:
    """Return the answers that are complete, oldest first. A file that does not exist yet has none."""
    where = "role = 'assistant' AND stop_reason IS NOT NULL AND text <> ''"
    rows = _read(database, f"SELECT chat_id, text, model FROM messages WHERE {where} ORDER BY created_s")
    return [Answer(*row) for row in rows]


def question_count(database: Path) -> int:
    """Return how many questions the user has sent."""
    return len(_read(database, "SELECT chat_id FROM messages WHERE role = 'user'"))


def failure_count(database: Path) -> int:
    """Return how many questions got an error instead of an answer."""
    return len(_read(database, "SELECT chat_id FROM messages WHERE role = 'assistant' AND error <> ''"))


def has_attachment(database: Path) -> bool:
    """Return whether a question that is not sent yet has a file."""
    return any(pictures != "[]" for (pictures,) in _read(database, "SELECT pictures FROM drafts"))


def _read(database: Path, query: str) -> list[tuple[str, ...]]:
    """Return rows of a copy of the chats, so that the app finds its file as it left it."""
    if not database.is_file():
        return []
    with tempfile.TemporaryDirectory() as folder:
        for ending in ("", "-wal"):
            if (source := database.with_name(database.name + ending)).is_file():
                shutil.copy(source, folder)
        opened = sqlite3.connect(Path(folder, database.name))
        try:
            return opened.execute(query).fetchall()
        except sqlite3.DatabaseError:  # copied in the middle of a write: look again
            return []
        finally:
            opened.close()


def registry_value(said: str, name: str = "(Default)") -> str | None:
    """Return a value from what `reg query` printed; None if it is not there."""
    return next((match[2].strip() for match in _VALUE.finditer(said) if match[1] == name), None)


def command_for(template: str, file: str) -> list[str]:
    """Return the words of the command that Windows runs for a file, from a registry's line with "%1"."""
    return [(quoted or plain).replace("%1", file) for quoted, plain in _WORD.findall(template)]


def loaded_engine(maps: str) -> str:
    """Return the name of the engine that a process has loaded, from its /proc/<number>/maps; empty if none."""
    found = _ENGINE.search(maps)
    return found[1] if found else ""
