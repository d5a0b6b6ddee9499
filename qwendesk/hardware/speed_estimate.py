"""Estimates the generation speed of a plan by the bandwidth of the memories that it reads.

The result is two ranges, for the start of a chat and for a long chat. Measurements on this PC replace it. Bandwidths
are what memory clock and bus allow (gpu_cards.py); the share of them that is reached is here.

The numbers are checked against user reports by `python -m bench.speeds`. Each class has two, for a reason that is given
with it; no number belongs to a single card.
"""

import functools
from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from qwendesk.core.devices import DeviceInfo
from qwendesk.core.model_facts import ModelFacts
from qwendesk.core.options import LoadOptions
from qwendesk.core.plan import DevicePlan, MachineMemory, MemoryUse, SpeedEstimate
from qwendesk.hardware.gpu_cards import RAM_BANDWIDTH, backend_of, find_card, gpu_bandwidth, pcie_bandwidth
from qwendesk.hardware.layer_split import planned_gpus
from qwendesk.hardware.model_memory import kv_bytes, split_weights

# Context of a long chat in the estimate. There are few reports of longer ones.
LONG_TOKENS = 131_072
# Context at the start of a chat in the estimate.
START_TOKENS = 2_048
# Shares of the RAM's bandwidth that the CPU reaches while it reads experts, and when it computes everything.
#
# The second is lower, because the CPU has to compute too: 5-6 tok/s were reported where the RAM would allow 30.
_RAM_SHARE, _CPU_ALONE_SHARE = (0.468, 0.753), (0.187, 0.664)
# Bytes/s from an SSD of weights that don't fit in RAM: SATA or a slow one, and a fast one with NVMe.
#
# Experts that are chosen often stay in RAM, which is why it isn't slower than that.
_DISK_BANDWIDTH = (1 * 10**9, 5 * 10**9)
_SSD_TABLE_S = (2e-3, 0.2e-3)
# Seconds for each token to read its rows of a table from the drive: slowest and fastest.
#
# Flash-Next reads 16 rows. A user reports 5% less speed than from RAM with an SSD (unslothai/llama.cpp#137), and 5
# instead of 22 tok/s with a hard disk (unslothai/llama.cpp#169).
_HARD_DISK_TABLE_S = (0.2, 0.12)
# Seconds lost for synchronization when GPU and CPU share a layer: slowest and fastest.
_HOP_S = (0.08e-3, 0.02e-3)
# Types for which ggml has no x86 kernel, and how much longer a byte of them takes than RAM's bandwidth lets expect.
#
# With the pinned engine, one core of a Xeon with AVX-512 computed 1.0 billion weights a second in Q2_0, 8.8 in Q4_0 and
# 13.7 in Q4_K. That is 0.28 GB/s, where RAM gives each of 16 to 8 cores 2.2 to 4.5.
_SLOW_ON_X86: Mapping[str, tuple[float, float]] = MappingProxyType({"Q2_0": (16.0, 8.0)})
# Times that the indexer's keys are read for each token: the pinned engine pools all of them anew (llama.cpp#29751).
#
# From the reports of Flash-Next: 22, 13 and 9 tok/s after 2K, 60K and 123K tokens on a Strix Halo.
_INDEXER_READS = 20
# Which end of the ranges counts.
SLOW, FAST = 0, 1


def estimate_speed(
    facts: ModelFacts, options: LoadOptions, memory: MemoryUse, machine: MachineMemory
) -> SpeedEstimate | None:
    """Return the tokens/s of generation; None for a file whose header has no layers."""
    if not facts.block_count or not facts.tensors:
        return None
    n_ctx = options.n_ctx or facts.context_length
    long_tokens = min(n_ctx, LONG_TOKENS)
    return SpeedEstimate(
        start=speed_at(facts, options, memory, machine, START_TOKENS),
        long=speed_at(facts, options, memory, machine, long_tokens),
        long_tokens=long_tokens,
    )


def speed_at(
    facts: ModelFacts, options: LoadOptions, memory: MemoryUse, machine: MachineMemory, depth: int
) -> tuple[float, float]:
    """Return the lowest and highest likely tokens/s after `depth` tokens, or at the end of a shorter context."""
    tokens = min(depth, options.n_ctx or facts.context_length)
    slow, fast = (
        1 / _seconds(facts, memory, machine, token_rates(facts, options, machine, tokens, bound))
        for bound in (SLOW, FAST)
    )
    return slow, fast


class GpuRates(msgspec.Struct, frozen=True, kw_only=True):
    """What one token costs on one GPU, in seconds."""

    byte_s: float
    """For each byte that is read."""
    layer_s: float
    """For each layer of the model that is on this GPU."""
    hop_s: float
    """For each of these layers whose experts are in RAM."""


class TokenRates(msgspec.Struct, frozen=True, kw_only=True):
    """What one token costs."""

    gpus: tuple[GpuRates, ...]
    """In the engine's order."""
    ram_byte_s: float
    """Seconds for each byte that the CPU reads."""
    disk_byte_s: float
    """Seconds for each byte that is read from the disk, because it doesn't fit in RAM."""
    routed_share: float
    """Share of a layer's experts that one token uses."""
    kv_share: float
    """Share of the KV cache that is filled."""
    table_s: float = 0.0
    """Seconds to read the rows of a table that stays on the drive."""
    ram_factor: float = 1.0
    """By how much the CPU takes longer than to read a byte."""


def token_rates(facts: ModelFacts, options: LoadOptions, machine: MachineMemory, depth: int, bound: int) -> TokenRates:
    """Return the costs of a token after `depth` tokens. `bound` is SLOW or FAST."""
    gpus, has_experts = planned_gpus(machine, options), bool(facts.expert_count)
    is_alone = not gpus or options.n_gpu_layers == 0
    links, ram = dict(machine.pcie_bandwidth), machine.ram_bandwidth or RAM_BANDWIDTH
    rates = []
    for device in (gpu.device for gpu in gpus):
        name = device.description or device.name
        bandwidth = gpu_bandwidth(name, device.total_bytes, ram if device.shares_ram else None)[bound]
        kind = gpu_speed(device, has_experts=has_experts)
        link = links.get(device.name, pcie_bandwidth(None, None))
        rates.append(
            GpuRates(
                byte_s=1 / (bandwidth * kind.share[bound]),
                layer_s=kind.layer_s[bound],
                hop_s=_HOP_S[bound] + 8 * facts.embedding_length / link,
            )
        )
    ram_share = (_CPU_ALONE_SHARE if is_alone else _RAM_SHARE)[bound]
    filled = kv_bytes(facts, options, depth)
    whole = kv_bytes(facts, options, options.n_ctx or facts.context_length)
    return TokenRates(
        gpus=tuple(rates),
        ram_byte_s=1 / (ram[bound] * ram_share),
        disk_byte_s=1 / _DISK_BANDWIDTH[bound],
        routed_share=facts.expert_used_count / facts.expert_count if has_experts else 1.0,
        kv_share=_indexer_reads(facts) * filled / max(whole, 1),
        table_s=(_HARD_DISK_TABLE_S if machine.drive == "hdd" else _SSD_TABLE_S)[bound],
        # Where GPU and RAM are one, the CPU is an ARM, for which ggml has these kernels, or has nothing to do.
        ram_factor=1.0 if machine.is_unified else _factor_on_x86(facts)[bound],
    )


@functools.lru_cache(maxsize=64)
def _factor_on_x86(facts: ModelFacts) -> tuple[float, float]:
    """Return by how much slower the CPU computes what may be in RAM, because of types without a kernel."""
    mark = "_exps." if facts.expert_count else "blk."
    in_ram = [tensor for tensor in facts.tensors if mark in tensor.name]
    whole = max(sum(tensor.n_bytes for tensor in in_ram), 1)
    slow, fast = 1.0, 1.0
    for kind, (slower, faster) in _SLOW_ON_X86.items():
        share = sum(tensor.n_bytes for tensor in in_ram if tensor.type == kind) / whole
        slow, fast = slow + share * (slower - 1), fast + share * (faster - 1)
    return slow, fast


def _indexer_reads(facts: ModelFacts) -> float:
    """Return by how much more the engine reads of a KV cache with an indexer than is in it."""
    heads = facts.head_count_kv * (facts.key_length + facts.value_length)
    return (heads + _INDEXER_READS * facts.indexer_key_length) / max(heads + facts.indexer_key_length, 1)


def _seconds(facts: ModelFacts, memory: MemoryUse, machine: MachineMemory, rates: TokenRates) -> float:
    """Return the seconds for one token."""
    seconds = 0.0
    for row, gpu in zip(memory.gpus, rates.gpus, strict=True):
        seconds += _bytes_read(row, row.weights_bytes, rates) * gpu.byte_s
        seconds += row.layers * gpu.layer_s + row.cpu_expert_layers * gpu.hop_s
    ram = memory.ram
    # Of the embeddings a token reads one row.
    embeddings = split_weights(facts, ()).always_in_ram - memory.lazy_bytes
    ram_bytes = _bytes_read(ram, max(ram.weights_bytes - embeddings, 0), rates)
    seconds += ram_bytes * rates.ram_byte_s * rates.ram_factor
    if machine.ram_total_bytes:  # else only the GPUs are compared
        seconds += ram_bytes * min(ram.missing_bytes / max(ram.weights_bytes, 1), 1) * rates.disk_byte_s
    seconds += rates.table_s if memory.lazy_bytes else 0
    factor = machine.gpu_factor if any(row.layers for row in memory.gpus) else 1.0
    return max(seconds / factor, 1e-6)


def _bytes_read(row: DevicePlan, weights_bytes: int, rates: TokenRates) -> float:
    """Return the bytes that one token reads on a device: all weights but the experts that it doesn't use, and caches.

    The recurrent state is also written.
    """
    unused = row.expert_bytes * (1 - rates.routed_share)
    return weights_bytes - unused + row.kv_bytes * rates.kv_share + 2 * row.recurrent_bytes


class GpuSpeed(msgspec.Struct, frozen=True):
    """Each pair is for the slowest and the fastest likely case."""

    share: tuple[float, float]
    """Share of its memory bandwidth that the GPU reaches while it reads weights."""
    layer_s: tuple[float, float]
    """Seconds that a layer takes in addition, to start kernels and choose experts."""


# A layer of experts starts about three times as many kernels as a dense one.
_MIXTURE_S, _DENSE_S = (0.19e-3, 0.1e-3), (0.09e-3, 0.03e-3)
# For generations of cards the share of their bandwidth, and how much longer kernels take to start.
_MODERN = ((0.6, 0.85), 1.0)
# NVIDIA before Ampere computes more than it reads: no fast half precision, or older tensor cores. The GTX 16 has none.
#
# Pascal starts each kernel alone, where llama.cpp records a whole token of later cards as one CUDA graph. On Volta
# and Turing that is new and gained little (llama.cpp#25749).
_OLD_NVIDIA = ((0.45, 0.7), 4.0)
# AMD before RDNA has no fast kernels for quantized matrices: two MI50 read a 27B in Q4_1 with 44% (26 tok/s).
_OLD_AMD = ((0.35, 0.65), 4.0)
# A B70 generates 32 tok/s with 35B-A3B in UD-Q6_K, a third of what its bandwidth lets expect (intel/llm-scaler#371).
#
# Vulkan's kernels for quantized matrices are made for other GPUs: a B50 is five times as fast with SYCL on Q6_K.
_INTEL = ((0.3, 0.8), 4.0)
_BY_GENERATION = MappingProxyType(
    {
        **dict.fromkeys(("Kepler", "Maxwell", "Pascal", "Volta", "Turing"), _OLD_NVIDIA),
        **dict.fromkeys(("GCN", "CDNA"), _OLD_AMD),
        **dict.fromkeys(("Alchemist", "Battlemage"), _INTEL),
    }
)
# Metal encodes each kernel anew for each token, and a Mac's GPU starts them slower.
#
# A Strix Halo took 2.6 ms longer for each token with ROCm than with Vulkan, in 40 layers of experts (opcnew.com).
# Vulkan needs no factor: it submits many kernels at once.
_FACTORS: Mapping[str, float] = MappingProxyType({"metal": 2.5, "rocm": 1.5})


def gpu_speed(device: DeviceInfo, *, has_experts: bool) -> GpuSpeed:
    """Return how fast `device` works on a mixture of experts or on a dense model."""
    card = find_card(device.description or device.name, device.total_bytes)
    share, factor = _MODERN if card is None else _BY_GENERATION.get(card.generation, _MODERN)
    factor = max(factor, _FACTORS.get(backend_of(device), 1.0))
    slow, fast = _MIXTURE_S if has_experts else _DENSE_S
    return GpuSpeed(share, (slow * factor, fast * factor))
