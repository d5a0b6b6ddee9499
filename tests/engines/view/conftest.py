"""Fixtures of tests on a real window (tests/window.py)."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from qwendesk.core.engine_manifest import EnginePack
from qwendesk.widgets.theme_keeper import ThemeKeeper
from tests.engines.view.engines_desk import EnginesDesk, MakeDesk
from tests.fakes.engine import FakeEngineClient
from tests.fakes.engine_folders import Tries
from tests.window import app, client, desk, keeper, make_desk, pytest_pyfunc_call, qt_loop

__all__ = ["app", "client", "desk", "keeper", "make_desk", "make_engines_desk", "pytest_pyfunc_call", "qt_loop"]


@pytest.fixture
def make_engines_desk(
    qt_loop: asyncio.Runner, keeper: ThemeKeeper, client: FakeEngineClient, tmp_path: Path
) -> Iterator[MakeDesk]:
    desks: list[EnginesDesk] = []

    def make(tries: Tries, *packs: EnginePack) -> EnginesDesk:
        desks.append(EnginesDesk(client, tmp_path / "own", tries, packs))
        return desks[-1]

    yield make
    for made in desks:
        qt_loop.run(made.parts.close())
