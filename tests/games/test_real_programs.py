"""Game mode with real second processes: one of a listed name, and one whose window is in full screen."""

import contextlib
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from qwendesk.core.units import GIB
from qwendesk.engine.answer_meter import AnswerMeter
from qwendesk.games.rules import ProgramMemory, VramPressure
from qwendesk.games.service import GameMode, GameSources
from qwendesk.hardware.probes.full_screen import full_screen_program
from qwendesk.hardware.programs import running_programs, started_programs
from tests.games.conftest import OPTIONS, GameDesk, rule
from tests.hardware.probes.x_windows import XWindows
from tests.links import can_link
from tests.xvfb import running_xvfb

_ROOT = Path(__file__).resolve().parents[2]
_WAITS = "import sys; print('runs', flush=True); sys.stdin.read()"


@contextlib.contextmanager
def running(*command: str, **variables: str) -> Iterator["subprocess.Popen[str]"]:
    """Run a program that ends with its input; at the latest, it is ended with the test."""
    with subprocess.Popen(
        command, cwd=_ROOT, env={**os.environ, **variables}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def end(process: "subprocess.Popen[str]") -> None:
    process.kill()
    process.wait()


@pytest.fixture
def named_program(tmp_path: Path) -> Path:
    """A Python with a name of its own, longer than Linux keeps of the name of a process."""
    if not can_link(tmp_path):
        pytest.skip("makes no symbolic links here")
    program = tmp_path / ("NeonRidersUltimate" + Path(sys.executable).suffix)
    program.symlink_to(Path(sys.executable).resolve())
    return program


@pytest.fixture
def real(desk: GameDesk) -> GameDesk:
    """Game mode that sees the real programs of this PC; only the pressure is made up."""
    desk.game = GameMode(
        desk.engine,
        desk.settings,
        GameSources(running_programs, started_programs, full_screen_program, lambda: desk.pressure),
        chat=desk.chat,
        answers=AnswerMeter(),
        move_experts=desk._move_experts,
    )
    return desk


async def test_a_process_of_a_listed_name_unloads_the_model_until_it_ends(real: GameDesk, named_program: Path) -> None:
    real.set_options(rule("unload", "neonridersultimate"))
    assert await real.look(3) == ""
    with running(str(named_program), "-I", "-c", _WAITS) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "runs\n"
        assert await real.look(2) == "unloaded neonridersultimate"
        assert real.loaded is None
        end(process)
        assert await real.look(3) == ""
    await real.chat.send("Hi")
    assert real.loaded == OPTIONS


@pytest.mark.real_display
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Xvfb is for Linux")
@pytest.mark.skipif(shutil.which("openbox") is None, reason="needs openbox, which puts a window into full screen")
async def test_a_full_screen_window_of_another_process_counts_once_memory_is_short(
    real: GameDesk, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    module, ready = ("-m", "tests.games.full_screen_window"), tmp_path / "ready"
    with contextlib.ExitStack() as stack:
        display = stack.enter_context(running_xvfb(800, 600))
        stack.enter_context(XWindows(display))  # the server starts anew whenever its last client has gone
        command = ("openbox", "--sm-disable", "--startup", f"touch {shlex.quote(str(ready))}")
        manager = stack.enter_context(running(*command, DISPLAY=display))
        while not ready.exists():  # a window that is there before it may not become the active one
            assert manager.poll() is None
        window = stack.enter_context(running(sys.executable, *module, DISPLAY=display, QT_QPA_PLATFORM="xcb"))
        monkeypatch.setenv("DISPLAY", display)
        while (program := full_screen_program()) is None:
            assert window.poll() is None
        assert program.pid == window.pid

        real.pressure = VramPressure(programs=(ProgramMemory(program.name, program.pid, GIB // 2),))
        assert await real.look(3) == "", "the memory suffices"
        real.pressure = VramPressure(is_short=True, programs=real.pressure.programs)
        assert await real.look(2) == f"unloaded {program.name}"
        real.pressure = VramPressure()
        assert await real.look(4) == f"unloaded {program.name}"
        end(window)
        while full_screen_program() is not None:
            """The window manager notices in its own time."""
        assert await real.look(3) == ""
