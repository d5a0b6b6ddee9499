"""NVIDIA's own program nvidia-smi, whose figures are compared with those of the probes."""

import shutil
import subprocess
import sys

from qwendesk.core.units import MIB

_TIMEOUT_S = 30


def used_on_cards() -> list[int]:
    """Return the bytes in use on each card; empty without nvidia-smi. Blocks."""
    return [int(float(line) * MIB) for line in _query("--query-gpu=memory.used") if line.replace(".", "").isdigit()]


def used_by(pid: int | None) -> int | None:
    """Return the bytes that one process uses on all cards together; None if nvidia-smi doesn't say. Blocks."""
    rows = (line.split(",") for line in _query("--query-compute-apps=pid,used_memory") if "," in line)
    sizes = [size.strip() for process, size, *_ in rows if process.strip() == str(pid)]
    known = [int(size) * MIB for size in sizes if size.isdigit()]
    return sum(known) if known else None


def _query(query: str) -> list[str]:
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    if sys.platform == "win32":
        flags = subprocess.CREATE_NO_WINDOW
    else:
        flags = 0
    command = [program, query, "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False, creationflags=flags
        )
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return []
    return [line.strip() for line in done.stdout.splitlines() if line.strip()]
