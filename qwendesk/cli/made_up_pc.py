"""The PC that `plan` and `recommend` are for if options describe one: --gpu, --unified, --backend, --vram, --ram."""

import argparse
import math
import re
from collections.abc import Sequence

import msgspec
import psutil

from qwendesk.core.devices import DeviceInfo, DeviceKind, GpuLink
from qwendesk.core.errors import BadOption
from qwendesk.core.plan import MachineMemory
from qwendesk.core.translation import tr
from qwendesk.core.units import GIB, show_bytes
from qwendesk.hardware.gpu_cards import find_card, pcie_bandwidth, pcie_rate, ram_bandwidth

# Part of --ram that the system and a browser use.
SYSTEM_RAM_BYTES = 3 * GIB
_MAX_GPUS = 16
# ggml's names, which its devices are named after.
_BACKENDS = {"cuda": "CUDA", "vulkan": "Vulkan", "metal": "MTL", "rocm": "ROCm"}
_GPU = re.compile(r"(?P<name>.+?):(?P<total>[^:]+)(?::(?P<free>[^:]+))?")
_UNIFIED = re.compile(r"(?:(?P<name>[^:]*[^:.\d][^:]*):)?(?P<total>[^:]+)(?::(?P<limit>[^:]+))?")
# What Metal recommends that a GPU uses of the memory, and of less memory than 36 GiB, unless iogpu.wired_limit_mb says
# more: 48 of 64 GiB, 21.3 of 32 (ggml-metal's log of recommendedMaxWorkingSetSize). macOS 26 allows more: 107.5 of 128.
_METAL_SHARE, _SMALL_METAL_SHARE, _SMALL_MAC_BYTES = 3 / 4, 2 / 3, 36 * GIB


def add_made_up_pc_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--gpu",
        metavar="NAME:GIB[:FREE_GIB]",
        dest="gpus",
        action="append",
        default=[],
        help='plan for this GPU instead of this PC\'s, such as "RTX 3090:24"; repeatable',
    )
    add(
        "--unified",
        metavar="[NAME:]GIB[:LIMIT_GIB]",
        help='plan for a GPU that shares this much memory with the CPU, such as 128 or "Strix Halo:128". Without a '
        "limit, it may use what Metal recommends on a Mac, else all of it; with AMD on Linux that takes a raised GTT "
        "limit, which is half of the memory otherwise",
    )
    add(
        "--backend",
        choices=tuple(_BACKENDS),
        help="the kind of engine for --gpu and --unified (default: what suits the cards or the chip)",
    )
    add("--vram", metavar="GIB[,GIB...]", help="plan for GPUs with this much memory instead of this PC's; 0: no GPU")
    add("--ram", metavar="GIB", type=float, help="plan for this much RAM instead of this PC's free RAM")
    add(
        "--ram-kind",
        metavar="KIND[xCHANNELS]",
        default="",
        help="the kind of RAM, such as DDR5-6000, DDR4 or DDR4-3200x8 (2 channels by default)",
    )
    add("--reserve", metavar="GIB", type=float, help="VRAM to leave free (default: as in the settings)")


def add_link_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--link",
        metavar="GENxLANES",
        dest="links",
        action="append",
        default=[],
        help="the PCIe link of each --gpu in their order, such as 4x16 or 3x4; one alone counts for all",
    )
    add(
        "--nvlink",
        metavar="N-N",
        dest="nvlinks",
        action="append",
        default=[],
        help="two of the --gpu that NVLink joins, counted from 0, such as 0-1; repeatable",
    )


def made_up_links(options: argparse.Namespace, devices: Sequence[DeviceInfo]) -> tuple[GpuLink, ...]:
    """Return how the described GPUs are linked, () if that isn't said. Raises BadOption."""
    if not options.links and not options.nvlinks:
        return ()
    pcie = [pcie_rate(generation, lanes) for generation, lanes in _pcie_links(options, devices)]
    joined: dict[int, set[int]] = {position: set() for position in range(len(devices))}
    for text in options.nvlinks:
        match = re.fullmatch(r"(\d{1,2})-(\d{1,2})", text)
        first, second = (int(match[1]), int(match[2])) if match else (0, 0)
        if first == second or not joined.keys() >= {first, second}:
            raise BadOption(tr("Bad option"), tr('--nvlink takes two of the GPUs, such as 0-1, not "{0}".', text))
        joined[first].add(second)
        joined[second].add(first)
    return tuple(
        GpuLink(
            device.name,
            pcie[position] if pcie else None,
            tuple(devices[each].name for each in sorted(joined[position])),
        )
        for position, device in enumerate(devices)
    )


def with_links(machine: MachineMemory, options: argparse.Namespace) -> MachineMemory:
    """Return `machine` with the speed of copies over the links that --link says. Raises BadOption."""
    links = zip(machine.devices, _pcie_links(options, machine.devices), strict=False)
    speeds = tuple((device.name, pcie_bandwidth(*link)) for device, link in links)
    return msgspec.structs.replace(machine, pcie_bandwidth=speeds)


def _pcie_links(options: argparse.Namespace, devices: Sequence[DeviceInfo]) -> list[tuple[int, int]]:
    """Return generation and lanes of each GPU's link; [] without --link."""
    found = []
    for text in options.links:
        match = re.fullmatch(r"([1-6])x(1|2|4|8|16)", text.lower())
        if match is None or not pcie_rate(int(match[1]), int(match[2])):
            raise BadOption(tr("Bad option"), tr('--link takes GENxLANES such as 4x16, not "{0}".', text))
        found.append((int(match[1]), int(match[2])))
    if len(found) > 1 and len(found) != len(devices):
        raise BadOption(tr("Bad option"), tr("--link stands once, or once for each of the {0} GPUs.", len(devices)))
    return found * len(devices) if len(found) == 1 else found


def is_made_up(options: argparse.Namespace) -> bool:
    """Return True if the options describe GPUs, so that this PC's don't matter."""
    return bool(options.gpus) or options.unified is not None or options.vram is not None


def made_up_machine(options: argparse.Namespace, reserve_bytes: int) -> MachineMemory:
    """Return the memory of the described PC. Raises BadOption."""
    if bool(options.gpus) + (options.unified is not None) + (options.vram is not None) > 1:
        raise BadOption(tr("Bad option"), tr("--gpu, --unified and --vram exclude each other."))
    devices: tuple[DeviceInfo, ...]
    ram_gib = options.ram
    if options.unified is not None:
        gpu, shared_gib = _unified_gpu(options.unified, options.backend)
        devices, ram_gib = (gpu,), shared_gib if ram_gib is None else ram_gib
    else:
        devices = _named_gpus(options) if options.gpus else _gpus_of_sizes(options.vram)
    if len(devices) > _MAX_GPUS:
        raise BadOption(
            tr("Bad option"), tr("{0} GPUs are listed, but the engine supports at most {1}.", len(devices), _MAX_GPUS)
        )
    memory = psutil.virtual_memory()
    machine = MachineMemory(
        devices=devices,
        ram_total_bytes=memory.total,
        ram_available_bytes=memory.available,
        reserve_bytes=reserve_bytes,
    )  # without a number of cores: --threads of this PC would be wrong there
    return with_ram(machine, ram_gib, options.ram_kind)


def with_ram(machine: MachineMemory, ram_gib: float | None, ram_kind: str) -> MachineMemory:
    """Return `machine` with the RAM that --ram says, of which the system uses a part. Raises BadOption."""
    if ram_kind:
        machine = msgspec.structs.replace(machine, ram_bandwidth=kind_bandwidth(ram_kind))
    if ram_gib is None:
        return machine
    total = size_of(ram_gib, "--ram")
    available = max(total - SYSTEM_RAM_BYTES, total // 2)
    return msgspec.structs.replace(machine, ram_total_bytes=total, ram_available_bytes=available)


def kind_bandwidth(ram_kind: str) -> tuple[float, float] | None:
    """Return the bytes/s of the RAM that --ram-kind says; None without it. Raises BadOption."""
    if not ram_kind:
        return None
    match = re.fullmatch(r"(?P<kind>.+?)(?:x(?P<channels>[1-9]\d?))?", ram_kind.upper().replace("X", "x"))
    found = ram_bandwidth(match["kind"], int(match["channels"] or 2)) if match else None
    if found is None:
        raise BadOption(
            tr("Bad option"), tr('--ram-kind takes a kind such as DDR5-6000 or DDR4x4, not "{0}".', ram_kind)
        )
    return found


def size_of(gib: float | str, flag: str) -> int:
    """Return a size in bytes. Raises BadOption."""
    try:
        value = float(gib)
    except ValueError:
        raise BadOption(tr("Bad option"), tr('"{0}" isn\'t a number of GiB for {1}.', gib, flag)) from None
    if not math.isfinite(value) or not 0 <= value <= 100_000:
        raise BadOption(tr("Bad option"), tr("{0} {1} isn't a valid size in GiB.", flag, f"{value:g}"))
    return round(value * GIB)


def _named_gpus(options: argparse.Namespace) -> tuple[DeviceInfo, ...]:
    backend, gpus = _BACKENDS[options.backend or _usual_backend(options.gpus)], []
    for number, text in enumerate(options.gpus):
        match = _GPU.fullmatch(text)
        if match is None:
            raise BadOption(tr("Bad option"), tr('--gpu takes NAME:GIB or NAME:GIB:FREE_GIB, not "{0}".', text))
        total = size_of(match["total"], "--gpu")
        free = total if match["free"] is None else min(size_of(match["free"], "--gpu"), total)
        gpus.append(DeviceInfo(f"{backend}{number}", match["name"].strip(), "gpu", backend, total, free))
    return tuple(gpus)


def _usual_backend(gpus: Sequence[str]) -> str:
    """Return the kind of engine that suits all these cards. One that isn't known counts as an NVIDIA card."""
    cards = [find_card(text.partition(":")[0]) for text in gpus]
    return "cuda" if all(card is None or card.usual_backend == "cuda" for card in cards) else "vulkan"


def _unified_gpu(text: str, backend: str | None) -> tuple[DeviceInfo, float]:
    """Return a GPU without memory of its own, and the GiB of the memory that it shares with the CPU.

    Metal lists it as a GPU, the other engines as an integrated one.
    """
    match = _UNIFIED.fullmatch(text.strip())
    if match is None:
        raise BadOption(tr("Bad option"), tr('--unified takes GIB, NAME:GIB or NAME:GIB:LIMIT_GIB, not "{0}".', text))
    total = size_of(match["total"], "--unified")
    name = (match["name"] or "").strip()
    card = find_card(name)
    if card is not None and card.is_apple and "apple" not in name.lower():
        name = f"Apple {name}"
    backend = backend or (card.usual_backend if card is not None and card.shares_ram else "cuda")
    limit = total
    if match["limit"] is not None:
        limit = min(size_of(match["limit"], "--unified"), total)
    elif backend == "metal":
        limit = round(total * (_METAL_SHARE if total >= _SMALL_MAC_BYTES else _SMALL_METAL_SHARE))
    kind: DeviceKind = "gpu" if backend == "metal" else "igpu"
    unnamed = "Apple GPU" if backend == "metal" else tr("GPU with {0} of shared memory", show_bytes(total))
    ggml_name = _BACKENDS[backend]
    return DeviceInfo(f"{ggml_name}0", name or unnamed, kind, ggml_name, limit, limit), total / GIB


def _gpus_of_sizes(sizes: str) -> tuple[DeviceInfo, ...]:
    """Return GPUs that are known by their size alone. They count as NVIDIA GPUs."""
    gpus = []
    for number, text in enumerate(sizes.split(",")):
        n_bytes = size_of(text, "--vram")
        if n_bytes:
            gpus.append(DeviceInfo(f"GPU{number}", f"{show_bytes(n_bytes)} GPU", "gpu", "CUDA", n_bytes, n_bytes))
    return tuple(gpus)
