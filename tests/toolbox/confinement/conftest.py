"""The real sandbox of this machine, where there is one. Root runs it as the user nobody, since root has no limits."""

import asyncio
import os
import shutil
import sys
from collections.abc import Awaitable, Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

if TYPE_CHECKING:
    from qwendesk.toolbox.confinement.confined_run import Outcome
    from qwendesk.toolbox.confinement.sandbox import Sandbox

Run = Callable[[str], Awaitable["Outcome"]]

collect_ignore = (
    [] if sys.platform == "linux" else ["test_attacks.py", "test_limits.py", "test_tool.py", "test_trial.py"]
)


@pytest.fixture(scope="session")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> "Sandbox":
    from qwendesk.toolbox.confinement.sandbox import Sandbox, find_bwrap, find_python

    bwrap, python = find_bwrap(), find_python()
    if not bwrap or not python:
        pytest.skip("bubblewrap or the system's Python is not installed")
    if os.geteuid() == 0:
        if not shutil.which("setpriv"):
            pytest.skip("root needs setpriv to be another user")
        folder = tmp_path_factory.mktemp("bwrap")
        as_nobody = folder / "bwrap"
        as_nobody.write_text(f'#!/bin/sh\nexec setpriv --reuid 65534 --regid 65534 --clear-groups {bwrap} "$@"\n')
        as_nobody.chmod(0o755)
        bwrap = str(as_nobody)
    problem = _problem(bwrap, python)
    if problem:
        pytest.skip(problem)
    return Sandbox(bwrap, python)


@cache
def _problem(bwrap: str, python: str) -> str:
    from qwendesk.toolbox.confinement.confined_run import try_sandbox
    from qwendesk.toolbox.confinement.sandbox import Sandbox

    return asyncio.run(try_sandbox(Sandbox(bwrap, python)))


@pytest.fixture
def run(sandbox: "Sandbox") -> Run:
    """Run a script in the sandbox, and see that nothing of it is left."""
    from qwendesk.toolbox.confinement.confined_run import run_confined

    async def run_script(script: str, wall_s: float = 60.0) -> "Outcome":
        outcome = await run_confined(script, sandbox, wall_s=wall_s)
        assert not confined_processes()
        return outcome

    return run_script


def confined_processes() -> list[int]:
    """Return the numbers of the processes that belong to a script of this test."""
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            if process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
        except psutil.NoSuchProcess:
            continue
    return found


async def until(condition: Callable[[], bool]) -> None:
    """Look again and again until something holds of which the system does not tell."""
    while not condition():  # noqa: ASYNC110
        await asyncio.sleep(0.01)


@pytest.fixture
def home() -> Path:
    """The home folder of the user, with something in it that a script must not see."""
    folder = Path.home()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "qwendesk-secret.txt").write_text("the secret")
    return folder
