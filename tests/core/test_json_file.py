"""A small JSON file: what is unusable is set aside or left alone, and never kept from starting anew."""

from pathlib import Path

import msgspec
import pytest

from qwendesk.core import files
from qwendesk.core.app_options import AppOptions
from qwendesk.core.errors import QwenDeskError
from qwendesk.core.json_file import JsonFile, NewerFormat, StoredValue

Counts = dict[str, int]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "counts.json"


def counts(path: Path, *, keep_unusable: bool = True) -> JsonFile[Counts]:
    return JsonFile(path, Counts, dict, keep_unusable=keep_unusable)


def test_written_value_is_read_back_and_a_missing_file_gives_the_default(path: Path) -> None:
    assert counts(path).load() == StoredValue({})
    counts(path).write({"one": 1})
    assert counts(path).load() == StoredValue({"one": 1})


def test_each_default_is_a_new_value(path: Path) -> None:
    file = counts(path)
    file.read()["one"] = 1
    assert file.read() == {}


@pytest.mark.parametrize("content", [b"{not json", b'{"one": "1"}', b'{"\xff": 1}', b"", b"[" * 10_000])
def test_an_unusable_file_is_renamed_and_a_new_one_can_be_written(path: Path, content: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(content)
    found = counts(path).load()
    aside = path.with_name("counts.json.unusable")
    assert (found.value, found.problem, found.renamed_to, found.is_locked) == ({}, "unusable", aside, False)
    assert aside.read_bytes() == content
    counts(path).write({"two": 2})
    assert counts(path).read() == {"two": 2}


def test_unusable_cache_file_is_not_kept(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"{not json")
    assert counts(path, keep_unusable=False).read() == {}
    assert [each.name for each in path.parent.iterdir()] == ["counts.json"]


def test_unusable_file_that_cannot_be_renamed_is_not_overwritten(path: Path) -> None:
    path.mkdir(parents=True)
    (path.with_name("counts.json.unusable") / "in the way").mkdir(parents=True)
    found = counts(path).load()
    assert (found.value, found.is_locked) == ({}, True)
    assert found.reason


def test_values_out_of_range_make_a_file_unusable(path: Path) -> None:
    def decode(content: bytes) -> AppOptions:
        raise QwenDeskError("Bad option", "Out of range.")

    path.parent.mkdir()
    path.write_bytes(b"{}")
    found = JsonFile(path, AppOptions, AppOptions, decode=decode).load()
    assert (found.value, found.problem, path.exists()) == (AppOptions(), "unusable", False)


def test_file_of_a_newer_version_is_not_changed(path: Path) -> None:
    def decode(content: bytes) -> Counts:
        raise NewerFormat("Newer file", "It was written by a newer version.")

    path.parent.mkdir()
    path.write_bytes(msgspec.json.encode({"version": 2}))
    found = JsonFile(path, Counts, dict, decode=decode).load()
    assert (found.problem, found.is_locked, found.reason) == ("newer", True, "It was written by a newer version.")
    assert path.read_bytes() == b'{"version":2}'


def test_failed_write_raises_or_is_logged(path: Path) -> None:
    path.parent.write_text("a file in the place of the folder")
    with pytest.raises(OSError, match="folder"):
        counts(path).write({})
    counts(path).try_write({})


def test_file_that_is_being_replaced_is_not_unusable(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On Windows nobody can open a file in that moment."""
    counts(path).write({"a": 1})
    refusals = [PermissionError(13, "Access is denied")] * 2
    read = Path.read_bytes

    def refuse_at_first(file: Path) -> bytes:
        if refusals:
            raise refusals.pop()
        return read(file)

    monkeypatch.setattr(files, "_LOCKS_OPEN_FILES", True)
    monkeypatch.setattr(files, "sleep", lambda seconds: None)
    monkeypatch.setattr(Path, "read_bytes", refuse_at_first)

    assert counts(path).load() == StoredValue({"a": 1})
    assert list(path.parent.iterdir()) == [path]
