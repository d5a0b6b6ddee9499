"""What the window costs while nothing happens: wake-ups and processor time, of the app and its engine (Linux).

    python -m bench.idle [--seconds N]

The window opens in memory (Qt's platform "offscreen") with the built-in demo loaded, in folders of its own. It is
measured while it is shown, and while it is hidden, as it is in the tray or behind a game. A wake-up is a voluntary
context switch of any thread, as /proc counts them.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil

from tests.user_folders import user_variables

MOST_WAKEUPS = 5.0
"""How many wake-ups a second are allowed while the window is hidden."""
_SECONDS, _SETTLE_S, _LIMIT_S = 20, 25, 300.0
_MIB = 1024**2


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.idle", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=int, default=_SECONDS, help="how long each state is measured")
    parser.add_argument("--watch", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not Path("/proc/self/task").exists():
        print("This counts what Linux shows in /proc: nothing was measured.")
        return 0
    if options.watch:
        return _open_and_watch(options.seconds)
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            (sys.executable, "-m", "bench.idle", "--watch", "--seconds", str(options.seconds)),
            env={**os.environ, **user_variables(Path(folder)), "QT_QPA_PLATFORM": "offscreen"},
            stdout=subprocess.PIPE, text=True, timeout=_LIMIT_S + 2 * options.seconds, check=True,
        )  # fmt: skip
    figures = json.loads(done.stdout.splitlines()[-1])
    for state, (wakeups, busy, app_bytes, engine_bytes) in figures.items():
        verdict = "" if state == "shown" else "  met" if wakeups < MOST_WAKEUPS else f"  MISSED (below {MOST_WAKEUPS})"
        print(
            f"{state}: {wakeups:.1f} wake-ups a second, {busy:.2%} of a core, "
            f"{app_bytes / _MIB:.0f} + {engine_bytes / _MIB:.0f} MiB{verdict}"
        )
    return 0 if figures["hidden"][0] < MOST_WAKEUPS else 1


def _open_and_watch(seconds: int) -> int:
    """Open the window in this process, measure it twice, and print the figures as JSON."""
    from PySide6.QtCore import QTimer
    from PySide6.QtWidgets import QApplication, QMainWindow

    from qwendesk.__main__ import main as start

    app: QApplication = QApplication(["qwendesk"])
    figures: dict[str, tuple[float, float, int, int]] = {}

    def measure(state: str) -> None:
        before = _counters()
        QTimer.singleShot(1000 * seconds, lambda: finish(state, before))

    def finish(state: str, before: tuple[int, float]) -> None:
        after = _counters()
        app_bytes, *engines = (process.memory_info().rss for process in _processes())
        figures[state] = (
            (after[0] - before[0]) / seconds, (after[1] - before[1]) / seconds, app_bytes, sum(engines),
        )  # fmt: skip
        if state == "hidden":
            print(json.dumps(figures), flush=True)
            for process in _processes()[1:]:
                process.kill()
            os._exit(0)
        for window in app.topLevelWidgets():
            if isinstance(window, QMainWindow):
                window.hide()
        QTimer.singleShot(1000 * _SETTLE_S // 5, lambda: measure("hidden"))

    QTimer.singleShot(1000 * _SETTLE_S, lambda: measure("shown"))
    return start([])


def _processes() -> list[psutil.Process]:
    own = psutil.Process()
    return [own, *own.children(recursive=True)]


def _counters() -> tuple[int, float]:
    """Return the voluntary context switches of all threads so far, and the seconds of processor time."""
    switches, busy_s = 0, 0.0
    for process in _processes():
        for status in Path(f"/proc/{process.pid}/task").glob("*/status"):
            lines = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
            switches += int(lines["voluntary_ctxt_switches"])
        times = process.cpu_times()
        busy_s += times.user + times.system
    return switches, busy_s


if __name__ == "__main__":
    sys.exit(main())
