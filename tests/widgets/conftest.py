"""Fixtures of tests on a real window (tests/window.py)."""

from tests.window import app, client, desk, keeper, make_desk, pages_in_steps, pytest_pyfunc_call, qt_loop

__all__ = ["app", "client", "desk", "keeper", "make_desk", "pages_in_steps", "pytest_pyfunc_call", "qt_loop"]
