"""The window, and made-up servers that run on threads of their own."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from qwendesk.remote import finding
from qwendesk.remote.view.server_card import ServerCard
from tests.remote.made_up_server import MadeUpServer
from tests.remote.server_thread import served
from tests.settings_page import home
from tests.window import app, client, keeper, make_desk, pytest_pyfunc_call, qt_loop
from tests.window_desk import Desk

__all__ = ["app", "client", "home", "keeper", "make_desk", "pytest_pyfunc_call", "qt_loop"]


class RemoteWindow:
    """The window without a model. `serve` starts a made-up server, which a search on this PC finds."""

    def __init__(self, desk: Desk, stack: ExitStack, ports: list[int]) -> None:
        self.desk, self._stack, self._ports = desk, stack, ports

    @property
    def engine(self) -> Any:
        return self.desk.parts.engine

    def serve(self, replies: dict[str, Any], **how: Any) -> MadeUpServer:
        server = self._stack.enter_context(served(replies, **how))
        self._ports.append(server.port)
        return server

    def open_tab(self) -> None:
        """Open the tab of other engines."""
        self.desk.window.go_to("server")
        self.desk.click("server.tab.engines")

    async def add(self, server: MadeUpServer) -> None:
        """Add a server and wait for its models."""
        await self.desk.parts.services.remote.add(server.address)

    async def use(self, server: MadeUpServer, model: str) -> None:
        """Add a server, and use a model of it."""
        await self.add(server)
        self.desk.window.load_served(f"{server.address}#{model}")
        await self.desk.until(lambda: self.engine.state.report is not None)

    async def use_this_pc(self) -> None:
        """Use the demo of the engine on this PC instead."""
        self.desk.window.load_demo()
        await self.desk.until(lambda: self.engine.state.local_report is not None)

    def card(self, number: int) -> ServerCard:
        return self.desk.find(f"engines.server.{number}", ServerCard)


@pytest.fixture
def remote_window(
    home: object,
    qt_loop: asyncio.Runner,
    make_desk: Callable[[], Desk],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[RemoteWindow]:
    ports: list[int] = []
    search = finding.find_on_this_pc

    async def find_made_up(found: finding.FoundServer) -> None:
        await search(found, ports)

    monkeypatch.setattr(finding, "find_on_this_pc", find_made_up)
    with ExitStack() as stack:
        yield RemoteWindow(make_desk(), stack, ports)
