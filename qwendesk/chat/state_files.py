"""StateFiles: the files with the engine's states of recent chats, so that a chat continues at once in a new engine.

A state holds what the engine worked out for the text of a chat. It is only a shortcut: without it, the chat is
processed again. Files are written while the engine is idle, and before the model is unloaded.
"""

import asyncio
import hashlib
import logging
from collections.abc import Iterable
from pathlib import Path

from qwendesk.core import paths
from qwendesk.core.app_options import AppOptions
from qwendesk.core.files import written_order
from qwendesk.core.observed import Observed
from qwendesk.core.units import GIB
from qwendesk.engine.contract import EngineClient
from qwendesk.engine.protocol import SaveState, StateSaved

_logger = logging.getLogger(__name__)

# A file is written this long after the last answer, so that a conversation in full swing writes nothing.
_IDLE_S = 20.0
# While idle, a file is written again when the chat has grown by this many tokens and by an eighth: a long chat has
# gigabytes, and an older file still saves nearly all of the work.
_GROWN_TOKENS, _GROWN_SHARE = 1024, 8
_UNLOAD_WAIT_S = 5.0
# How long an unload and the end of the app wait for files to be written.
_CLOSE_WAIT_S = 3.0
_SUFFIX = ".state"


class StateFiles:
    """Owns the folder of state files. Methods are called on the event loop's thread, and never with incognito chats."""

    def __init__(
        self,
        client: EngineClient,
        app: Observed[AppOptions],
        folder: Path | None = None,
        *,
        idle_s: float = _IDLE_S,
    ) -> None:
        """The option `chat_states_gb` limits the disk space of all files together; 0 turns them off."""
        self._client, self._app = client, app
        self._folder = folder or paths.cache_folder() / "chat-states"
        self._idle_s = idle_s
        self._unsaved: dict[str, int] = {}
        """Tokens of the chats that have changed since their file was written."""
        self._saved: dict[str, int] = {}
        """Tokens of the chats in the files that were written by this run."""
        self._undeleted: set[str] = set()
        """Chats whose file could not be deleted yet, because a program had it open."""
        self._answering = 0
        self._timer: asyncio.TimerHandle | None = None
        self._saving = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None

    def file_of(self, chat_id: str) -> Path:
        """Return the path of a chat's file, which may not exist."""
        return self._folder / (hashlib.sha256(chat_id.encode()).hexdigest()[:32] + _SUFFIX)

    def usable_file(self, chat_id: str) -> str:
        """Return the file with a chat's state, which may not exist; "" if files are off."""
        return str(self.file_of(chat_id)) if self._budget_bytes else ""

    def begin_answer(self, chat_id: str) -> str:
        """Note that an answer begins in a chat. Return `usable_file`."""
        self._answering += 1
        self._stop_timer()
        return self.usable_file(chat_id)

    def end_answer(self, chat_id: str, n_tokens: int) -> None:
        """Note that the answer has ended. The chat's state is written later; `n_tokens` is its length, 0 if unknown."""
        self._answering -= 1
        if n_tokens:
            self._unsaved[chat_id] = n_tokens
        self._stop_timer()
        if self._unsaved and not self._answering:
            self._timer = asyncio.get_running_loop().call_later(self._idle_s, self._on_idle)

    def forget(self, chat_ids: Iterable[str]) -> None:
        """Delete the files of these chats, because messages of them were deleted."""
        for chat_id in chat_ids:
            self._unsaved.pop(chat_id, None)
            self._saved.pop(chat_id, None)
            self._undeleted.add(chat_id)
        self._delete_forgotten()

    async def tidy(self) -> None:
        """Delete what is over the budget, and what an earlier run left half-written. Called at start and end."""
        await asyncio.to_thread(_delete_oldest, self._folder, self._budget_bytes, with_unfinished=True)

    @property
    def _budget_bytes(self) -> int:
        return round(self._app.value.chat_states_gb * GIB)

    async def save_before_unload(self) -> None:
        """Write all states that are not in a file yet, unless an answer is running. Return in at most 5 s."""
        await self._save_within(_UNLOAD_WAIT_S)

    async def close(self) -> None:
        """Write what can be written in 3 s, and delete what should not stay."""
        self._stop_timer()
        await self._save_within(_CLOSE_WAIT_S)
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._delete_forgotten()
        await self.tidy()

    def _on_idle(self) -> None:
        self._timer = None
        self._task = asyncio.get_running_loop().create_task(self._save(self._grown()))

    def _grown(self) -> list[str]:
        return [chat_id for chat_id, tokens in self._unsaved.items() if _has_grown(tokens, self._saved.get(chat_id, 0))]

    async def _save_within(self, seconds: float) -> None:
        if self._answering or not self._unsaved:
            return
        try:
            async with asyncio.timeout(seconds):
                await self._save(list(self._unsaved))
        except TimeoutError:
            _logger.warning("Writing the states of chats took more than %g s, so some were left out", seconds)

    async def _save(self, chat_ids: Iterable[str]) -> None:
        async with self._saving:
            for chat_id in chat_ids:
                if self._answering or not self._budget_bytes:
                    return
                await self._save_one(chat_id)

    async def _save_one(self, chat_id: str) -> None:
        n_tokens, file = self._unsaved.get(chat_id, 0), self.file_of(chat_id)
        if not n_tokens:
            return
        request = SaveState(chat=chat_id, path=str(file), most_bytes=self._budget_bytes // 2)
        result = await self._client.ask(request)
        self._delete_forgotten()
        if chat_id not in self._unsaved:
            _delete(file)  # the chat was deleted while its state was written
            return
        if not isinstance(result, StateSaved):
            _logger.warning("The state of a chat was not saved: %s", result.sentence)
            return
        if self._unsaved[chat_id] == n_tokens:
            del self._unsaved[chat_id]
        if result.n_bytes:
            self._saved[chat_id] = n_tokens
        await asyncio.to_thread(_delete_oldest, self._folder, self._budget_bytes)

    def _delete_forgotten(self) -> None:
        """Delete the files of forgotten chats, also unfinished ones. A file that is still open is tried again later."""
        for chat_id in tuple(self._undeleted):
            file = self.file_of(chat_id)
            deleted = [_delete(path) for path in (file, *self._folder.glob(f"{file.name}.*"))]
            if all(deleted):
                self._undeleted.discard(chat_id)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _has_grown(n_tokens: int, n_saved: int) -> bool:
    return n_tokens < n_saved or n_tokens - n_saved >= max(_GROWN_TOKENS if n_saved else 0, n_saved // _GROWN_SHARE)


def _delete(file: Path) -> bool:
    """Return whether the file is gone."""
    try:
        file.unlink(missing_ok=True)
    except OSError as error:
        _logger.warning("The state of a chat could not be deleted: %s", error.strerror)
        return False
    return True


def _delete_oldest(folder: Path, budget_bytes: int, *, with_unfinished: bool = False) -> None:
    """Delete the files that were written longest ago until the rest fits into the budget. Blocks."""
    if with_unfinished:
        for path in folder.glob(f"*{_SUFFIX}.*"):
            _delete(path)
    try:
        found = [(path, path.stat()) for path in folder.glob(f"*{_SUFFIX}*")]
    except OSError:
        return
    total = sum(state.st_size for _, state in found)
    for path, state in sorted(found, key=lambda each: written_order(each[1].st_mtime_ns)):
        if total <= budget_bytes:
            return
        _delete(path)
        total -= state.st_size
