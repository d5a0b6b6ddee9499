"""What an engine on Windows lacks, with made-up folders of the system."""

import sys
from pathlib import Path

import pytest

from qwendesk.core.engine_manifest import Backend
from qwendesk.engine.client import WorkerClient, WorkerTimeouts
from qwendesk.engines.trial import missing_libraries, try_engine

RUNTIME = ("vcruntime140.dll", "vcruntime140_1.dll", "msvcp140.dll", "vcomp140.dll")
AS_CTYPES_SAYS = (
    r"RuntimeError: Failed to load shared library 'C:\engines\vulkan\llama.dll': Could not find module "
    r"'C:\engines\vulkan\llama.dll' (or one of its dependencies). Try using the full path with constructor syntax."
)


def folder(path: Path, *names: str) -> Path:
    path.mkdir()
    for name in names:
        (path / name).touch()
    return path


@pytest.mark.parametrize(
    ("backend", "in_system", "in_program", "says"),
    [
        ("vulkan", RUNTIME, (), "Vulkan loader is missing"),
        ("cuda", ("vulkan-1.dll",), RUNTIME, "no NVIDIA driver"),
        ("vulkan", ("vulkan-1.dll", *RUNTIME), (), ""),
        ("cuda", ("nvcuda.dll",), RUNTIME, ""),
        ("cpu", RUNTIME[:3], (), "Visual C++ runtime is missing (vcomp140.dll): install it from https://"),
        ("cpu", RUNTIME[2:], RUNTIME[:2], ""),
    ],
)
def test_a_missing_driver_and_runtime_are_named(
    tmp_path: Path, backend: Backend, in_system: tuple[str, ...], in_program: tuple[str, ...], says: str
) -> None:
    said = missing_libraries(backend, folder(tmp_path / "System32", *in_system), folder(tmp_path / "app", *in_program))
    assert says in said
    assert bool(said) == bool(says)


@pytest.mark.parametrize(
    ("words", "lack", "reason", "crashed"),
    [
        (AS_CTYPES_SAYS, "There is no driver.", "There is no driver.", False),
        (AS_CTYPES_SAYS, "", "One of its libraries can't be loaded: install the engine again.", True),
        ("a fault of its own", "There is no driver.", "The engine stopped with exit code 1.", True),
    ],
    ids=["lacks a driver", "lacks nothing known", "another fault"],
)
async def test_engine_with_an_unnamed_missing_dependency_is_not_a_crash(
    tmp_path: Path, words: str, lack: str, reason: str, crashed: bool
) -> None:
    script = tmp_path / "dies.py"
    script.write_text(f"raise RuntimeError({words!r})\n")
    client = WorkerClient((sys.executable, str(script)), WorkerTimeouts(start_s=60, stop_s=1))
    trial = await try_engine("vulkan", "vulkan", None, lambda _engine: client, lambda _backend: lack)
    assert (trial.reason, trial.crashed) == (reason, crashed)
