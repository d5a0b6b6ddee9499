"""The model of the last time: remembered when it loaded, offered while its file is there."""

from pathlib import Path

import pytest

from qwendesk.core import paths
from qwendesk.core.failures import LoadFailure
from qwendesk.core.options import LoadOptions
from qwendesk.services.models.last_model import LastModel
from tests.services.conftest import Desk


def a_model(folder: Path, name: str = "model.gguf") -> str:
    path = folder / name
    path.write_bytes(b"x")
    return str(path)


def remove(path: Path) -> None:
    path.unlink()


@pytest.mark.asyncio
async def test_what_loaded_is_there_at_the_next_start(desk: Desk, tmp_path: Path) -> None:
    last = LastModel(desk.engine, tmp_path / "last.json")
    wanted = LoadOptions(model=a_model(tmp_path), n_ctx=4096)
    await desk.engine.load(wanted)
    last.close()
    assert LastModel(desk.engine, tmp_path / "last.json").read() == wanted


@pytest.mark.asyncio
async def test_what_failed_and_the_demo_are_not(desk: Desk, tmp_path: Path) -> None:
    last = LastModel(desk.engine, tmp_path / "last.json")
    desk.client.load_result = LoadFailure("other", "It failed", "For a test.")
    await desk.engine.load(LoadOptions(model=a_model(tmp_path)))
    desk.client.load_result = None
    await desk.engine.load(LoadOptions(model=str(paths.demo_model())))
    assert last.read() is None
    last.close()


@pytest.mark.asyncio
async def test_a_file_that_is_gone_is_not_offered(desk: Desk, tmp_path: Path) -> None:
    last = LastModel(desk.engine, tmp_path / "last.json")
    mmproj = a_model(tmp_path, "mmproj.gguf")
    await desk.engine.load(LoadOptions(model=a_model(tmp_path), mmproj=mmproj))
    remove(Path(mmproj))
    without = last.read()
    assert without is not None
    assert without.mmproj == ""
    remove(tmp_path / "model.gguf")
    assert last.read() is None
    last.close()


@pytest.mark.asyncio
async def test_a_damaged_memory_is_none(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "last.json").write_text("{")
    last = LastModel(desk.engine, tmp_path / "last.json")
    assert last.read() is None
    last.close()
