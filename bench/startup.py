"""How long it takes from the start of the process until the window is drawn, against a bare PySide6 window.

    python -m bench.startup [--rounds N]

Both windows are started in turns, with their files in the system's cache, and figures are medians. The bare one says
how fast the machine is at that moment. Each is drawn into memory (Qt's platform "offscreen") and on an X server without
a screen, if Xvfb is there. QwenDesk starts as for a newcomer, in new folders; its code is compiled before the first
round, as in an installed app.
"""

import argparse
import builtins
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Literal

import msgspec

from tests.user_folders import user_variables
from tests.xvfb import running_xvfb

TARGET_S = 0.35
"""How much processor time it may take, on the machine of bench/README.md with nothing else running."""
HEAVY = (
    "PIL", "configparser", "filelock", "httpx2", "huggingface_hub", "keyring", "llama_cpp", "numpy", "plistlib",
    "pygments", "pypdf", "pypdfium2",
    "qwendesk.bench.view.bench_page", "qwendesk.chat.view.thread.assistant_message",
    "qwendesk.engines.view.engine_page", "qwendesk.help.view.crash_notices", "qwendesk.mcp.service",
    "qwendesk.models.pasted_report", "qwendesk.models.search", "qwendesk.models.view.first_start",
    "qwendesk.models.view.models_page", "qwendesk.server.service", "qwendesk.server.view.server_page",
    "qwendesk.settings.view.settings_page", "qwendesk.store.database",
)  # fmt: skip
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
    reads_sources: bool = False
    """Whether Qt's hook still reads the source of each module that is imported."""


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

    The user's folders are in `folder`, and new at each start. It is drawn offscreen unless `display` names an X
    display.
    """
    user = folder / "user"
    shutil.rmtree(user, ignore_errors=True)
    environment = {**os.environ, **user_variables(user), "PYTHONPYCACHEPREFIX": str(folder / "compiled")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    environment.pop("WAYLAND_DISPLAY", None)
    environment |= {"QT_QPA_PLATFORM": "xcb", "DISPLAY": display} if display else {"QT_QPA_PLATFORM": "offscreen"}
    (user / "runtime").mkdir(mode=0o700, parents=True)
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
    verdict = "met" if cpu_s <= TARGET_S else "MISSED"
    print(f"  {platform}: {ours_s:.2f} s, bare {bare_s:.2f} s, ratio {ratio:.2f}")
    print(
        f"    of it processor time: {cpu_s:.2f} s (target {TARGET_S} s)  {verdict}; bare {bare_cpu_s:.2f} s, "
        f"ratio {cpu_ratio:.2f}"
    )
    return cpu_s <= TARGET_S


def _report() -> None:
    loaded = tuple(name for name in HEAVY if name in sys.modules)
    hook = getattr(builtins, "__feature_import__", None)
    found = Start(time.time(), time.process_time(), loaded, reads_sources=builtins.__import__ is hook)
    print(json.dumps(msgspec.to_builtins(found)), flush=True)
    os._exit(0)  # nothing was opened that must be closed, and closing isn't measured


def _draw_bare(report: Callable[[], None]) -> int:
    from PySide6.QtWidgets import QApplication, QLabel, QMainWindow

    app = QApplication(["bare"])
    _watch_main_window(report)
    window = QMainWindow()
    window.setCentralWidget(QLabel("A window"))
    window.resize(1100, 760)
    window.show()
    return app.exec()


def _draw_ours(report: Callable[[], None]) -> int:
    from qwendesk.__main__ import main as start

    _watch_main_window(report)
    return start([])


def _watch_main_window(report: Callable[[], None]) -> None:
    """Call `report` once a main window was drawn."""
    from PySide6.QtCore import QEvent, QObject, QTimer
    from PySide6.QtWidgets import QMainWindow

    class Watch(QObject):
        def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
            if event.type() is QEvent.Type.Paint:
                QTimer.singleShot(0, report)
            return False

    watch, show = Watch(), QMainWindow.show

    def show_watched(window: QMainWindow) -> None:
        window.installEventFilter(watch)  # only now, and only here: a filter sees each event, which takes time
        show(window)

    setattr(QMainWindow, "show", show_watched)  # noqa: B010 - mypy allows no assignment to a method


if __name__ == "__main__":
    sys.exit(main())
