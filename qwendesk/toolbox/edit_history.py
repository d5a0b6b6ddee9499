"""EditHistory: how files were before and after tools changed them, so that each change can be undone and redone.

Each change is a file of its own in the app's data, named by the id of its call. What the state of a change is follows
from the file that was changed alone, so it is right after a restart too, and after the user changed the file.
"""

import asyncio
import logging
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

import msgspec

from qwendesk.core import paths
from qwendesk.core.errors import QwenDeskError
from qwendesk.core.files import write_whole, written_order
from qwendesk.core.json_decoding import decode_json
from qwendesk.core.translation import tr
from qwendesk.core.units import MIB
from qwendesk.toolbox.contained_files import delete_contained, open_contained, overwrite_contained
from qwendesk.toolbox.shown_text import difference

# How the file is now: as the edit left it; as it was before; changed since; gone; a link or something else that is no
# ordinary file. Or what was before isn't kept any more.
EditState = Literal["applied", "undone", "changed", "missing", "replaced", "forgotten"]


class EditStatus(msgspec.Struct, frozen=True):
    state: EditState
    name: str = ""
    """The file as the user reads it; "" if forgotten."""
    path: str = ""
    is_new: bool = False
    """True if the edit made the file."""


_logger = logging.getLogger(__name__)

# Of all changes together; the oldest are forgotten first.
MOST_BYTES = 64 * MIB
_ID = re.compile(r"[0-9a-f]{32}")
_SUFFIX = ".json"


class FileEdit(msgspec.Struct, frozen=True):
    """A change of a file."""

    chat_id: str
    path: str
    """With all links resolved."""
    name: str
    """As the user reads it."""
    before: bytes | None
    """None if there was no file."""
    after: bytes
    folder: str = ""
    """The folder of the user that it is in, resolved. Edits of older versions have none; then it is the file's own."""

    @property
    def place(self) -> tuple[Path, Path]:
        """The folder and the file."""
        path = Path(self.path)
        return Path(self.folder) if self.folder else path.parent, path


class EditHistory:
    """Methods are called on the event loop's thread, `remember` and `drop` on any."""

    def __init__(self, folder: Path | None = None, most_bytes: int = MOST_BYTES) -> None:
        self._folder, self._most_bytes = folder or paths.data_folder() / "file-edits", most_bytes
        self._unsaved: dict[str, FileEdit] = {}
        """Those of incognito chats, which are never written."""

    def remember(self, call_id: str, edit: FileEdit, *, on_disk: bool) -> None:
        """Keep a change, before it is made. Blocks. An error is only logged: then the change can't be undone."""
        if not _ID.fullmatch(call_id):
            return
        if not on_disk:
            self._unsaved[call_id] = edit
            return
        try:
            write_whole(self._file(call_id), msgspec.json.encode(edit))
            self._delete_oldest()
        except OSError as error:
            _logger.warning("A change can't be undone later: %s", error)

    def drop(self, call_id: str) -> None:
        """Forget a change that was not made. Blocks."""
        self._unsaved.pop(call_id, None)
        if _ID.fullmatch(call_id):
            _delete(self._file(call_id))

    async def status(self, call_id: str) -> EditStatus:
        """Return how the file of a change is now."""
        return await asyncio.to_thread(self._status, call_id)

    async def undo(self, call_id: str) -> None:
        """Make the file as it was before the change. Raise QwenDeskError if it isn't as the change left it."""
        await asyncio.to_thread(self._switch, call_id, "applied")

    async def redo(self, call_id: str) -> None:
        """Make a change again that was undone. Raise QwenDeskError if the file isn't as it was before."""
        await asyncio.to_thread(self._switch, call_id, "undone")

    async def difference(self, call_id: str) -> str:
        """Return what has changed in the file since the change was made. Raise QwenDeskError if it can't be read."""
        return await asyncio.to_thread(self._difference, call_id)

    async def keep_only(self, chat_ids: Iterable[str]) -> None:
        """Forget the changes of all other chats, because those were deleted."""
        await asyncio.to_thread(self._keep_only, frozenset(chat_ids))

    def _file(self, call_id: str) -> Path:
        return self._folder / f"{call_id}{_SUFFIX}"

    def _edit(self, call_id: str) -> FileEdit | None:
        if call_id in self._unsaved:
            return self._unsaved[call_id]
        if not _ID.fullmatch(call_id):  # an imported chat may say anything
            return None
        try:
            return decode_json(self._file(call_id).read_bytes(), FileEdit)
        except (OSError, msgspec.DecodeError):
            return None

    def _status(self, call_id: str) -> EditStatus:
        edit = self._edit(call_id)
        if edit is None:
            return EditStatus("forgotten")
        return EditStatus(_state(edit), edit.name, edit.path, edit.before is None)

    def _switch(self, call_id: str, wanted: EditState) -> None:
        """Write the other content of a change, if the file is in the `wanted` state."""
        edit = self._edit(call_id)
        if edit is None or _state(edit) != wanted:
            title = tr("Not undone") if wanted == "applied" else tr("Not redone")
            raise QwenDeskError(title, tr("The file has changed since, so it was left as it is."))
        content = edit.before if wanted == "applied" else edit.after
        try:
            if content is None:
                delete_contained(*edit.place)
            else:
                overwrite_contained(*edit.place, content)
        except OSError as error:
            sentence = tr("{0} can't be written: {1}.", edit.name, error.strerror or error)
            raise QwenDeskError(tr("File not changed"), sentence) from error

    def _difference(self, call_id: str) -> str:
        edit = self._edit(call_id)
        try:
            if edit is None or _state(edit) not in ("applied", "undone", "changed"):
                raise FileNotFoundError
            now = _content(edit)
        except OSError as error:
            raise QwenDeskError(tr("No difference"), tr("The file can't be read.")) from error
        return difference(edit.after.decode(errors="replace"), now.decode(errors="replace"), edit.name)

    def _keep_only(self, chat_ids: frozenset[str]) -> None:
        for file in _files(self._folder):
            edit = self._edit(file.name.removesuffix(_SUFFIX))
            if edit is None or edit.chat_id not in chat_ids:
                _delete(file)

    def _delete_oldest(self) -> None:
        found = sorted(_stats(self._folder), key=lambda each: written_order(each[1].st_mtime_ns), reverse=True)
        total = 0
        for file, state in found:
            total += state.st_size
            if total > self._most_bytes:
                _delete(file)


def _content(edit: FileEdit) -> bytes:
    """Return what is in the file of a change now. Raise OSError."""
    with open_contained(*edit.place) as file:
        return file.readall()


def _state(edit: FileEdit) -> EditState:
    path = Path(edit.path)
    try:
        if path.resolve() != path or (path.exists() and not path.is_file()):
            return "replaced"
        size = path.stat().st_size
        if size not in (len(edit.after), len(edit.before or b"")):
            return "changed"
        content: bytes | None = _content(edit)
    except (FileNotFoundError, NotADirectoryError):
        content = None
    except (OSError, RuntimeError, ValueError):
        return "changed"
    if content == edit.after:
        return "applied"
    if content == edit.before:
        return "undone"
    return "missing" if content is None else "changed"


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob(f"*{_SUFFIX}*"))


def _stats(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    for file in _files(folder):
        try:
            yield file, file.stat()
        except OSError:
            continue


def _delete(file: Path) -> None:
    try:
        file.unlink(missing_ok=True)
    except OSError as error:
        _logger.warning("%s can't be deleted: %s", file, error.strerror)
