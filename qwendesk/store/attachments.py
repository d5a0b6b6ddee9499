"""Storage of attached files: one copy for each distinct content, named by its SHA-256, as long as it is used.

Reading from a network drive that doesn't answer can block for minutes or forever. No copy is therefore made inside a
transaction or on a thread that anything waits for. The threads are daemon threads, which don't keep the process alive.

A file with a row that no message refers to belonged to a deleted message and is deleted. A file without a row may
belong to lost messages, so it is only moved to a dated folder. It is kept there for 30 days, and moved back if its row
appears again, for example because a backup was restored. Only files with names that the app creates are touched, and
links are never followed.
"""

import hashlib
import logging
import os
import re
import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Future
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import msgspec

from qwendesk.core.conversation import ChatTree
from qwendesk.core.files import file_stamp, replace
from qwendesk.core.input_files import open_regular
from qwendesk.core.links import is_link
from qwendesk.core.messages import ImagePart
from qwendesk.core.permissions import create_own, make_folder
from qwendesk.store.database import Database, store_failures

# Folder beside the attachments, with one folder for each day on which files were moved there.
REMOVED = "attachments-removed"
KEEP_REMOVED = timedelta(days=30)
# A younger file is left alone, because its row may not have been written yet.
_SETTLED = timedelta(hours=1)

_HASH_CHARS = 64
_OWN_FOLDER = re.compile(r"[0-9a-f]{2}")
_OWN_FILE = re.compile(r"[0-9a-f]{64}(\.[a-z0-9]{1,8})?")
_PARTIAL_COPY = re.compile(rf"{_OWN_FILE.pattern}\.new")


class Cleaning(msgspec.Struct, frozen=True):
    """Numbers of files that were deleted, moved to the dated folder, and moved back from there."""

    deleted: int = 0
    moved: int = 0
    restored: int = 0


def clean_attachments(connection: sqlite3.Connection, folder: Path, now: datetime | None = None) -> Cleaning:
    """Clean `folder` inside the caller's transaction. Does nothing if `folder` is a link. Raises OSError."""
    if is_link(folder):
        return Cleaning()
    now = now or datetime.now(UTC)
    found = [(path.name[:_HASH_CHARS], path) for path in own_files(folder)]
    unreferenced = _forget_unreferenced(connection)
    wanted = {str(row[0]) for row in connection.execute("SELECT sha256 FROM attachments")}
    deleted = moved = 0
    for sha256, path in found:
        if sha256 in unreferenced:
            path.unlink(missing_ok=True)
            deleted += 1
        elif sha256 not in wanted and _is_older(path, now - _SETTLED):
            moved += _move_to_removed(path, folder.with_name(REMOVED) / f"{now:%Y-%m-%d}")
    deleted += sum(_delete_if(path, now - _SETTLED) for path in own_files(folder, _PARTIAL_COPY))
    restored = _restore(wanted - {sha256 for sha256, _ in found}, folder)
    _delete_expired(folder.with_name(REMOVED), (now - KEEP_REMOVED).date())
    return Cleaning(deleted, moved, restored)


def own_files(folder: Path, name: re.Pattern[str] = _OWN_FILE) -> Iterator[Path]:
    """Yield the regular files in the attachments folder whose names match `name`. Links are not followed."""
    if is_link(folder):
        return
    for below in _entries(folder, lambda entry: entry.is_dir(follow_symlinks=False)):
        if _OWN_FOLDER.fullmatch(below.name) and not is_link(below):
            for path in _entries(below, lambda entry: entry.is_file(follow_symlinks=False)):
                if name.fullmatch(path.name) and path.name.startswith(below.name):
                    yield path


def _entries(folder: Path, wanted: Callable[[os.DirEntry[str]], bool]) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            return sorted(Path(entry.path) for entry in entries if wanted(entry))
    except FileNotFoundError:
        return []


def _forget_unreferenced(connection: sqlite3.Connection) -> frozenset[str]:
    """Delete the rows of attachments that no message refers to, and return their hashes."""
    where = """NOT EXISTS
        (SELECT 1 FROM message_attachments WHERE message_attachments.sha256 = attachments.sha256)"""
    hashes = frozenset(str(row[0]) for row in connection.execute(f"SELECT sha256 FROM attachments WHERE {where}"))
    connection.execute(f"DELETE FROM attachments WHERE {where}")
    return hashes


def _is_older(path: Path, when: datetime) -> bool:
    return path.lstat().st_mtime < when.timestamp()


def _delete_if(path: Path, older_than: datetime) -> bool:
    if not _is_older(path, older_than):
        return False
    path.unlink(missing_ok=True)
    return True


def _move_to_removed(path: Path, target: Path) -> bool:
    """Move the file and return True; if a folder in the target is a link, do nothing and return False."""
    if is_link(target.parent) or is_link(target):
        return False
    make_folder(target)
    replace(path, target / path.name)
    return True


def _days(removed: Path) -> Iterator[tuple[date, Path]]:
    """Yield the dated folders, newest first."""
    if is_link(removed):
        return
    for folder in reversed(_entries(removed, lambda entry: entry.is_dir(follow_symlinks=False))):
        try:
            day = date.fromisoformat(folder.name)
        except ValueError:
            continue
        if not is_link(folder):
            yield day, folder


def _restore(missing: Collection[str], folder: Path) -> int:
    """Move back removed files with these hashes, newest day first, and return their number. Links are not followed."""
    restored = 0
    for _, day in _days(folder.with_name(REMOVED)) if missing else ():
        for source in _entries(day, lambda entry: entry.is_file(follow_symlinks=False)):
            target = folder / source.name[:2] / source.name
            is_wanted = _OWN_FILE.fullmatch(source.name) and source.name[:_HASH_CHARS] in missing
            if is_wanted and not is_link(target.parent) and not target.exists():
                make_folder(target.parent)
                replace(source, target)
                restored += 1
    return restored


def _delete_expired(removed: Path, before: date) -> None:
    for day, folder in _days(removed):
        if day < before:
            for path in _entries(folder, lambda entry: entry.is_file(follow_symlinks=False)):
                if _OWN_FILE.fullmatch(path.name):
                    path.unlink(missing_ok=True)
            if not any(folder.iterdir()):
                folder.rmdir()


_SHA256 = re.compile(r"[0-9a-f]{64}")
_SUFFIX = re.compile(r"\.[a-z0-9]{1,8}")
# A message's pictures are anywhere in it: in its own parts, and in results of tools. Only whole values are given to
# json_extract, which refuses a text that isn't JSON, in whatever order SQLite looks at the conditions.
_SELECT_UNCOPIED = """SELECT DISTINCT json_extract(messages.more, hash.path || '.path'), message_attachments.sha256
    FROM message_attachments
    LEFT JOIN attachments ON attachments.sha256 = message_attachments.sha256
    JOIN messages ON messages.id = message_attachments.message_id AND json_valid(messages.more)
    JOIN json_tree(messages.more) AS hash ON hash.key = 'sha256' AND hash.value = message_attachments.sha256
    WHERE attachments.sha256 IS NULL AND json_extract(messages.more, hash.path || '.path') <> ''"""


class AttachmentStore:
    """Owns the folder of attachments and its rows in the database."""

    def __init__(self, database: Database, folder: Path, *, keeps_all: bool = False) -> None:
        """With `keeps_all`, `clean` deletes nothing."""
        self._database = database
        self.folder = folder
        self._keeps_all = keeps_all
        self._copies = AttachmentCopies()

    @property
    def idle_s(self) -> float:
        """Seconds since any copy last made progress. The number keeps growing if all remaining copies hang."""
        return self._copies.idle_s

    def save_copy(self, image: ImagePart) -> Future[Path | None]:
        """Copy the file unless there is a copy. The future returns the path of the copy, or raises StoreFailure.

        It returns None if the original can't be read or has changed since it was sent; no copy is kept then. It may
        never be done, because a network drive may not answer. No other write waits for it.
        """
        return self._copies.start(image.sha256, lambda: self._save_copy(image))

    def _save_copy(self, image: ImagePart) -> Path | None:
        """Copy the file, then write its row: the writer's thread must not wait for the original's disk. Blocks."""
        if not _SHA256.fullmatch(image.sha256):
            return None
        known = self._database.read(lambda connection: _copy_path(connection, self.folder, image.sha256))
        if known is not None and known.is_file():
            return known
        place = self.folder / _file_name(image.sha256, Path(image.path))
        fresh = place.with_name(place.name + ".new")
        try:
            with store_failures():
                is_whole = self._copies.copy(image, fresh)
            if not is_whole:
                return None

            def work(connection: sqlite3.Connection) -> None:
                replace(fresh, place)
                connection.execute(
                    "INSERT OR REPLACE INTO attachments (sha256, file, size_bytes, created_s) VALUES (?, ?, ?, ?)",
                    (image.sha256, place.relative_to(self.folder).as_posix(), place.stat().st_size, time.time()),
                )

            self._database.write(work).result()
            return place
        finally:
            with suppress(OSError):
                fresh.unlink(missing_ok=True)

    def find_uncopied(self) -> tuple[ImagePart, ...]:
        """Return the images in messages that have not been copied, with the paths of the originals. Blocks.

        A message is saved without waiting for its copies, so the app may have been killed before they were made.
        """
        rows = self._database.read(lambda connection: connection.execute(_SELECT_UNCOPIED).fetchall())
        return tuple(ImagePart(str(path), str(sha256)) for path, sha256 in rows)

    def with_copies(self, tree: ChatTree) -> ChatTree:
        """Return the chat with the paths of its images replaced by those of the copies. Blocks."""
        hashes = {image.sha256 for node in tree.nodes.values() for image in node.message.all_images}
        if not hashes:
            return tree

        def work(connection: sqlite3.Connection) -> dict[str, Path | None]:
            return {sha256: _copy_path(connection, self.folder, sha256) for sha256 in hashes}

        places = self._database.read(work)

        def with_copy(image: ImagePart) -> ImagePart:
            place = places.get(image.sha256)
            return image if place is None else _with_copy(image, place)

        nodes = {}
        for key, node in tree.nodes.items():
            message = node.message.with_images(with_copy)
            nodes[key] = node if message == node.message else msgspec.structs.replace(node, message=message)
        return ChatTree(nodes, tree.shown)

    def clean(self) -> Future[Cleaning]:
        """Delete files that no message refers to. The future returns their numbers.

        Nothing is deleted with `keeps_all`, for sessions that created or recovered the database: rows may be missing.
        """
        if self._keeps_all:
            return self._database.write(lambda _connection: Cleaning())
        return self._database.write(lambda connection: clean_attachments(connection, self.folder))


def _with_copy(part: ImagePart, place: Path) -> ImagePart:
    """Return the part with the path of its copy. The hash isn't checked, because only the app writes to this folder."""
    try:
        stamp = file_stamp(place.stat())
    except OSError:
        stamp = None
    return msgspec.structs.replace(part, path=str(place), file_stamp=stamp)


def _copy_path(connection: sqlite3.Connection, folder: Path, sha256: str) -> Path | None:
    found = connection.execute("SELECT file FROM attachments WHERE sha256 = ?", (sha256,)).fetchone()
    if found is None:
        return None
    place = folder / str(found[0])
    # If the file name in the row is damaged, the file is found by its hash, with which its name begins.
    others = () if place.is_file() else (folder / sha256[:2]).glob(f"{sha256}*")
    return next((other for other in others if other.suffix != ".new"), place)


def _file_name(sha256: str, original: Path) -> str:
    """Return the path in the folder: a folder of two digits of the hash, and the hash with the original's ending."""
    suffix = original.suffix.lower()
    return f"{sha256[:2]}/{sha256}{suffix if _SUFFIX.fullmatch(suffix) else ''}"


_logger = logging.getLogger(__name__)


class AttachmentCopies:
    """Runs copies and knows those in progress by the hash of the file. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: dict[str, Future[Path | None]] = {}
        self._moved_s = time.monotonic()

    @property
    def idle_s(self) -> float:
        """Seconds since any copy last made progress. The number keeps growing if all remaining copies hang."""
        return time.monotonic() - self._moved_s

    def start(self, sha256: str, work: Callable[[], Path | None]) -> Future[Path | None]:
        """Run `work`, which may call `copy`, on its own thread, and return a future of its result.

        If work for the same hash is already running, return the future of that work instead.
        """
        with self._lock:
            running = self._running.get(sha256)
            if running is not None:
                return running
            done = self._running[sha256] = Future()
            # A future that is marked as running can't be cancelled by one of several callers.
            done.set_running_or_notify_cancel()
            self._moved_s = time.monotonic()
        threading.Thread(target=self._run, args=(sha256, work, done), name="attachment-copy", daemon=True).start()
        return done

    def copy(self, image: ImagePart, target: Path) -> bool:
        """Copy the image's file to `target`, and return whether it is still the file that was hashed.

        Blocks, perhaps forever. If the file can't be read, log the error and return False. Raises OSError if `target`
        can't be written.
        """
        try:
            source = open_regular(Path(image.path))
        except OSError as error:
            _log_unread(error)
            return False
        digest = hashlib.sha256() if image.file_stamp is None else None
        with source:
            stamp_before = file_stamp(os.fstat(source.fileno()))
            make_folder(target.parent)
            with create_own(target) as file:
                while True:
                    try:
                        piece = source.read(1 << 20)
                    except OSError as error:
                        _log_unread(error)
                        return False
                    if not piece:
                        break
                    file.write(piece)
                    if digest is not None:
                        digest.update(piece)
                    self._moved_s = time.monotonic()
                file.flush()
                os.fsync(file.fileno())
            stamp_after = file_stamp(os.fstat(source.fileno()))
        if digest is not None:
            return digest.hexdigest() == image.sha256
        return stamp_before == stamp_after == image.file_stamp

    def _run(self, sha256: str, work: Callable[[], Path | None], done: Future[Path | None]) -> None:
        place: Path | None = None
        failure: BaseException | None = None
        try:
            place = work()
        except BaseException as error:  # noqa: BLE001 - it goes to whoever waits for the copy
            failure = error
        with self._lock:
            del self._running[sha256]
        if failure is None:
            done.set_result(place)
        else:
            done.set_exception(failure)


def _log_unread(error: OSError) -> None:
    """Log the error without the file's name, which may be private."""
    _logger.warning("An attached file could not be read: %s", error.strerror)
