"""What the tests of the list share."""

import asyncio
from pathlib import Path

import pytest

from tests.ui.chats.chats_desk import ChatsDesk
from tests.ui.desk import Desk


@pytest.fixture
def chats(qt_loop: asyncio.Runner, desk: Desk, tmp_path: Path) -> ChatsDesk:
    return qt_loop.run(ChatsDesk(desk, tmp_path).open_file())
