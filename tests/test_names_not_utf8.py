"""Linux allows names of files that are not UTF-8. Nothing breaks on one: it works, or a sentence says why not."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from qwendesk.chat.image_parts import image_part
from qwendesk.core.errors import BadRequest
from qwendesk.hub.header_cache import HeaderCache
from qwendesk.hub.library import scan
from qwendesk.hub.library_places import SearchFolder
from qwendesk.hub.model_import import Imported, ImportItem, import_files
from qwendesk.settings.profiles import ProfilesService
from tests.gguf_files import model_values, tensor, write_model

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="names of files are always Unicode there")


def odd(folder: Path, ending: str) -> Path:
    return Path(os.fsdecode(os.fsencode(folder) + b"/caf\xe9" + ending.encode()))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """Two models, one of them with such a name."""
    folder = tmp_path / "models"
    folder.mkdir()
    tensors = [tensor("token_embd.weight", 64)]
    write_model(folder / "good.gguf", model_values(), tensors)
    shutil.copy(folder / "good.gguf", odd(folder, ".gguf"))
    return odd(folder, ".gguf")


def verify(model: Path, home: Path) -> subprocess.CompletedProcess[str]:
    folders = ("HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME")
    return subprocess.run(
        [sys.executable, "-m", "qwendesk", "verify", "--offline", "--full", str(model.parent)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        env=os.environ | dict.fromkeys(folders, str(home)),
    )


def test_the_full_check_ends_well_and_remembers_the_others(model: Path, tmp_path: Path) -> None:
    first = verify(model, tmp_path / "home")
    assert "Traceback" not in first.stderr
    assert "caf?.gguf" in first.stdout
    assert first.stderr.count("SHA-256") == 2
    again = verify(model, tmp_path / "home")
    assert again.returncode == first.returncode
    assert [line for line in again.stderr.splitlines() if "good.gguf" in line] == []


def test_the_library_shows_it_and_remembers_the_others(model: Path, tmp_path: Path) -> None:
    headers = HeaderCache(tmp_path / "headers")
    library = scan([SearchFolder("ours", model.parent)], headers)
    assert {Path(each.path).name for each in library.models} == {"good.gguf", model.name}
    assert (tmp_path / "headers").exists()


async def test_profiles_of_other_models_are_kept(model: Path, tmp_path: Path) -> None:
    profiles = ProfilesService(tmp_path / "profiles.json")
    profiles.save_changes(str(model), {"n_ctx": 4096})
    profiles.save_changes("/x/good.gguf", {"n_ctx": 8192})
    await profiles.close()
    assert ProfilesService(tmp_path / "profiles.json").changes("/x/good.gguf") == {"n_ctx": 8192}


def test_it_is_imported(model: Path, tmp_path: Path) -> None:
    done = import_files([ImportItem(str(model), str(tmp_path / "new" / "a.gguf"))])
    assert isinstance(done, Imported)
    assert (tmp_path / "new" / "a.gguf").read_bytes() == model.read_bytes()


def test_a_picture_is_refused_with_a_sentence(tmp_path: Path) -> None:
    path = odd(tmp_path, ".png")
    path.write_bytes(b"\x89PNG")
    with pytest.raises(BadRequest, match="isn't valid UTF-8"):
        image_part(path)
