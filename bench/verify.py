"""How fast files are judged: headers against the `gguf` package, hostile headers, the quick look at a file, and SHA-256
against `sha256sum`.

    python -m bench.verify [--megabytes N]

Prints each figure next to its target. The file is made up, and is read once before anything is timed.
"""

import argparse
import functools
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import gguf

from qwendesk.core.errors import BadModelFile
from qwendesk.core.units import MIB
from qwendesk.hub.catalog import load_catalog
from qwendesk.hub.evidence import gather
from qwendesk.hub.file_hashes import hash_file
from qwendesk.hub.gguf import read_facts
from qwendesk.hub.header_cache import HeaderCache
from qwendesk.hub.verify import verify
from tests.gguf_files import model_values, raw_header, tensor, write_model
from tools.gguf_writer import Value

HEADER_TARGET = 50
"""Times the speed of the `gguf` package's reader."""
HOSTILE_TARGET_S, HOSTILE_TARGET_BYTES = 0.1, 50 * MIB
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
        path = _large_header(Path(folder))
        passed = [_header(path), _hostile(Path(folder)), _quick(path), _full(Path(folder), options.megabytes)]
    return 0 if all(passed) else 1


def _large_header(folder: Path) -> Path:
    """As many tokens, merges and tensors as a file of Qwen3.5 has."""
    lists: dict[str, Value] = {
        "tokenizer.ggml.tokens": [f"token{number}" for number in range(_TOKENS)],
        "tokenizer.ggml.merges": [f"left{number} right" for number in range(_MERGES)],
    }
    tensors = [tensor(f"blk.{number}.attn_q.weight", 64) for number in range(_TENSORS)]
    return write_model(folder / "model.gguf", model_values() | lists, tensors)


def _header(path: Path) -> bool:
    theirs = _best(lambda: gguf.GGUFReader(path), 2)
    ours = _best(lambda: read_facts(path))
    ratio = theirs / ours
    _say(
        f"header           {ours * 1000:6.0f} ms, {ratio:.0f} times as fast as the gguf package ({theirs:.1f} s)"
        f"    target {HEADER_TARGET} times"
    )
    return ratio >= HEADER_TARGET


def _hostile(folder: Path) -> bool:
    """The slowest and the largest of headers that claim what they like; memory as Python counts it."""
    slowest, largest = 0.0, 0
    for name, data in _hostile_headers().items():
        path = folder / name
        path.write_bytes(data)
        slowest = max(slowest, _best(functools.partial(_refused, path), 3))
        tracemalloc.start()
        _refused(path)
        largest = max(largest, tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    _say(f"hostile header   {slowest * 1000:6.1f} ms, {largest / MIB:.1f} MiB at most    target 100 ms, 50 MiB")
    return slowest < HOSTILE_TARGET_S and largest < HOSTILE_TARGET_BYTES


def _hostile_headers() -> dict[str, bytes]:
    most, many = 2**63, 2_000_000
    key = struct.pack("<Q", 3) + b"key"
    nested = key + struct.pack("<IIQ", 9, 9, 1) + struct.pack("<IQ", 9, 1) * many
    texts = key + struct.pack("<IIQ", 9, 8, 2**40) + struct.pack("<Q", 0) * many
    return {
        "counts.gguf": raw_header(n_tensors=most, n_values=most, rest=bytes(4096)),
        "text.gguf": raw_header(n_values=1, rest=struct.pack("<Q", most) + bytes(4096)),
        "list.gguf": raw_header(n_values=1, rest=key + struct.pack("<IIQ", 9, 8, most)),
        "nested.gguf": raw_header(n_values=1, rest=nested),
        "texts.gguf": raw_header(n_values=1, rest=texts),
        "zeros.gguf": raw_header(n_values=2**31, n_tensors=2**31, rest=bytes(16 * MIB)),
    }


def _refused(path: Path) -> None:
    try:
        read_facts(path)
    except BadModelFile:
        return
    raise AssertionError(f"{path.name} was taken for a model")


def _quick(path: Path) -> bool:
    catalog = load_catalog()
    seconds = _best(lambda: verify(gather(path, HeaderCache()), catalog))
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


def _best(run: Callable[[], object], runs: int = _RUNS) -> float:
    """Seconds of the fastest of a few runs: the others measure what else the machine does."""
    times = []
    for _ in range(runs):
        started = time.perf_counter()
        run()
        times.append(time.perf_counter() - started)
    return min(times)


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")


if __name__ == "__main__":
    sys.exit(main())
