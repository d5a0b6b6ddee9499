"""What an engine on Windows lacks. The system names the library that did not load, and never the one it asked for."""

import os
import sys
from pathlib import Path

from qwendesk.core.engines import Backend

_DRIVERS: dict[Backend, tuple[str, str]] = {
    "vulkan": ("vulkan-1.dll", "The Vulkan loader is missing: install your graphics driver."),
    "cuda": ("nvcuda.dll", "There is no NVIDIA driver here."),
}
"""What a driver puts into the system's folder, and what to say without it."""
_RUNTIME = ("vcruntime140.dll", "vcruntime140_1.dll", "msvcp140.dll", "vcomp140.dll")
_RUNTIME_ADDRESS = "https://aka.ms/vs/17/release/vc_redist.x64.exe"


def lacking_here(backend: Backend) -> str:
    """What this PC lacks for an engine of this kind that did not start, as a sentence; "" elsewhere than on Windows."""
    system = Path(os.environ.get("SYSTEMROOT", r"C:\Windows"), "System32")
    program = Path(getattr(sys, "_MEIPASS", sys.base_prefix))
    return lacking(backend, system, program) if sys.platform == "win32" else ""


def lacking(backend: Backend, system: Path, program: Path) -> str:
    """The same for given folders: the system's, and the program's, which may bring Microsoft's runtime."""
    driver, sentence = _DRIVERS.get(backend, ("", ""))
    if driver and not (system / driver).is_file():
        return sentence
    missing = [name for name in _RUNTIME if not any((place / name).is_file() for place in (system, program))]
    if not missing:
        return ""
    return f"Microsoft's Visual C++ runtime is missing ({', '.join(missing)}): install it from {_RUNTIME_ADDRESS}."
