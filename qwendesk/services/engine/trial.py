"""Whether one engine runs on this PC: tried in a process of its own, with a plain reason if it does not."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence

import msgspec

from qwendesk.core.devices import DeviceInfo
from qwendesk.core.engines import Backend, EngineFolder
from qwendesk.core.failures import EngineDeath
from qwendesk.engine import exits
from qwendesk.engine.client import Patience, WorkerClient
from qwendesk.engine.contract import EngineClient
from qwendesk.engine.folders import library_environment
from qwendesk.services.engine.windows_needs import lacking_here

LONGEST_TRIAL_S = 60.0
"""A GPU engine brings in up to 2 GB of libraries from a cold disk, and its driver wakes the card."""

_NOT_ON_THIS_PC = (
    ("driver version is insufficient", "The graphics driver is too old for it: install the newest one."),
    ("no cuda-capable device", "There is no NVIDIA GPU here."),
    ("libcuda.so", "There is no NVIDIA driver here."),
    ("nvcuda", "There is no NVIDIA driver here."),
    (
        "libvulkan",
        "The Vulkan loader is missing: install your graphics driver, and the package libvulkan1 (or vulkan-loader).",
    ),
    ("vulkan-1", "The Vulkan loader is missing: install your graphics driver."),
)
"""Words in the last lines of an engine that did not start, in lower case, for what this PC lacks. First match decides.

Such an engine did not crash: it is tried again at each start, because a driver may have come.
"""
_BROKEN = (
    ("libcudart", "A library of NVIDIA's CUDA is missing from the engine's folder: fetch the engine again."),
    ("cudart", "A library of NVIDIA's CUDA is missing from the engine's folder: fetch the engine again."),
    ("cublas", "A library of NVIDIA's CUDA is missing from the engine's folder: fetch the engine again."),
    ("not found", "One of its libraries is missing: fetch the engine again."),
    ("failed to load shared library", "One of its libraries cannot be loaded: fetch the engine again."),
    ("cannot open shared object", "One of its libraries is missing: fetch the engine again."),
)
"""The same for an engine whose own files are at fault."""
_UNNAMED = "one of its dependencies"
"""What Python says on Windows when a library did not load because another one is missing, whichever that is."""


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """One engine, and whether it can be used."""

    name: str
    backend: Backend
    engine: EngineFolder | None = None
    """None: the one installed with the package, or a folder that cannot even be read."""
    folder: str = ""
    """Where it lies; "" for the one installed with the package."""
    is_own: bool = False
    """It lies in this person's own folder of engines, and so may be deleted."""
    usable: bool = False
    reason: str = ""
    """Why it cannot be used, in a sentence; "" if it can."""
    crashed: bool = False
    """It was started and died: twice, and it is set aside."""
    is_set_aside: bool = False
    """It crashed so often that it is not started before somebody asks for it."""
    devices: tuple[DeviceInfo, ...] = ()

    @property
    def has_gpu(self) -> bool:
        return any(device.kind in {"gpu", "igpu"} for device in self.devices)


def why_not_here(engine: EngineFolder, package_version: str, features: Collection[str] | None) -> str:
    """What forbids even to start this engine, as a sentence; "" if nothing does.

    `features` None: the system does not tell, so only an engine that needs nothing special may be started.
    """
    manifest = engine.manifest
    if manifest.package_version != package_version:
        return f"It belongs to engine release {manifest.package_version}; this QwenDesk uses {package_version}."
    if features is None:
        return "This system does not say what its processor can do." if manifest.cpu_needs else ""
    missing = [need for need in manifest.cpu_needs if need not in features]
    return f"It needs a newer processor (with {', '.join(missing)})." if missing else ""


def trial_client(engine: EngineFolder | None) -> EngineClient:
    """A client whose worker loads this engine, and is given a limited time to start."""

    async def environment() -> Mapping[str, str]:
        return library_environment(engine)

    return WorkerClient(patience=Patience(start_s=LONGEST_TRIAL_S), environment=environment)


async def try_engine(
    name: str,
    backend: Backend,
    engine: EngineFolder | None,
    client_of: Callable[[EngineFolder | None], EngineClient] = trial_client,
    lacks: Callable[[Backend], str] = lacking_here,
) -> Trial:
    """Starts the engine in a process of its own, asks for its devices, and ends it.

    `lacks` says what this PC lacks for such an engine, where the engine could not name it.
    """
    client = client_of(engine)
    try:
        async with asyncio.timeout(2 * LONGEST_TRIAL_S):
            devices = await client.probe()
    except TimeoutError:
        return Trial(name=name, backend=backend, engine=engine, reason="It did not start in time.", crashed=True)
    finally:
        await client.close()
    if isinstance(devices, EngineDeath):
        lack = _first(_NOT_ON_THIS_PC, devices) or (lacks(backend) if _UNNAMED in _words(devices) else "")
        reason = lack or death_reason(devices)
        return Trial(name=name, backend=backend, engine=engine, reason=reason, crashed=not lack)
    gpus = any(device.kind in {"gpu", "igpu"} for device in devices.devices)
    reason = "" if gpus or backend == "cpu" else "It runs, but finds no graphics card that it can use."
    return Trial(name=name, backend=backend, engine=engine, usable=not reason, reason=reason, devices=devices.devices)


def death_reason(death: EngineDeath) -> str:
    """Why an engine died at its start, in a sentence."""
    if death.exit_code is not None and exits.unsigned(death.exit_code) in exits.ILLEGAL_INSTRUCTION_CODES:
        return "It uses instructions that this processor does not have."
    return _first(_NOT_ON_THIS_PC, death) or _first(_BROKEN, death) or death.sentence


def _first(reasons: Sequence[tuple[str, str]], death: EngineDeath) -> str:
    words = _words(death)
    return next((reason for pattern, reason in reasons if pattern in words), "")


def _words(death: EngineDeath) -> str:
    return "\n".join(death.engine_lines).lower()
