"""The header of a file is read once while the file stays the same, whoever asks."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from qwendesk.core.errors import BadModelFile
from qwendesk.hub import header_cache
from qwendesk.hub.evidence import gather
from qwendesk.hub.header_cache import HeaderCache
from qwendesk.hub.library import scan
from qwendesk.hub.library_places import SearchFolder
from tests.hub.verified import qwen, split

NAME = "Qwen3.5-35B-A3B-Q4_K_M.gguf"


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files whose headers were read."""
    names: list[str] = []
    read = header_cache.read_file_facts
    monkeypatch.setattr(header_cache, "read_file_facts", lambda path: (names.append(path.name), read(path))[1])
    return names


def test_scan_check_and_load_read_a_header_once(tmp_path: Path, opened: list[str]) -> None:
    headers, path = HeaderCache(tmp_path / "headers"), qwen(tmp_path / "m" / NAME)

    library = scan([SearchFolder("ours", tmp_path / "m")], headers)
    evidence = gather(path, headers)
    facts = headers.read_facts(path)

    assert opened == [NAME]
    assert library.models[0].facts is not None
    assert evidence.facts == facts
    assert facts.tensors


def test_changed_file_is_read_again(tmp_path: Path, opened: list[str]) -> None:
    headers, path = HeaderCache(tmp_path / "headers"), qwen(tmp_path / NAME)
    headers.read_facts(path)
    os.utime(path, ns=(1, 1))

    headers.read_facts(path)

    assert opened == [NAME, NAME]


def test_each_shard_of_a_split_model_is_read_once(tmp_path: Path, opened: list[str]) -> None:
    headers, shards = HeaderCache(tmp_path / "headers"), split(tmp_path / "m")

    first, again = headers.read_facts(shards[0]), headers.read_facts(shards[0])

    assert first == again
    assert len(first.tensors) == 4
    assert opened == [shard.name for shard in shards]


def test_only_recently_used_headers_stay_in_memory(
    tmp_path: Path, opened: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(header_cache, "_MAX_WITH_TENSORS", 2)
    headers = HeaderCache(tmp_path / "headers")
    paths = [qwen(tmp_path / f"{number}.gguf") for number in range(3)]
    for path in (*paths[:2], paths[0], paths[2], paths[0], paths[1]):
        headers.read_file_facts(path)

    assert opened == ["0.gguf", "1.gguf", "2.gguf", "1.gguf"]


@pytest.mark.parametrize("ruin", [Path.unlink, lambda path: path.write_bytes(b"no model")])
def test_file_missing_or_broken_since_the_scan_is_refused(tmp_path: Path, ruin: Callable[[Path], None]) -> None:
    headers, path = HeaderCache(tmp_path / "headers"), qwen(tmp_path / NAME)
    headers.read_facts(path)
    ruin(path)

    with pytest.raises(BadModelFile):
        headers.read_facts(path)
