"""ReopenGuard detects a chat that made the app freeze or crash when it was opened at the start."""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import psutil

from qwendesk.core import paths
from qwendesk.core.files import write_whole
from qwendesk.core.json_decoding import decode_json
from qwendesk.core.processes import is_running

_logger = logging.getLogger(__name__)

# Called with the id of the chat that was open last. Returns whether to open it at the start.
MayReopen = Callable[[str], Awaitable[bool]]


async def always(_chat_id: str) -> bool:
    """Let any chat be reopened."""
    return True


async def never(_chat_id: str) -> bool:
    """Let no chat be reopened."""
    return False


class _Opening(msgspec.Struct, frozen=True):
    """The chat that a process is opening. If that process no longer runs, opening the chat has ended it."""

    chat_id: str
    pid: int
    started_s: float


class ReopenGuard:
    """Owns one small file, which exists while a chat is being opened.

    Methods that aren't coroutines block while they access it. No method raises: without the file, chats open as usual.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._file = (folder or paths.log_folder() / "crashes") / "opening.json"
        self._is_ours = False

    async def has_failed(self, chat_id: str) -> bool:
        """Return whether an earlier run ended while it opened this chat."""
        found = await asyncio.to_thread(self._read)
        return found is not None and found.chat_id == chat_id and not is_running(found.pid, found.started_s)

    async def begin(self, chat_id: str) -> None:
        """Record that this chat is about to be opened."""
        try:
            me = psutil.Process()
            opening = _Opening(chat_id, me.pid, me.create_time())
            await asyncio.to_thread(write_whole, self._file, msgspec.json.encode(opening))
            self._is_ours = True
        except OSError as error:
            _logger.warning("Which chat is being opened could not be noted: %s", error)

    async def finish(self, chat_id: str) -> None:
        """Record that this chat was opened and that the app still works."""
        found = await asyncio.to_thread(self._read)
        if found is not None and (found.chat_id == chat_id or found.pid == os.getpid()):
            await asyncio.to_thread(self._remove)

    def end(self) -> None:
        """Remove the record of this run, because the app is closing normally. Keep that of an earlier run."""
        if self._is_ours:
            self._remove()

    def _read(self) -> _Opening | None:
        try:
            return decode_json(self._file.read_bytes(), _Opening)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.DecodeError) as error:
            _logger.warning("%s is unusable: %s", self._file, error)
            return None

    def _remove(self) -> None:
        try:
            self._file.unlink(missing_ok=True)
            self._is_ours = False
        except OSError as error:
            _logger.warning("%s could not be deleted: %s", self._file, error)
