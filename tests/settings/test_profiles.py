"""What is changed for a model holds the next time, travels as a file, and survives a damaged one."""

from pathlib import Path

import pytest

from qwendesk.core.errors import QwenDeskError
from qwendesk.core.options import LoadOptions
from qwendesk.settings.profiles import ProfilesService

MODEL = "/models/a/Qwen3.5-9B-Q4_K_M.gguf"
CHANGES = {"n_ctx": 32_768, "type_k": "q8_0", "override_tensor": ("x,y=CPU",), "swa_full": True}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "profiles.json"


def test_changes_are_restored_after_a_restart_even_if_the_model_moved(file: Path) -> None:
    ProfilesService(file).save_changes(MODEL, CHANGES)
    again = ProfilesService(file)
    moved = LoadOptions(model="/elsewhere/Qwen3.5-9B-Q4_K_M.gguf", mmproj="/p.gguf")
    options = again.applied(moved)
    assert (options.model, options.mmproj) == (moved.model, moved.mmproj)
    assert {key: getattr(options, key) for key in CHANGES} == CHANGES
    other = LoadOptions(model="/models/a/other.gguf")
    assert again.applied(other) == other


def test_a_default_is_no_change(file: Path) -> None:
    profiles = ProfilesService(file)
    profiles.save_changes(MODEL, CHANGES)
    profiles.save_changes(MODEL, {"n_ctx": 0, "aim": "balanced"})
    assert profiles.changes(MODEL) == {}


def test_named_profiles_are_saved_used_and_deleted(file: Path) -> None:
    profiles = ProfilesService(file)
    profiles.save_changes(MODEL, CHANGES)
    profiles.save_as(MODEL, "  long   chats ")
    profiles.save_changes(MODEL, {"aim": "speed"})
    assert ProfilesService(file).names(MODEL) == ("long chats",)
    profiles.use(MODEL, "long chats")
    assert profiles.changes(MODEL) == CHANGES
    profiles.delete(MODEL, "long chats")
    assert profiles.names(MODEL) == ()
    with pytest.raises(QwenDeskError, match="no profile"):
        profiles.use(MODEL, "long chats")
    with pytest.raises(QwenDeskError, match="Enter a name"):
        profiles.save_as(MODEL, "  ")


async def test_exported_profile_contains_no_folders_of_this_pc(file: Path, tmp_path: Path) -> None:
    profiles, exported = ProfilesService(file), tmp_path / "out.json"
    profiles.save_changes(MODEL, {**CHANGES, "lora": ("/elsewhere/a.gguf",)})
    await profiles.export(MODEL, exported)
    assert "/elsewhere" not in exported.read_text(encoding="utf-8")
    other = ProfilesService(tmp_path / "other.json")
    await other.import_file("/x/b.gguf", exported)
    assert other.changes("/x/b.gguf") == CHANGES


@pytest.mark.parametrize(
    "content",
    [
        "no json",
        "{}",
        '{"format": "something", "values": {}}',
        '{"format": "qwendesk-profile", "values": {"n_ctx": "many"}}',
        '{"format": "qwendesk-profile", "values": {"unheard_of": 1}}',
        '{"format": "qwendesk-profile", "values": {"image_min_tokens": -5}}',
    ],
)
async def test_importing_another_file_changes_nothing(file: Path, tmp_path: Path, content: str) -> None:
    profiles = ProfilesService(file)
    profiles.save_changes(MODEL, CHANGES)
    strange = tmp_path / "strange.json"
    strange.write_text(content, encoding="utf-8")
    with pytest.raises(QwenDeskError):
        await profiles.import_file(MODEL, strange)
    assert profiles.changes(MODEL) == CHANGES


def test_a_damaged_file_is_set_aside(file: Path) -> None:
    file.write_text('{"a.gguf": {"values": [', encoding="utf-8")
    profiles = ProfilesService(file)
    assert profiles.changes("a.gguf") == {}
    assert file.with_name("profiles.json.unusable").exists()
    profiles.save_changes(MODEL, CHANGES)
    assert ProfilesService(file).changes(MODEL) == CHANGES


def test_values_of_a_newer_version_are_ignored_and_kept(file: Path) -> None:
    name = "Qwen3.5-9B-Q4_K_M.gguf"
    file.write_text(f'{{"{name}": {{"values": {{"n_ctx": 4096, "from_the_future": 1, "aim": "odd"}}}}}}', "utf-8")
    profiles = ProfilesService(file)
    assert profiles.changes(MODEL) == {"n_ctx": 4096}


async def test_change_that_cannot_be_written_applies_and_is_reported(tmp_path: Path) -> None:
    blocked = tmp_path / "a file"
    blocked.write_text("x", encoding="utf-8")
    profiles = ProfilesService(blocked / "profiles.json")
    told: list[str] = []
    profiles.problem.subscribe(told.append)
    profiles.save_changes(MODEL, CHANGES)
    await profiles.close()
    assert profiles.changes(MODEL) == CHANGES
    assert len(told) == 1
    assert "until QwenDesk closes" in told[0]
