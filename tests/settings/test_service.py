"""The app's options on disk."""

from pathlib import Path

import pytest

from qwendesk.core.app_options import AppOptions
from qwendesk.core.errors import BadOption
from qwendesk.settings.service import SettingsService


def test_change_is_reported_and_restored_after_a_restart(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    settings = SettingsService(file)
    told: list[AppOptions] = []
    settings.subscribe(told.append)
    settings.change({"theme": "light", "reserve_gb": 2.5})
    settings.change({"theme": "light"})
    assert [each.reserve_gb for each in told] == [2.5]
    assert SettingsService(file).options == AppOptions(theme="light", reserve_gb=2.5)


def test_a_value_out_of_range_changes_nothing(tmp_path: Path) -> None:
    settings = SettingsService(tmp_path / "settings.json")
    with pytest.raises(BadOption):
        settings.change({"zoom_percent": 1000})
    assert settings.options == AppOptions()


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"zoom_percent": 5}', b'{"theme": "pink"}'])
def test_a_file_that_cannot_be_used_is_set_aside(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "settings.json"
    file.write_bytes(content)
    assert SettingsService(file).options == AppOptions()
    assert (tmp_path / "settings.json.unusable").read_bytes() == content


def test_keys_of_a_newer_version_are_ignored(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_bytes(b'{"theme": "dark", "colour_of_the_moon": 3}')
    assert SettingsService(file).options.theme == "dark"


async def test_failed_write_is_reported_and_the_change_applies(tmp_path: Path) -> None:
    (tmp_path / "in-the-way").write_text("a file, not a folder")
    settings = SettingsService(tmp_path / "in-the-way" / "settings.json")
    told: list[str] = []
    settings.problem.subscribe(told.append)
    settings.change({"theme": "light"})
    await settings.close()
    assert settings.options.theme == "light"
    assert len(told) == 1
    assert "couldn't be saved" in told[0]


def test_safe_mode_uses_defaults_and_does_not_change_the_file(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    SettingsService(file).change({"theme": "light"})
    before = file.read_bytes()
    settings = SettingsService(file, is_safe=True)
    assert settings.options == AppOptions()
    settings.change({"theme": "dark"})
    assert settings.options.theme == "dark"
    assert file.read_bytes() == before
