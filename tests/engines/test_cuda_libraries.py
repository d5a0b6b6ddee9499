"""How Windows finds NVIDIA's libraries for an engine: beside it, before those of any toolkit.

The libraries are made up; the loader is llama-cpp-python's own, in a process of its own, as in the worker.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from qwendesk.core.failures import EngineExit
from qwendesk.engines.trial import exit_reason
from tests.fakes.dll import dll

windows = pytest.mark.skipif(sys.platform != "win32", reason="it is Windows' loader")

_LOAD = """
import pathlib, sys
from llama_cpp._ctypes_extensions import load_shared_library
library = load_shared_library("ggml-cuda", pathlib.Path(sys.argv[1]))
print("cudart is", library.cudart_of())
"""


def put_engine(folder: Path, *, without: str = "", cudart: int = 12) -> Path:
    """Put libraries into `folder` that need each other as those of a CUDA engine do."""
    needs = {
        "ggml-cuda.dll": {"cudart64_12.dll": ["cudaMalloc"], "cublas64_12.dll": ["cublasCreate_v2"]},
        "cublas64_12.dll": {"cublasLt64_12.dll": ["cublasLtCreate"]},
        "cublasLt64_12.dll": {},
        "cudart64_12.dll": {},
    }
    exports = {
        "ggml-cuda.dll": {"cudart_of": 12},
        "cublas64_12.dll": {"cublasCreate_v2": 1},
        "cublasLt64_12.dll": {"cublasLtCreate": 2},
        "cudart64_12.dll": {"cudaMalloc": cudart},
    }
    folder.mkdir(parents=True)
    for name, imports in needs.items():
        if name != without:
            (folder / name).write_bytes(dll(name, exports[name], imports))
    return folder


def load(folder: Path, path_first: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = dict(os.environ)
    if path_first is not None:
        environment["PATH"] = f"{path_first}{os.pathsep}{environment['PATH']}"
    return subprocess.run(
        [sys.executable, "-c", _LOAD, str(folder)],
        capture_output=True, text=True, check=False, env=environment, stdin=subprocess.DEVNULL,
    )  # fmt: skip


@windows
@pytest.mark.parametrize("name", ["cuda-12", "Müller 日本 (1)"])
def test_libraries_beside_the_engine_are_found(tmp_path: Path, name: str) -> None:
    done = load(put_engine(tmp_path / name))
    assert done.stdout.strip() == "cudart is 12", done.stderr


@windows
def test_libraries_of_an_old_toolkit_on_path_are_not_taken(tmp_path: Path) -> None:
    """Ollama took the system's CUDA instead of its own, and its runner died (ollama#5689)."""
    old = tmp_path / "toolkit"
    old.mkdir()
    (old / "cudart64_12.dll").write_bytes(dll("cudart64_12.dll", {"cudaFree": 1}))
    done = load(put_engine(tmp_path / "cuda-12"), path_first=old)
    assert done.stdout.strip() == "cudart is 12", done.stderr


@windows
@pytest.mark.parametrize("without", ["cublasLt64_12.dll", "cudart64_12.dll"])
def test_missing_library_is_an_error_with_what_to_do(tmp_path: Path, without: str) -> None:
    """Windows names the library that was asked for, not the one that is missing (llama-cpp-python#1150)."""
    done = load(put_engine(tmp_path / "cuda-12", without=without))
    assert done.returncode == 1
    sentence = exit_reason(EngineExit(1, "", tuple(done.stderr.splitlines())))
    assert sentence == "One of its libraries can't be loaded: install the engine again."


@windows
def test_libraries_only_on_path_are_found_too(tmp_path: Path) -> None:
    engine = put_engine(tmp_path / "cuda-12", without="cublasLt64_12.dll")
    beside = put_engine(tmp_path / "elsewhere")
    assert load(engine, path_first=beside).stdout.strip() == "cudart is 12"


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        (
            ["RuntimeError: Failed to load shared library 'ggml.dll': Could not find module 'ggml.dll' (or one of its "
             "dependencies). Try using the full path with constructor syntax."],
            "One of its libraries can't be loaded: install the engine again.",
        ),
        (
            ["ggml_cuda_init: failed to initialize CUDA: CUDA driver version is insufficient for CUDA runtime version"],
            "The graphics driver is too old for it: install the newest one.",
        ),
        (
            ["cudaGetDeviceCount returned 100", "no CUDA-capable device is detected"],
            "This PC has no NVIDIA GPU.",
        ),
    ],
    ids=["llama-cpp-python#1150", "ollama#6604", "llama-cpp-python#880"],
)  # fmt: skip
def test_reports_of_others_get_a_sentence(lines: list[str], sentence: str) -> None:
    assert exit_reason(EngineExit(1, "", tuple(lines))) == sentence
