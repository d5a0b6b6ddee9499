"""Takes the gallery, offscreen, into a folder.

    python -m tools.screenshots.gallery FOLDER                           # every scene in every look
    python -m tools.screenshots.gallery FOLDER --looks dark-1280@1,light-560@1.5 versions search

The parent starts one process for each scale of the screen; that takes every scene in every look of this scale.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Final

import qasync
from PySide6.QtWidgets import QApplication

from qwendesk.core.translation import install_translator
from qwendesk.widgets.language import show_language
from tests.app.pseudo import PseudoTranslator
from tools.i18n import sources
from tools.screenshots.gallery.looks import ALL_LOOKS, Look, LookTheme, by_scale, read_looks
from tools.screenshots.gallery.room import Room
from tools.screenshots.gallery.scenes import SCENES, Scene

_IN_CHILD: Final = "QWENDESK_GALLERY_CHILD"
_PSEUDO: Final = "pseudo"
"""The language of tests/app/pseudo.py: accents on every letter, and every text 40% longer."""
_SCREEN: Final = {"name": "gallery", "x": 0, "y": 0, "width": 3000, "height": 2000, "logicalDpi": 96, "dpr": 1}
"""Qt's own offscreen screen has 800 x 800 pixels, in which no popup finds its place."""


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.screenshots.gallery", description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("scenes", nargs="*", help=f"some of: {', '.join(SCENES)}")
    parser.add_argument("--looks", default=",".join(map(str, ALL_LOOKS)), help="as dark-1280@1,contrast-light-560@1.5")
    parser.add_argument(
        "--lang", default="en", metavar="CODE", help=f"the window's language, such as de; {_PSEUDO} is 40%% longer"
    )
    chosen = parser.parse_intermixed_args(arguments)
    unknown = set(chosen.scenes) - set(SCENES)
    if unknown:
        parser.error(f"There is no scene called {', '.join(sorted(unknown))}. There are: {', '.join(SCENES)}.")
    try:
        looks = by_scale(read_looks(chosen.looks))
    except ValueError as error:
        parser.error(str(error))
    names = chosen.scenes or list(SCENES)
    if os.environ.get(_IN_CHILD):
        return _take(chosen.folder, [SCENES[name] for name in names], *looks.values(), language=chosen.lang)
    chosen.folder.mkdir(parents=True, exist_ok=True)
    return max(_start(scale, own, chosen.folder, (*names, "--lang", chosen.lang)) for scale, own in looks.items())


def _start(scale: str, looks: Sequence[Look], folder: Path, names: Sequence[str]) -> int:
    with tempfile.TemporaryDirectory() as home:
        screens = Path(home, "screens.json")
        screens.write_text(json.dumps({"screens": [_SCREEN]}))
        places = {f"XDG_{kind}_HOME": f"{home}/{kind.lower()}" for kind in ("CONFIG", "DATA", "CACHE", "STATE")}
        platform = {"QT_QPA_PLATFORM": f"offscreen:configfile={screens}", "QT_SCALE_FACTOR": scale}
        command = [sys.executable, "-m", "tools.screenshots.gallery", str(folder.resolve()), *names]
        command += ["--looks", ",".join(map(str, looks))]
        own = {**places, **platform, "HOME": home, _IN_CHILD: "1"}
        return subprocess.run(command, env={**os.environ, **own}, check=False).returncode


def _take(folder: Path, scenes: Sequence[Scene], looks: Sequence[Look], *, language: str) -> int:
    app = QApplication(["qwendesk"])
    app.setQuitOnLastWindowClosed(False)
    if language == _PSEUDO:
        install_translator(PseudoTranslator(sources()))
    else:
        show_language(app, language)

    async def run() -> None:
        LookTheme(app, "dark")
        for has_gpu, group in groupby(scenes, lambda scene: scene.has_gpu):
            room = Room(folder, looks, has_gpu=has_gpu)
            try:
                await room.begin()
                for scene in group:
                    await room.prepare(needs_model=scene.needs_model)
                    await scene.take(room)
            finally:
                await room.parts.close()

    with asyncio.Runner(loop_factory=lambda: qasync.QEventLoop(app)) as runner:
        runner.run(run())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
