"""Fixtures of the import and export tests: two PCs, each with its own chats."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from tests.chat.exchange.kit import Kit


@pytest_asyncio.fixture
async def kit(tmp_path: Path) -> AsyncIterator[Kit]:
    kit = Kit(tmp_path / "one")
    await kit.start()
    yield kit
    await kit.chat_list.close()


@pytest_asyncio.fixture
async def other(tmp_path: Path) -> AsyncIterator[Kit]:
    kit = Kit(tmp_path / "two")
    await kit.start()
    yield kit
    await kit.chat_list.close()
