"""Processes of a script that runs confined: none is left when its result is there, however it ended."""

import asyncio
import signal
import sys
from pathlib import Path

import psutil
import pytest

from tests.field.grid import SERVER, Kind, Way, case
from tests.field.test_left_processes import runs
from tests.toolbox.confinement.conftest import until

SCRIPTS = Kind(
    "A process of a script goes on when the script has ended, or keeps its end from being noticed",
    {
        **dict.fromkeys(SERVER, "the server's clients run their tools themselves"),
        Way.MCP: "its servers are no scripts: test_left_processes.py",
        Way.IMPORT: "an import runs nothing",
    },
)
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="scripts run on Linux alone")


class MadeUpBwrap:
    """A bubblewrap that has a process inside which doesn't end with it, as the real one's does by the system.

    `then` is what it does when it has told the number of that process, in Python.
    """

    def __init__(self, folder: Path, then: str, *, is_quiet: bool = True) -> None:
        self._told = folder / "pids"
        self.path = folder / "bwrap"
        quiet = "dict.fromkeys(('stdin', 'stdout', 'stderr'), subprocess.DEVNULL)" if is_quiet else "{}"
        self.path.write_text(
            f"#!{sys.executable}\n"
            "import json, os, signal, subprocess, sys\n"
            f"child = subprocess.Popen(['sleep', '3600'], start_new_session=True, **{quiet})\n"
            "info = int(sys.argv[sys.argv.index('--info-fd') + 1])\n"
            "os.write(info, json.dumps({'child-pid': child.pid}).encode())\n"
            "os.close(info)\n"
            f"open({str(self._told)!r}, 'a').write(f'{{os.getpid()}} {{child.pid}}\\n')\n"
            f"{then}\n"
        )
        self.path.chmod(0o755)

    def pids(self) -> list[tuple[int, int]]:
        """The numbers of each bubblewrap, and of its process inside."""
        lines = self._told.read_text().splitlines() if self._told.exists() else []
        return [(int(first), int(second)) for first, second in map(str.split, lines)]

    async def run(self, wall_s: float = 50.0) -> str:
        """Run a script, and return why it was stopped."""
        from qwendesk.toolbox.confinement.confined_run import run_confined
        from qwendesk.toolbox.confinement.sandbox import Sandbox

        return (await run_confined("", Sandbox(str(self.path), sys.executable), wall_s=wall_s)).stopped_for


ENDS = {
    "by itself": ("", ""),
    "with too much output": ("while True: print('endless')", "output"),
    "killed": ("os.kill(os.getpid(), signal.SIGKILL)", ""),
    "asked to end": ("os.kill(os.getpid(), signal.SIGTERM)", ""),
    "out of time": ("signal.pause()", "time"),
}


@case(SCRIPTS, Way.WINDOW, Way.CLI, report="langfuse#15955, gepa#449, Vibe-Trading#599", before="failed")
@pytest.mark.parametrize("end", ENDS)
async def test_nothing_of_a_script_runs_when_its_result_is_there(tmp_path: Path, end: str) -> None:
    then, stopped_for = ENDS[end]
    bwrap = MadeUpBwrap(tmp_path, then)
    assert await bwrap.run(wall_s=1.0 if stopped_for == "time" else 50.0) == stopped_for
    [(_, pid)] = bwrap.pids()
    assert not runs(pid)


@case(
    SCRIPTS, Way.WINDOW, Way.CLI, report="codex#4337: it keeps the pipe open, and the end never comes", before="failed"
)
@pytest.mark.parametrize("end", ["by itself", "killed"])
async def test_a_process_that_holds_the_output_doesnt_keep_the_end_back(tmp_path: Path, end: str) -> None:
    bwrap = MadeUpBwrap(tmp_path, ENDS[end][0], is_quiet=False)
    assert await bwrap.run() == ""
    [(_, pid)] = bwrap.pids()
    assert not runs(pid)


@case(SCRIPTS, Way.WINDOW, Way.CLI, report="brepjs#1380: the user stops the answer", before="held")
async def test_nothing_of_a_script_runs_when_its_call_was_stopped(tmp_path: Path) -> None:
    bwrap = MadeUpBwrap(tmp_path, "signal.pause()")
    call = asyncio.ensure_future(bwrap.run())
    await until(lambda: len(bwrap.pids()) == 1)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert not any(map(runs, bwrap.pids()[0]))


@case(SCRIPTS, Way.WINDOW, Way.CLI, report="rocketride#1921: an end that takes another's processes", before="held")
async def test_the_end_of_a_script_leaves_those_of_another(tmp_path: Path) -> None:
    bwrap = MadeUpBwrap(tmp_path, "signal.pause()")
    first = asyncio.ensure_future(bwrap.run())
    await until(lambda: len(bwrap.pids()) == 1)
    second = asyncio.ensure_future(bwrap.run())
    await until(lambda: len(bwrap.pids()) == 2)
    first.cancel()
    await asyncio.wait([first])
    assert [runs(pid) for pids in bwrap.pids() for pid in pids] == [False, False, True, True]
    psutil.Process(bwrap.pids()[1][0]).send_signal(signal.SIGKILL)
    assert await second == ""
