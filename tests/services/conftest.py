import asyncio
from collections.abc import AsyncIterator

import pytest_asyncio

from qwendesk.services.chat.service import ChatService
from qwendesk.services.engine.service import EngineService
from tests.fakes.engine import FakeEngineClient


class Desk:
    """The two services on a fake engine."""

    def __init__(self) -> None:
        self.client = FakeEngineClient()
        self.engine = EngineService(self.client, decide=lambda options, devices: options)
        self.chat = ChatService(self.client, self.engine)
        self.states = []
        self.news = []
        self.engine.subscribe(self.states.append)
        self.chat.subscribe(self.news.append)

    async def until(self, condition) -> None:
        """Lets the loop run until `condition()` holds."""
        while not condition():  # noqa: ASYNC110 - what it looks at has no event
            await asyncio.sleep(0)


@pytest_asyncio.fixture
async def desk() -> AsyncIterator[Desk]:
    desk = Desk()
    yield desk
    await desk.engine.close()
