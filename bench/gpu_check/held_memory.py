"""Holds memory of the first NVIDIA card in a process of its own, as a game or another program would."""

import contextlib
import ctypes
import ctypes.util
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from bench.gpu_check.models import CheckFailed
from qwendesk.core.units import GIB, MIB

_PIECE_BYTES = 256 * MIB
_LIBRARIES = ("libcudart.so.13", "libcudart.so.12", "cudart64_13.dll", "cudart64_12.dll", "libcudart.so")


@contextlib.contextmanager
def free_memory(free_bytes: int) -> Iterator[None]:
    """Let only `free_bytes` of the card be free while the block runs. Raises CheckFailed if that fails."""
    with _holder("--leave", free_bytes):
        yield


@contextlib.contextmanager
def held_memory(n_bytes: int) -> Iterator[None]:
    """Hold `n_bytes` of the card while the block runs. Raises CheckFailed if that fails."""
    with _holder("--hold", n_bytes):
        yield


@contextlib.contextmanager
def _holder(what: str, n_bytes: int) -> Iterator[None]:
    command = [sys.executable, "-m", "bench.gpu_check.held_memory", what, str(n_bytes)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        if not process.stdout.readline().startswith("holding"):
            raise CheckFailed("the other process could not hold memory of the card")
        try:
            yield
        finally:
            process.stdin.close()


def _hold(what: str, n_bytes: int) -> None:
    runtime = _runtime()
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    _check(runtime.cudaMemGetInfo(ctypes.byref(free), ctypes.byref(total)))
    left = n_bytes if what == "--hold" else max(free.value - n_bytes, 0)
    while left > 0:
        piece = min(left, _PIECE_BYTES)
        _check(runtime.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(piece)))
        left -= piece
    _check(runtime.cudaMemGetInfo(ctypes.byref(free), ctypes.byref(total)))
    print(f"holding; {free.value / GIB:.2f} GiB are free", flush=True)
    sys.stdin.read()


def _runtime() -> ctypes.CDLL:
    own = Path(sys.prefix).rglob("libcudart.so.*")
    for name in (*_LIBRARIES, *map(str, own)):
        with contextlib.suppress(OSError):
            return ctypes.CDLL(name)
    raise SystemExit("CUDA's runtime library was not found")


def _check(code: int) -> None:
    if code:
        raise SystemExit(f"CUDA refused: error {code}")


if __name__ == "__main__":
    _hold(sys.argv[1], int(sys.argv[2]))
