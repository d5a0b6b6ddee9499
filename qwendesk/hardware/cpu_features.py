"""Instruction sets of this CPU, as the system reports them. No engine is needed."""

import ctypes
import platform
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

# Arguments for IsProcessorFeaturePresent (processthreadsapi.h).
_WINDOWS_FEATURES = {"sse4_2": 38, "avx": 39, "avx2": 40, "avx512f": 41}
# Windows can't report these features, but every CPU with AVX2 has them (Haswell and Excavator were the first).
_WITH_AVX2 = ("fma", "f16c", "bmi2")


def cpu_features() -> frozenset[str] | None:
    """Return the features by their Linux names, such as "sse4_2", "avx2", "fma", "f16c"; None if they are unknown."""
    try:
        if sys.platform == "win32":
            return windows_features(ctypes.windll.kernel32.IsProcessorFeaturePresent)
        elif sys.platform == "darwin":  # noqa: RET505 - mypy reads only the branch of its own system
            asked = ["sysctl", "-n", "machdep.cpu.features", "machdep.cpu.leaf7_features"]
            text = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=5).stdout
            return darwin_features(text, platform.machine())
        else:
            return linux_features(Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace"))
    except (OSError, AttributeError, subprocess.SubprocessError):
        return None


def linux_features(cpuinfo: str) -> frozenset[str] | None:
    """Return the features in the text of /proc/cpuinfo: the line "flags" on x86, "Features" on ARM."""
    for line in cpuinfo.splitlines():
        key, _, value = line.partition(":")
        if key.strip() in {"flags", "Features"}:
            return frozenset(value.split())
    return None


def darwin_features(sysctl: str, machine: str) -> frozenset[str] | None:
    """Return the features in the output of sysctl on an Intel Mac, such as "SSE4.2 AVX1.0 AVX2".

    Apple's own CPUs have no such list; their only feature here is "neon".
    """
    if machine != "x86_64":
        return frozenset({"neon"})
    words = {word.lower().replace(".", "_") for word in sysctl.split()}
    if not words:
        return None
    return frozenset(words | ({"avx"} if "avx1_0" in words else set()))


def windows_features(is_present: Callable[[int], int]) -> frozenset[str]:
    """Return the features found with `is_present`, which is IsProcessorFeaturePresent."""
    found = {name for name, number in _WINDOWS_FEATURES.items() if is_present(number)}
    return frozenset(found | set(_WITH_AVX2 if "avx2" in found else ()))
