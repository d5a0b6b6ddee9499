"""The first day of a new model, as a drill: from a made-up GitHub to an answer of another engine, and what goes wrong.

The made-up releases have the real engine's libraries, with the names and links that llama.cpp's archives have. The
window's part, with a model that only such a release knows, is in tests/app/test_first_day.py.
"""

import platform
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from qwendesk.core import paths
from qwendesk.core.app_options import AppOptions
from qwendesk.core.engine_manifest import EngineFolder
from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.messages import text_message
from qwendesk.core.observed import Observed
from qwendesk.core.options import LoadOptions, decided_options
from qwendesk.engine.engine_folders import read_engine, wrong_files
from qwendesk.engine.protocol import Delta, Generate, LoadReport
from qwendesk.engines.engine_choice import INSTALLED, EngineChoiceService, package_version
from qwendesk.engines.engine_updates import EngineUpdates
from qwendesk.engines.pack_installer import PackInstaller
from qwendesk.hub.network import Network
from tests.engine.worker.test_struct_layouts import changed_abi
from tests.engines.test_engine_updates import ARCHIVE, NAME, NEW
from tests.engines.test_release_pack import linux
from tests.fakes.llama_releases import addresses, archive_of, publish, publish_here, sources_of, zip_of
from tests.fakes.next_engine import can_be_made, next_libraries
from tests.fakes.pack_server import PackServer
from tests.real_libraries import real_libraries

IS_LINUX, IS_WINDOWS = sys.platform.startswith("linux"), sys.platform == "win32"
pytestmark = pytest.mark.skipif(
    not (IS_LINUX or IS_WINDOWS) or platform.machine().lower() not in ("x86_64", "amd64"),
    reason="the made-up archives are ones for Linux and Windows on x86-64",
)


class Desk:
    """The installed engine, and updates from a made-up GitHub. Nothing is made up about the engines."""

    def __init__(self, folder: Path, server: PackServer) -> None:
        self.own = folder / "own"
        self.engines = EngineChoiceService(
            (folder / "app", self.own), package_version(), has_installed=True, crash_file=folder / "crashes.json"
        )
        installer = PackInstaller(self.engines, ())
        self.updates = EngineUpdates(
            self.engines, installer, installer.add, Observed(AppOptions()), Network,
            server=addresses(server), platform="windows-x64" if IS_WINDOWS else "linux-x64",
        )  # fmt: skip

    async def update(self) -> str:
        """Return the problem; "" if there was none."""
        await self.engines.choose(try_all=True)
        await self.updates.look()
        await self.updates.get()
        return self.updates.state.value.problem

    async def answer(self) -> str:
        """What the chosen engine answers."""
        client = self.engines.client()
        try:
            loaded = await client.load(decided_options(LoadOptions(model=str(paths.demo_model()), n_ctx=512)))
            assert isinstance(loaded, LoadReport), loaded
            question = Generate(
                messages=(text_message("user", "What is 2 + 3?"),),
                options=GenerationOptions(temperature=0.0, enable_thinking=False, max_tokens=32),
            )
            return "".join([item.text async for item in client.generate(question) if isinstance(item, Delta)])
        finally:
            await client.close()


async def test_from_the_release_to_its_first_answer(tmp_path: Path, server: PackServer) -> None:
    publish_here(server, NEW, real_libraries(), architectures=("qwen35", "qwen4"))
    desk = Desk(tmp_path, server)
    assert await desk.update() == ""
    compared = desk.updates.state.value.comparison
    assert compared is not None
    assert [check.name for check in compared.after.checks] == [
        "load", "text, thinking off", "text, thinking on", "picture", "tool call", "saved state", "token drafts",
    ]  # fmt: skip
    assert compared.after.failed == compared.before.failed == ()
    assert compared.after.answers == compared.before.answers
    assert compared.after.answer_tok_s > 0
    assert compared.after.prompt_tok_s > 0
    assert desk.engines.engines.chosen == INSTALLED
    await desk.engines.choose(NAME)
    assert "LLAMA_CPP_LIB_PATH" in desk.engines.environment()
    assert (await desk.answer()).startswith("2 + 3 = 5")
    await desk.engines.choose(desk.updates.previous)
    assert desk.engines.engines.chosen == INSTALLED
    assert (await desk.answer()).startswith("2 + 3 = 5")


def _whole() -> dict[str, bytes]:
    return archive_of(NEW, real_libraries())


def _incomplete() -> dict[str, bytes]:
    return archive_of(NEW, [path for path in real_libraries() if "ggml-base" not in path.name])


def _no_libraries() -> dict[str, bytes]:
    (name,) = _incomplete()
    names = ("llama.dll", "mtmd.dll", "ggml.dll", "ggml-base.dll", "ggml-cpu.dll")
    return {name: zip_of({each: each.encode() for each in names}) if IS_WINDOWS else linux()}


@pytest.mark.skipif(not IS_LINUX or not can_be_made(), reason="the engine that crashes is one for Linux, made by cc")
async def test_an_engine_that_crashes_is_refused_and_the_old_one_answers(tmp_path: Path, server: PackServer) -> None:
    libraries = tmp_path / "libraries"
    libraries.mkdir()
    publish_here(server, NEW, next_libraries(libraries, crashes=True))
    desk = Desk(tmp_path, server)
    assert await desk.update() == (
        f"{NAME} doesn't run on this PC, so it was not added. The engine stopped because of an internal error. Your "
        "engines are unchanged: try a later release."
    )
    assert not list(desk.own.glob("*/engine.json"))
    assert desk.engines.engines.chosen == INSTALLED
    assert (await desk.answer()).startswith("2 + 3 = 5")


@pytest.mark.parametrize(
    ("archive", "sources", "says"),
    [
        (_whole, lambda: sources_of(changed_abi("bool vocab_only;", "int32 vocab_only;")), "vocab_only now has"),
        (_incomplete, sources_of, "so it was not added"),
        (_no_libraries, sources_of, "so it was not added"),
    ],
    ids=["a changed struct", "a library is missing", "no libraries at all"],
)  # fmt: skip
async def test_bad_engines_are_refused_and_the_old_one_answers(
    tmp_path: Path, server: PackServer, archive: object, sources: object, says: str
) -> None:
    publish(server, NEW, archive(), sources())  # type: ignore[operator]
    desk = Desk(tmp_path, server)
    assert says in await desk.update()
    assert not list(desk.own.glob("*/engine.json"))
    await desk.engines.choose(NAME)
    assert desk.engines.engines.chosen == INSTALLED
    assert (await desk.answer()).startswith("2 + 3 = 5")


_PROGRAM = """
import asyncio, sys, types
from pathlib import Path
from tests.engines.test_engine_updates import Pc

async def main():
    pc = Pc(Path(sys.argv[1]), types.SimpleNamespace(address=sys.argv[2]), None)
    pc.updates.state.subscribe(lambda state: print(state.phase, flush=True))
    await pc.look_and_get()

asyncio.run(main())
"""


def _phases(folder: Path, server: PackServer, until: str) -> Sequence[str]:
    """Run an update in a process of its own, and kill it in the phase `until`. Return the phases that it reached."""
    command = [sys.executable, "-c", _PROGRAM, str(folder), server.address]
    reached = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            reached.append(line.strip())
            if reached[-1] == until:
                process.kill()
    return reached


@pytest.mark.skipif(not IS_LINUX, reason="its made-up archive is one for Linux")
@pytest.mark.parametrize("phase", ["looking", "checking", "downloading", "unpacking", "trying", "comparing", "never"])
def test_a_killed_update_loses_nothing(tmp_path: Path, server: PackServer, phase: str) -> None:
    libraries = {f"padding-{number}.so.1": bytes([number]) * 1_000_000 for number in range(8)}
    publish(server, NEW, {ARCHIVE: linux(**libraries)}, sources_of())
    reached = _phases(tmp_path, server, phase)
    assert phase in reached or phase == "never"
    own = tmp_path / "own"
    whole = [read_engine(path.parent) for path in own.glob("*/engine.json")]
    assert all(isinstance(engine, EngineFolder) and wrong_files(engine) == () for engine in whole)
    assert isinstance(read_engine(tmp_path / "app" / "cpu"), EngineFolder)
    _phases(tmp_path, server, "never")
    engine = read_engine(own / NAME)
    assert isinstance(engine, EngineFolder)
    assert wrong_files(engine) == ()
    assert not list(own.glob(".adding-*"))
