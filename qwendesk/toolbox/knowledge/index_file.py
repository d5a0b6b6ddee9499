"""The index of one folder: a SQLite file with the passages of its files and a full-text index of their words.

Files are replaced in transactions, so a process that is killed leaves an index that is right as far as it goes. Other
processes may use the same file. A damaged file is deleted and made again, because all in it can be read again.

Chinese, Japanese, Korean, Thai and their neighbours are written without spaces between words, so each of their
characters is a word of the index, and what was asked is a phrase of such words: any part of a sentence is found.
"""

import contextlib
import re
import sqlite3
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from threading import Lock
from typing import TypeVar

import msgspec

from qwendesk.core.folder_state import FileProblem
from qwendesk.core.permissions import make_folder, touch

# A passage ends with the line that reaches this length, about 200 tokens.
_CHARACTERS = 800
# A passage of this length ends at the next blank line.
_ENOUGH_CHARACTERS = 300
_MOST_LINES = 20


class Passage(msgspec.Struct, frozen=True):
    first: int
    """Number of its first line, from 1."""
    last: int
    text: str
    at: int = 0
    """Number of its page, slide, sheet or chapter, from 1; 0 if the file has none."""
    name: str = ""
    """Of its sheet."""


def passages(lines: Sequence[str], at: int = 0, name: str = "") -> Iterator[Passage]:
    """Yield the passages of a text or of a part of a document, without those that are blank."""
    texts: list[str] = []
    first, length = 1, 0
    for number, line in enumerate(lines, 1):
        is_over = length >= _ENOUGH_CHARACTERS and not line.strip()
        if texts and (is_over or length + len(line) > _CHARACTERS or len(texts) == _MOST_LINES):
            yield from _passage(first, texts, at, name)
            first, texts, length = number, [], 0
        if len(line) > _CHARACTERS:
            for piece in _line_pieces(line):
                yield from _passage(number, [piece], at, name)
            first = number + 1
            continue
        texts.append(line)
        length += len(line) + 1
    yield from _passage(first, texts, at, name)


def _passage(first: int, texts: list[str], at: int, name: str) -> Iterator[Passage]:
    text = "\n".join(texts)
    if text.strip():
        yield Passage(first, first + len(texts) - 1, text, at, name)


def _line_pieces(line: str) -> Iterator[str]:
    """Cut a long line between words, or anywhere if it has no spaces."""
    start = 0
    while start < len(line):
        end = start + _CHARACTERS
        space = line.rfind(" ", start + _CHARACTERS // 2, end) if end < len(line) else -1
        end = space + 1 if space > 0 else end
        yield line[start:end]
        start = end


# An index of another version is made again: so does any change of what `indexed` returns.
_VERSION = 2
_BUSY_S = 30.0
_SCHEMA = f"""
BEGIN;
CREATE TABLE files (
    id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, size_bytes INTEGER NOT NULL, mtime_ns INTEGER NOT NULL,
    n_characters INTEGER NOT NULL, problem TEXT NOT NULL
);
CREATE TABLE passages (
    id INTEGER PRIMARY KEY, file_id INTEGER NOT NULL, at INTEGER NOT NULL, name TEXT NOT NULL, first INTEGER NOT NULL,
    last INTEGER NOT NULL, text TEXT NOT NULL
);
CREATE INDEX passages_of_files ON passages (file_id);
CREATE VIRTUAL TABLE words USING fts5 (text, name, content = '', tokenize = "unicode61 remove_diacritics 2");
PRAGMA user_version = {_VERSION};
COMMIT;
"""
_FIND = """SELECT files.path, passages.id, passages.at, passages.name, passages.first, passages.last, passages.text,
    bm25(words, 1.0, 0.5) AS score
    FROM words JOIN passages ON passages.id = words.rowid JOIN files ON files.id = passages.file_id
    WHERE words MATCH ? ORDER BY score LIMIT ?"""
_NEIGHBOUR = """SELECT other.first, other.last, other.text FROM passages JOIN passages AS other
    ON other.id = passages.id + ? AND other.file_id = passages.file_id AND other.at = passages.at
    WHERE passages.id = ?"""
ResultT = TypeVar("ResultT")


class IndexedFile(msgspec.Struct, frozen=True):
    """The entry of one file in the index."""

    path: str
    size_bytes: int
    mtime_ns: int
    passages: tuple[Passage, ...] = ()
    problem: str = ""
    """Reason why it could not be read; a sentence."""


class Hit(msgspec.Struct, frozen=True):
    """A passage that was found."""

    path: str
    passage_id: int
    passage: Passage
    score: float
    """The smaller, the better; comparable within one index."""


class IndexFile:
    """May be used by several threads, one at a time."""

    def __init__(self, path: Path | None) -> None:
        """Open or make the index at `path`; None keeps it in memory. Raises OSError or sqlite3.Error."""
        self.path = path
        self._lock = Lock()
        self._connection = _open(path)

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def stop(self) -> None:
        """End a search that runs on another thread."""
        with contextlib.suppress(sqlite3.ProgrammingError):  # it is closed
            self._connection.interrupt()

    def stamps(self) -> dict[str, tuple[int, int]]:
        """Return size in bytes and modification time of the files that were read, by path."""
        return self._run(
            lambda connection: {
                path: (size_bytes, mtime_ns)
                for path, size_bytes, mtime_ns in connection.execute("SELECT path, size_bytes, mtime_ns FROM files")
            }
        )

    def counts(self) -> tuple[int, int, int]:
        """Return how many files have text, how many characters these are, and how many files could not be read."""
        query = "SELECT sum(n_characters > 0), sum(n_characters), sum(problem <> '') FROM files"
        row = self._run(lambda connection: connection.execute(query).fetchone())
        return row[0] or 0, row[1] or 0, row[2] or 0

    def problems(self, most: int) -> tuple[FileProblem, ...]:
        query = "SELECT path, problem FROM files WHERE problem <> '' ORDER BY path LIMIT ?"
        rows = self._run(lambda connection: connection.execute(query, (most,)).fetchall())
        return tuple(FileProblem(path, reason) for path, reason in rows)

    def replace(self, files: Sequence[IndexedFile]) -> None:
        """Put these files into the index in place of what it had of them."""

        def work(connection: sqlite3.Connection) -> None:
            for file in files:
                _remove(connection, file.path)
                _add(connection, file)

        self._change(work)

    def remove(self, paths: Iterable[str]) -> None:
        def work(connection: sqlite3.Connection) -> None:
            for path in paths:
                _remove(connection, path)

        self._change(work)

    def find(self, expression: str, most: int) -> list[Hit]:
        """Return the best passages for an expression of FTS5."""
        rows = self._run(lambda connection: connection.execute(_FIND, (expression, most)).fetchall())
        return [
            Hit(path, passage_id, Passage(first, last, text, at, name), score)
            for path, passage_id, at, name, first, last, text, score in rows
        ]

    def neighbour(self, passage_id: int, step: int) -> Passage | None:
        """Return the passage before (-1) or after (1) another one in the same text."""
        row = self._run(lambda connection: connection.execute(_NEIGHBOUR, (step, passage_id)).fetchone())
        return None if row is None else Passage(*row)

    def _run(self, work: Callable[[sqlite3.Connection], ResultT]) -> ResultT:
        with self._lock:
            return work(self._connection)

    def _change(self, work: Callable[[sqlite3.Connection], None]) -> None:
        with self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                work(self._connection)
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise


def delete_index(path: Path) -> None:
    """Delete the file of an index that no process uses. Raises OSError."""
    for ending in ("-wal", "-shm", ""):
        path.with_name(path.name + ending).unlink(missing_ok=True)


def _open(path: Path | None) -> sqlite3.Connection:
    if path is None:
        return _connected(":memory:")
    make_folder(path.parent)
    try:
        return _ready(path)
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.OperationalError) and "locked" in str(error):
            raise
        delete_index(path)
        return _ready(path)


def _ready(path: Path) -> sqlite3.Connection:
    touch(path)
    return _connected(str(path))


def _connected(place: str) -> sqlite3.Connection:
    """Return a connection to an index of this version. Raises sqlite3.DatabaseError if the file is none."""
    connection = sqlite3.connect(place, timeout=_BUSY_S, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version == 0:
            connection.executescript(_SCHEMA)
        elif version != _VERSION:
            raise sqlite3.DatabaseError(f"version {version}")
        connection.execute("SELECT rowid FROM words WHERE words MATCH 'a' LIMIT 1").fetchall()
        connection.execute("SELECT * FROM files JOIN passages ON passages.file_id = files.id LIMIT 1").fetchall()
    except BaseException:
        connection.close()
        raise
    return connection


def _remove(connection: sqlite3.Connection, path: str) -> None:
    row = connection.execute("SELECT id FROM files WHERE path = ?", (path,)).fetchone()
    if row is None:
        return
    rows = connection.execute("SELECT id, text, name FROM passages WHERE file_id = ?", row).fetchall()
    connection.executemany(
        "INSERT INTO words (words, rowid, text, name) VALUES ('delete', ?, ?, ?)",
        ((passage_id, indexed(text), _name(path, name)) for passage_id, text, name in rows),
    )
    connection.execute("DELETE FROM passages WHERE file_id = ?", row)
    connection.execute("DELETE FROM files WHERE id = ?", row)


def _add(connection: sqlite3.Connection, file: IndexedFile) -> None:
    n_characters = sum(len(passage.text) for passage in file.passages)
    added = connection.execute(
        "INSERT INTO files (path, size_bytes, mtime_ns, n_characters, problem) VALUES (?, ?, ?, ?, ?)",
        (file.path, file.size_bytes, file.mtime_ns, n_characters, file.problem),
    )
    for passage in file.passages:
        made = connection.execute(
            "INSERT INTO passages (file_id, at, name, first, last, text) VALUES (?, ?, ?, ?, ?, ?)",
            (added.lastrowid, passage.at, passage.name, passage.first, passage.last, passage.text),
        )
        connection.execute(
            "INSERT INTO words (rowid, text, name) VALUES (?, ?, ?)",
            (made.lastrowid, indexed(passage.text), _name(file.path, passage.name)),
        )


def _name(path: str, name: str) -> str:
    """Return the words by which a passage is found beside its own: those of its path and its sheet."""
    return indexed(f"{path} {name}")


_NO_SPACES = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u303f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
    r"\uf900-\ufaff\U00020000-\U0003ffff]"
)
_MOST_WORDS = 16
# A word of at least this many characters also finds longer words that begin with it.
_SHORTEST_BEGINNING = 3


def indexed(text: str) -> str:
    """Return a text as it is given to the index: characters of one width, those of languages without spaces apart."""
    return _NO_SPACES.sub(r" \g<0> ", unicodedata.normalize("NFKC", text))


def query_words(query: str) -> tuple[str, ...]:
    """Return the words of a query, without marks. In languages without spaces, a run of characters is one word."""
    plain = unicodedata.normalize("NFKC", query)
    return tuple(dict.fromkeys("".join(map(_or_space, plain)).split()))[:_MOST_WORDS]


def all_words(words: tuple[str, ...]) -> str:
    """Return the expression of FTS5 that finds what contains all `words`."""
    return " AND ".join(map(_phrase, words))


def any_word(words: tuple[str, ...]) -> str:
    """Return the expression of FTS5 that finds what contains one of `words`, or two characters of a long one."""
    return " OR ".join(_phrase(piece) for word in words for piece in _pieces(word))


def _or_space(character: str) -> str:
    is_part = character.isalnum() or character == "_" or unicodedata.category(character).startswith("M")
    return character if is_part else " "


def _phrase(word: str) -> str:
    is_beginning = len(word) >= _SHORTEST_BEGINNING and not _NO_SPACES.match(word[-1])
    return f'"{indexed(word)}"{"*" if is_beginning else ""}'


def _pieces(word: str) -> list[str]:
    """Return a word, or if it has no spaces, each two neighbouring characters of it."""
    if len(word) <= 2 or not all(map(_NO_SPACES.match, word)):
        return [word]
    return [word[at : at + 2] for at in range(len(word) - 1)]
