"""The model of the last time: remembered when it loaded, offered while its file is there."""

from pathlib import Path

from qwendesk.core import paths
from qwendesk.core.failures import LoadFailure
from qwendesk.core.options import LoadOptions
from qwendesk.models.last_model import LastModel
from tests.service_desk import Desk


def a_model(folder: Path, name: str = "model.gguf") -> str:
    path = folder / name
    path.write_bytes(b"x")
    return str(path)


def remove(path: Path) -> None:
    path.unlink()


async def test_loaded_model_is_remembered_for_the_next_start(desk: Desk, tmp_path: Path) -> None:
    last = LastModel(desk.engine, None, tmp_path / "last.json")
    wanted = LoadOptions(model=a_model(tmp_path), n_ctx=4096)
    await desk.engine.load(wanted)
    await last.close()
    assert LastModel(desk.engine, None, tmp_path / "last.json").read() == wanted


async def test_failed_loads_and_the_demo_are_not_remembered(desk: Desk, tmp_path: Path) -> None:
    last = LastModel(desk.engine, None, tmp_path / "last.json")
    desk.client.load_result = LoadFailure("other", "It failed", "For a test.")
    await desk.engine.load(LoadOptions(model=a_model(tmp_path)))
    desk.client.load_result = None
    await desk.engine.load(LoadOptions(model=str(paths.demo_model())))
    assert last.demo_came_later
    assert last.read() is None
    await last.close()


async def test_missing_file_is_not_offered(desk: Desk, tmp_path: Path) -> None:
    last = LastModel(desk.engine, None, tmp_path / "last.json")
    mmproj = a_model(tmp_path, "mmproj.gguf")
    await desk.engine.load(LoadOptions(model=a_model(tmp_path), mmproj=mmproj))
    await last.close()
    remove(Path(mmproj))
    without = last.read()
    assert without is not None
    assert without.mmproj == ""
    remove(tmp_path / "model.gguf")
    assert last.read() is None
