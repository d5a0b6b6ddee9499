"""How fast files are judged: the quick look at a header as large as Qwen3.5's, and SHA-256 against `sha256sum`.

    python -m bench.verify [--megabytes N]

Prints each figure next to its target. The file is made up, and is read once before anything is timed.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from qwendesk.core.units import MIB
from qwendesk.hub.catalog import load_catalog
from qwendesk.hub.evidence import gather
from qwendesk.hub.hashing import hash_file
from qwendesk.hub.verify import verify
from tests.gguf_files import model_values, tensor, write_model
from tools.gguf_writer import Value

QUICK_TARGET_S = 0.1
HASH_TARGET = 0.9
"""Of the speed of `sha256sum`."""
_TOKENS, _MERGES, _TENSORS = 248_320, 247_587, 733
_RUNS = 5


def main() -> int:
    """Measures and prints; exit status 1 when a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=1024, help="how much is hashed")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="qwendesk-bench-") as folder:
        passed = [_quick(Path(folder)), _full(Path(folder), options.megabytes)]
    return 0 if all(passed) else 1


def _quick(folder: Path) -> bool:
    lists: dict[str, Value] = {
        "tokenizer.ggml.tokens": [f"token{number}" for number in range(_TOKENS)],
        "tokenizer.ggml.merges": [f"left{number} right" for number in range(_MERGES)],
    }
    tensors = [tensor(f"blk.{number}.attn_q.weight", 64) for number in range(_TENSORS)]
    path = write_model(folder / "model.gguf", model_values() | lists, tensors)
    catalog = load_catalog()
    seconds = _best(lambda: verify(gather(path), catalog))
    _say(f"quick look       {seconds * 1000:6.0f} ms a file    target under {QUICK_TARGET_S * 1000:.0f}")
    return seconds < QUICK_TARGET_S


def _full(folder: Path, megabytes: int) -> bool:
    command = shutil.which("sha256sum")
    if command is None:
        _say("SHA-256          not measured: there is no sha256sum here to compare with")
        return True
    path = folder / "bytes"
    with path.open("wb") as file:
        for number in range(megabytes):
            file.write(number.to_bytes(8, "little") * (MIB // 8))
    ours = _best(lambda: hash_file(path))
    theirs = _best(lambda: subprocess.run([command, str(path)], check=True, stdout=subprocess.DEVNULL))
    ratio = theirs / ours
    speed = f"{megabytes / ours:6.0f} MB/s"
    _say(f"SHA-256          {speed}, {ratio:.2f} times sha256sum    target {HASH_TARGET} times")
    return ratio >= HASH_TARGET


def _best(run: Callable[[], object]) -> float:
    """Seconds of the fastest of a few runs: the others measure what else the machine does."""
    times = []
    for _ in range(_RUNS):
        started = time.perf_counter()
        run()
        times.append(time.perf_counter() - started)
    return min(times)


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")


if __name__ == "__main__":
    sys.exit(main())
