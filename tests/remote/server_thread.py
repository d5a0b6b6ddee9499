"""A made-up server on a thread of its own, for what runs its own event loop."""

import asyncio
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.remote.made_up_server import MadeUpServer


class ServerOnThread(MadeUpServer):
    """A made-up server whose event loop runs on another thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop, replies: dict[str, Any], **how: Any) -> None:
        super().__init__(replies, **how)
        self._loop = loop

    def stop(self) -> None:
        """Stop serving. May be called twice, from another thread than the server's."""
        asyncio.run_coroutine_threadsafe(self.close(), self._loop).result()


@contextmanager
def served(
    replies: dict[str, Any], *, port: int = 0, tls: ssl.SSLContext | None = None, **how: Any
) -> Iterator["ServerOnThread"]:
    """Serve in the background until the block ends, or until `stop`."""
    loop = asyncio.new_event_loop()
    server = ServerOnThread(loop, replies, **how)
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(server.start(port, tls), loop).result()
        yield server
    finally:
        server.stop()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
