"""Starts a script inside of the sandbox, limits it, and tells what it left behind.

It runs with the system's Python, without QwenDesk: the app hands this file's text to it. The first argument is the
number of the pipe to the app, the second a JSON object of limits. The app treats all that comes out of this process as
it treats the script's own output: a script may stop it, kill it or write into its pipe.
"""

import json
import os
import resource
import stat
import sys
from pathlib import Path

SCRIPT = "script.py"
MOST_FILES = 100
LONGEST_NAME = 200
"""Together less than the pipe holds, so that nobody has to read meanwhile."""


def limit(limits: dict[str, int]) -> None:
    """Limit this process and all that it starts."""
    os.nice(10)
    Path("/proc/self/oom_score_adj").write_text("1000")  # when the PC's memory runs out, this ends first
    for name, value in limits.items():
        resource.setrlimit(getattr(resource, name), (value, value))


def left_files() -> list[tuple[str, int]]:
    """Return the paths and sizes of the files below the current folder, without hidden ones, links and the script."""
    files: list[tuple[str, int]] = []
    for folder, folders, names in os.walk("."):
        folders[:] = sorted(name for name in folders if name[:1] != "." and name != "__pycache__")
        for name in sorted(names):
            path = Path(folder, name)
            shown = os.fsencode(path).decode(errors="replace")[:LONGEST_NAME]
            if len(files) < MOST_FILES and name[:1] != "." and shown != SCRIPT and stat.S_ISREG(path.lstat().st_mode):
                files.append((shown, path.lstat().st_size))
    return files


pipe = int(sys.argv[1])
os.set_inheritable(pipe, False)
limit(json.loads(sys.argv[2]))
os.write(pipe, b"started\n")
status = os.spawnv(os.P_WAIT, sys.executable, [sys.executable, "-B", "-s", "-X", "utf8", SCRIPT])
os.write(pipe, json.dumps({"status": status, "files": left_files()}).encode() + b"\n")
