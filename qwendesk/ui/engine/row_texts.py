"""What the list of engines says of each engine and of each pack, made from frozen values. No widgets here."""

import re
from collections.abc import Sequence

import msgspec

from qwendesk.core.devices import DeviceInfo
from qwendesk.core.engines import Backend
from qwendesk.core.units import show_bytes
from qwendesk.services.engine.engines import INSTALLED, Engines
from qwendesk.services.engine.packs import PackState
from qwendesk.services.engine.trial import Trial
from qwendesk.ui.kit.text import tr

_VERSION = re.compile(r"(?:cuda|rocm)-?(\d+(?:\.\d+)?)")
_LEVELS = (("avx512f", "AVX-512"), ("avx2", "AVX2"), ("avx", "AVX"), ("sse4_2", "SSE4.2"))


class EngineLine(msgspec.Struct, frozen=True, kw_only=True):
    """One engine of the list."""

    name: str
    title: str
    details: str
    chip: str
    tone: str
    sentence: str = ""
    """Why it is as the chip says; "" when there is nothing to explain."""
    is_wanted: bool = False
    can_use: bool = True
    try_text: str = ""
    """Of the button that tries it; "" for no button."""
    can_delete: bool = False
    n_bytes: int = 0
    """What deleting it frees, as far as it is known."""


class PackLine(msgspec.Struct, frozen=True, kw_only=True):
    """One pack of the list."""

    name: str
    title: str
    details: str
    chip: str
    tone: str
    get_text: str = ""
    """Of the button that fetches it or goes on; "" while it runs."""
    fraction: float | None = None
    """How much is downloaded, 0 to 1; None when nothing is."""
    progress: str = ""
    problem: str = ""
    hint: str = ""
    """What stands in its way on this PC."""
    is_running: bool = False
    can_discard: bool = False
    is_offline: bool = False


def backend_title(backend: Backend) -> str:
    return {
        "cpu": tr("Processor"),
        "cuda": tr("NVIDIA CUDA"),
        "rocm": tr("AMD ROCm"),
        "vulkan": tr("Vulkan"),
        "metal": tr("Apple Metal"),
    }[backend]


def engine_title(trial: Trial) -> str:
    """In people's words: "Processor, AVX2", "NVIDIA CUDA 12"; the folder's name when that cannot even be read."""
    if trial.name == INSTALLED:
        return tr("{0}, as installed", backend_title(trial.backend))
    if trial.engine is None:
        return trial.name
    manifest = trial.engine.manifest
    if manifest.backend == "cpu":
        level = next((title for need, title in _LEVELS if need in manifest.cpu_needs), "")
        return tr("Processor, {0}", level) if level else tr("Processor")
    version = _VERSION.search(manifest.name)
    return f"{backend_title(manifest.backend)} {version[1]}" if version else backend_title(manifest.backend)


def engine_lines(engines: Engines, wanted: str, devices: Sequence[DeviceInfo] = ()) -> tuple[EngineLine, ...]:
    """Best first. `devices` are those that the running engine lists."""
    return tuple(_line(trial, engines, wanted, devices) for trial in engines.trials)


def best_text(engines: Engines) -> str:
    """What "the best" is now."""
    if engines.current is not None:
        return tr("Now: {0}", engine_title(engines.current))
    return tr("None runs here yet") if engines.trials and not engines.trying else tr("Looking at the engines…")


def note_text(engines: Engines, wanted: str, *, waits: bool) -> str:
    """What is not as it was asked for; "" if all is."""
    if waits:
        return tr("The engine changes after the answer that is being written.")
    if not engines.trials or engines.trying:
        return ""
    if engines.current is None:
        return tr("No engine runs on this PC. What each one lacks stands beside it.")
    if not wanted or wanted == engines.chosen:
        return ""
    asked = engines.named(wanted)
    used = engine_title(engines.current)
    if asked is None:
        return tr("The engine “{0}” that you chose is not here any more, so {1} is used.", wanted, used)
    return tr("You chose {0}, which does not run here now, so {1} is used.", engine_title(asked), used)


def pack_line(state: PackState, hint: str = "") -> PackLine:
    """`hint` is what stands in its way on this PC, "" for nothing."""
    pack, whole = state.pack, state.pack.n_bytes
    chip, tone = _pack_chip(state)
    begun = state.is_running or bool(state.done_bytes)
    size = show_bytes(whole)
    get_text = "" if state.is_running else tr("Try again") if state.problem else tr("Resume") if begun else tr("Get")
    return PackLine(
        name=pack.name,
        title=pack.title,
        details=" · ".join(part for part in (size, _licences(state), _needs(state)) if part),
        chip=chip,
        tone=tone,
        get_text=get_text,
        fraction=min(state.done_bytes / whole, 1.0) if begun and whole else None,
        progress=_progress(state) if begun else "",
        problem=state.problem,
        hint=hint,
        is_running=state.is_running,
        can_discard=not state.is_running and bool(state.done_bytes),
        is_offline=state.is_offline and not state.is_running,
    )


def _line(trial: Trial, engines: Engines, wanted: str, devices: Sequence[DeviceInfo]) -> EngineLine:
    is_used, is_wanted = trial.name == engines.chosen, trial.name == wanted
    chip, tone = _chip(trial, engines)
    is_tried = trial.usable or bool(trial.reason)
    is_quiet = bool(engines.trying) or is_used
    sentence = trial.reason or ("" if is_tried or is_used else tr("A better one runs, so this one was not started."))
    manifest = trial.engine.manifest if trial.engine is not None else None
    return EngineLine(
        name=trial.name,
        title=engine_title(trial),
        details=_details(trial, (trial.devices or tuple(devices)) if is_used else trial.devices),
        chip=chip,
        tone=tone,
        sentence="" if trial.name == engines.trying else sentence,
        is_wanted=is_wanted,
        can_use=is_wanted or not trial.reason,
        try_text="" if is_quiet or trial.usable else tr("Try again") if trial.reason else tr("Try"),
        can_delete=trial.is_own and not engines.trying,
        n_bytes=sum(file.n_bytes for file in manifest.files) if manifest is not None else 0,
    )


def _chip(trial: Trial, engines: Engines) -> tuple[str, str]:
    if trial.name == engines.trying:
        return tr("Trying…"), "info"
    if trial.name == engines.chosen:
        return tr("In use"), "good"
    if trial.usable:
        return tr("Runs here"), "info"
    if trial.is_set_aside:
        return tr("Set aside"), "warn"
    if trial.reason:
        return (tr("Crashed"), "warn") if trial.crashed else (tr("Cannot run here"), "plain")
    return tr("Not tried"), "plain"


def _details(trial: Trial, devices: Sequence[DeviceInfo]) -> str:
    """ "Vulkan · RTX 3090 (24.0 GB) · vulkan · llama.cpp 1a2b3c4d5, release 0.3.36"."""
    gpus = [each for each in devices if each.kind != "cpu"] or list(devices)
    parts = [", ".join(map(_device, gpus))]
    if trial.engine is None:
        return " · ".join(part for part in (*parts, trial.folder) if part)
    manifest = trial.engine.manifest
    parts.append(tr("folder {0}", trial.name))
    if manifest.llama_cpp_commit:
        parts.append(tr("llama.cpp {0}", manifest.llama_cpp_commit[:9]))
    parts.append(tr("release {0}", manifest.package_version))
    return " · ".join(part for part in parts if part)


def _device(device: DeviceInfo) -> str:
    name = device.description.strip() or device.name
    return name if device.kind == "cpu" or not device.total_bytes else f"{name} ({show_bytes(device.total_bytes)})"


def _pack_chip(state: PackState) -> tuple[str, str]:
    if state.is_running:
        words = {"unpacking": tr("Unpacking"), "waiting": tr("Trying again"), "downloading": tr("Downloading")}
        return words.get(state.phase, tr("Checking")), "info"
    if state.problem:
        return tr("Failed"), "bad"
    return (tr("Paused"), "plain") if state.done_bytes else (tr("Not here"), "plain")


def _progress(state: PackState) -> str:
    """ "340.0 MB of 1.1 GB · 48 MB/s"."""
    parts = [tr("{0} of {1}", show_bytes(state.done_bytes), show_bytes(state.pack.n_bytes))]
    if state.phase == "downloading" and state.bytes_per_s >= 1:
        parts.append(tr("{0}/s", show_bytes(int(state.bytes_per_s))))
    return " · ".join(parts)


def _licences(state: PackState) -> str:
    return tr("licence: {0}", ", ".join(dict.fromkeys(each.licence for each in state.pack.archives)))


def _needs(state: PackState) -> str:
    """ "needs an NVIDIA card of compute capability 7.5 or newer and driver 525 or newer"."""
    pack = state.pack
    found = sorted(int(each) for each in pack.gpu_architectures if each.isdecimal())
    parts = []
    if found:
        parts.append(tr("an NVIDIA card of compute capability {0} or newer", f"{found[0] // 10}.{found[0] % 10}"))
    if pack.minimum_driver:
        parts.append(tr("driver {0} or newer", pack.minimum_driver))
    return tr("needs {0}", tr(" and ").join(parts)) if parts else ""
