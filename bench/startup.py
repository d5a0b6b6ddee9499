"""How long it takes from the start of the process until the window is drawn, against a bare PySide6 window.

    python -m bench.startup [--rounds N]

Both windows are started in turns, with their files in the system's cache, and the ratio is the median of the pairs.
Each is drawn into memory (Qt's platform "offscreen") and on an X server without a screen, if Xvfb is there. QwenDesk
starts as for a newcomer, in folders of its own; its code is compiled before the first round, as in an installed app.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from tests.user_folders import user_variables
from tests.xvfb import running_xvfb

if TYPE_CHECKING:
    from PySide6.QtWidgets import QApplication

TARGET = 1.6
"""How many times as long as for a bare window it may take."""
HEAVY = ("PIL", "httpx2", "huggingface_hub", "llama_cpp", "numpy", "pygments", "pypdf", "pypdfium2", "pyqtgraph")
"""Modules that no window needs to be drawn."""
_ROUNDS = 7
_LIMIT_S = 300.0
Kind = Literal["ours", "bare"]


class Start(msgspec.Struct, frozen=True):
    """One start, as the started process tells it."""

    drawn_at_s: float
    """When its window was drawn, by the system's clock."""
    cpu_s: float
    """Processor time until then."""
    heavy: tuple[str, ...] = ()
    """Those of `HEAVY` that were imported until then."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.startup", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=_ROUNDS, help="pairs of starts on each platform")
    parser.add_argument("--draw", choices=("ours", "bare"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.draw == "bare":
        return _draw_bare(_report)
    if options.draw == "ours":
        return _draw_ours(_report)
    print(f"start until the window is drawn, {options.rounds} pairs (load of the machine: {os.getloadavg()[0]:.1f})")
    with tempfile.TemporaryDirectory() as folder:
        good = _measure("offscreen", options.rounds, Path(folder), nullcontext(""))
        try:
            good &= _measure("Xvfb", options.rounds, Path(folder), running_xvfb(1280, 860))
        except FileNotFoundError as error:
            print(f"  Xvfb: skipped ({error})")
    return 0 if good else 1


def start_once(kind: Kind, folder: Path, display: str = "") -> tuple[Start, float]:
    """Start a window in another process, and return what it says and the seconds until it was drawn.

    The user's folders are below `folder`. It is drawn offscreen unless `display` names an X display.
    """
    environment = {**os.environ, **user_variables(folder), "PYTHONPYCACHEPREFIX": str(folder / "compiled")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    environment.pop("WAYLAND_DISPLAY", None)
    environment |= {"QT_QPA_PLATFORM": "xcb", "DISPLAY": display} if display else {"QT_QPA_PLATFORM": "offscreen"}
    (folder / "runtime").mkdir(mode=0o700, exist_ok=True)
    began = time.time()
    done = subprocess.run(
        (sys.executable, "-m", "bench.startup", "--draw", kind),
        env=environment, capture_output=True, text=True, timeout=_LIMIT_S, check=True,
    )  # fmt: skip
    start = msgspec.json.decode(done.stdout.splitlines()[-1], type=Start)
    return start, start.drawn_at_s - began


def _measure(platform: str, rounds: int, folder: Path, display: AbstractContextManager[str]) -> bool:
    with display as name:
        for kind in ("ours", "bare"):
            start_once(kind, folder, name)  # compiles, and fills the system's cache
        pairs = [(start_once("ours", folder, name), start_once("bare", folder, name)) for _ in range(rounds)]
    ratio = statistics.median(ours[1] / bare[1] for ours, bare in pairs)
    cpu_ratio = statistics.median(ours[0].cpu_s / bare[0].cpu_s for ours, bare in pairs)
    ours_s, bare_s = (statistics.median(pair[side][1] for pair in pairs) for side in (0, 1))
    cpu_s, bare_cpu_s = (statistics.median(pair[side][0].cpu_s for pair in pairs) for side in (0, 1))
    verdict = "met" if ratio <= TARGET else "MISSED"
    print(f"  {platform}: {ours_s:.2f} s, bare {bare_s:.2f} s, ratio {ratio:.2f} (target {TARGET})  {verdict}")
    print(f"    of it processor time: {cpu_s:.2f} s, bare {bare_cpu_s:.2f} s, ratio {cpu_ratio:.2f}")
    return ratio <= TARGET


def _report() -> None:
    loaded = tuple(name for name in HEAVY if name in sys.modules)
    found = Start(time.time(), time.process_time(), loaded)
    print(json.dumps(msgspec.to_builtins(found)), flush=True)
    os._exit(0)  # nothing was opened that must be closed, and closing isn't measured


def _draw_bare(report: Callable[[], None]) -> int:
    from PySide6.QtWidgets import QLabel, QMainWindow

    app, window = _application(report), QMainWindow()
    window.setCentralWidget(QLabel("A window"))
    window.resize(1100, 760)
    window.show()
    return app.exec()


def _draw_ours(report: Callable[[], None]) -> int:
    from qwendesk.__main__ import main as start

    _application(report)  # the window uses the application that is there
    return start([])


def _application(report: Callable[[], None]) -> "QApplication":
    """Return an application that calls `report` once a main window was drawn."""
    from PySide6.QtCore import QEvent, QObject, QTimer
    from PySide6.QtWidgets import QApplication, QMainWindow

    class Watch(QObject):
        def eventFilter(self, watched: QObject, event: QEvent) -> bool:
            if event.type() is QEvent.Type.Paint and isinstance(watched, QMainWindow):
                QTimer.singleShot(0, report)
            return False

    app = QApplication(["qwendesk"])
    app.installEventFilter(Watch(app))
    return app


if __name__ == "__main__":
    sys.exit(main())
