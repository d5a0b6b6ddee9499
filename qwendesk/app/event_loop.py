"""Qt's event loop for coroutines."""

import sys
from collections.abc import AsyncGenerator
from typing import Any

import qasync


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
