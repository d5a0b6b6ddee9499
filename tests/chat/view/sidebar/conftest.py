"""Fixtures of the sidebar's tests."""

import asyncio
from pathlib import Path

import pytest

from tests.chat.view.sidebar.chats_desk import ChatsDesk
from tests.window_desk import Desk


@pytest.fixture
def chats(qt_loop: asyncio.Runner, desk: Desk, tmp_path: Path) -> ChatsDesk:
    return qt_loop.run(ChatsDesk(desk, tmp_path).open_file())
