"""The scene behind the guide's pictures of a spill and of the Engine page is played, and its texts are read.

Both pictures once contradicted themselves: the banner said "4 to 24 times slower" above answers that had become 1.8
times slower, and the Engine page knew no plan of the model that was loaded, and no CUDA beside a CUDA device.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from tests.user_folders import user_variables

SCENE = """
import json, sys
from PySide6.QtWidgets import QAbstractButton, QLabel
from qwendesk.widgets.kit import Fold
from tools.screenshots import take
from tools.screenshots.stage import settle

texts = {}

async def read(widget, name, _part=None):
    await settle()
    for fold in widget.findChildren(Fold):
        fold.show_open(is_open=True)
    shown = (*widget.findChildren(QLabel), *widget.findChildren(QAbstractButton))
    texts[name] = [each.text() for each in shown if each.isVisible()]

take.save = read
sys.argv = ["take", "gaming", "engine", "spill"]
code = take.main()
print(json.dumps(texts))
sys.exit(code)
"""
"""Plays the scene in a process of its own, with chats of its own, and prints the visible texts of each picture."""


def after(label: str, texts: list[str]) -> str:
    """Return the text beside a label of the Engine page."""
    return texts[texts.index(label) + 1]


def test_pictures_of_a_spill_and_of_the_engine_agree_with_themselves(tmp_path: Path) -> None:
    folders = user_variables(tmp_path)
    for folder in folders.values():
        Path(folder).mkdir(parents=True, exist_ok=True)
    (tmp_path / "runtime").chmod(0o700)
    done = subprocess.run(
        [sys.executable, "-c", SCENE], env={**os.environ, **folders}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    shown: dict[str, list[str]] = json.loads(done.stdout.splitlines()[-1])

    engine, spill = shown["engine"], shown["spill"]
    assert "Made when a model is loaded" not in engine
    assert "CUDA" in after("Backends", engine)
    assert after("CUDA0", engine).startswith("NVIDIA")
    assert "All numbers are the engine's own" in after("Numbers", engine)
    banner = next(text for text in spill if "sits in shared memory" in text)
    assert "times slower" not in banner
    now = re.findall(r"to ([\d.]+) tok/s", banner)[0]
    assert f"{now} tok/s" in spill, "the meter shows the speed that the banner names"
