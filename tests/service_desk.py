import asyncio
from collections.abc import AsyncIterator

import pytest_asyncio

from qwendesk.chat.context_fill import ContextGauge
from qwendesk.chat.service import ChatService
from qwendesk.engines.engine_service import EngineService
from tests.fakes.engine import FakeEngineClient, decide_by_default


class Desk:
    """The two services on a fake engine."""

    def __init__(self) -> None:
        self.client = FakeEngineClient()
        self.engine = EngineService(self.client, decide=decide_by_default)
        self.chat = ChatService(self.client, self.engine)
        self.gauge = ContextGauge(self.client, self.engine, self.chat)
        self.states = []
        self.events = []
        self.engine.observed.subscribe(self.states.append)
        self.chat.subscribe(self.events.append)

    async def until(self, condition) -> None:
        """Lets the loop run until `condition()` holds."""
        while not condition():  # noqa: ASYNC110 - what it looks at has no event
            await asyncio.sleep(0)


@pytest_asyncio.fixture
async def desk() -> AsyncIterator[Desk]:
    desk = Desk()
    yield desk
    await desk.engine.close()
