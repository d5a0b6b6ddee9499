"""A stand-in for a program in a terminal: a script of Python that does what a test says."""

import asyncio
import os
import stat
import sys
from pathlib import Path


def write_program(folder: Path, name: str, script: str) -> dict[str, str]:
    """Write the script as an executable, on Windows with a .cmd file as npm does, and return an environment with it."""
    folder.mkdir(parents=True, exist_ok=True)
    if sys.platform == "win32":
        (folder / f"{name}.py").write_text(script, encoding="utf-8")
        (folder / f"{name}.cmd").write_text(f'@"{sys.executable}" "%~dp0{name}.py" %*\n', encoding="utf-8")
    else:
        file = folder / name
        file.write_text(f"#!{sys.executable}\n{script}\n", encoding="utf-8")
        file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return {**os.environ, "PATH": str(folder)}


async def until_there(file: Path) -> None:
    """Wait until a program has written a file."""
    while not await asyncio.to_thread(file.exists):  # noqa: ASYNC110  a file tells nobody when it is made
        await asyncio.sleep(0.01)
