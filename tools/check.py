"""Everything that CI checks, in order: `make test` and test.cmd run this with the environment's Python.

Stops at the first step that fails, so that the last lines printed are about it. Further arguments go to pytest.
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

STEPS = {
    "ruff: mistakes": ["ruff", "check", "."],
    "ruff: layout": ["ruff", "format", "--check", "."],
    "mypy: types": ["mypy"],  # which packages stands in pyproject.toml
    "pytest: import law, units, the real engine, the window": ["pytest"],
}


def main(pytest_arguments: list[str]) -> int:
    """Runs the steps. Returns the exit code of the one that failed, or 0."""
    for title, command in STEPS.items():
        print(f"\n== {title}", flush=True)
        extra = pytest_arguments if command[0] == "pytest" else []
        # An empty standard input: no step may wait for an answer.
        arguments = [sys.executable, "-m", *command, *extra]
        code = subprocess.run(arguments, cwd=ROOT, stdin=subprocess.DEVNULL, check=False).returncode
        if code:
            if command[0] != "pytest":
                print(f"\n{title}: failed. `make format` mends layout and import order.", flush=True)
            return code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
