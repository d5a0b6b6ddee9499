"""Runs `qwendesk serve` in a process of its own."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from qwendesk.core import paths
from qwendesk.server.setups.programs import Target
from tools.setup.project import ROOT

SCRIPTED, DEMO = "tools.clients.serve", "qwendesk"
_CONTEXT = {SCRIPTED: 262_144, DEMO: 32_768}
_LONGEST_S = 30


@contextlib.contextmanager
def running_server(module: str, home: Path, more: Mapping[str, str]) -> Iterator[Target]:
    """Serve the demo model with the scripted engine or the real one, until the block ends.

    `more` are environment variables. Raise RuntimeError if the server doesn't start.
    """
    home.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", module, *(["serve"] if module == DEMO else [])]
    command += ["--model", str(paths.demo_model()), "--port", "0", "--json"]
    environment = {**os.environ, "HOME": str(home), "USERPROFILE": str(home), **more}
    log = home / "serve.log"
    with log.open("w") as errors:
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=errors)
    try:
        line = process.stdout.readline() if process.stdout is not None else b""
        if not line:
            raise RuntimeError(f"The server didn't start: {log.read_text()[-500:]}")
        ready = json.loads(line)
        yield Target(ready["url"], ready["key"], _CONTEXT[module])
    finally:
        process.terminate()
        try:
            process.wait(_LONGEST_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()
