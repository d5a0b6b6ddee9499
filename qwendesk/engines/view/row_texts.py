"""Texts of the list of engines and packs, made from frozen values. No widgets here."""

import re
from collections.abc import Sequence

import msgspec

from qwendesk.core.devices import DeviceInfo
from qwendesk.core.engine_manifest import Backend
from qwendesk.core.translation import join_list, tr
from qwendesk.core.units import show_bytes
from qwendesk.engines.engine_choice import INSTALLED, EngineChoice
from qwendesk.engines.packs import PackState
from qwendesk.engines.trial import EngineTrial

_VERSION = re.compile(r"(?:cuda|rocm)-?(\d+(?:\.\d+)?)")
_LEVELS = (("avx512f", "AVX-512"), ("avx2", "AVX2"), ("avx", "AVX"), ("sse4_2", "SSE4.2"))


class EngineLine(msgspec.Struct, frozen=True, kw_only=True):
    """An engine in the list."""

    name: str
    title: str
    details: str
    chip: str
    tone: str
    sentence: str = ""
    """Explains the chip; "" if there is nothing to explain."""
    is_wanted: bool = False
    can_use: bool = True
    try_text: str = ""
    """Text of the button that tries the engine; "" for no button."""
    can_delete: bool = False
    n_bytes: int = 0
    """Bytes that deleting it frees; 0 if unknown."""


class PackLine(msgspec.Struct, frozen=True, kw_only=True):
    """An engine pack in the list."""

    name: str
    title: str
    details: str
    chip: str
    tone: str
    get_text: str = ""
    """Text of the button that starts or resumes the download; "" while it runs."""
    fraction: float | None = None
    """Downloaded part, 0 to 1; None if the download has not begun."""
    progress: str = ""
    problem: str = ""
    hint: str = ""
    """Reason why it would not run on this PC; "" if no reason is known."""
    is_running: bool = False
    can_discard: bool = False
    is_offline: bool = False


def backend_title(backend: Backend) -> str:
    return {
        "cpu": tr("CPU"),
        "cuda": tr("NVIDIA CUDA"),
        "rocm": tr("AMD ROCm"),
        "vulkan": tr("Vulkan"),
        "metal": tr("Apple Metal"),
    }[backend]


def engine_title(trial: EngineTrial) -> str:
    """Return a title such as "CPU, AVX2" or "NVIDIA CUDA 12"; the folder's name if the folder can't be read."""
    if trial.name == INSTALLED:
        return tr("{0} (built-in)", backend_title(trial.backend))
    if trial.engine is None:
        return trial.name
    manifest = trial.engine.manifest
    if manifest.release:
        return f"{backend_title(manifest.backend)}, {manifest.release}"
    if manifest.backend == "cpu":
        level = next((title for need, title in _LEVELS if need in manifest.cpu_needs), "")
        return tr("CPU, {0}", level) if level else tr("CPU")
    version = _VERSION.search(manifest.name)
    return f"{backend_title(manifest.backend)} {version[1]}" if version else backend_title(manifest.backend)


def engine_lines(engines: EngineChoice, wanted: str, devices: Sequence[DeviceInfo] = ()) -> tuple[EngineLine, ...]:
    """Return the lines of all engines, best first. `devices` are those that the running engine lists."""
    return tuple(_line(trial, engines, wanted, devices) for trial in engines.trials)


def best_text(engines: EngineChoice) -> str:
    """Return which engine is the best one that runs."""
    if engines.current is not None:
        return tr("Now: {0}", engine_title(engines.current))
    return tr("No engine runs here yet") if engines.trials and not engines.trying else tr("Checking the engines…")


def note_text(engines: EngineChoice, wanted: str, *, waits: bool, adding: str) -> str:
    """Return why the engine in use is not the one that the user chose; "" if it is.

    `waits` tells that a change is waiting for the end of an answer. `adding` is the engine being added from a file.
    """
    if adding and not waits:
        return tr("Adding {0}: it is unpacked and tried…", adding)
    if waits:
        return tr("The engine changes after the current answer.")
    if not engines.trials or engines.trying:
        return ""
    if engines.current is None:
        return tr("No engine runs on this PC. Each one shows what it needs.")
    if not wanted or wanted == engines.chosen:
        return ""
    asked = engines.find(wanted)
    used = engine_title(engines.current)
    if asked is None:
        return tr("The engine “{0}” could not be found, so {1} is used.", wanted, used)
    return tr("{0} doesn't run here right now, so {1} is used.", engine_title(asked), used)


def blind_engine_text(trial: EngineTrial) -> str:
    """Return what to do if an engine runs, but doesn't see the graphics card that is in this PC."""
    return tr(
        "The engine {0} doesn't see the graphics card: install the newest graphics driver, turn off any power-saving "
        "mode that disables the card (“Eco” or “iGPU only” on laptops), and restart the PC.",
        engine_title(trial),
    )


def pack_line(state: PackState, hint: str, *, is_compiled_here: bool) -> PackLine:
    """Return the line of a pack. `hint` says why it would not run on this PC; "" if no reason is known.

    `is_compiled_here` tells that the graphics driver compiles its code at the first load.
    """
    pack, whole = state.pack, state.pack.n_bytes
    chip, tone = _pack_chip(state)
    begun = state.is_running or bool(state.done_bytes)
    size = show_bytes(whole) if pack.is_pinned else tr("about {0}", show_bytes(whole))
    compiled = tr("the first load takes minutes, because the driver compiles it for your card")
    parts = (size, _licences(state), _needs(state), compiled if is_compiled_here else "")
    get_text = tr("Try again") if state.problem else tr("Resume") if begun else tr("Download")
    return PackLine(
        name=pack.name,
        title=pack.title,
        details=" · ".join(part for part in parts if part),
        chip=chip,
        tone=tone,
        get_text="" if state.is_running else get_text,
        fraction=min(state.done_bytes / whole, 1.0) if begun and whole else None,
        progress=_progress(state) if begun else "",
        problem=state.problem,
        hint=hint,
        is_running=state.is_running,
        can_discard=not state.is_running and bool(state.done_bytes),
        is_offline=state.is_offline and not state.is_running,
    )


def _line(trial: EngineTrial, engines: EngineChoice, wanted: str, devices: Sequence[DeviceInfo]) -> EngineLine:
    is_used, is_wanted = trial.name == engines.chosen, trial.name == wanted
    chip, tone = _chip(trial, engines)
    is_tried = trial.usable or bool(trial.reason)
    is_quiet = bool(engines.trying) or is_used
    sentence = trial.reason or ("" if is_tried or is_used else tr("Not started, because a better engine runs."))
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


def _chip(trial: EngineTrial, engines: EngineChoice) -> tuple[str, str]:
    if trial.name == engines.trying:
        return tr("Trying…"), "info"
    if trial.name == engines.chosen:
        return tr("In use"), "good"
    if trial.usable:
        return tr("Runs here"), "info"
    if trial.is_set_aside:
        return tr("Set aside"), "warn"
    if trial.reason:
        return (tr("Crashed"), "warn") if trial.crashed else (tr("Can't run here"), "plain")
    return tr("Not tried"), "plain"


def _details(trial: EngineTrial, devices: Sequence[DeviceInfo]) -> str:
    """Return a text such as "RTX 3090 (24.0 GB) · folder vulkan · llama.cpp 1a2b3c4d5 · release 0.3.36"."""
    gpus = [each for each in devices if each.kind != "cpu"] or list(devices)
    parts = [join_list(map(_device, gpus))]
    if trial.engine is None:
        return " · ".join(part for part in (*parts, trial.folder) if part)
    manifest = trial.engine.manifest
    parts.append(tr("folder {0}", trial.name))
    if manifest.llama_cpp_commit:
        parts.append(tr("llama.cpp {0}", manifest.llama_cpp_commit[:9]))
    parts.append(tr("release {0}", manifest.shown_release))
    if manifest.unlisted:
        parts.append(tr("its publisher lists no SHA-256, so that of the first download is kept"))
    return " · ".join(part for part in parts if part)


def _device(device: DeviceInfo) -> str:
    name = device.description.strip() or device.name
    return name if device.kind == "cpu" or not device.total_bytes else f"{name} ({show_bytes(device.total_bytes)})"


def _pack_chip(state: PackState) -> tuple[str, str]:
    if state.is_running:
        words = {"unpacking": tr("Unpacking"), "waiting": tr("Retrying"), "downloading": tr("Downloading")}
        return words.get(state.phase, tr("Checking")), "info"
    if state.problem:
        return tr("Failed"), "bad"
    return (tr("Paused"), "plain") if state.done_bytes else (tr("Not installed"), "plain")


def _progress(state: PackState) -> str:
    """Return a text such as "340.0 MB of 1.1 GB · 48 MB/s"."""
    parts = [tr("{0} of {1}", show_bytes(state.done_bytes), show_bytes(state.pack.n_bytes))]
    if state.phase == "downloading" and state.bytes_per_s >= 1:
        parts.append(tr("{0}/s", show_bytes(int(state.bytes_per_s))))
    return " · ".join(parts)


def _licences(state: PackState) -> str:
    return tr("licence: {0}", join_list(dict.fromkeys(each.licence for each in state.pack.archives)))


def _needs(state: PackState) -> str:
    """Return "needs an NVIDIA card of compute capability 7.5 or newer and driver 525 or newer", or the known part."""
    pack = state.pack
    found = sorted(int(each) for each in pack.gpu_architectures if each.isdecimal())
    capability = f"{found[0] // 10}.{found[0] % 10}" if found else ""
    if capability and pack.minimum_driver:
        return tr(
            "needs an NVIDIA card of compute capability {0} or newer and driver {1} or newer",
            capability,
            pack.minimum_driver,
        )
    if capability:
        return tr("needs an NVIDIA card of compute capability {0} or newer", capability)
    return tr("needs driver {0} or newer", pack.minimum_driver) if pack.minimum_driver else ""
