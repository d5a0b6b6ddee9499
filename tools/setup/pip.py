"""Runs pip, with every line of its output in a log and none of it on screen."""

import os
import re
import subprocess
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

_LAST_LINES = 25
_ADDRESS = re.compile(r"\b[a-z][a-z0-9+]*://[^\s'\"<>)\]]+")


def run_pip(
    python: Path,
    arguments: Sequence[str],
    log: Path,
    take: Callable[[str], None] = lambda line: None,
    environment: Mapping[str, str] | None = None,
) -> str | None:
    """Run `python -m pip` and hand each line of its output to `take`.

    Returns None if pip succeeded, else a text with the place of the log and the last lines of the output.
    `environment` is added to this process's own.
    """
    command = [str(python), "-m", "pip", "--no-input", "--disable-pip-version-check", "--no-color", *arguments]
    last = deque[str](maxlen=_LAST_LINES)
    log.parent.mkdir(exist_ok=True)
    with (
        log.open("w", encoding="utf-8") as file,
        subprocess.Popen(
            command,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="replace",
        ) as process,
    ):
        for line in process.stdout or ():
            file.write(line)
            last.append(line)
            take(line)
    return f"The end of {log}:\n{without_addresses(''.join(last))}" if process.returncode else None


def without_addresses(text: str) -> str:
    """Return `text` with each web address replaced: people need to know what failed, not from which server."""
    return _ADDRESS.sub("(an address)", text)
