"""For This PC in a window that asks a made-up Hub for updates of the catalog."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from qwendesk.core import paths
from tests.hub.hub_server import FakeHub, running_hub
from tests.window_desk import Desk


@contextmanager
def window_hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    """Run a Hub that the window asks, and remove what it saved of the answers."""
    from huggingface_hub.utils import close_session

    with running_hub() as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.endpoint)
        yield hub
        close_session()
    # Later tests have the same home folder.
    for file in paths.data_folder().glob("catalog-*.json"):
        file.unlink()


async def open_for_this_pc(make_desk: Callable[[], Desk]) -> Desk:
    """Open a window with the offers for this PC, which waits for nothing between two questions."""
    desk = make_desk()
    desk.parts.services.models.catalog._gap_s = 0
    desk.click("rail.models")
    await desk.parts.services.models.catalog.load()
    await desk.parts.services.models.offers.update()
    return desk
