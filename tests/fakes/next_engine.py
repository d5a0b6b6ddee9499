"""A model of an architecture and a tensor type that no engine has yet, and an engine that knows both.

The model is the demo under another name, with another number for Q8_0. The engine is the installed one, with a library
before its ggml that reads the two as what they stand for (next_engine.c). QWENDESK_NEXT_ENGINE may name a folder with
libraries that were built for it instead: llama.cpp with both added (docs/release.md).
"""

import os
import shutil
import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path

from qwendesk.core import paths
from qwendesk.hub.gguf import read_file_facts
from tests.real_libraries import real_libraries

ARCHITECTURE, TYPE = "qwen4next", 43
# What they stand for. Both names have the same length.
_KNOWN_ARCHITECTURE, _KNOWN_TYPE, _KNOWN_TYPE_NAME = "qwen35moe", 8, "Q8_0"
_GGML, _RENAMED = "libggml-base.so.0", "libggml-same.so.0"


def can_be_made() -> bool:
    """Whether there is a compiler, or an engine that was built before."""
    return bool(os.environ.get("QWENDESK_NEXT_ENGINE")) or shutil.which("cc") is not None


def next_model() -> bytes:
    """The content of the model's file."""
    content = paths.demo_model().read_bytes()
    content = content.replace(_KNOWN_ARCHITECTURE.encode(), ARCHITECTURE.encode())
    for tensor in read_file_facts(paths.demo_model()).tensors:
        if tensor.type == _KNOWN_TYPE_NAME:
            name, shape = tensor.name.encode(), tensor.shape
            info = struct.pack("<Q", len(name)) + name + struct.pack(f"<I{len(shape)}Q", len(shape), *shape)
            before, after = (info + struct.pack("<I", number) for number in (_KNOWN_TYPE, TYPE))
            assert content.count(before) == 1
            content = content.replace(before, after)
    return content


def next_libraries(folder: Path, *, crashes: bool = False) -> Sequence[Path]:
    """Make the libraries of the engine in `folder`. With `crashes`, it crashes when it reads a model."""
    built = os.environ.get("QWENDESK_NEXT_ENGINE")
    if built and not crashes:
        return sorted(path for path in Path(built).iterdir() if not path.is_symlink())
    made = {path.name: path for path in real_libraries()}
    renamed = folder / _RENAMED
    renamed.write_bytes(made[_GGML].read_bytes().replace(_GGML.encode(), _RENAMED.encode()))
    defined = {
        "NEW_NAME": f'"{ARCHITECTURE}"', "KNOWN_NAME": f'"{_KNOWN_ARCHITECTURE}"', "NEW_TYPE": TYPE,
        "KNOWN_TYPE": _KNOWN_TYPE,
    }  # fmt: skip
    command = [
        "cc", "-O1", "-shared", "-fPIC", f"-Wl,-soname,{_GGML}", "-Wl,-rpath,$ORIGIN", "-Wl,--no-as-needed",
        *(f"-D{name}={value}" for name, value in defined.items()), *(["-DCRASHES"] if crashes else []),
        "-o", str(folder / _GGML), str(Path(__file__).with_suffix(".c")), str(renamed),
    ]  # fmt: skip
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    return [*(path for name, path in made.items() if name != _GGML), folder / _GGML, renamed]
