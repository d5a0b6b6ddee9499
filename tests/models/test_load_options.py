"""Whatever loads a model gets its profile, its picture file and what was used the last time."""

from pathlib import Path

import pytest

from qwendesk.core.options import LoadOptions
from qwendesk.engines.engine_service import EngineService
from qwendesk.models.load_options import LoadOptionsService
from qwendesk.models.templates import TemplatesService
from qwendesk.settings.profiles import ProfilesService
from tests.fakes.engine import FakeEngineClient, decide_by_default
from tests.hub.verified import mmproj, unsloth
from tests.models.library import make_model_home

REPO, NAME = "unsloth/Qwen3.5-35B-A3B-GGUF", "Qwen3.5-35B-A3B-Q4_K_M.gguf"


async def test_chosen_file_is_loaded_with_its_profile_and_mmproj(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model_home = make_model_home(tmp_path, monkeypatch)
    path = unsloth(model_home.ours / REPO / NAME)
    pictures = mmproj(path.with_name("mmproj-F16.gguf"))
    checks, profiles = model_home.checks(), ProfilesService()
    await model_home.wait_for_checks(checks)
    profiles.save_changes(str(path), {"n_ctx": 8192})
    loading = LoadOptionsService(model_home.models, TemplatesService(), profiles, model_home.catalog.load)
    client = FakeEngineClient()
    engine = EngineService(client, decide=decide_by_default)
    engine.options_for = loading.options_for

    await engine.load_file(path)

    assert engine.state.requested == LoadOptions(model=str(path), mmproj=str(pictures), n_ctx=8192)
    assert await loading.base_repo(str(path)) == "Qwen/Qwen3.5-35B-A3B"
    await engine.close()
    await checks.close()


async def test_saved_files_are_used_before_the_first_scan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model_home = make_model_home(tmp_path, monkeypatch)
    path = unsloth(model_home.ours / REPO / NAME)
    elsewhere = str(mmproj(tmp_path / "pictures" / "mmproj.gguf"))
    checks, profiles = model_home.checks(), ProfilesService()
    profiles.save_changes(str(path), {"aim": "speed"})
    loading = LoadOptionsService(model_home.models, TemplatesService(), profiles, model_home.catalog.load)

    options = await loading.options_again(LoadOptions(model=str(path), mmproj=elsewhere, n_ctx=512, n_cpu_moe=3))

    assert options == LoadOptions(model=str(path), mmproj=elsewhere, aim="speed"), "what was decided is decided anew"
    assert await loading.options_for(tmp_path / "missing.gguf") == LoadOptions(model=str(tmp_path / "missing.gguf"))
    await checks.close()
