"""A stand-in for a program in a terminal: a script of Python that does what a test says."""

import asyncio
import os
import stat
import sys
from pathlib import Path

import pytest


def write_program(folder: Path, name: str, script: str) -> dict[str, str]:
    """Write the script as an executable, and return an environment that finds it."""
    if sys.platform == "win32":
        pytest.skip("an executable script needs a shebang line, which Windows doesn't know")
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    file.write_text(f"#!{sys.executable}\n{script}\n", encoding="utf-8")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return {**os.environ, "PATH": str(folder)}


async def until_there(file: Path) -> None:
    """Wait until a program has written a file."""
    while not await asyncio.to_thread(file.exists):  # noqa: ASYNC110  a file tells nobody when it is made
        await asyncio.sleep(0.01)
