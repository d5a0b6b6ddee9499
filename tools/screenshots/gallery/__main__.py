"""Takes the gallery, offscreen, into a folder: `python -m tools.screenshots.gallery FOLDER [SCENE...]`.

The parent starts one process for each scale of the screen; that takes every scene in every look.
"""

import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import qasync
from PySide6.QtWidgets import QApplication

from qwendesk.ui.kit.theme_keeper import ThemeKeeper
from tools.screenshots.gallery.room import Look, Room
from tools.screenshots.gallery.scenes import SCENES, earlier_chats

_SCALES: Final[dict[str, tuple[Look, ...]]] = {
    "1": (("dark", 1280, 800), ("light", 1280, 800), ("dark", 1920, 1080)),
    "1.5": (("light", 1280, 720), ("dark", 853, 533)),
}
"""Scale of the screen: the window's themes and sizes in logical pixels. 1280x800 and 1920x1080 pixels in both."""
_SCALE = "QT_SCALE_FACTOR"
_LONGEST_S = 900


def main(arguments: Sequence[str]) -> int:
    if not arguments or not set(arguments[1:]) <= set(SCENES):
        print(f"Say a folder, and which of these scenes if not all: {', '.join(SCENES)}.")
        return 1
    if os.environ.get("QWENDESK_GALLERY_SCALE"):
        return _take(Path(arguments[0]), arguments[1:] or list(SCENES), os.environ["QWENDESK_GALLERY_SCALE"])
    Path(arguments[0]).mkdir(parents=True, exist_ok=True)
    return max(_start(scale, arguments) for scale in _SCALES)


def _start(scale: str, arguments: Sequence[str]) -> int:
    with tempfile.TemporaryDirectory() as home:
        places = {f"XDG_{kind}_HOME": f"{home}/{kind.lower()}" for kind in ("CONFIG", "DATA", "CACHE", "STATE")}
        own = {"HOME": home, "QT_QPA_PLATFORM": "offscreen", _SCALE: scale, "QWENDESK_GALLERY_SCALE": scale}
        command = [sys.executable, "-m", "tools.screenshots.gallery", str(Path(arguments[0]).resolve()), *arguments[1:]]
        return subprocess.run(command, env={**os.environ, **places, **own}, timeout=_LONGEST_S, check=False).returncode


def _take(folder: Path, scenes: Sequence[str], scale: str) -> int:
    app = QApplication(["qwendesk"])
    app.setQuitOnLastWindowClosed(False)

    async def run() -> None:
        room = Room(ThemeKeeper(app, "dark"), folder, _SCALES[scale], "" if scale == "1" else f"@{scale}")
        try:
            await room.begin(earlier_chats())
            if scenes[0] != "empty":
                await room.load()
            for scene in scenes:
                await SCENES[scene](room)
        finally:
            await room.parts.close()

    with asyncio.Runner(loop_factory=lambda: qasync.QEventLoop(app)) as runner:
        runner.run(run())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
