"""Finds out whether an engine runs on this PC by starting it in a separate process; if not, says why."""

import asyncio
import ctypes
import os
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

import msgspec

from qwendesk.core import paths
from qwendesk.core.devices import DeviceInfo
from qwendesk.core.engine_abi import check_against_all, known_abis, own_release, read_abi
from qwendesk.core.engine_manifest import ABI_TABLE_NAME, Backend, EngineFolder, EngineManifest
from qwendesk.core.failures import EngineExit, LoadFailure
from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.messages import text_message
from qwendesk.core.options import LoadOptions, decided_options
from qwendesk.core.translation import join_list, join_sentences, mark, tr
from qwendesk.engine import load_failures
from qwendesk.engine.client import WorkerClient, WorkerTimeouts
from qwendesk.engine.contract import BenchClient, EngineClient
from qwendesk.engine.engine_folders import library_environment
from qwendesk.engine.protocol import Delta, Generate, RequestFailed

# What the demo model was trained to answer.
_PROOF_QUESTION, _PROOF_ANSWER = "What is 2 + 3?", "2 + 3 = 5"
_PROOF_CONTEXT, _PROOF_TOKENS = 512, 64
# A driver may compile the engine's code for a new card first, which takes minutes.
_LONGEST_PROOF_S = 900.0
# How long an engine may take to start: a GPU engine reads up to 2 GB of libraries, and its driver wakes the card.
LONGEST_TRIAL_S = 60.0

_NO_NVIDIA_DRIVER = mark("This PC has no NVIDIA driver.")
_NO_VULKAN = mark("The Vulkan loader is missing: install your graphics driver.")
_NO_CUDA_LIBRARY = mark("A library of NVIDIA's CUDA is missing from the engine's folder: install the engine again.")
_LIBRARY_MISSING = mark("One of its libraries is missing: install the engine again.")

# What this PC lacks, by words (in lower case) in the last output of an engine that did not start. First match decides.
#
# This does not count as a crash: the engine is tried again at each start, because a driver may have been installed.
_MISSING_ON_THIS_PC = (
    ("driver version is insufficient", mark("The graphics driver is too old for it: install the newest one.")),
    ("no cuda-capable device", mark("This PC has no NVIDIA GPU.")),
    ("libcuda.so", _NO_NVIDIA_DRIVER),
    ("nvcuda", _NO_NVIDIA_DRIVER),
    (
        "libvulkan",
        mark(
            "The Vulkan loader is missing: install your graphics driver, and the package libvulkan1 (or vulkan-loader)."
        ),
    ),
    ("vulkan-1", _NO_VULKAN),
)
# The same for problems with the engine's own files, which count as crashes.
_BROKEN = (
    ("libcudart", _NO_CUDA_LIBRARY),
    ("cudart", _NO_CUDA_LIBRARY),
    ("cublas", _NO_CUDA_LIBRARY),
    ("not found", _LIBRARY_MISSING),
    ("failed to load shared library", mark("One of its libraries can't be loaded: install the engine again.")),
    ("cannot open shared object", _LIBRARY_MISSING),
)
# The library that a driver puts into Windows' system folder, and what to say if it is missing.
_WINDOWS_DRIVERS: dict[Backend, tuple[str, str]] = {
    "vulkan": ("vulkan-1.dll", _NO_VULKAN),
    "cuda": ("nvcuda.dll", _NO_NVIDIA_DRIVER),
}
_WINDOWS_RUNTIME = ("vcruntime140.dll", "vcruntime140_1.dll", "msvcp140.dll", "vcomp140.dll")
# Part of Python's message on Windows if a library can't load because another one, which isn't named, is missing.
_UNNAMED = "one of its dependencies"


class EngineTrial(msgspec.Struct, frozen=True, kw_only=True):
    """An engine and whether it can be used."""

    name: str
    backend: Backend
    engine: EngineFolder | None = None
    """None for the engine installed with llama-cpp-python, and for a folder that can't be read."""
    folder: str = ""
    """Its folder; "" for the engine installed with llama-cpp-python."""
    is_own: bool = False
    """True if it is in the user's own folder of engines, so that it may be deleted."""
    usable: bool = False
    reason: str = ""
    """A sentence that says why it can't be used; "" if it can or was not tried."""
    crashed: bool = False
    """True if it was started and exited or hung, and nothing that this PC lacks explains that."""
    is_set_aside: bool = False
    """True if it crashed so often that it is not started again until the user asks for it."""
    devices: tuple[DeviceInfo, ...] = ()

    @property
    def release(self) -> str:
        """llama.cpp's release of it, such as "b11312"."""
        return (self.engine.manifest.release if self.engine is not None else "") or own_release()

    @property
    def has_gpu(self) -> bool:
        return any(device.kind in {"gpu", "igpu"} for device in self.devices)


def reason_not_startable(manifest: EngineManifest, package_version: str, features: Collection[str] | None) -> str:
    """Return a sentence that says why an engine must not be started; "" if it may be.

    `features` are those of the CPU. None if they are unknown: only engines that need none may be started then.
    """
    if not manifest.release and manifest.package_version != package_version:
        return tr(
            "It belongs to engine release {0}, but this QwenDesk uses {1}.", manifest.package_version, package_version
        )
    if features is None:
        return tr("This system doesn't tell what its CPU can do.") if manifest.cpu_needs else ""
    missing = [need for need in manifest.cpu_needs if need not in features]
    return tr("It needs a newer CPU (with {0}).", join_list(missing)) if missing else ""


def unfit_layouts(engine: EngineFolder) -> str:
    """Return why the worker's calls don't fit an engine of another release; "" if they do, or if it is none.

    That can change with an update of QwenDesk, whose worker makes other calls.
    """
    if not engine.manifest.release:
        return ""
    try:
        report = check_against_all(known_abis(), read_abi(Path(engine.path, ABI_TABLE_NAME)))
    except (OSError, msgspec.DecodeError) as error:
        return tr("Its file {0} can't be read: {1}.", ABI_TABLE_NAME, error)
    return "" if report.fits else report.why_refused


def trial_client(engine: EngineFolder | None) -> BenchClient:
    """Return a client whose worker loads this engine and has LONGEST_TRIAL_S to start."""

    async def environment() -> Mapping[str, str]:
        return library_environment(engine)

    return WorkerClient(timeouts=WorkerTimeouts(start_s=LONGEST_TRIAL_S), environment=environment)


def missing_on_windows(backend: Backend) -> str:
    """Return what this PC lacks for an engine that did not start, as a sentence; "" on other systems.

    Windows names the library that did not load, but not the one that it asked for.
    """
    system = Path(os.environ.get("SYSTEMROOT", r"C:\Windows"), "System32")
    program = Path(getattr(sys, "_MEIPASS", sys.base_prefix))
    return missing_libraries(backend, system, program) if sys.platform == "win32" else ""


def missing_libraries(backend: Backend, system: Path, program: Path) -> str:
    """Return what a GPU driver or Microsoft's runtime lacks in these folders, as a sentence; "" if nothing.

    `system` is the folder of Windows. `program` is the folder of the app, which may contain the runtime too.
    """
    driver, sentence = _WINDOWS_DRIVERS.get(backend, ("", ""))
    if driver and not (system / driver).is_file():
        return tr(sentence)
    missing = [name for name in _WINDOWS_RUNTIME if not any((place / name).is_file() for place in (system, program))]
    if not missing:
        return ""
    return tr(
        "Microsoft's Visual C++ runtime is missing ({0}): install it from {1}.",
        join_list(missing),
        load_failures.RUNTIME_ADDRESS,
    )


def missing_driver(backend: Backend) -> str:
    """Return what to say if an engine runs without a card because this PC lacks its driver; "" if it has one.

    A CUDA engine that was built without the driver's functions for virtual memory starts without a driver.
    """
    if backend != "cuda":
        return ""
    if sys.platform == "win32":
        driver, sentence = _WINDOWS_DRIVERS[backend]
        return "" if Path(os.environ.get("SYSTEMROOT", r"C:\Windows"), "System32", driver).is_file() else tr(sentence)
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return tr(_NO_NVIDIA_DRIVER)
    return ""


async def try_engine(
    name: str,
    backend: Backend,
    engine: EngineFolder | None,
    client_of: Callable[[EngineFolder | None], EngineClient] = trial_client,
    missing: Callable[[Backend], str] = missing_on_windows,
) -> EngineTrial:
    """Start the engine in a separate process, ask for its devices, and stop it.

    `missing` returns what this PC lacks for this backend when the engine's output doesn't name it.
    """
    client = client_of(engine)
    try:
        async with asyncio.timeout(2 * LONGEST_TRIAL_S):
            devices = await client.probe()
    except TimeoutError:
        return EngineTrial(
            name=name, backend=backend, engine=engine, reason=tr("It didn't start in time."), crashed=True
        )
    finally:
        await client.close()
    if isinstance(devices, EngineExit):
        lack = _first(_MISSING_ON_THIS_PC, devices) or (missing(backend) if _lacks_unnamed(devices) else "")
        reason = lack or exit_reason(devices)
        crashed = not lack and devices.was_started
        return EngineTrial(name=name, backend=backend, engine=engine, reason=reason, crashed=crashed)
    gpus = any(device.kind in {"gpu", "igpu"} for device in devices.devices)
    reason = "" if gpus or backend == "cpu" else missing_driver(backend) or _no_card_reason(engine)
    return EngineTrial(
        name=name, backend=backend, engine=engine, usable=not reason, reason=reason, devices=devices.devices
    )


async def prove_engine(
    engine: EngineFolder, client_of: Callable[[EngineFolder | None], EngineClient] = trial_client
) -> str:
    """Have an engine answer a question with the demo model. Return what went wrong, as a sentence; "" if nothing.

    An engine that lists its devices may still use instructions that this CPU lacks, or have no code for the card:
    llama-cpp-python builds its CUDA releases for the CPU of the build machine.
    """
    client = client_of(engine)
    try:
        async with asyncio.timeout(_LONGEST_PROOF_S):
            return await _fault_in_answer(client)
    except TimeoutError:
        return tr("It didn't answer a test question in time.")
    finally:
        await client.close()


async def _fault_in_answer(client: EngineClient) -> str:
    loaded = await client.load(decided_options(LoadOptions(model=str(paths.demo_model()), n_ctx=_PROOF_CONTEXT)))
    if isinstance(loaded, LoadFailure):
        # Memory that a loaded model or a game takes says nothing about the engine.
        return "" if loaded.kind in ("out_of_vram", "out_of_ram") else loaded.sentence
    options = GenerationOptions(temperature=0.0, enable_thinking=False, max_tokens=_PROOF_TOKENS)
    text = ""
    question = Generate(messages=(text_message("user", _PROOF_QUESTION),), options=options)
    async for item in client.generate(question):
        if isinstance(item, EngineExit):
            return exit_reason(item)
        if isinstance(item, RequestFailed):
            return item.sentence
        text += item.text if isinstance(item, Delta) else ""
    return "" if _PROOF_ANSWER in text else tr("It answered a test question wrongly.")


def _no_card_reason(engine: EngineFolder | None) -> str:
    sentence = tr("It runs, but finds no graphics card that it can use.")
    if engine is None or not engine.manifest.minimum_driver:
        return sentence
    return join_sentences(sentence, tr("It needs graphics driver {0} or newer.", engine.manifest.minimum_driver))


def exit_reason(engine_exit: EngineExit) -> str:
    """Return a sentence that says why an engine exited while starting."""
    if (
        engine_exit.exit_code is not None
        and load_failures.unsigned(engine_exit.exit_code) in load_failures.ILLEGAL_INSTRUCTION_CODES
    ):
        return tr("It uses instructions that this CPU doesn't have.")
    return _first(_MISSING_ON_THIS_PC, engine_exit) or _first(_BROKEN, engine_exit) or engine_exit.sentence


def _lacks_unnamed(engine_exit: EngineExit) -> bool:
    """Return whether a library was missing that Windows doesn't name."""
    code = engine_exit.exit_code
    is_code = code is not None and load_failures.unsigned(code) in load_failures.MISSING_LIBRARY_CODES
    return is_code or _UNNAMED in _words(engine_exit)


def _first(reasons: Sequence[tuple[str, str]], engine_exit: EngineExit) -> str:
    words = _words(engine_exit)
    return next((tr(reason) for pattern, reason in reasons if pattern in words), "")


def _words(engine_exit: EngineExit) -> str:
    return "\n".join(engine_exit.engine_lines).lower()
