"""Whatever loads a model gets its profile, its picture file and what was used the last time."""

from pathlib import Path

import pytest

from qwendesk.core.options import LoadOptions
from qwendesk.services.engine.service import EngineService
from qwendesk.services.models.loading import Loading
from qwendesk.services.models.templates import TemplatesService
from qwendesk.services.profiles import ProfilesService
from tests.fakes.engine import FakeEngineClient
from tests.hub.verified import mmproj, unsloth
from tests.services.models.library import make_shelf

pytestmark = pytest.mark.asyncio
REPO, NAME = "unsloth/Qwen3.5-35B-A3B-GGUF", "Qwen3.5-35B-A3B-Q4_K_M.gguf"


async def test_a_chosen_file_is_loaded_by_its_profile_with_its_pictures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf = make_shelf(tmp_path, monkeypatch)
    path = unsloth(shelf.ours / REPO / NAME)
    pictures = mmproj(path.with_name("mmproj-F16.gguf"))
    checks, profiles = shelf.checks(), ProfilesService()
    await shelf.looked(checks)
    profiles.keep(str(path), {"n_ctx": 8192})
    loading = Loading(shelf.models, TemplatesService(), profiles, checks.catalog)
    client = FakeEngineClient()
    engine = EngineService(client, decide=lambda options, devices: options)
    engine.options_for = loading.options_for

    await engine.load_file(path)

    assert engine.asked == LoadOptions(model=str(path), mmproj=str(pictures), n_ctx=8192)
    assert loading.base_repo(await checks.catalog(), str(path)) == "Qwen/Qwen3.5-35B-A3B"
    await engine.close()
    await checks.close()
    await shelf.models.close()


async def test_before_the_first_scan_the_files_of_the_last_time_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf = make_shelf(tmp_path, monkeypatch)
    path = unsloth(shelf.ours / REPO / NAME)
    elsewhere = str(mmproj(tmp_path / "pictures" / "mmproj.gguf"))
    checks, profiles = shelf.checks(), ProfilesService()
    profiles.keep(str(path), {"aim": "speed"})
    loading = Loading(shelf.models, TemplatesService(), profiles, checks.catalog)

    options = await loading.again(LoadOptions(model=str(path), mmproj=elsewhere, n_ctx=512, n_cpu_moe=3))

    assert options == LoadOptions(model=str(path), mmproj=elsewhere, aim="speed"), "what was decided is decided anew"
    assert await loading.options_for(tmp_path / "missing.gguf") == LoadOptions(model=str(tmp_path / "missing.gguf"))
    await checks.close()
    await shelf.models.close()
