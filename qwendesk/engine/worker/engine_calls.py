"""What calls of llama.cpp share: the engine's own layouts, the sequence, and what the status of a decode means."""

import os
from pathlib import Path

from qwendesk.core.engine_manifest import ABI_TABLE_NAME

# The only sequence that QwenDesk uses.
SEQUENCE = 0


class Aborted(Exception):
    """The engine stopped during a decode because the abort flag was set. Its memory needs a rollback."""


class EngineFault(Exception):
    """The engine failed for any reason other than the abort flag."""


def own_table() -> Path | None:
    """Return the table of struct layouts beside the engine's libraries; None if the binding's classes fit them."""
    folder = os.environ.get("LLAMA_CPP_LIB_PATH")
    file = Path(folder, ABI_TABLE_NAME) if folder else None
    return file if file is not None and file.exists() else None


def check(status: int) -> None:
    """Raise Aborted or EngineFault if `status`, of llama_decode or mtmd's decode helper, is not 0."""
    if status == 0:
        return
    if status == 2:
        raise Aborted
    raise EngineFault("no room in the KV cache" if status == 1 else f"llama_decode failed with status {status}")
