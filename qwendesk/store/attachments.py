"""Files that messages carry, kept under the hash of their bytes: the originals, once each, however often sent."""

import hashlib
import os
import re
import shutil
import sqlite3
import time
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path

import msgspec

from qwendesk.core.chat_tree import ChatTree
from qwendesk.core.files import replace
from qwendesk.core.messages import ImagePart, Part
from qwendesk.store.database import Database

_SUFFIX = re.compile(r"\.[a-z0-9]{1,8}")


class AttachmentStore:
    """The folder of attachments, and what the database knows of it."""

    def __init__(self, database: Database, folder: Path) -> None:
        self._database = database
        self.folder = folder

    def keep(self, image: ImagePart) -> Future[Path | None]:
        """Copies the file, unless it is here already. The future has its place here, or StoreFailure.

        It has None when the original is gone or is not what it was when it was sent: then nothing is kept.
        """

        def work(connection: sqlite3.Connection) -> Path | None:
            known = _place(connection, self.folder, image.sha256)
            if known is not None and known.is_file():
                return known
            original = Path(image.path)
            place = self.folder / _file_name(image.sha256, original)
            if not original.is_file() or not _copied(original, place, image.sha256):
                return None
            connection.execute(
                "INSERT OR REPLACE INTO attachments (sha256, file, size_bytes, created_s) VALUES (?, ?, ?, ?)",
                (image.sha256, place.relative_to(self.folder).as_posix(), place.stat().st_size, time.time()),
            )
            return place

        return self._database.write(work)

    def in_place(self, tree: ChatTree) -> ChatTree:
        """The same chat with each picture at its place here, where it has one. Blocks."""
        hashes = {image.sha256 for node in tree.nodes.values() for image in node.message.images}
        if not hashes:
            return tree

        def work(connection: sqlite3.Connection) -> dict[str, Path | None]:
            return {sha256: _place(connection, self.folder, sha256) for sha256 in hashes}

        places = self._database.read(work)
        nodes = {}
        for key, node in tree.nodes.items():
            parts = _moved(node.message.parts, places)
            message = (
                node.message if parts == node.message.parts else msgspec.structs.replace(node.message, parts=parts)
            )
            nodes[key] = node if message is node.message else msgspec.structs.replace(node, message=message)
        return ChatTree(nodes, tree.shown)

    def clean(self) -> Future[int]:
        """Removes the files that no message refers to any more, and what a crash left. The future has their number."""

        def work(connection: sqlite3.Connection) -> int:
            connection.execute(
                """DELETE FROM attachments WHERE NOT EXISTS
                (SELECT 1 FROM message_attachments WHERE message_attachments.sha256 = attachments.sha256)"""
            )
            wanted = {str(row[0]) for row in connection.execute("SELECT file FROM attachments")}
            unwanted = [
                path
                for path in self.folder.glob("*/*")
                if path.is_file() and path.relative_to(self.folder).as_posix() not in wanted
            ]
            for path in unwanted:
                path.unlink(missing_ok=True)
            return len(unwanted)

        return self._database.write(work)


def _moved(parts: Sequence[Part], places: dict[str, Path | None]) -> tuple[Part, ...]:
    moved: list[Part] = []
    for part in parts:
        place = places.get(part.sha256) if isinstance(part, ImagePart) else None
        moved.append(msgspec.structs.replace(part, path=str(place)) if isinstance(part, ImagePart) and place else part)
    return tuple(moved)


def _place(connection: sqlite3.Connection, folder: Path, sha256: str) -> Path | None:
    found = connection.execute("SELECT file FROM attachments WHERE sha256 = ?", (sha256,)).fetchone()
    return None if found is None else folder / str(found[0])


def _file_name(sha256: str, original: Path) -> str:
    """Two letters of the hash as folder, then the hash, with the ending that says what it is."""
    suffix = original.suffix.lower()
    return f"{sha256[:2]}/{sha256}{suffix if _SUFFIX.fullmatch(suffix) else ''}"


def _copied(original: Path, place: Path, sha256: str) -> bool:
    """Whether the file is at its place now, whole and on the disk. Raises OSError."""
    if not re.fullmatch(r"[0-9a-f]{64}", sha256):
        return False
    place.parent.mkdir(parents=True, exist_ok=True)
    fresh = place.with_name(place.name + ".new")
    try:
        with original.open("rb") as source, fresh.open("wb") as target:
            shutil.copyfileobj(source, target, 1 << 20)
            target.flush()
            os.fsync(target.fileno())
        with fresh.open("rb") as copied:
            same = hashlib.file_digest(copied, "sha256").hexdigest() == sha256
        if same:
            replace(fresh, place)
        return same
    finally:
        fresh.unlink(missing_ok=True)
