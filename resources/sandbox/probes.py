"""What a confined script must be able to do, and what it must not. QwenDesk runs this before it offers Python.

The app appends a call of `report`.
"""

import ctypes
import json
import mmap
import os
import socket
import subprocess
import threading
import time
from pathlib import Path

CLONE_NEWUSER = 0x10000000
OWN_PROCESSES = 10
"""More than there are in the sandbox when this runs."""


def work() -> None:
    """Do what any script may: write in the current folder, use threads, start programs."""
    Path("note.txt").write_text("x")
    thread = threading.Thread(target=int)
    thread.start()
    thread.join()
    subprocess.run(["/bin/true"], check=True)


def see_other_processes() -> None:
    if sum(path.name.isdigit() for path in Path("/proc").iterdir()) <= OWN_PROCESSES:
        raise PermissionError


def make_namespace() -> None:
    if ctypes.CDLL(None).unshare(CLONE_NEWUSER):
        raise PermissionError


def fork(times: int) -> None:
    for _ in range(times):
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)


def report(home: str, n_processes: int, memory_bytes: int) -> None:
    """Try everything, and print the names of what could be done. The limits come last: they leave no room."""
    probes = {
        "work": work,
        "read the home folder": lambda: list(Path(home).iterdir()),
        "write in the home folder": lambda: Path(home, "qwendesk-probe").write_text("x"),
        "write in /usr": lambda: Path("/usr/qwendesk-probe").write_text("x"),
        "write in /": lambda: Path("/qwendesk-probe").write_text("x"),
        "write in /dev/shm": lambda: Path("/dev/shm/qwendesk-probe").write_text("x"),
        "use the network": socket.socket,
        "see other processes": see_other_processes,
        "make a namespace": make_namespace,
        "take too much memory": lambda: mmap.mmap(-1, memory_bytes),
        "start too many processes": lambda: fork(n_processes),
    }
    done = []
    for name, probe in probes.items():
        try:
            probe()
            done.append(name)
        except (OSError, MemoryError, subprocess.SubprocessError):
            pass
    print(json.dumps(done))
