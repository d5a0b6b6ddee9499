"""Fixtures of the inspector's tests."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from qwendesk.core import paths
from qwendesk.widgets.theme_keeper import ThemeKeeper
from tests.engines.view.load_options.inspector_desk import InspectorDesk
from tools.hollow_model import write_hollow

MODEL = "Qwen3.5-35B-A3B-Q4_K_M.gguf"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A header of real dimensions; its data takes no room."""
    return write_hollow(tmp_path_factory.mktemp("inspector") / MODEL, "35b")


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What one test changes for the model is not another's profile."""
    for name in ("config", "data", "cache"):
        monkeypatch.setattr(paths, f"{name}_folder", lambda name=name: tmp_path / name)


@pytest.fixture
def make(qt_loop: asyncio.Runner, keeper: ThemeKeeper) -> Iterator[Callable[..., InspectorDesk]]:
    desks: list[InspectorDesk] = []

    def make(*, has_gpu: bool = True) -> InspectorDesk:
        desks.append(InspectorDesk(has_gpu=has_gpu))
        return desks[-1]

    yield make
    for desk in desks:
        qt_loop.run(desk.parts.close())


@pytest.fixture
def desk(make: Callable[[], InspectorDesk]) -> InspectorDesk:
    """A window with a GPU and without a model."""
    return make()
