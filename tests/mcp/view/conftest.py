"""The window with servers: those that need no process, and real ones."""

from collections.abc import Callable
from pathlib import Path

import pytest

from qwendesk.mcp.host_protocol import Ended, OfferedPrompt, OfferedTool, ServerOffer
from qwendesk.mcp.server import RunningMcpServer, ServerProblem
from tests.settings_page import home
from tests.window import app, client, keeper, make_desk, pytest_pyfunc_call, qt_loop
from tests.window_desk import Desk

__all__ = ["app", "client", "home", "keeper", "make_desk", "pytest_pyfunc_call", "qt_loop"]

OFFER = ServerOffer(
    server="made up 1.0",
    tools=(
        OfferedTool("read", "Reads a note."),
        OfferedTool("<b>send</b>", "Sends a note\nto <img src='x'>."),
    ),
    prompts=(OfferedPrompt("greet"),),
)


class MadeUpServer(RunningMcpServer):
    """A server without a process. It offers OFFER, unless its program is called "broken"."""

    async def start(self, *, by_user: bool = False) -> ServerOffer:
        if self.state.config.command == "broken":
            raise ServerProblem(self._fail(Ended("not_connected", "it stopped", ("no key given",))))
        self._on_offer(OFFER)
        self._show(phase="running", problem="", log=())
        return OFFER

    async def stop(self) -> None:
        self._show(phase="stopped", problem="", log=())


@pytest.fixture
def desk(home: Path, make_desk: Callable[[], Desk]) -> Desk:
    """The window without a model and without servers, in folders of the test's own."""
    return make_desk()


@pytest.fixture
def page(desk: Desk) -> Desk:
    """The settings page, on which servers need no process."""
    vars(desk.parts.services.mcp)["_make_server"] = MadeUpServer
    desk.window.show_page("settings")
    return desk
