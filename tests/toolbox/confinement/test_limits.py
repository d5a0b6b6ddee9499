"""Scripts that take too much are stopped, and what they printed by then is kept."""

import asyncio
import signal
from pathlib import Path

import pytest

from qwendesk.core.units import MIB
from qwendesk.toolbox.confinement import confined_run
from qwendesk.toolbox.confinement.confined_run import MOST_OUTPUT, Reason, run_confined
from qwendesk.toolbox.confinement.sandbox import PROCESSES, SCRATCH_BYTES, Sandbox
from tests.toolbox.confinement.conftest import Run, confined_processes, until


async def test_script_prints_and_leaves_files(run: Run) -> None:
    script = "import os\nprint('häüß')\nos.mkdir('a')\nopen('a/b.txt', 'w').write('123')\nopen('.hidden', 'w')"
    outcome = await run(script)
    assert (outcome.output, outcome.status, outcome.stopped_for) == ("häüß\n", 0, "")
    assert [(file.path, file.n_bytes) for file in outcome.files] == [("a/b.txt", 3)]


async def test_each_script_begins_with_an_empty_folder(run: Run) -> None:
    await run("open('a.txt', 'w').write('1')")
    assert (await run("import os; print(os.listdir())")).output == "['script.py']\n"


async def test_error_of_a_script_is_shown_with_its_line(run: Run) -> None:
    outcome = await run("print('before')\n1 / 0")
    assert outcome.status == 1
    assert 'script.py", line 2' in outcome.output
    assert outcome.output.startswith("before\n")
    assert outcome.output.endswith("ZeroDivisionError: division by zero\n")


async def test_long_run_is_stopped(sandbox: Sandbox) -> None:
    outcome = await run_confined("print('begun', flush=True)\nwhile True: pass", sandbox, wall_s=3)
    assert (outcome.output, outcome.status, outcome.stopped_for) == ("begun\n", None, "time")
    assert not confined_processes()


async def test_time_on_the_processor_is_limited(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qwendesk.toolbox.confinement.sandbox.LIMITS", {"RLIMIT_CPU": 1})
    assert (await run("while True: pass")).status in (-signal.SIGXCPU, -signal.SIGKILL)


async def test_endless_output_is_stopped(run: Run) -> None:
    outcome = await run("import os\nwhile True: os.write(1, b'x' * 10_000)")
    assert outcome.stopped_for == "output"
    assert len(outcome.output) == MOST_OUTPUT


async def test_memory_of_one_process_is_limited(run: Run) -> None:
    outcome = await run("bytearray(3 << 30)")
    assert outcome.output.endswith("MemoryError\n")


async def test_memory_of_all_processes_is_limited(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confined_run, "MEMORY_BYTES", 150 * MIB)
    script = """
import os, signal
for number in range(8):
    if os.fork() == 0:
        kept = b"x" * (40 << 20)
        signal.pause()
signal.pause()
"""
    assert (await run(script)).stopped_for == "memory"


async def test_script_is_stopped_when_the_pc_runs_out_of_memory(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confined_run, "_LEFT_FOR_OTHERS", 1 << 60)
    assert (await run("import signal; signal.pause()")).stopped_for == "memory"


async def test_fork_bomb_is_contained(run: Run) -> None:
    script = """
import os, signal
made = 0
try:
    while True:
        if os.fork() == 0:
            signal.pause()
        made += 1
except BlockingIOError:
    print(made)
"""
    outcome = await run(script)
    assert 0 < int(outcome.output) <= PROCESSES


async def test_fork_bomb_without_end_is_stopped(sandbox: Sandbox) -> None:
    script = "import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        pass"
    outcome = await run_confined(script, sandbox, wall_s=3)
    assert outcome.stopped_for == "time"
    assert not confined_processes()


async def test_scratch_folder_is_limited(run: Run) -> None:
    script = f"""
try:
    for number in range(3):
        with open(f"big{{number}}", "wb") as file:
            for _ in range({SCRATCH_BYTES // MIB}):
                file.write(bytes({MIB}))
except OSError as error:
    print(error.strerror)
"""
    outcome = await run(script)
    assert outcome.output == "No space left on device\n"
    assert sum(file.n_bytes for file in outcome.files) <= SCRATCH_BYTES


async def test_number_of_files_is_limited(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confined_run, "MOST_FILES", 500)
    script = "import signal\nfor number in range(1000): open(str(number), 'w').close()\nsignal.pause()"
    assert (await run(script)).stopped_for == "files"


async def test_script_that_cannot_be_watched_is_stopped(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def exceeded(_root: Path) -> Reason:
        raise PermissionError

    monkeypatch.setattr(confined_run, "_exceeded", exceeded)
    assert (await run("import signal; signal.pause()")).stopped_for == "unwatched"


async def test_stop_ends_all_processes(sandbox: Sandbox) -> None:
    script = "import os, signal\nos.fork()\nos.fork()\nos.setsid()\nsignal.pause()"
    task = asyncio.ensure_future(run_confined(script, sandbox))
    await until(lambda: len(confined_processes()) >= 6)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not confined_processes()


async def test_bubblewrap_that_fails_says_why(tmp_path: Path, sandbox: Sandbox) -> None:
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    broken.chmod(0o755)
    outcome = await run_confined("print(1)", Sandbox(str(broken), sandbox.python))
    assert not outcome.has_started
    assert outcome.output == "bwrap: No permissions to create new namespace\n"
