"""Engine packs in files: which are refused, what is unpacked, and what an interrupted app leaves."""

import hashlib
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from qwendesk.core.engine_manifest import EngineFile, EngineFolder, EnginePack, PackArchive
from qwendesk.engine.engine_folders import find_engines, read_engine, wrong_files
from qwendesk.engines import pack_file
from qwendesk.engines.pack_file import BadPack, PackStopped, put_in_place, read_pack_file, recover, unpack
from qwendesk.engines.packs import this_platform
from tests.fakes.engine_folders import LIBRARY, VERSION, make_engine, make_pack_file


def packed(path: Path, **members: bytes) -> Path:
    """A zip archive; "__" in a name stands for "/"."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name.replace("__", "/").replace("_dot_", "."), content)
    return path


def with_files(tmp_path: Path, *files: EngineFile) -> Path:
    return make_pack_file(tmp_path, "cpu", files=files)


def library(name: str = LIBRARY, content: bytes = b"library of cpu") -> EngineFile:
    return EngineFile(name, len(content), hashlib.sha256(content).hexdigest())


def leftovers(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def test_archive_becomes_an_engine_folder(tmp_path: Path) -> None:
    archive, engines = make_pack_file(tmp_path, "cpu-fast", needs=("avx2",)), tmp_path / "engines"
    pack = read_pack_file(archive, ())
    assert pack.sha256 == hashlib.sha256(archive.read_bytes()).hexdigest()
    assert not pack.is_listed
    put_in_place(unpack(pack, engines), engines, 0)
    pack_file.finish_interrupted(engines)
    engine = read_engine(engines / "cpu-fast")
    assert isinstance(engine, EngineFolder)
    assert (engine.manifest.cpu_needs, wrong_files(engine)) == (("avx2",), ())
    assert leftovers(engines) == ["cpu-fast"]
    assert sorted(path.name for path in (engines / "cpu-fast").iterdir()) == sorted(["engine.json", LIBRARY])


@pytest.mark.parametrize("name", ["", "engine.json"])
def test_folder_is_taken_too(tmp_path: Path, name: str) -> None:
    folder = make_engine(tmp_path, "cpu")
    pack = read_pack_file(folder / name, ())
    assert pack.sha256 == hashlib.sha256((folder / "engine.json").read_bytes()).hexdigest()
    assert wrong_files(unpack(pack, tmp_path / "engines")) == ()


def test_archive_on_the_apps_list_is_recognized_for_this_system_only(tmp_path: Path) -> None:
    archive = make_pack_file(tmp_path, "cpu")
    sha256 = hashlib.sha256(archive.read_bytes()).hexdigest()
    here = EnginePack(
        name="cpu", title="CPU", platform=this_platform(), package_version=VERSION, backend="cpu",
        archives=(PackArchive("https://example.org/cpu.zip", 1, sha256, "MIT", ("*",)),),
    )  # fmt: skip
    assert read_pack_file(archive, (here,)).is_listed
    assert not read_pack_file(archive, (msgspec.structs.replace(here, platform="plan9-x64"),)).is_listed


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda path: path / "none.zip", "can't be read"),
        (lambda path: path, "is not an engine pack. It has no file engine.json"),
        (lambda path: packed(path / "a.zip", readme_dot_txt=b"hello"), "It has no file engine.json"),
        (lambda path: packed(path / "a.zip", engine_dot_json=b"{}", b__engine_dot_json=b"{}"), "engine.json twice"),
        (lambda path: packed(path / "a.zip", engine_dot_json=b"{}"), "Its file engine.json is damaged"),
        (lambda path: packed(path / "a.zip", engine_dot_json=b"[" * 100_000), "Its file engine.json is damaged"),
        (lambda path: make_pack_file(path, "cpu", format=99), "newer QwenDesk"),
        (lambda path: make_pack_file(path, "cpu", name="../cpu"), "can't be the name of a folder"),
        (lambda path: make_pack_file(path, "cpu", name="nul"), "can't be the name of a folder"),
        (lambda path: with_files(path, library(), library("../evil.so")), "names a file outside the folder"),
        (lambda path: with_files(path, library(), library("..\\evil.dll")), "names a file outside the folder"),
        (lambda path: with_files(path, library(), library("/etc/evil.so")), "names a file outside the folder"),
        (lambda path: with_files(path, library(), library("c:evil.dll")), "names a file outside the folder"),
        (lambda path: with_files(path, library(), library(".evil")), "names a file outside the folder"),
        (lambda path: with_files(path, library(), library("engine.json")), "names a file outside the folder"),
        (lambda path: with_files(path, library(), library(LIBRARY.upper())), "names a file twice"),
        (lambda path: with_files(path, EngineFile(LIBRARY, 1, "../../x")), "wrong size or hash"),
        (lambda path: with_files(path, EngineFile(LIBRARY, -1, "0" * 64)), "wrong size or hash"),
        (lambda path: with_files(path, EngineFile(LIBRARY, 1 << 50, "0" * 64)), "larger than any engine"),
        (lambda path: with_files(path, library("libggml.so.0")), "no library llama"),
    ],
)  # fmt: skip
def test_what_is_no_pack_is_refused_with_the_reason(tmp_path: Path, make: Callable[[Path], Path], says: str) -> None:
    with pytest.raises(BadPack) as refused:
        read_pack_file(make(tmp_path), ())
    assert says in refused.value.sentence


def test_cut_archive_is_refused(tmp_path: Path) -> None:
    archive = make_pack_file(tmp_path, "cpu")
    archive.write_bytes(archive.read_bytes()[:-30])
    with pytest.raises(BadPack, match="not a complete zip archive"):
        read_pack_file(archive, ())


def test_engine_for_another_system_is_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = make_pack_file(tmp_path, "cpu")
    monkeypatch.setattr(pack_file, "_LLAMA", {"linux": "l", "macos": "m", "windows": "w", "haiku": LIBRARY})
    monkeypatch.setattr(pack_file, "_SYSTEM_TITLES", {"linux": "X", "macos": "X", "windows": "X", "haiku": "Haiku"})
    with pytest.raises(BadPack, match=r"It is an engine for Haiku, but this PC runs X\. Get the pack for"):
        read_pack_file(archive, ())


@pytest.mark.parametrize(
    ("members", "says"),
    [
        ({}, "is missing"),
        ({f"a/{LIBRARY}": b"library of cpu", f"b/{LIBRARY}": b"library of cpu"}, "twice"),
        ({f"a/{LIBRARY}": b"library of cpU"}, "is damaged or was changed"),
        ({f"a/{LIBRARY}": b"library"}, "is damaged or was changed"),
        ({f"a/{LIBRARY}": b"library of cpu" + bytes(1 << 24)}, "is damaged or was changed"),
    ],
    ids=["missing", "twice", "changed", "shorter", "longer than stated"],
)
def test_archive_without_the_stated_files_leaves_nothing(tmp_path: Path, members: dict[str, bytes], says: str) -> None:
    archive = packed(tmp_path / "a.zip", **members)
    with zipfile.ZipFile(archive, "a", zipfile.ZIP_DEFLATED) as more:
        more.writestr("engine.json", (make_engine(tmp_path, "cpu") / "engine.json").read_bytes())
    pack = read_pack_file(archive, ())
    with pytest.raises(BadPack, match=says):
        unpack(pack, tmp_path / "engines")
    assert leftovers(tmp_path / "engines") == []


def test_paths_and_links_in_an_archive_lead_nowhere(tmp_path: Path) -> None:
    archive = tmp_path / "a.zip"
    with zipfile.ZipFile(archive, "w") as packed_file:
        packed_file.write(make_engine(tmp_path / "made", "cpu") / "engine.json", "engine.json")
        packed_file.writestr(f"../../{LIBRARY}", b"library of cpu")
        packed_file.writestr("../evil.so", b"evil")
        link = zipfile.ZipInfo("engine/link.so")
        link.external_attr = 0o120777 << 16
        packed_file.writestr(link, "/etc/passwd")
    engine = unpack(read_pack_file(archive, ()), tmp_path / "engines")
    assert leftovers(Path(engine.path)) == sorted(["engine.json", LIBRARY])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.zip", "engines", "made"]


def test_full_disk_is_noticed_before_anything_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pack = read_pack_file(make_pack_file(tmp_path, "cpu"), ())
    monkeypatch.setattr(shutil, "disk_usage", lambda _folder: SimpleNamespace(free=1000))
    with pytest.raises(BadPack, match=r"not enough room .* free 256 MB there"):
        unpack(pack, tmp_path / "engines")
    assert leftovers(tmp_path / "engines") == []


def test_stopping_leaves_nothing(tmp_path: Path) -> None:
    archive = make_pack_file(tmp_path, "cpu")
    with pytest.raises(PackStopped):
        read_pack_file(archive, (), lambda: True)
    with pytest.raises(PackStopped):
        unpack(read_pack_file(archive, ()), tmp_path / "engines", lambda: True)
    assert leftovers(tmp_path / "engines") == []


def test_what_was_shown_is_what_is_unpacked(tmp_path: Path) -> None:
    archive = make_pack_file(tmp_path, "cpu")
    pack = read_pack_file(archive, ())
    with zipfile.ZipFile(archive, "w") as other:
        other.writestr("engine.json", b"{}")
        other.writestr(LIBRARY, b"library of evi")
    with pytest.raises(BadPack, match="damaged or was changed"):
        unpack(pack, tmp_path / "engines")


def test_folder_with_the_engines_name_that_is_no_engine_stays(tmp_path: Path) -> None:
    engines = tmp_path / "engines"
    (engines / "cpu").mkdir(parents=True)
    (engines / "cpu" / "thesis.txt").touch()
    engine = unpack(read_pack_file(make_pack_file(tmp_path, "cpu"), ()), engines)
    with pytest.raises(BadPack, match="is no engine"):
        put_in_place(engine, engines, 0)
    assert leftovers(engines / "cpu") == ["thesis.txt"]


def test_older_engine_stays_if_the_new_one_cannot_be_moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engines = tmp_path / "engines"
    make_engine(engines, "cpu", package_version="0.1")
    engine = unpack(read_pack_file(make_pack_file(tmp_path, "cpu"), ()), engines)
    move = pack_file.replace

    def refuse_new(source: Path, target: Path, timeout_s: float) -> Path:
        if target == engines / "cpu":
            raise PermissionError(13, "Access is denied", str(target))
        return move(source, target, timeout_s)

    monkeypatch.setattr(pack_file, "replace", refuse_new)
    with pytest.raises(BadPack, match="could not be replaced: Access is denied"):
        put_in_place(engine, engines, 0)
    older = read_engine(engines / "cpu")
    assert isinstance(older, EngineFolder)
    assert older.manifest.package_version == "0.1"


@pytest.mark.parametrize("moved", ["nothing", "older", "both"])
def test_app_killed_while_replacing_an_engine_loses_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moved: str
) -> None:
    """`moved` is what had its new place when the app was killed."""
    engines = tmp_path / "engines"
    make_engine(engines, "cpu", package_version="0.1")
    engine = unpack(read_pack_file(make_pack_file(tmp_path, "cpu"), ()), engines)
    if moved != "nothing":
        older = Path(engine.path).parent / pack_file._REPLACED / "cpu"
        older.parent.mkdir()
        (engines / "cpu").rename(older)
    if moved == "both":
        Path(engine.path).rename(engines / "cpu")
    with pack_file.adding_alone(engines):
        recover(engines)
    assert any(name.startswith(".adding-") for name in leftovers(engines)), "another window may be adding it"
    recover(engines)
    (found,) = find_engines([engines])
    assert isinstance(found, EngineFolder)
    assert found.manifest.package_version == (VERSION if moved == "both" else "0.1")
    assert leftovers(engines) == ["cpu"]
