"""Packs come into the app's list with their real sizes and hashes, fetched from a server of ours."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from qwendesk.core.engine_manifest import EnginePack
from qwendesk.engines.packs import PackList, read_packs
from tests.fakes.pack_server import PackServer, pack_of, running_pack_server, wheel
from tools.engine_packs import add
from tools.setup.project import SetupError


@pytest.fixture
def server() -> Iterator[PackServer]:
    with running_pack_server() as server:
        yield server


def entry_of(tmp_path: Path, pack: EnginePack, *, pinned: bool) -> Path:
    unknown = tuple(msgspec.structs.replace(each, sha256="", n_bytes=0) for each in pack.archives)
    entry = tmp_path / "entry.json"
    entry.write_bytes(msgspec.json.encode(pack if pinned else msgspec.structs.replace(pack, archives=unknown)))
    return entry


def empty_list(tmp_path: Path) -> Path:
    file = tmp_path / "engine_packs.json"
    file.write_bytes(msgspec.json.encode(PackList(1, (), "a note")))
    return file


@pytest.mark.parametrize("pinned", [False, True])
def test_pack_is_added_once_and_pinned(server: PackServer, tmp_path: Path, pinned: bool) -> None:
    pack, file = pack_of(server), empty_list(tmp_path)
    for _ in range(2):
        add([entry_of(tmp_path, pack, pinned=pinned)], file)
    assert read_packs(file) == (pack,)
    assert b"a note" in file.read_bytes()


def test_unusable_pack_is_refused(server: PackServer, tmp_path: Path) -> None:
    pack, file = pack_of(server), empty_list(tmp_path)
    server.archives["/engine.whl"] = bytes(len(server.archives["/engine.whl"]))
    with pytest.raises(SetupError, match="sent wrong content"):
        add([entry_of(tmp_path, pack, pinned=True)], file)
    server.archives["/engine.whl"] = wheel(ggml=b"no llama")
    with pytest.raises(SetupError, match="has no library llama"):
        add([entry_of(tmp_path, pack, pinned=False)], file)
    server.archives.clear()
    with pytest.raises(SetupError, match="cannot be had"):
        add([entry_of(tmp_path, pack, pinned=False)], file)
    assert read_packs(file) == ()
