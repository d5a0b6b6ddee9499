from collections.abc import Iterator
from pathlib import Path

import pytest

from qwendesk.store.chats import ChatStore
from qwendesk.store.database import Database


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    opened = Database(tmp_path / "chats.db")
    yield opened
    opened.close()


@pytest.fixture
def store(database: Database) -> ChatStore:
    return ChatStore(database)
