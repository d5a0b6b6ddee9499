"""How long one look at all the hardware takes, on this PC: `python -m bench.poll [LOOKS]`.

Prints the median and the slowest of LOOKS looks (200), once with this process in the engine's place. The goal is a
median under 5 ms; the window is not involved, because the looks happen on another thread.
"""

import os
import statistics
import sys
import time

from qwendesk.hardware.snapshot_reader import SnapshotReader

_GOAL_MS = 5.0


def main() -> int:
    looks = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    reader = SnapshotReader()
    snapshot, took = reader.read(os.getpid(), 0.0), []
    for index in range(1, looks + 1):
        began = time.perf_counter()
        snapshot = reader.read(os.getpid(), float(index))
        took.append(1000 * (time.perf_counter() - began))
    reader.close()
    print(f"GPUs: {', '.join(gpu.name or gpu.key for gpu in snapshot.gpus) or 'none'}")
    print(f"median {statistics.median(took):.2f} ms, slowest {max(took):.2f} ms")
    return 0 if statistics.median(took) < _GOAL_MS else 1


if __name__ == "__main__":
    sys.exit(main())
