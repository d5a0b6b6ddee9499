"""Tensors of a type that only another release of llama.cpp knows: read if that engine is here, named if it isn't."""

from pathlib import Path

import msgspec
import pytest

from qwendesk.core import paths
from qwendesk.engines.engine_updates import EngineUpdateState
from qwendesk.engines.llama_releases import EngineRelease
from qwendesk.hub.gguf import read_facts
from qwendesk.hub.gguf_source import BadHeader
from tests.fakes.engine_folders import make_engine
from tests.hub.test_gguf_broken import one_tensor, refusal

NEW_TYPE = 43


def padded() -> bytes:
    header = one_tensor("w", 1, (32,), NEW_TYPE, 0)
    return header + bytes(-len(header) % 32) + bytes(96)


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's folder of engines."""
    folder = tmp_path / "own"
    folder.mkdir()
    monkeypatch.setattr(paths, "engine_places", lambda: (tmp_path / "app", folder))
    return folder


def test_it_is_read_with_the_room_that_it_takes_once_an_engine_here_knows_it(own: Path, tmp_path: Path) -> None:
    make_engine(own, "b99999-cpu", release="b99999", package_version="", n_types=NEW_TYPE + 1)
    file = tmp_path / "new.gguf"
    file.write_bytes(padded())
    (tensor,) = read_facts(file).tensors
    assert (tensor.name, tensor.type, tensor.n_bytes) == ("w", "type 43", 96)


@pytest.mark.parametrize(("n_types", "case"), [(NEW_TYPE + 1, "newer-type"), (NEW_TYPE, "tensor-type")])
def test_the_release_that_has_it_is_named(own: Path, n_types: int, case: str) -> None:
    found = EngineRelease(tag="b11861", date="", backend="cpu", archives=(), n_types=n_types)
    (own / "engine-updates.json").write_bytes(msgspec.json.encode(EngineUpdateState(found)))
    error = refusal(padded())
    assert isinstance(error, BadHeader)
    assert error.case == case
    assert ("b11861 has it" in error.sentence) == (case == "newer-type")
