"""Where the environment and the engines live, and what pyproject.toml says about them."""

import os
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VENV = ROOT / ".venv"
ENGINES = ROOT / ".engine"
WORK = ROOT / ".work"

PREBUILT_INDEX = "https://abetlen.github.io/llama-cpp-python/whl"
"""The engine package's own index of prebuilt wheels, one folder below it for each backend (see `prebuilt_folder`)."""

ENGINE_PACKAGE = "llama-cpp-python"


class SetupError(Exception):
    """Something the person at the keyboard must do first. The text says what, and is all they see."""


def venv_python(venv: Path = VENV) -> Path:
    """The environment's interpreter, whether or not it exists."""
    return venv / "Scripts" / "python.exe" if os.name == "nt" else venv / "bin" / "python"


def engine_version(root: Path = ROOT) -> str:
    """The release of llama-cpp-python that pyproject.toml pins."""
    dependencies = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    for requirement in dependencies:
        pinned = re.fullmatch(rf"{ENGINE_PACKAGE}==(\S+)", requirement)
        if pinned:
            return pinned[1]
    raise SetupError(f"pyproject.toml does not pin {ENGINE_PACKAGE} with ==.")
