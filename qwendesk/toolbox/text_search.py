"""Searching the text files of folders, with SQLite's full-text index in memory."""

import re
import sqlite3
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from threading import Lock

from qwendesk.core.units import MIB
from qwendesk.toolbox.folder_access import FolderAccess
from qwendesk.toolbox.folder_files import read_text, text_files
from qwendesk.toolbox.tool import ToolError

MOST_FILES = 5000
MOST_BYTES = 32 * MIB
"""Of all files together, because the index is in memory."""
MOST_PLACES = 20
_LINES = 20
"""A place is this many lines of a file, so that words on neighbouring lines are found together."""
_MOST_CHARACTERS = 300
"""Of a line that is shown."""


class TextSearch:
    """Reads a file again only when its size or time has changed. One search runs at a time."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._database: sqlite3.Connection | None = None
        self._known: dict[Path, tuple[int, int]] = {}
        """Size in bytes and modification time in nanoseconds of the files in the index."""

    def close(self) -> None:
        with self._lock:
            if self._database is not None:
                self._database.close()
            self._database, self._known = None, {}

    def find(self, access: FolderAccess, query: str) -> str:
        """Return the lines that match, each with file and line number, the best places first. Raise ToolError."""
        words = re.findall(r"\w+", query)
        if not words:
            raise ToolError("Give at least one word to look for.")
        with self._lock:
            files, is_all = self._files(access)
            database = self._updated(files)
            found = self._places(database, words, files)
        lines = [line for path, first, text in found for line in _matching(access.shown(path), first, text, words)]
        note = [] if is_all else [f"(There are too many files: only the first {len(files)} were searched.)"]
        if not lines:
            raise ToolError("\n".join([f"Nothing in {len(files)} files contains all of: {' '.join(words)}", *note]))
        return "\n".join([*lines[: 3 * MOST_PLACES], *note])

    def _files(self, access: FolderAccess) -> tuple[list[Path], bool]:
        """Return the files to search, and whether these are all."""
        files: list[Path] = []
        n_bytes = 0
        for path in text_files(access, MOST_FILES + 1):
            try:
                n_bytes += path.stat().st_size
                str(path).encode()
            except (OSError, UnicodeEncodeError):
                continue  # a file that is gone, or whose name is no text
            if len(files) == MOST_FILES or n_bytes > MOST_BYTES:
                return files, False
            files.append(path)
        return files, True

    def _updated(self, files: Sequence[Path]) -> sqlite3.Connection:
        """Return the index, with all `files` as they are now."""
        if self._database is None:
            # Searches run in threads of a pool, one at a time.
            self._database = sqlite3.connect(":memory:", check_same_thread=False)
            self._database.execute(
                "CREATE VIRTUAL TABLE places USING fts5 (text, path UNINDEXED, line UNINDEXED, "
                "tokenize = \"unicode61 remove_diacritics 2 tokenchars '_'\")"
            )
        for path in files:
            try:
                state = path.stat()
                stamp = (state.st_size, state.st_mtime_ns)
                if self._known.get(path) == stamp:
                    continue
                lines = read_text(path, path.name).splitlines()
            except (OSError, ToolError):
                continue  # a file that is gone, too large or no text is not searched
            self._database.execute("DELETE FROM places WHERE path = ?", (str(path),))
            self._database.executemany(
                "INSERT INTO places (text, path, line) VALUES (?, ?, ?)",
                (("\n".join(lines[at : at + _LINES]), str(path), at + 1) for at in range(0, len(lines), _LINES)),
            )
            self._known[path] = stamp
        return self._database

    def _places(
        self, database: sqlite3.Connection, words: Sequence[str], files: Sequence[Path]
    ) -> list[tuple[Path, int, str]]:
        """Return path, first line and text of the best places that are in `files`."""
        wanted = " AND ".join(f'"{word}"*' for word in words)
        allowed = set(files)
        rows = database.execute("SELECT path, line, text FROM places WHERE places MATCH ? ORDER BY rank", (wanted,))
        places = ((Path(path), line, text) for path, line, text in rows)
        found = []
        for place in places:
            if place[0] in allowed:
                found.append(place)
            if len(found) == MOST_PLACES:
                break
        return found


def _matching(name: str, first: int, text: str, words: Sequence[str]) -> list[str]:
    """Return up to three lines of a place that contain one of `words`."""
    wanted = [_folded(word) for word in words]
    lines = (
        f"{name}:{first + index}: {line.strip()[:_MOST_CHARACTERS]}"
        for index, line in enumerate(text.split("\n"))
        if any(word in _folded(line) for word in wanted)
    )
    return list(lines)[:3]


def _folded(text: str) -> str:
    """Return a text without case and accents, as the index has it."""
    return "".join(c for c in unicodedata.normalize("NFD", text) if not unicodedata.combining(c)).lower()
