"""Engines that come from outside: not what was asked for, or running only as far as their list of devices."""

import json
import zipfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from qwendesk.cli import engines as cli_engines
from qwendesk.cli import main as cli
from qwendesk.core.engine_manifest import EnginePack
from qwendesk.engines.engine_choice import EngineChoiceService
from qwendesk.engines.packs import this_platform
from tests.engines.view.engines_desk import EnginesDesk, MakeDesk
from tests.fakes.engine_folders import VERSION, Tries, make_engine, make_pack_file
from tests.fakes.pack_server import PackServer, pack_of, running_pack_server
from tests.field.grid import SERVER, Kind, Way, case

_NONE_COMES = {
    **dict.fromkeys(SERVER, "the server uses the engine that was chosen before"),
    Way.MCP: "an MCP server brings tools, no engine",
    Way.IMPORT: "an import brings chats, no engine",
}
HALF_ENGINE = Kind("An engine that lists its cards and then can't answer is used", _NONE_COMES)
OTHER_ENGINE = Kind("What isn't the engine that was asked for becomes an engine", _NONE_COMES)
NO_AVX512 = "It uses instructions that this CPU doesn't have."


@pytest.fixture
def server() -> Iterator[PackServer]:
    with running_pack_server() as server:
        yield server


@pytest.fixture
def tries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tries:
    """What the engines of the commands do. The app has one for the CPU."""
    made = Tries()
    make_engine(tmp_path / "app", "cpu")

    def engines() -> EngineChoiceService:
        return EngineChoiceService(
            (tmp_path / "app", tmp_path / "own"), VERSION, has_installed=False, try_one=made, prove_one=made.prove,
            features=lambda: (), crash_file=tmp_path / "crashes.json",
        )  # fmt: skip

    monkeypatch.setattr(cli_engines, "installed_engines", engines)
    return made


async def desk_with(make: MakeDesk, tries: Tries, folder: Path, pack: EnginePack) -> EnginesDesk:
    make_engine(folder / "app", "cpu")
    desk = make(tries, msgspec.structs.replace(pack, package_version=VERSION, platform=this_platform()))
    await desk.begin()
    desk.click("engine.pack.cuda-12.get")
    return desk


@case(HALF_ENGINE, Way.WINDOW, report="llama-cpp-python's CUDA workflow leaves GGML_NATIVE on", before="failed")
async def test_downloaded_engine_that_cannot_answer_is_not_used(
    make_engines_desk: MakeDesk, server: PackServer, tmp_path: Path
) -> None:
    tries = Tries()
    tries.faults["cuda-12"] = NO_AVX512
    desk = await desk_with(make_engines_desk, tries, tmp_path, pack_of(server))
    await desk.until(lambda: desk.has("engine.list.cuda-12") and desk.state_of("cuda-12") == "Set aside")
    await desk.until_quiet()
    assert desk.engines.engines.chosen == "cpu"
    assert desk.text_of("engine.list.cuda-12.sentence") == NO_AVX512


@case(HALF_ENGINE, Way.CLI, report="llama-cpp-python's CUDA workflow leaves GGML_NATIVE on", before="failed")
def test_added_engine_that_cannot_answer_is_not_kept(
    tries: Tries, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tries.faults["vulkan"] = NO_AVX512
    assert cli.main(["engines", "add", "--yes", str(make_pack_file(tmp_path, "vulkan", "vulkan"))]) == 2
    assert NO_AVX512 in capsys.readouterr().err
    assert not list((tmp_path / "own").iterdir())


@case(OTHER_ENGINE, Way.WINDOW, report="ggrun#24", before="failed")
async def test_download_without_all_libraries_is_refused(
    make_engines_desk: MakeDesk, server: PackServer, tmp_path: Path
) -> None:
    """The installer fetched cudart twice, no ggml-cuda, and said that CUDA was there."""
    engine, runtime = pack_of(server).archives
    runtime = msgspec.structs.replace(runtime, keep=("llama_cpp/lib/libcudart.so", "llama_cpp/lib/libcublasLt.so"))
    pack = msgspec.structs.replace(pack_of(server), archives=(engine, runtime))
    desk = await desk_with(make_engines_desk, Tries(), tmp_path, pack)
    await desk.until(lambda: desk.is_shown("engine.pack.cuda-12.problem"))
    assert "runtime.whl has none of the expected libraries" in desk.text_of("engine.pack.cuda-12.problem")
    assert desk.engines.engines.chosen == "cpu"
    await desk.until_quiet()


@case(OTHER_ENGINE, Way.WINDOW, report="issue 30, Done when", before="held")
async def test_download_with_another_hash_is_refused(
    make_engines_desk: MakeDesk, server: PackServer, tmp_path: Path
) -> None:
    pack = pack_of(server)
    server.archives["/engine.whl"] = bytes(len(server.archives["/engine.whl"]))
    desk = await desk_with(make_engines_desk, Tries(), tmp_path, pack)
    await desk.until(lambda: desk.is_shown("engine.pack.cuda-12.problem"))
    assert "sent wrong content" in desk.text_of("engine.pack.cuda-12.problem")
    assert not (tmp_path / "own" / "cuda-12").exists()
    await desk.until_quiet()


@case(OTHER_ENGINE, Way.CLI, report="issue 30, Done when", before="held")
def test_added_engine_with_another_hash_is_refused(
    tries: Tries, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good, changed = make_pack_file(tmp_path, "vulkan", "vulkan"), tmp_path / "changed.zip"
    with zipfile.ZipFile(good) as source, zipfile.ZipFile(changed, "w") as target:
        for member in source.infolist():
            content = source.read(member)
            if member.filename == "engine.json":
                manifest = json.loads(content)
                manifest["files"][0]["sha256"] = "0" * 64
                content = json.dumps(manifest).encode()
            target.writestr(member.filename, content)
    assert cli.main(["engines", "add", "--yes", str(changed)]) == 2
    assert "is damaged or was changed" in capsys.readouterr().err
    assert tries.started == []
