"""A window for the cases that come in by it."""

from tests.engines.view.conftest import make_engines_desk
from tests.window import app, client, desk, keeper, make_desk, pytest_pyfunc_call, qt_loop

__all__ = ["app", "client", "desk", "keeper", "make_desk", "make_engines_desk", "pytest_pyfunc_call", "qt_loop"]
