"""Takes the README's pictures: the real app, with the real engine and the demo model, offscreen through its tour.

    python -m tools.screenshot

Writes docs/images/chat-dark.png and chat-light.png at 1280x800. Exit 1 when a question was not answered.
"""

import os
import subprocess
import sys
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent
_LONGEST_S = 300


def main() -> int:
    for theme in ("dark", "light"):
        picture = _ROOT / "docs" / "images" / f"chat-{theme}.png"
        command = [sys.executable, "-m", "qwendesk", "--theme", theme, "--demo-tour", "--screenshot", str(picture)]
        environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen", "QT_SCALE_FACTOR": "1"}
        if subprocess.run(command, cwd=_ROOT, env=environment, timeout=_LONGEST_S, check=False).returncode:
            print(f"The {theme} picture was not taken: the tour was not answered.", file=sys.stderr)
            return 1
        print(f"Saved {picture.relative_to(_ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
