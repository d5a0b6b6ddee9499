"""One real window under Xvfb, with the real engine and the demo model, from start to end."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

_ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.mark.timeout(300)
def test_a_real_window_answers_a_question_and_a_picture(xvfb_display: str, tmp_path: Path) -> None:
    picture = tmp_path / "window.png"
    environment = {**os.environ, "DISPLAY": xvfb_display, "QT_QPA_PLATFORM": "xcb"}
    done = subprocess.run(
        [sys.executable, "-m", "qwendesk", "--theme", "dark", "--demo-tour", "--screenshot", str(picture)],
        cwd=_ROOT, env=environment, capture_output=True, text=True, timeout=240, check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "VRAM spill happens when the model needs more GPU memory than there is." in done.stdout
    assert "Thought: " in done.stdout
    assert "red circle on a white background" in done.stdout
    with Image.open(picture) as image:
        assert image.width >= 1200
        colours = image.convert("RGB").getcolors(maxcolors=1 << 24) or []
    assert len(colours) > 50
    assert sum(count for count, (red, green, blue) in colours if red > 180 and green < 80 and blue < 80) > 2000
