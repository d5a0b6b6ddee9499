"""The EngineClient of the app: a model file goes to the engine worker, a model on a server to that server."""

from collections.abc import Callable

from qwendesk.core.failures import EngineExit, LoadFailure
from qwendesk.core.observed import Subscribers
from qwendesk.core.options import DecidedOptions
from qwendesk.core.served_model import is_served
from qwendesk.engine.answer_meter import AnswerMeter, MeteredStream
from qwendesk.engine.contract import AnswerStream, EngineClient
from qwendesk.engine.protocol import (
    Devices,
    Generate,
    LoadReport,
    Query,
    ReplyT_co,
    RequestFailed,
    Welcome,
)
from qwendesk.engine.state import EngineEvent


class RoutedClient:
    """Passes requests on to the client of the model that was loaded last, and its events back.

    While a model on a server is in use, no worker is left running: it would only take memory. Listing the devices of
    this PC starts one for a moment, and then only what it found is passed on.
    """

    def __init__(self, local: EngineClient, make_remote: Callable[[], EngineClient], answers: AnswerMeter) -> None:
        """`make_remote` is called with the first model on a server, because HTTP takes a moment to import.

        All answers are measured by `answers`.
        """
        self._local, self._make_remote, self._answers = local, make_remote, answers
        self._remote: EngineClient | None = None
        self._current = local
        self._subscribers = Subscribers[EngineEvent]()
        self._unsubscribe = [local.subscribe(self._on_local)]

    @property
    def _is_local(self) -> bool:
        return self._current is self._local

    def subscribe(self, callback: Callable[[EngineEvent], None]) -> Callable[[], None]:
        return self._subscribers.add(callback)

    async def start(self) -> Welcome | EngineExit:
        return await self._current.start()

    async def load(self, options: DecidedOptions) -> LoadReport | LoadFailure:
        if is_served(options.model):
            self._current = self._remote_client()
            await self._local.unload()
        elif not self._is_local:
            await self.unload()
        return await self._current.load(options)

    async def cancel_load(self) -> None:
        await self._current.cancel_load()

    async def unload(self) -> None:
        await self._current.unload()
        self._current = self._local

    async def probe(self) -> Devices | EngineExit:
        devices = await self._local.probe()
        if not self._is_local:
            await self._local.unload()
        return devices

    def generate(self, request: Generate) -> AnswerStream:
        return MeteredStream(self._current.generate(request), self._answers)

    async def ask(self, request: Query[ReplyT_co]) -> ReplyT_co | RequestFailed | EngineExit:
        return await self._current.ask(request)

    async def close(self) -> None:
        for unsubscribe in self._unsubscribe:
            unsubscribe()
        if self._remote is not None:
            await self._remote.close()
        await self._local.close()

    def _remote_client(self) -> EngineClient:
        if self._remote is None:
            self._remote = self._make_remote()
            self._unsubscribe.append(self._remote.subscribe(self._on_remote))
        return self._remote

    def _on_local(self, event: EngineEvent) -> None:
        if self._is_local or isinstance(event, Devices):
            self._subscribers.notify(event)

    def _on_remote(self, event: EngineEvent) -> None:
        if not self._is_local:
            self._subscribers.notify(event)
