"""Rescans of the model folders: when the system reports a change, and only while the window is visible."""

import asyncio
import logging
from collections.abc import Callable, Sequence

from qwendesk.core.errors import FailureGuard
from qwendesk.hub.library import Library
from qwendesk.models.library_service import LibraryService

_logger = logging.getLogger(__name__)

# Makes the system report changes in these folders, and in no others, from now on.
#
# Returns False if the system can't report the changes of all of them.
Follow = Callable[[Sequence[str]], bool]

# Changes rarely come alone, so a scan waits this long after the first for others.
_GATHER_S = 1.0
# Seconds between scans while something changes, because the growth of a file is not reported. Also used if the system
# can't report the changes of every folder.
_SETTLE_S = 10.0
# How long closing waits for a running scan.
_SILENT_S = 5.0
# Seconds between scans while nothing changes: no system reports what other computers change on a network drive.
_CALM_S = 60.0


class LibraryWatch:
    """Keeps the library up to date. Methods are called on the event loop's thread."""

    def __init__(self, library: LibraryService, follow: Follow) -> None:
        self._library, self._follow = library, follow
        self._is_followed = True
        self._visible, self._changed, self._closing = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._visible.set()
        self._task: asyncio.Task[None] | None = None
        self._guard = FailureGuard(_logger, "The model folders couldn't be scanned")
        self._unsubscribe = library.state.subscribe_field(lambda state: state.library, self._on_library)

    def start(self) -> None:
        """Scan now, after each change, and at intervals until `close`."""
        if self._task is None:
            self._task = asyncio.create_task(self._watch())

    def note_change(self) -> None:
        """Scan soon, because something in a followed folder has changed."""
        self._changed.set()

    def set_visible(self, visible: bool) -> None:
        """Pause the scans while the window is hidden. Scan once when it is shown again."""
        if visible and not self._visible.is_set():
            self._changed.set()
            self._visible.set()
        elif not visible:
            self._visible.clear()

    async def close(self) -> None:
        """Stop, and wait for a running scan: no more than 5 s, because a disk may not answer."""
        self._unsubscribe()
        self._closing.set()
        self._changed.set()
        self._visible.set()
        if self._task is not None:
            await asyncio.wait([self._task], timeout=_SILENT_S)
            self._task.cancel()

    async def _watch(self) -> None:
        while not self._closing.is_set():
            self._changed.clear()
            is_calm, before = False, self._library.current
            with self._guard:
                is_calm = await self._library.refresh() == before and self._is_followed
            if await _wait_for(self._changed, _CALM_S if is_calm else _SETTLE_S):
                await _wait_for(self._closing, _GATHER_S)
            await self._visible.wait()

    def _on_library(self, library: Library) -> None:
        self._is_followed = self._follow(library.folders)


async def _wait_for(event: asyncio.Event, within_s: float) -> bool:
    try:
        return await asyncio.wait_for(event.wait(), within_s)
    except TimeoutError:
        return False
