"""`qwendesk serve` as a process of its own, with the folders of a user who exists only meanwhile."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

_STOP_LIMIT_S = 60.0
STATUS_OF_TERMINATED = 1 if os.name == "nt" else 0
"""Exit status of `qwendesk serve` after Popen.terminate. Windows has no SIGTERM: there, that kills it, with 1."""
_FOLDERS = (
    "HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "WIN_PD_OVERRIDE_APPDATA", "WIN_PD_OVERRIDE_LOCAL_APPDATA",
    "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME",
)  # fmt: skip


class Served(msgspec.Struct, frozen=True):
    url: str
    keys: tuple[str, ...]
    pid: int


@contextlib.contextmanager
def served(model: Path, *options: str, n_keys: int = 1, load: Sequence[str] = ()) -> Iterator[Served]:
    """Serve `model` with that many keys until the end. `load` are load options such as "n_ctx=8192".

    Raise RuntimeError if the server doesn't start, or doesn't end well.
    """
    with tempfile.TemporaryDirectory(prefix="qwendesk-serve-") as folder:
        keys = tuple(f"key-of-client-{number:03d}" for number in range(n_keys))
        key_file = Path(folder, "keys")
        key_file.write_text("\n".join(keys), encoding="utf-8")
        command = [sys.executable, "-m", "qwendesk", "serve", "--json", "--port", "0", "--key-file", str(key_file)]
        command += ["--model", str(model), *(part for each in load for part in ("--set", each)), *options]
        environment = os.environ | dict.fromkeys(_FOLDERS, folder)
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE)
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            if not line:
                raise RuntimeError(f"qwendesk serve ended with {process.wait()}")
            yield Served(json.loads(line)["url"], keys, process.pid)
        finally:
            process.terminate()
            try:
                status = process.wait(_STOP_LIMIT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                raise RuntimeError("qwendesk serve did not end within a minute") from None
            process.stdout.close()
        if status != STATUS_OF_TERMINATED:
            raise RuntimeError(f"qwendesk serve ended with {status}")
