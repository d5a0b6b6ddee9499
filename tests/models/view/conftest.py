"""Fixtures of tests on a real window (tests/window.py)."""

import asyncio

import pytest

from tests.fakes.engine import FakeEngineClient
from tests.models.view.start_desk import CARD
from tests.settings_page import home, page
from tests.window import app, desk, keeper, make_desk, pytest_pyfunc_call, qt_loop

__all__ = ["app", "desk", "home", "keeper", "make_desk", "page", "pytest_pyfunc_call", "qt_loop"]


@pytest.fixture
def client(qt_loop: asyncio.Runner) -> FakeEngineClient:
    """An engine that sees a good GPU."""
    client = FakeEngineClient()
    client.devices = (CARD, *client.devices)
    return client
