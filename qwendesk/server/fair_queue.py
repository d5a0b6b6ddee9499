"""FairQueue: clients take turns with the engine, which serves one request at a time."""

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from qwendesk.server.refusals import Refused


class FairQueue:
    """One request runs at a time. When it ends, the client that was served longest ago is next, with its oldest."""

    def __init__(self, most_waiting: int) -> None:
        self.most_waiting = most_waiting
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        """By client, the one to serve next first. No client has an empty queue."""
        self._is_taken = False

    @property
    def n_waiting(self) -> int:
        return sum(map(len, self._waiting.values()))

    @asynccontextmanager
    async def turn(self, client: str) -> AsyncIterator[None]:
        """Wait for the client's turn, which lasts until the context is left. Raise Refused if too many wait."""
        await self._take(client)
        try:
            yield
        finally:
            self._pass_on()

    async def _take(self, client: str) -> None:
        if not self._is_taken:
            self._is_taken = True
            return
        if self.n_waiting >= self.most_waiting:
            sentence = f"{self.most_waiting} requests are waiting already. Try again later."
            raise Refused(429, sentence, code="queue_full")
        place = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(client, deque()).append(place)
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self._pass_on()  # the turn came in the moment in which the client left
            else:
                self._leave(client, place)
            raise

    def _leave(self, client: str, place: "asyncio.Future[None]") -> None:
        queue = self._waiting.get(client, deque())
        if place in queue:
            queue.remove(place)
        if not queue:
            self._waiting.pop(client, None)

    def _pass_on(self) -> None:
        while self._waiting:
            client, queue = self._waiting.popitem(last=False)
            place = queue.popleft()
            if queue:
                self._waiting[client] = queue  # behind all others
            if not place.done():
                place.set_result(None)
                return
        self._is_taken = False
