"""Tells which engine packs suit the graphics cards of this PC, and what prevents their use. Pure functions."""

import re
from collections.abc import Sequence

import msgspec

from qwendesk.core.devices import DeviceInfo
from qwendesk.core.engine_manifest import BEST_FIRST, Backend, EnginePack
from qwendesk.core.translation import join_sentences, mark, tr
from qwendesk.engines.packs import PackState
from qwendesk.hardware.engine_gpus import gpus_for_models, sees_card
from qwendesk.hardware.snapshot import GpuReading, Vendor

_VENDORS: dict[Backend, tuple[Vendor, ...]] = {
    "cuda": ("nvidia",),
    "rocm": ("amd",),
    "vulkan": ("nvidia", "amd", "intel"),
    "metal": ("apple",),
    "cpu": (),
}
# NVIDIA's own version number, such as "575.64".
_NVIDIA_DRIVER = re.compile(r"(\d{3})(?:\.(\d+))?")
# What Windows calls the same driver: "32.0.15.7564" ends with the digits of "575.64".
_WINDOWS_DRIVER = re.compile(r"\d{2}\.\d+\.\d*(\d)\.(\d{2})(\d{2})")
# The series that begin with a compute capability.
_CARDS_FROM = {(6, 0): "GeForce GTX 10", (7, 5): "GeForce GTX 16 and RTX 20"}
_RDNA4 = re.compile(r"\b(RX ?90[67]0|R9700)\b", re.IGNORECASE)


class Regression(msgspec.Struct, frozen=True):
    """Something that became worse in a release of llama.cpp, on some cards."""

    cards: re.Pattern[str]
    vendor: Vendor
    backend: Backend
    since: int
    """The build that it was reported for, at the latest: b11312 is 11312."""
    mended: int
    """The build that mends it; 0 while none is known."""
    sentence: str
    """For `tr`; {0} is the card."""
    source: str


# What users reported and this project can't measure. Each row has its source.
REGRESSIONS = (
    Regression(
        _RDNA4, "amd", "vulkan", 11312, 0,
        mark("On {0}, the Vulkan engine reads prompts 12 to 31% slower than earlier ones (llama.cpp issue 29892). "
             "Answers are as fast."),
        "github.com/ggml-org/llama.cpp/issues/29892, open in October 2026",
    ),
    # Measured on one RX 9070 XT under Windows, by release archives: 2985 tokens/s with b10516, 1926 with b10781. The
    # pinned ggml-vulkan.cpp still unpacks such a cache first (`use_dequant_kv`), only if keys and values are quantized.
    # Others found no change on an RX 7900 XTX with F16.
    Regression(
        _RDNA4, "amd", "vulkan", 10781, 0,
        mark("With a KV cache in Q8_0, the Vulkan engine reads prompts on {0} up to 35% slower than before (llama.cpp "
             "issue 28752). F16 avoids that."),
        "github.com/ggml-org/llama.cpp/issues/28752, comment of 14 September 2026",
    ),
)  # fmt: skip


def unserved(gpus: Sequence[GpuReading], devices: Sequence[DeviceInfo]) -> tuple[GpuReading, ...]:
    """Return the cards of this PC if the engine sees none of them; empty while its `devices` are unknown.

    A laptop's integrated GPU may be all that the engine sees: with the card switched off, or with an old driver.
    """
    return () if sees_card(devices) else gpus_for_models(gpus)


def fits(backend: Backend, gpu: GpuReading) -> bool:
    """Return whether an engine with this backend supports the card."""
    return gpu.vendor in _VENDORS[backend]


def packs_for(states: Sequence[PackState], gpus: Sequence[GpuReading]) -> tuple[PackState, ...]:
    """Return the packs that support at least one of these cards, best first. Of several for CUDA, return one.

    That is the installed one, or the one to take, or, if this PC can use none, the one that asks for least.
    """
    fitting = [state for state in states if any(fits(state.pack.backend, gpu) for gpu in gpus)]
    cuda = [state for state in fitting if state.pack.backend == "cuda"]
    if cuda and _all_known(gpus):
        best = best_cuda([state.pack for state in cuda], gpus)
        installed = next((state for state in cuda if state.is_installed), None)
        chosen = installed or next((state for state in cuda if state.pack == best), cuda[0])
        fitting = [state for state in fitting if state.pack.backend != "cuda" or state is chosen]
    return tuple(sorted(fitting, key=lambda state: BEST_FIRST.index(state.pack.backend)))


def best_cuda(packs: Sequence[EnginePack], gpus: Sequence[GpuReading]) -> EnginePack | None:
    """Return the pack for CUDA that runs on most NVIDIA cards of this PC, and of equal ones the newest.

    Return None if none runs on any, or if a card's driver or compute capability is unknown.
    """
    if not _all_known(gpus):
        return None
    nvidia = _nvidia(gpus)
    counted = [
        (sum(not _refusal(pack, gpu) for gpu in nvidia), _number(pack.minimum_driver) or (0, 0), pack)
        for pack in packs
        if pack.backend == "cuda"
    ]
    n_cards, _driver, pack = max(counted, key=lambda each: each[:2], default=(0, (0, 0), None))
    return pack if n_cards else None


def is_compiled_by_driver(pack: EnginePack, gpus: Sequence[GpuReading]) -> bool:
    """Return whether the driver compiles the pack's code for one of these cards at the first load."""
    return any(
        gpu.compute_capability is not None and _code(gpu.compute_capability) in pack.compiled_by_driver
        for gpu in _nvidia(gpus)
    )


def obstacle(pack: EnginePack, gpus: Sequence[GpuReading]) -> str:
    """Return a sentence that says why this pack would not run on this PC; "" if no reason is known."""
    if pack.backend == "cpu" or not gpus:
        return ""
    meant = [gpu for gpu in gpus if fits(pack.backend, gpu)]
    if not meant:
        return tr("This PC has no graphics card that it could use.")
    if pack.backend != "cuda":
        return ""
    refusals = [_refusal(pack, gpu) for gpu in meant]
    return "" if "" in refusals else refusals[0]


def known_regressions(gpus: Sequence[GpuReading], backend: Backend, build: int, *, has_run_cmd: bool = False) -> str:
    """Return what became worse with a build of llama.cpp on these cards, and what mends it; "" if nothing is known.

    `has_run_cmd` tells that QwenDesk runs from its source on Windows, where there is another engine for Radeon.
    """
    sentences, may_try_rocm = [], False
    for row in REGRESSIONS:
        is_in = row.backend == backend and build >= row.since and not 0 < row.mended <= build
        gpu = next((each for each in gpus if each.vendor == row.vendor and row.cards.search(each.name or "")), None)
        if not is_in or gpu is None:
            continue
        sentences.append(tr(row.sentence, gpu.name or ""))
        if row.mended:
            sentences.append(tr("b{0} mends it: check for newer engines below.", row.mended))
        may_try_rocm = may_try_rocm or (row.vendor == "amd" and has_run_cmd and not row.mended)
    if may_try_rocm:
        sentences.append(
            tr(
                "AMD's own engine may be faster, but was never tried with QwenDesk: enter set ENGINE=hip before "
                "run.cmd."
            )
        )
    return join_sentences(*sentences)


def _nvidia(gpus: Sequence[GpuReading]) -> list[GpuReading]:
    return [gpu for gpu in gpus if gpu.vendor == "nvidia"]


def _all_known(gpus: Sequence[GpuReading]) -> bool:
    """Return whether this PC has NVIDIA cards, and driver and compute capability of each are known."""
    nvidia = _nvidia(gpus)
    return bool(nvidia) and all(gpu.compute_capability is not None and _number(gpu.driver or "") for gpu in nvidia)


def _refusal(pack: EnginePack, gpu: GpuReading) -> str:
    """Return why a pack for CUDA can't run on this card, as a sentence; "" if it can or no reason is known."""
    card = gpu.compute_capability
    built = sorted(divmod(int(each), 10) for each in pack.gpu_architectures if each.isdecimal())
    name = gpu.name or "NVIDIA"
    if card is not None and built and card < built[0]:
        series = _CARDS_FROM.get(built[0], tr("compute capability {0}", "{}.{}".format(*built[0])))
        return tr("{0} is too old for CUDA {1}, which begins with {2}. The Vulkan engine uses it.",
                  name, pack.name.rpartition("-")[2], series)  # fmt: skip
    # Code for a compute capability runs on later ones of the same major number.
    has_code = card is None or not built or any(major == card[0] and minor <= card[1] for major, minor in built)
    if not has_code and card is not None and _code(card) not in pack.compiled_by_driver:
        return tr("{0} is newer than this engine. The Vulkan engine uses it until there is a newer one.", name)
    least, driver = _number(pack.minimum_driver), _number(gpu.driver or "")
    if least and driver and driver < least:
        return tr(
            "Your graphics driver is version {0}. The engine needs {1} or newer: update the driver first.",
            "{}.{:02}".format(*driver) if gpu.driver and _WINDOWS_DRIVER.match(gpu.driver) else gpu.driver or "",
            pack.minimum_driver,
        )  # fmt: skip
    return ""


def _code(capability: tuple[int, int]) -> str:
    """Return (12, 0) as CMake writes it: "120"."""
    return f"{capability[0]}{capability[1]}"


def _number(driver: str) -> tuple[int, int] | None:
    """Return a driver's version by NVIDIA's counting, such as (575, 64); None if it is of another form."""
    windows = _WINDOWS_DRIVER.fullmatch(driver)
    if windows is not None:
        return int(windows[1] + windows[2]), int(windows[3])
    found = _NVIDIA_DRIVER.match(driver)
    return (int(found[1]), int(found[2] or 0)) if found is not None else None
