"""Which engine build suits this machine: CPU, CUDA, Vulkan or Metal."""

import os
import platform
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from tools.setup import nvidia, system_packages
from tools.setup.cuda_toolkit import can_fetch, installed_toolkit, wheels_release
from tools.setup.nvidia import NvidiaCard
from tools.setup.project import SetupError

Backend = Literal["cpu", "cpu-avx2", "cpu-sse42", "cuda", "cuda-avx2", "vulkan", "vulkan-avx2", "hip", "metal"]
"""Those with an instruction set in their name are for other PCs than this one; see tools/bundle."""
WANTED = ("auto", *get_args(Backend))

_AVX2 = ("AVX", "AVX2", "FMA", "F16C", "BMI2")
"""What ggml's build calls the instruction sets that came with AVX2; without a native build it turns them all on."""
_CUDA = ("-DGGML_CUDA=ON", "-DGGML_CUDA_NCCL=OFF")
"""NCCL is only for several cards at once, and where the compiler finds it, the engine does not start without it."""
CUDA_ARCHITECTURES = ("75-real", "80-real", "86-real", "89-real", "90-real", "120a-real")
"""GeForce RTX 20, 30, 40, 50, A100 and H100, each with code of its own.

None is left to the driver's compiler ("90-virtual"): that refuses code of a CUDA release newer than the driver's.
"""
_NO_AMX = "-mno-amx-tile -mno-amx-int8 -mno-amx-bf16"
_NAMES_PACKAGES = "which names the packages it is built with"
_TOOLS = ("nvidia-smi", "nvcc", "glslc")
_PREBUILT_FOLDERS: dict[Backend, str] = {"hip": "hip-radeon"}
"""Folders of the wheel index whose name is not that of the backend."""


@dataclass(frozen=True)
class Machine:
    """What the choice depends on."""

    system: str
    """"Linux", "Darwin" or "Windows"."""
    cards: tuple[NvidiaCard, ...] = ()
    """NVIDIA's cards with a driver."""
    toolkit: tuple[int, int] | None = None
    """Release of the CUDA toolkit whose nvcc is on PATH."""
    wheels: tuple[int, int] | None = None
    """Release of the CUDA compiler that the set-up can fetch; None where there is none for this PC."""
    takes_ready: bool = False
    """Engines are downloaded, not built (run.cmd)."""
    has_gpu: bool = False
    has_vulkan: bool = False
    """To build: the compiler glslc and the headers. For a prebuilt engine: the loader, which comes with a driver."""


@dataclass(frozen=True)
class Choice:
    """The backend, and one sentence of why."""

    backend: Backend
    reason: str
    may_build_cuda: bool = False
    """A CUDA engine can be built here without anything installed by hand. `auto` doesn't, because it takes long."""
    cuda_follows: bool = False
    """The app downloads a CUDA engine for this PC once it runs."""


def choose(wanted: str, machine: Machine) -> Choice:
    """The backend to use. A backend asked for by name is taken as it is, so that it can be built for elsewhere.

    Raises SetupError for a name that is none, and for Metal outside macOS.
    """
    if wanted not in WANTED:
        raise SetupError(f"ENGINE={wanted} is unknown. It is one of {', '.join(WANTED)}.")
    if wanted == "metal" and machine.system != "Darwin":
        raise SetupError("ENGINE=metal is for macOS only.")
    if wanted == "hip" and not machine.takes_ready:
        raise SetupError("ENGINE=hip is a ready engine for Radeon cards on Windows only. Take ENGINE=vulkan.")
    if machine.takes_ready and wanted in ("auto", "cuda"):
        return _choose_ready(wanted, machine)
    for backend in get_args(Backend):
        if wanted == backend:
            return Choice(backend, "as ENGINE says")
    if machine.system == "Darwin":
        return Choice("metal", "this is a Mac")
    return _choose_by_card(machine)


def _choose_ready(wanted: str, machine: Machine) -> Choice:
    """Return the engine that answers first. The one for CUDA, with NVIDIA's libraries, is fetched by the app itself."""
    cuda_follows = nvidia.has_ready_engine(machine.cards)
    if wanted == "cuda" and not cuda_follows:
        names = " and ".join(f"{card.name} with driver {card.driver}" for card in machine.cards) or "no NVIDIA driver"
        raise SetupError(
            f"There is no ready CUDA engine for this PC: it has {names}. CUDA 12 needs a GeForce GTX 10 or newer and "
            "driver 528.33 or newer. Update the driver, or take ENGINE=vulkan."
        )
    if machine.has_gpu and machine.has_vulkan:
        return Choice("vulkan", "a GPU and Vulkan are here", cuda_follows=cuda_follows)
    return Choice("cpu", "no usable GPU is here" if not cuda_follows else "CUDA follows", cuda_follows=cuda_follows)


def _choose_by_card(machine: Machine) -> Choice:
    """The best backend that is ready at once on a PC with Linux or Windows."""
    cuda = machine.toolkit or machine.wheels
    refusal = nvidia.obstacle(machine.cards, cuda[0]) if cuda is not None else ""
    if machine.cards and machine.toolkit is not None and not refusal:
        return Choice("cuda", "an NVIDIA GPU and nvcc are here")
    may_build_cuda = bool(machine.cards) and machine.wheels is not None and not refusal
    because = f"; no CUDA engine, since {refusal}" if refusal else ""
    if machine.has_gpu and machine.has_vulkan:
        return Choice("vulkan", f"a GPU and Vulkan are here{because}", may_build_cuda)
    if machine.cards and not refusal and not may_build_cuda:
        reason = "the NVIDIA GPU cannot be used without nvcc: install the CUDA toolkit for full speed"
        return Choice("cpu", f"{reason}, or try ENGINE=vulkan, {_NAMES_PACKAGES}")
    if machine.cards or machine.has_gpu:
        reason = f"the GPU cannot be used without Vulkan's SDK: try ENGINE=vulkan, {_NAMES_PACKAGES}"
        return Choice("cpu", reason + because, may_build_cuda)
    return Choice("cpu", "no usable GPU is here")


def cmake_flags(backend: Backend) -> list[str]:
    """The CMake arguments of a build."""
    # Without OpenSSL: the engine opens no network connection, and the library may be missing where it runs.
    flags = ["-DLLAMA_OPENSSL=OFF"]
    if backend.endswith("-avx2"):
        flags += ["-DGGML_NATIVE=OFF", *_instructions(_AVX2, on=True)]
    match backend:
        case "hip":
            raise SetupError("ENGINE=hip can't be built here: it is a ready engine.")
        case "cuda":
            flags += _CUDA
        case "cuda-avx2":
            flags += [*_CUDA, f"-DCMAKE_CUDA_ARCHITECTURES={';'.join(CUDA_ARCHITECTURES)}"]
        case "vulkan" | "vulkan-avx2":
            flags.append("-DGGML_VULKAN=ON")
        case "metal":
            flags.append("-DGGML_METAL=ON")
        case "cpu" | "cpu-avx2":
            flags.append("-DGGML_METAL=OFF")  # on a Mac it is on by default
        case "cpu-sse42":
            flags += ["-DGGML_METAL=OFF", "-DGGML_NATIVE=OFF", *_instructions(_AVX2, on=False), "-DGGML_SSE42=ON"]
    return flags


def compiler_environment(backend: Backend) -> dict[str, str]:
    """Variables for the build beside CMake's arguments.

    A Vulkan engine is built with the headers that were fetched, where the system's own are too old.

    An engine for this processor leaves AMX out: some virtual machines announce it and then end the program that uses
    it (seen as a general protection fault at ldtilecfg, while the processor's flags named amx_tile).
    """
    if backend.startswith("vulkan"):
        return system_packages.vulkan_environment()
    if backend != "cpu" or not _compiler_takes(_NO_AMX):
        return {}
    return {name: f"{os.environ.get(name, '')} {_NO_AMX}".strip() for name in ("CFLAGS", "CXXFLAGS")}


def _compiler_takes(flags: str) -> bool:
    """Whether the C compiler knows these flags: it may be too old, or for another kind of processor."""
    compiler = os.environ.get("CC") or shutil.which("cc")
    if os.name == "nt" or not compiler:
        return False
    command = [compiler, *flags.split(), "-fsyntax-only", "-x", "c", os.devnull]
    return subprocess.run(command, capture_output=True, check=False, stdin=subprocess.DEVNULL).returncode == 0


def _instructions(names: Sequence[str], *, on: bool) -> list[str]:
    return [f"-DGGML_{name}={'ON' if on else 'OFF'}" for name in names]


def prebuilt_folder(backend: Backend) -> str:
    """Return the folder of the wheel index with the ready engine of this backend."""
    return _PREBUILT_FOLDERS.get(backend, backend)


def look_at_machine(*, prebuilt: bool) -> Machine:
    """Asks the system; takes up to a second where there is an NVIDIA driver."""
    system = platform.system()
    cards = nvidia.nvidia_cards()
    toolkit = installed_toolkit()
    if prebuilt:
        loader = Path(os.environ.get("SYSTEMROOT", "C:/Windows"), "System32", "vulkan-1.dll").is_file()
        vulkan, any_gpu = loader, loader
    else:
        vulkan = not system_packages.missing(system_packages.needs(["vulkan"], system))
        any_gpu = bool(cards) or any(Path("/dev/dri").glob("renderD*"))
    return Machine(
        system=system,
        cards=cards,
        toolkit=toolkit.release if toolkit is not None else None,
        wheels=wheels_release() if can_fetch() and not prebuilt else None,
        takes_ready=prebuilt,
        has_gpu=any_gpu,
        has_vulkan=vulkan,
    )


def tool_signature() -> str:
    """Changes when a driver or an SDK comes or goes; costs microseconds, so it is asked on every start."""
    return " ".join(tool for tool in _TOOLS if shutil.which(tool))
