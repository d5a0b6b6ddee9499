import pytest_asyncio

from qwendesk.chat.service import ChatService
from qwendesk.core.options import LoadOptions
from qwendesk.core.served_model import ServedModel
from qwendesk.engines.engine_service import EngineService
from qwendesk.remote.client import RemoteClient
from qwendesk.remote.servers import RemoteServer
from tests.remote.made_up_server import MadeUpServer


class RemoteDesk:
    """A made-up server, the client that uses it, and a chat on it."""

    def __init__(self) -> None:
        self.servers: list[MadeUpServer] = []
        self.key = ""
        self.client = RemoteClient(
            lambda address: RemoteServer(address, name="The other PC"), lambda _address: self.key
        )
        self.engine = EngineService(self.client)
        self.chat = ChatService(self.client, self.engine)

    async def serve(self, replies, **how) -> MadeUpServer:
        server = await MadeUpServer(replies, **how).start()
        self.servers.append(server)
        return server

    async def use(self, server: MadeUpServer, model: str):
        """Load a model of the server."""
        return await self.engine.load(LoadOptions(model=ServedModel(server.address, model).text))

    async def close(self) -> None:
        await self.chat.stop()
        await self.engine.close()
        for server in self.servers:
            await server.close()


@pytest_asyncio.fixture
async def remote():
    desk = RemoteDesk()
    yield desk
    await desk.close()
