"""Qt's event loop for coroutines, and when Python's garbage collector may examine all objects in it."""

import gc
import sys
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any

import qasync
from PySide6.QtCore import QObject, QTimer

if TYPE_CHECKING:
    from qwendesk.chat.service import ChatService


class EventLoop(qasync.QEventLoop):  # type: ignore[misc,unused-ignore]
    """Also ends async generators that are dropped before their end, as asyncio's own loops do.

    Reading an answer of a server stops at its last event, for example, and leaves HTTP's generators behind. Without
    this, Python would end them outside of any loop, which fails.
    """

    def run_forever(self) -> Any:
        before = sys.get_asyncgen_hooks()
        sys.set_asyncgen_hooks(finalizer=self._end_generator)
        try:
            return super().run_forever()
        finally:
            sys.set_asyncgen_hooks(*before)

    def _end_generator(self, generator: AsyncGenerator[Any, Any]) -> None:
        """Is called by Python on any thread, also after the loop was closed."""
        if not self.is_closed():
            self.call_soon_threadsafe(self.create_task, generator.aclose())


_EVERY_MS = 60_000
# As the third threshold of `gc`: far more young collections than one run of the app makes.
_NEVER = 1_000_000


def keep_collector_quick() -> None:
    """Exclude all current objects from garbage collection, and stop automatic collections of all generations.

    Call this once the window is built; collections are off until then.

    The current objects live until the app quits, and examining them takes 25 to 30 ms. After a long chat a collection
    of all generations takes 100 ms and more, which is visible while an answer streams. IdleCollector runs these.
    """
    gc.freeze()
    gc.enable()
    young, middle, _ = gc.get_threshold()
    gc.set_threshold(young, middle, _NEVER)


class IdleCollector(QObject):
    """Collects all generations once a minute unless the chat is busy."""

    def __init__(self, chat: "ChatService", parent: QObject) -> None:
        super().__init__(parent)
        self._chat = chat
        self._timer = QTimer(self, interval=_EVERY_MS)
        self._timer.timeout.connect(self.collect)
        self._timer.start()

    def collect(self) -> None:
        """Collect now unless busy."""
        if not self._chat.busy:
            gc.collect()
