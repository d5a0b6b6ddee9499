"""The devices that ggml can compute on, their memory, and their handles for the load parameters."""

import ctypes
import functools
import os
import pathlib
import sys
from typing import Any, Protocol

import llama_cpp
import llama_cpp.llama_cpp as C
import psutil

from qwendesk.core.devices import DeviceInfo, DeviceKind
from qwendesk.core.errors import BadOption
from qwendesk.core.translation import mark

# Values of ggml_backend_dev_type. All others are accelerators such as BLAS or AMX.
_KINDS: dict[int, DeviceKind] = {0: "cpu", 1: "gpu", 2: "igpu"}


class _Ggml(Protocol):
    """The ggml functions used here. llama-cpp-python has no bindings for them."""

    ggml_backend_dev_count: Any
    ggml_backend_dev_get: Any
    ggml_backend_dev_name: Any
    ggml_backend_dev_description: Any
    ggml_backend_dev_type: Any
    ggml_backend_dev_memory: Any
    ggml_backend_dev_backend_reg: Any
    ggml_backend_reg_name: Any
    ggml_backend_dev_buffer_type: Any
    ggml_backend_buft_name: Any
    ggml_backend_load_all_from_path: Any


@functools.cache
def ggml() -> _Ggml:
    """Return the loaded ggml library. A second copy opened from disk would have its own, empty device registry.

    llama.cpp's own releases have each backend in a library of its own. They are loaded here.
    """
    library: Any = C._lib
    if sys.platform == "win32":
        library = _WindowsGgml(_folder())
    for name in ("dev_get", "dev_backend_reg", "dev_buffer_type"):
        getattr(library, f"ggml_backend_{name}").restype = ctypes.c_void_p
    for name in ("dev_name", "dev_description", "reg_name", "buft_name"):
        getattr(library, f"ggml_backend_{name}").restype = ctypes.c_char_p
    library.ggml_backend_dev_count.restype = ctypes.c_size_t
    library.ggml_backend_dev_get.argtypes = [ctypes.c_size_t]
    for name in (
        "dev_name",
        "dev_description",
        "dev_type",
        "dev_backend_reg",
        "reg_name",
        "dev_buffer_type",
        "buft_name",
    ):
        getattr(library, f"ggml_backend_{name}").argtypes = [ctypes.c_void_p]
    library.ggml_backend_dev_memory.argtypes = [ctypes.c_void_p] + [ctypes.POINTER(ctypes.c_size_t)] * 2
    library.ggml_backend_dev_memory.restype = None
    if not library.ggml_backend_dev_count():
        library.ggml_backend_load_all_from_path.argtypes = [ctypes.c_char_p]
        library.ggml_backend_load_all_from_path.restype = None
        library.ggml_backend_load_all_from_path(str(_folder()).encode())
    return library  # type: ignore[no-any-return]


def _folder() -> pathlib.Path:
    """Return the folder of the engine's libraries."""
    chosen = os.environ.get("LLAMA_CPP_LIB_PATH")
    return pathlib.Path(chosen) if chosen else pathlib.Path(llama_cpp.__file__).parent / "lib"


class _WindowsGgml:
    """Finds each symbol in the library that has it: Windows does not search dependent libraries."""

    def __init__(self, folder: pathlib.Path) -> None:
        names = ("ggml.dll", "ggml-base.dll", "ggml-cpu.dll")
        self._libraries = [ctypes.CDLL(str(folder / name)) for name in names if (folder / name).exists()]

    def __getattr__(self, name: str) -> Any:
        for library in self._libraries:
            found = getattr(library, name, None)
            if found is not None:
                setattr(self, name, found)
                return found
        raise AttributeError(name)


def list_devices() -> tuple[DeviceInfo, ...]:
    """Return all devices of all backends of this engine, in ggml's order, with their current memory."""
    library = ggml()
    return tuple(_describe(library, library.ggml_backend_dev_get(i)) for i in range(library.ggml_backend_dev_count()))


def backends() -> tuple[str, ...]:
    """Return the names of the backends that have a device on this PC, such as ("CUDA", "CPU")."""
    return tuple(dict.fromkeys(device.backend for device in list_devices()))


def cpu_features() -> tuple[str, ...]:
    """Return the instruction sets that the engine was built with and uses, such as ("AVX2", "FMA")."""
    words = C.llama_print_system_info().decode("utf-8", "replace").replace(":", "|").split("|")
    pairs = [word.split("=") for word in words if "=" in word]
    return tuple(name.strip() for name, value in pairs if value.strip() == "1")


def device_handle(name: str) -> int:
    """Return the ggml_backend_dev_t of the device `name`, in any case. Raise BadOption if there is none."""
    library = ggml()
    for index in range(library.ggml_backend_dev_count()):
        handle = library.ggml_backend_dev_get(index)
        if library.ggml_backend_dev_name(handle).decode().lower() == name.lower():
            return int(handle)
    known = ", ".join(device.name for device in list_devices())
    raise BadOption(mark("Unknown device"), mark('This engine has no device "{0}". Its devices: {1}.'), name, known)


def buffer_type(device_name: str) -> int:
    """Return the ggml_backend_buffer_type_t of tensors that are placed on `device_name`."""
    return int(ggml().ggml_backend_dev_buffer_type(device_handle(device_name)))


def buffer_names() -> dict[str, str]:
    """Return the name of each device by the name of its buffers, under which the log has them.

    Most backends use one name for both. RPC counts its devices through ("RPC1"), but names a buffer by the device's
    number on its server ("RPC0[127.0.0.1:50053]").
    """
    library = ggml()
    names: dict[str, str] = {}
    for index in range(library.ggml_backend_dev_count()):
        handle = library.ggml_backend_dev_get(index)
        buffers = library.ggml_backend_dev_buffer_type(handle)
        if buffers:
            name = library.ggml_backend_buft_name(buffers).decode("utf-8", "replace")
            names.setdefault(name, library.ggml_backend_dev_name(handle).decode("utf-8", "replace"))
    return names


def _describe(library: _Ggml, handle: int) -> DeviceInfo:
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    library.ggml_backend_dev_memory(handle, ctypes.byref(free), ctypes.byref(total))
    kind = _KINDS.get(library.ggml_backend_dev_type(handle), "accelerator")
    if kind == "cpu":  # ggml reports all memory as free
        free.value = psutil.virtual_memory().available
    return DeviceInfo(
        name=library.ggml_backend_dev_name(handle).decode("utf-8", "replace"),
        description=library.ggml_backend_dev_description(handle).decode("utf-8", "replace"),
        kind=kind,
        backend=library.ggml_backend_reg_name(library.ggml_backend_dev_backend_reg(handle)).decode(),
        total_bytes=total.value or None,
        free_bytes=free.value or None,
    )
