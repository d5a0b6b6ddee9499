"""How long the first set-up takes, said before it begins."""

import math
from typing import Literal

from tools.setup.backends import Backend
from tools.setup.cuda_toolkit import DOWNLOAD_GB

EngineSource = Literal["kept", "prebuilt", "build"]
"""Whether the engine is in .engine already, is downloaded ready-made, or is compiled here."""

_LIBRARIES_MINUTES = 2
"""On a connection of about 50 Mbit/s."""
_CUDA_COMPILER_MINUTES = 2
"""The same for NVIDIA's compiler and libraries."""
_CORE_MINUTES = {"cpu": 18, "metal": 18, "vulkan": 60, "cuda": 80}
"""Minutes of work for one core. CPU and Vulkan were measured on two cores; Metal is a guess from reports.

CUDA for one kind of card: the CPU's 18, and 144 files whose sum was estimated from 18 (docs/measurements.md).
"""
_MOST_USED_CORES = 16
"""More cores than this wait for the largest files."""


def build_minutes(backend: Backend, cores: int) -> int:
    """Return about how many minutes it takes to compile an engine, at least 1."""
    work = _CORE_MINUTES[backend.split("-")[0]]
    return math.ceil(work / min(max(cores, 1), _MOST_USED_CORES))


def first_setup_text(backend: Backend, source: EngineSource, cores: int, *, fetches_cuda: bool = False) -> str:
    """Return what a newcomer reads first: that this happens once, and how long it takes.

    `fetches_cuda` says that NVIDIA's compiler is downloaded too.
    """
    building = build_minutes(backend, cores) if source == "build" else 0
    minutes = building + _LIBRARIES_MINUTES + (_CUDA_COMPILER_MINUTES if fetches_cuda else 0)
    text = (
        "Setting up QwenDesk in this folder. This is done once and takes about "
        f"{minutes} minutes; after that, QwenDesk starts at once."
    )
    if building:
        text += f" Compiling the engine takes about {building} of them."
    return text + " You can stop with Ctrl+C and start again later."


def cuda_offer_text(card: str, cores: int) -> str:
    """Return what somebody reads whose card could have a CUDA engine, which takes longer than the one just set up."""
    minutes = build_minutes("cuda", cores) + _CUDA_COMPILER_MINUTES
    return (
        f"{card} can also be used by a CUDA engine, often faster than by Vulkan. Building it takes about {minutes} "
        f"minutes, once, and a download of {DOWNLOAD_GB} GB. When you have time: make run ENGINE=cuda"
    )


def cuda_follows_text(card: str) -> str:
    """Return what somebody reads for whose card the app will download an engine, and how to avoid it."""
    return (
        f"{card} can be used by a CUDA engine, usually faster than by Vulkan. QwenDesk downloads it in the background "
        "(about 0.9 GB; its libraries are under the NVIDIA CUDA Toolkit EULA), and uses it from the next start on. If "
        "you don't want that: close this window, enter set ENGINE=vulkan, and start run.cmd from there."
    )
