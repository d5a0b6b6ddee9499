"""A made-up server on a thread of its own, for what runs its own event loop."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.remote.made_up_server import MadeUpServer


@contextmanager
def served(replies: dict[str, Any], **how: Any) -> Iterator[MadeUpServer]:
    """Serve in the background until the block ends."""
    server = MadeUpServer(replies, **how)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(server.start(), loop).result()
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(server.close(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
