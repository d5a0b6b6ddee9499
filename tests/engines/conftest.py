"""Fixtures of tests on services without a window (tests/service_desk.py), and on fake workers."""

from tests.engine.conftest import make
from tests.service_desk import desk

__all__ = ["desk", "make"]
