"""What is run once everything is set up: the whole suite, the checks of the Vulkan engine, and its long ones."""

import shlex
import subprocess
from collections.abc import Sequence

from tools.linux_tests import engine
from tools.linux_tests.environment import VENV, VULKAN_PACKAGE
from tools.linux_tests.place import SOFTWARE_DRIVER, Place
from tools.windows.folders import REPORTS, SHARED, TREE

DEVICE = "Vulkan0"
ENGINE_TESTS = (
    "tests/engine/test_real_engine.py",
    "tests/engine/worker/test_turns.py",
    "tests/engine/worker/test_pictures.py",
    "tests/engine/worker/test_clips.py",
)
"""Tests of the engine on the CPU that are run on the Vulkan device too: tests/engine/device.py tells them."""
_SHADER_CACHE = SHARED / "shader-cache"
"""Mesa's own: the first use of each shader takes seconds to compile, so it is kept between runs."""
_TEST_LIMIT_S = 20 * 60
"""Limit for a single test: the first one that computes compiles its shaders."""


def vulkan_environment(place: Place) -> list[str]:
    """Return the variables with which a worker loads the Vulkan engine and sees Mesa's software driver alone."""
    return [
        f"PYTHONPATH={place.path(VULKAN_PACKAGE)}",
        f"VK_DRIVER_FILES={SOFTWARE_DRIVER}",
        # Without this the engine leaves out devices that are no graphics card.
        "GGML_VK_VISIBLE_DEVICES=0",
        f"MESA_SHADER_CACHE_DIR={place.path(_SHADER_CACHE)}",
    ]


def run_suite(place: Place, arguments: Sequence[str]) -> int:
    """Run everything that `make test` runs, with the engine for the CPU. Returns the exit code."""
    # The copy of the checkout is swept before each run, and mypy takes minutes without what it remembered.
    kept = [f"{name}_CACHE_DIR={place.path(SHARED / 'caches')}" for name in ("MYPY", "RUFF")]
    return _run(place, ["-m", "tools.check", *arguments], kept)


def run_gpu_tests(place: Place, arguments: Sequence[str]) -> int:
    """Run the checks of the Vulkan engine, or what `arguments` name, and print what they measured."""
    _SHADER_CACHE.mkdir(exist_ok=True)
    REPORTS.mkdir(exist_ok=True)
    report = REPORTS / "gpu.md"
    report.unlink(missing_ok=True)
    variables = [
        *vulkan_environment(place),
        f"QWENDESK_TEST_DEVICE={DEVICE}",
        f"QWENDESK_GPU_REPORT={place.path(report)}",
    ]
    limits = ["--timeout", str(_TEST_LIMIT_S), "-o", f"faulthandler_timeout={2 * _TEST_LIMIT_S}"]
    chosen = arguments or ["tests/gpu", *ENGINE_TESTS]
    code = _run(place, ["-m", "pytest", "-p", "no:cacheprovider", *limits, *chosen], variables)
    if report.is_file():
        print(f"\n{report.read_text(encoding='utf-8')}", flush=True)
    return code


def run_gpu_soak(place: Place, arguments: Sequence[str]) -> int:
    """Run llama.cpp's tests of every operator on the Vulkan device; `arguments` are its own, such as `-o MUL_MAT`."""
    _SHADER_CACHE.mkdir(exist_ok=True)
    line = [place.path(engine.OPERATOR_TESTS), "test", "-b", DEVICE, *arguments]
    libraries = f"LD_LIBRARY_PATH={place.path(engine.libraries(engine.VULKAN))}"
    script = shlex.join(line)
    return subprocess.run(
        place.command(script, SHARED, [*vulkan_environment(place), libraries]), stdin=subprocess.DEVNULL, check=False
    ).returncode


def _run(place: Place, arguments: Sequence[str], environment: Sequence[str] = ()) -> int:
    # Bash stays as the first process of the folder, and takes note when orphans of the tests end.
    script = f"code=0\n{shlex.join([place.path(VENV / 'bin' / 'python'), *arguments])} || code=$?\nexit $code"
    return subprocess.run(place.command(script, TREE, environment), stdin=subprocess.DEVNULL, check=False).returncode
