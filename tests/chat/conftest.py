"""Fixtures of tests on services without a window (tests/service_desk.py)."""

from tests.service_desk import desk

__all__ = ["desk"]
