"""One real window under Xvfb, with the real engine and the demo model, from start to end."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

_ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.mark.timeout(300)
def test_a_real_window_answers_a_question_calls_a_tool_and_sees_a_picture(xvfb_display: str, tmp_path: Path) -> None:
    picture = tmp_path / "window.png"
    environment = {**os.environ, "DISPLAY": xvfb_display, "QT_QPA_PLATFORM": "xcb"}
    done = subprocess.run(
        [sys.executable, "-m", "qwendesk", "--theme", "dark", "--demo-tour", "--screenshot", str(picture)],
        cwd=_ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "VRAM spill happens when the model needs more GPU memory than there is." in done.stdout
    assert "Thought: " in done.stdout
    assert "Answer: 128 * 46 = 5888" in done.stdout
    assert 'Called: calculate {"expression": "128 * 46"} → 5888' in done.stdout
    assert "red circle on a white background" in done.stdout
    with Image.open(picture) as image:
        assert image.width >= 1200
        pixels = np.asarray(image.convert("RGB")).reshape(-1, 3)
    assert len(np.unique(pixels, axis=0)) > 50
    red = (pixels[:, 0] > 180) & (pixels[:, 1] < 80) & (pixels[:, 2] < 80)
    assert red.sum() > 2000, "the question's picture is not on the screenshot"
