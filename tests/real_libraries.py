"""The libraries of llama-cpp-python's engine in this environment."""

import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path


def real_libraries() -> Sequence[Path]:
    """What llama-cpp-python's engine here needs: on Linux without its three copies of each library."""
    package = importlib.util.find_spec("llama_cpp")
    assert package is not None
    assert package.origin is not None
    found = sorted(Path(package.origin).parent.joinpath("lib").iterdir())
    if not sys.platform.startswith("linux"):
        return [path for path in found if path.suffix in {".dll", ".dylib"}]
    opened = ("libllama.so", "libmtmd.so")
    needed = [path for path in found if path.suffix == ".0" and path.name.removesuffix(".0") not in opened]
    return [*(path for path in found if path.name in opened), *needed]
