"""Fixtures of the tests with MCP servers."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import keyring
import pytest
import pytest_asyncio
from keyring.backends import fail

from qwendesk.core import paths
from qwendesk.mcp.service import McpService


@pytest.fixture(autouse=True)
def no_keyring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Folders of this test's own, and a system without a keyring."""
    before = keyring.get_keyring()
    keyring.set_keyring(fail.Keyring())  # type: ignore[no-untyped-call]
    monkeypatch.setattr(paths, "config_folder", lambda: tmp_path / "config")
    yield
    keyring.set_keyring(before)


@pytest_asyncio.fixture
async def service() -> AsyncIterator[McpService]:
    """A service without servers, which is closed after the test."""
    service = McpService()
    yield service
    await service.close()
