"""FolderIndexes: the indexes of the folders of the open chat, where they lie, and how they are kept up to date."""

import asyncio
import contextlib
import hashlib
import logging
import os
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event, Lock
from typing import Final

import msgspec

from qwendesk.core import paths
from qwendesk.core.folder_state import FolderState, Phase
from qwendesk.core.number_format import show_count
from qwendesk.core.observed import Observed
from qwendesk.core.translation import tr
from qwendesk.core.units import GIB
from qwendesk.toolbox.knowledge.index_file import IndexFile, delete_index
from qwendesk.toolbox.knowledge.index_update import (
    DEFAULT_LIMITS,
    Cancelled,
    FolderUnreachable,
    IndexLimits,
    IndexProgress,
    update_index,
)

_logger = logging.getLogger(__name__)

# How long a search waits for folders that are still being read; then it searches what is there.
WAIT_S: Final = 25.0
# Files that could not be read and are listed by name.
_MOST_PROBLEMS: Final = 200
States = Mapping[str, FolderState]
# A picked folder, and whether its index is only in memory.
_Key = tuple[str, bool]


class SearchedFolder(msgspec.Struct, frozen=True):
    """A folder with its index, for a search."""

    folder: Path
    index: IndexFile
    state: FolderState


class _Job:
    """An update of one folder, on the thread of the indexes."""

    def __init__(self) -> None:
        self.cancelled = Event()
        self.is_outdated = False
        """Whether somebody asked for an update since it began."""
        self.done: asyncio.Future[None] | None = None


class FolderIndexes:
    """Methods are called on the event loop's thread. One folder is read at a time."""

    def __init__(
        self, place: Path | None = None, *, limits: IndexLimits = DEFAULT_LIMITS, wait_s: float | None = WAIT_S
    ) -> None:
        """`place` is the folder of the index files; by default it is in the app's cache.

        `wait_s` is how long `updated` waits; None waits until all is read.
        """
        self.states: Observed[States] = Observed({})
        """How far the picked folders are, by folder."""
        self._place = place or paths.cache_folder() / FOLDER
        self._limits, self._wait_s = limits, wait_s
        self._pool: ThreadPoolExecutor | None = None
        self._jobs: dict[_Key, _Job] = {}
        self._lock = Lock()
        """Guards `_open`, which the thread fills."""
        self._open: dict[_Key, IndexFile] = {}

    def attach(self, folders: Sequence[str], *, in_memory: bool = False) -> None:
        """Read these folders in the background, and let go of all others.

        With `in_memory` nothing of them is written to the disk.
        """
        wanted = {(folder, in_memory) for folder in folders}
        for key in (*self._jobs, *self._open):
            if key not in wanted:
                self._detach(key)
        self.states.set({folder: self.states.value.get(folder, FolderState(folder)) for folder in folders})
        for folder in folders:
            if (folder, in_memory) not in self._jobs:
                self._start((folder, in_memory))

    def read_again(self, folders: Sequence[str], *, in_memory: bool) -> None:
        """Look for changes in attached folders, once more in those that are being read."""
        for key in [(folder, in_memory) for folder in folders]:
            if key in self._jobs:
                self._jobs[key].is_outdated = True
            else:
                self._start(key)

    async def updated(self, folders: Sequence[str], *, in_memory: bool = False) -> list[SearchedFolder]:
        """Return the folders with their indexes after looking for changes. After a while, return those that are behind.

        A folder that has no index yet is left out; its state says why.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._wait_s):
                for folder in folders:
                    await self._bring_up_to_date((folder, in_memory))
        with self._lock:
            opened = [(folder, self._open.get((folder, in_memory))) for folder in folders]
        return [
            SearchedFolder(Path(folder), index, self.states.value.get(folder, FolderState(folder)))
            for folder, index in opened
            if index is not None
        ]

    async def close(self) -> None:
        """Stop reading and close all indexes."""
        jobs = [job.done for job in self._jobs.values() if job.done is not None]
        for key in (*self._jobs, *self._open):
            self._detach(key)
        if jobs:
            await asyncio.wait(jobs)
        if self._pool is not None:
            self._pool.shutdown()
        with self._lock:
            for index in self._open.values():
                index.close()
            self._open.clear()

    async def _bring_up_to_date(self, key: _Key) -> None:
        """Wait for the update that runs, which may have missed a change, and then for another one."""
        running = self._jobs.get(key)
        if running is not None and running.done is not None:
            await asyncio.wait((running.done,))
        job = self._jobs.get(key) or self._start(key)
        if job.done is not None:
            await asyncio.wait((job.done,))

    def _start(self, key: _Key) -> _Job:
        loop, job = asyncio.get_running_loop(), _Job()
        if self._pool is None:
            self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="folder-index")

        def show(state: FolderState) -> None:
            loop.call_soon_threadsafe(self._show, key, job, state)

        job.done = loop.run_in_executor(self._pool, self._work, key, job, show)
        job.done.add_done_callback(lambda _done: self._end(key, job))
        self._jobs[key] = job
        return job

    def _end(self, key: _Key, job: _Job) -> None:
        if self._jobs.get(key) is job:
            del self._jobs[key]
            if job.is_outdated:
                self._start(key)

    def _detach(self, key: _Key) -> None:
        """Cancel the update of a folder, and close its index once the thread is free."""
        job = self._jobs.pop(key, None)
        if job is not None:
            job.cancelled.set()
        if self._pool is not None and key in self._open:
            self._pool.submit(self._close_index, key)

    def _close_index(self, key: _Key) -> None:
        with self._lock:
            index = self._open.pop(key, None)
        if index is not None:
            index.close()

    def _show(self, key: _Key, job: _Job, state: FolderState) -> None:
        if not job.cancelled.is_set():
            self.states.set({**self.states.value, key[0]: state})

    # What follows runs on the thread.

    def _work(self, key: _Key, job: _Job, show: Callable[[FolderState], None]) -> None:
        folder, _ = key
        try:
            state = self._update(key, job, show)
        except Cancelled:
            return
        except FolderUnreachable as error:
            state = FolderState(folder, "failed", note=tr("The folder can't be reached: {0}.", error))
        except (OSError, sqlite3.Error) as error:
            _logger.exception("the index of a folder failed")
            reason = (error.strerror if isinstance(error, OSError) else "") or str(error)
            state = FolderState(folder, "failed", note=tr("The index can't be written: {0}.", reason))
        except Exception as error:  # nobody looks at the job's result, so the folder would seem to be read for ever
            _logger.exception("a folder could not be read")
            state = FolderState(folder, "failed", note=tr("The folder can't be read: {0}.", error))
        show(state)

    def _update(self, key: _Key, job: _Job, show: Callable[[FolderState], None]) -> FolderState:
        folder, in_memory = key
        if job.cancelled.is_set():
            raise Cancelled
        index = self._index(key)
        last_shown = -1

        def report(progress: IndexProgress) -> None:
            nonlocal last_shown
            percent = 100 * progress.done // progress.total if progress.total else 0
            if percent != last_shown:
                last_shown = percent
                n_files, _, _ = index.counts()
                phase: Phase = "reading" if progress.total else "listing"
                show(FolderState(folder, phase, percent / 100, progress.n_seen, progress.n_found, n_files))

        try:
            is_all = update_index(index, Path(folder), job.cancelled.is_set, report, self._limits)
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError) or index.path is None:
                raise
            _logger.warning("the index of a folder is damaged and is made again: %s", error)
            self._close_index(key)
            delete_index(index.path)
            index = self._index(key)
            is_all = update_index(index, Path(folder), job.cancelled.is_set, report, self._limits)
        if not in_memory:
            make_room(self._place)
        n_files, _, n_problems = index.counts()
        note = "" if is_all else tr("There is more in it than can be searched: {0} files are.", show_count(n_files))
        problems = index.problems(_MOST_PROBLEMS)
        return FolderState(folder, "ready", 1.0, n_files=n_files, problems=problems, n_problems=n_problems, note=note)

    def _index(self, key: _Key) -> IndexFile:
        with self._lock:
            index = self._open.get(key)
        if index is None:
            folder, in_memory = key
            index = IndexFile(None if in_memory else index_path(self._place, Path(folder)))
            with self._lock:
                self._open[key] = index
        return index


# Name of their folder in the app's cache.
FOLDER: Final = "folder-index"
BUDGET_BYTES: Final = 2 * GIB
_MOST_AGE_S: Final = 60 * 24 * 3600.0
# An index that was used this recently may be that of the open chat.
_IN_USE_S: Final = 3600.0
_ENDING = ".db"


def index_path(place: Path, folder: Path) -> Path:
    """Return the path of a folder's index, and note that it is used now. Blocks."""
    name = hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()[:32]
    path = place / f"{name}{_ENDING}"
    with contextlib.suppress(OSError):  # there is none yet
        os.utime(path)
    return path


def make_room(place: Path, budget_bytes: int = BUDGET_BYTES, now_s: float | None = None) -> None:
    """Delete indexes that were not used for two months, and the oldest ones while all together exceed the budget.

    An index that another process uses is kept where the system does not allow to delete it. Blocks.
    """
    now_s = time.time() if now_s is None else now_s
    found: list[tuple[float, int, Path]] = []
    with contextlib.suppress(OSError):
        for path in place.iterdir():
            if path.suffix == _ENDING:
                with contextlib.suppress(OSError):
                    state = path.stat()
                    found.append((state.st_mtime, state.st_size, path))
    left_bytes = sum(size_bytes for _, size_bytes, _ in found)
    for used_s, size_bytes, path in sorted(found):
        age_s = now_s - used_s
        if age_s > _MOST_AGE_S or (left_bytes > budget_bytes and age_s > _IN_USE_S):
            with contextlib.suppress(OSError):
                delete_index(path)
                left_bytes -= size_bytes
