"""Takes the guide's and the README's pictures again, offscreen, into docs/guide/images.

    python -m tools.screenshots            # all
    python -m tools.screenshots meter spill
    python -m tools.screenshots remote-chat    # needs llama-server: python -m tools.build_peer
    python -m tools.screenshots --gallery FOLDER [--looks dark-1280@1,light-560@1.5] [--lang zh] [mixed ...]

Chats come from the real engine with the demo model; the gaming PC, its game and the model files are made up. Every
set runs in a home folder of its own, which is thrown away. Exit 1 when one of them failed. The gallery is no part of
the docs: the whole window in every state, in each theme and several sizes, for looking at.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.screenshots.gallery.__main__ import main as gallery
from tools.screenshots.scenes import SETS

_ROOT = Path(__file__).resolve().parents[2]
_LONGEST_S = 420


def main() -> int:
    if sys.argv[1:2] == ["--gallery"]:
        return gallery(sys.argv[2:])
    wanted = set(sys.argv[1:])
    known = {name for names in SETS.values() for name in names}
    if not wanted <= known:
        print(f"There is no picture called {', '.join(sorted(wanted - known))}. There are: {', '.join(sorted(known))}.")
        return 1
    failed = False
    for number, (name, pictures) in enumerate(SETS.items(), 1):
        names = [each for each in pictures if not wanted or each in wanted]
        if names:
            print(f"{number} of {len(SETS)}: {', '.join(names)}", flush=True)
            failed |= not _take(name, names)
    return int(failed)


def _take(name: str, pictures: list[str]) -> bool:
    with tempfile.TemporaryDirectory() as home:
        places = {f"XDG_{kind}_HOME": f"{home}/{kind.lower()}" for kind in ("CONFIG", "DATA", "CACHE", "STATE")}
        environment = {**os.environ, **places, "HOME": home, "QT_QPA_PLATFORM": "offscreen", "QT_SCALE_FACTOR": "1"}
        command = [sys.executable, "-m", "tools.screenshots.take", name, *pictures]
        try:
            done = subprocess.run(command, cwd=_ROOT, env=environment, timeout=_LONGEST_S, check=False)
        except subprocess.TimeoutExpired:
            print(f"{name} took longer than {_LONGEST_S} s.", file=sys.stderr)
            return False
    return done.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
