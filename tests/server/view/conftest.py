"""The window, with its server at a port that is free."""

import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from qwendesk.app.parts import build
from qwendesk.core import paths
from qwendesk.widgets.theme_keeper import ThemeKeeper
from tests.fakes.engine import FakeEngineClient, decide_by_default
from tests.window import app, client, keeper, pytest_pyfunc_call, qt_loop
from tests.window_desk import Desk

__all__ = ["app", "client", "keeper", "pytest_pyfunc_call", "qt_loop"]


def free_port() -> int:
    """Return a port that is free with the next one."""
    while True:
        with socket.socket() as probe, socket.socket() as following:
            probe.bind(("127.0.0.1", 0))
            port: int = probe.getsockname()[1]
            try:
                following.bind(("", port + 1))
            except (OSError, OverflowError):
                continue
            return port


class ServerDesk(Desk):
    """The window on its Server page."""

    def __init__(self, client: FakeEngineClient, home: Path) -> None:
        super().__init__(build(client, decide=decide_by_default), client)
        self.home = home
        self.services = self.parts.services
        self.services.setups._home = home
        self.services.setups._environment = {"PATH": str(home / "bin")}
        self.services.settings.change({"serve": False, "serve_network": False, "server_port": free_port()})
        self.window.resize(1280, 900)
        self.window.show()
        self.window.activateWindow()

    async def open_page(self) -> None:
        self.window.go_to("server")

    async def switch_on(self) -> None:
        self.click("serve.on")
        await self.until(
            lambda: self.services.server.state.is_on and not self.services.server_switch.observed.value.is_busy
        )


@pytest.fixture
def desk(
    qt_loop: asyncio.Runner, keeper: ThemeKeeper, client: FakeEngineClient, tmp_path: Path
) -> Iterator[ServerDesk]:
    made = ServerDesk(client, tmp_path)
    qt_loop.run(made.open_page())
    yield made
    qt_loop.run(made.parts.close())
    (paths.config_folder() / "server.key").unlink(missing_ok=True)
