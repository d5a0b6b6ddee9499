"""Everything that CI checks, in order: `make test` and test.cmd run this with the environment's Python.

The tests run only when the quick checks before them all pass, so that the last lines printed are about what failed.
Arguments go to pytest. A real model that some tests use is downloaded before (tools/real_models.py); where that isn't
possible, they are skipped. With `--changed` first (`make check`), only the tests of what was changed run: since the
last commit, or in it if nothing is changed.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tools import real_models

ROOT = Path(__file__).resolve().parent.parent

COMPILED = ROOT / ".work" / "compiled"
"""Compiled Python files.

Many tests start a process of QwenDesk. Without these, as where PYTHONDONTWRITEBYTECODE is set, each of them compiles
hundreds of files for two seconds.
"""

QUICK = {
    "ruff: mistakes": ["ruff", "check", "."],
    "ruff: layout": ["ruff", "format", "--check", "."],
    "mypy: types": ["mypy"],  # which packages stands in pyproject.toml
}

TWO_AT_A_TIME = ["-p", "tests.file_scheduler", "-n", "2", "--dist", "loadfile", "--max-worker-restart", "2"]
"""Half of the tests wait for a worker, a server or the window; the tests of one file stay together and in order.

A test that ends its process is tried again in a new one; twice is enough.
"""


def main(pytest_arguments: Sequence[str]) -> int:
    """Returns 0, 1 if a quick check failed, or pytest's own exit code."""
    if pytest_arguments[:1] == ["--changed"]:
        pytest_arguments = [*tests_of(changed_files()), *pytest_arguments[1:]]
    failed = [title for title, command in QUICK.items() if _run(title, command)]
    if failed:
        print(f"\nFailed: {', '.join(failed)}. `make format` mends layout and import order.", flush=True)
        return 1
    if real_models.main([real_models.SMOLLM2.name]) != 0:
        print("The tests that need this model are skipped.", flush=True)
    return _run(
        "pytest: import rules, units, the real engine, the window", ["pytest", *TWO_AT_A_TIME, *pytest_arguments]
    )


def changed_files() -> list[str]:
    """Return the files that differ from the last commit, new ones included; if there are none, those of that commit."""
    changed = _git("diff", "--name-only", "HEAD") + _git("ls-files", "--others", "--exclude-standard")
    return changed or _git("diff", "--name-only", "HEAD~1")


def _git(*arguments: str) -> list[str]:
    done = subprocess.run(("git", *arguments), cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def tests_of(changed: Sequence[str]) -> list[str]:
    """Return the test files that changed, those in the folders that mirror changed modules, and the tests of the shape.

    The tests of qwendesk/hub/library.py lie in tests/hub, those of tools/check.py in tests/tools.
    """
    found = {"tests/test_import_rules.py", "tests/test_code_shape.py"}
    for name in changed:
        path = Path(name)
        if path.name.startswith("test_") and (ROOT / path).is_file():
            found.add(name)
        elif path.suffix == ".py" and path.parts[0] != "tests":
            folder = ROOT / "tests" / path.parent.relative_to("qwendesk" if path.parts[0] == "qwendesk" else ".")
            found |= {test.relative_to(ROOT).as_posix() for test in folder.glob("test_*.py")}
    return sorted(found)


def _run(title: str, command: Sequence[str]) -> int:
    print(f"\n== {title}", flush=True)
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(COMPILED)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    # An empty standard input: nothing may wait for an answer.
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, check=False
    )
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
