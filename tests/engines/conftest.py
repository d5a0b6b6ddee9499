"""Fixtures of tests on services without a window (tests/service_desk.py), on fake workers, and a server of engines."""

from collections.abc import Iterator

import pytest

from tests.engine.conftest import make
from tests.fakes.pack_server import PackServer, running_pack_server
from tests.service_desk import desk

__all__ = ["desk", "make"]


@pytest.fixture
def server() -> Iterator[PackServer]:
    with running_pack_server() as server:
        yield server
