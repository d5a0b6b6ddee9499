"""Fixtures of tests on a real window (tests/window.py)."""

from tests.settings_page import home, page
from tests.window import app, client, desk, keeper, make_desk, pytest_pyfunc_call, qt_loop

__all__ = ["app", "client", "desk", "home", "keeper", "make_desk", "page", "pytest_pyfunc_call", "qt_loop"]
