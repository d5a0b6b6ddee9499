"""Files of other programs on disk."""

import stat
import sys
from pathlib import Path

import pytest

from qwendesk.server.setups.config_file import write_entries
from qwendesk.server.setups.merging import NotMerged
from qwendesk.server.setups.programs import BY_ID, Target
from tests.links import skip_without_links

TARGET = Target("http://127.0.0.1:8765", "qd-0123456789abcdef", 65_536)
OPENCODE = BY_ID["opencode"]


def test_a_new_file_is_only_for_this_user(tmp_path: Path) -> None:
    file = OPENCODE.path(tmp_path, {})
    assert write_entries(OPENCODE, file, TARGET).backup is None
    assert TARGET.key in file.read_text(encoding="utf-8")
    if sys.platform != "win32":
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_each_file_is_kept_as_it_was_before(tmp_path: Path) -> None:
    file = tmp_path / "opencode.json"
    file.write_text('{"theme": "dark"}')

    first = write_entries(OPENCODE, file, TARGET)
    again = write_entries(OPENCODE, file, TARGET)
    renewed = write_entries(OPENCODE, file, Target(TARGET.address, "qd-another-key-of-mine", 65_536))

    assert first.backup is not None
    assert renewed.backup is not None
    assert first.backup.read_text() == '{"theme": "dark"}'
    assert again.backup is None
    assert TARGET.key in renewed.backup.read_text()
    assert len(list(tmp_path.iterdir())) == 3


def test_what_cannot_be_merged_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "opencode.json"
    file.write_text("{} // mine")
    with pytest.raises(NotMerged):
        write_entries(OPENCODE, file, TARGET)
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("opencode.json", "{} // mine")]


def test_settings_that_are_only_shown_are_never_written(tmp_path: Path) -> None:
    zed = BY_ID["zed"]
    with pytest.raises(NotMerged):
        write_entries(zed, zed.path(tmp_path, {}), TARGET)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"\xff\xfe{}", b"{" + b" " * 5_000_000 + b"}"])
def test_a_file_that_is_no_text_of_settings_is_left_alone(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "opencode.json"
    file.write_bytes(content)
    with pytest.raises(NotMerged):
        write_entries(OPENCODE, file, TARGET)
    assert file.read_bytes() == content


def test_a_link_stays_one(tmp_path: Path) -> None:
    skip_without_links(tmp_path)
    (tmp_path / "dotfiles").mkdir()
    real, link = tmp_path / "dotfiles" / "opencode.json", tmp_path / "opencode.json"
    real.write_text('{"theme": "dark"}')
    link.symlink_to(real)

    write_entries(OPENCODE, link, TARGET)

    assert link.is_symlink()
    assert TARGET.key in real.read_text()


def test_a_folder_named_by_a_variable_is_used(tmp_path: Path) -> None:
    codex = BY_ID["codex"]
    assert codex.path(tmp_path, {"CODEX_HOME": str(tmp_path / "c")}) == tmp_path / "c" / "qwendesk.config.toml"
    assert codex.path(tmp_path, {}) == tmp_path / ".codex" / "qwendesk.config.toml"
