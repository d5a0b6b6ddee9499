"""Storage of attached files: one copy for each distinct content, named by its SHA-256."""

import re
import sqlite3
import time
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path

import msgspec

from qwendesk.core.chat_tree import ChatTree
from qwendesk.core.files import file_stamp, replace
from qwendesk.core.messages import ImagePart
from qwendesk.store.attachment_cleaning import Cleaning, clean_attachments
from qwendesk.store.attachment_copies import AttachmentCopies
from qwendesk.store.database import Database, store_failures

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
        """Delete files that no message refers to; see attachment_cleaning.py. The future returns their numbers.

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
