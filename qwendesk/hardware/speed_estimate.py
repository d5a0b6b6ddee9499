"""Estimates the generation speed of a plan: the bytes read for each token, divided by the bandwidth of their memory.

The result is two ranges, for the start of a chat and for a long chat. Measurements on this PC replace it.

`python -m bench.speeds` checks them against the user reports of the catalog.
"""

from qwendesk.core.model_facts import ModelFacts
from qwendesk.core.options import LoadOptions
from qwendesk.core.plan import MachineMemory, MemoryUse, SpeedEstimate
from qwendesk.hardware.bandwidth import RAM_BANDWIDTH, gpu_bandwidth, pcie_bandwidth
from qwendesk.hardware.gpu_speed import gpu_speed
from qwendesk.hardware.layer_split import planned_gpus
from qwendesk.hardware.model_memory import kv_bytes, split_weights

LONG_TOKENS = 131_072
"""Context of a long chat in the estimate. There are few reports of longer ones."""
_START_TOKENS = 2_048
_RAM_SHARE = (0.55, 0.85)
_DISK_BANDWIDTH = (1 * 10**9, 5 * 10**9)
"""Bytes/s from an SSD of weights that don't fit in RAM: SATA or a slow one, and a fast one with NVMe.

Experts that are chosen often stay in RAM, which is why it isn't slower than that.
"""
_CPU_ALONE_SHARE = (0.22, 0.75)
"""Lower than with a GPU, because the CPU has to compute too: 5-6 tok/s were reported where the RAM would allow 30."""
_HOP_S = (0.08e-3, 0.02e-3)
"""Seconds lost for synchronization when GPU and CPU share a layer: slowest and fastest."""
_SLOW, _FAST = 0, 1


def estimate_speed(
    facts: ModelFacts, options: LoadOptions, memory: MemoryUse, machine: MachineMemory
) -> SpeedEstimate | None:
    """Return the tokens/s of generation; None for a file whose header has no layers."""
    if not facts.block_count or not facts.tensors:
        return None
    n_ctx = options.n_ctx or facts.context_length
    long_tokens = min(n_ctx, LONG_TOKENS)
    return SpeedEstimate(
        start=speed_at(facts, options, memory, machine, _START_TOKENS),
        long=speed_at(facts, options, memory, machine, long_tokens),
        long_tokens=long_tokens,
    )


def speed_at(
    facts: ModelFacts, options: LoadOptions, memory: MemoryUse, machine: MachineMemory, depth: int
) -> tuple[float, float]:
    """Return the lowest and highest likely tokens/s after `depth` tokens, or at the end of a shorter context."""
    tokens = min(depth, options.n_ctx or facts.context_length)
    slow, fast = (1 / _seconds(facts, options, memory, machine, tokens, bound) for bound in (_SLOW, _FAST))
    return slow, fast


def _seconds(
    facts: ModelFacts, options: LoadOptions, memory: MemoryUse, machine: MachineMemory, depth: int, bound: int
) -> float:
    """Return the seconds for one token after `depth` tokens. `bound` is _SLOW or _FAST."""
    active_share = _active_share_in_ram(facts, options)
    filled = kv_bytes(facts, depth, options.type_k, options.type_v)
    whole = kv_bytes(facts, options.n_ctx or facts.context_length, options.type_k, options.type_v)
    share = filled / max(whole, 1)
    seconds = 0.0
    kinds = [gpu_speed(gpu.device, has_experts=bool(facts.expert_count)) for gpu in planned_gpus(machine, options)]
    whole_weights = max(sum(row.weights_bytes for row in memory.gpus), 1)
    for gpu, kind, row in zip(planned_gpus(machine, options), kinds, memory.gpus, strict=True):
        bandwidth = gpu_bandwidth(gpu.device.description or gpu.device.name, gpu.device.total_bytes)[bound]
        n_bytes = (
            row.weights_bytes * _active_share_on_gpu(facts, options) + row.kv_bytes * share + 2 * row.recurrent_bytes
        )
        seconds += n_bytes / (bandwidth * kind.share[bound])
        seconds += facts.block_count * kind.layer_s[bound] * row.weights_bytes / whole_weights
    ram_bandwidth = machine.ram_bandwidth or RAM_BANDWIDTH[bound]
    is_alone = not memory.gpus or options.n_gpu_layers == 0
    bandwidth_share = (_CPU_ALONE_SHARE if is_alone else _RAM_SHARE)[bound]
    row = memory.ram
    input_bytes = split_weights(facts, ()).always_in_ram
    ram_bytes = max(row.weights_bytes - input_bytes, 0) * active_share + row.kv_bytes * share + 2 * row.recurrent_bytes
    seconds += ram_bytes / (ram_bandwidth * bandwidth_share)
    if machine.ram_total_bytes:  # else only the GPUs are compared
        seconds += ram_bytes * min(row.missing_bytes / max(row.weights_bytes, 1), 1) / _DISK_BANDWIDTH[bound]
    if is_alone:
        return max(seconds, 1e-6)
    shared = min(options.n_cpu_moe, facts.block_count) if isinstance(options.n_cpu_moe, int) else 0
    links = dict(machine.pcie_bandwidth)
    link = min(links.get(row.name, pcie_bandwidth(None, None)) for row in memory.gpus)
    seconds += shared * (_HOP_S[bound] + 8 * facts.embedding_length / link)
    return seconds


def _active_share_in_ram(facts: ModelFacts, options: LoadOptions) -> float:
    """Return the share of the weights in RAM that one token reads. If only experts are there, it is the chosen ones."""
    if not facts.expert_count:
        return 1.0
    routed = facts.expert_used_count / facts.expert_count
    if options.n_gpu_layers in ("auto", "all"):
        return routed
    return _mean_share(facts, options, routed)


def _active_share_on_gpu(facts: ModelFacts, options: LoadOptions) -> float:
    if not facts.expert_count:
        return 1.0
    return _mean_share(facts, options, facts.expert_used_count / facts.expert_count)


def _mean_share(facts: ModelFacts, options: LoadOptions, routed: float) -> float:
    """Return the share of weights that one token reads in memory that has experts and other weights."""
    moved = options.n_cpu_moe if isinstance(options.n_cpu_moe, int) else 0
    weights = split_weights(facts, ())
    is_all_gpu = options.n_gpu_layers in ("auto", "all")
    experts = sum(layer.experts for index, layer in enumerate(weights.layers) if not (is_all_gpu and index < moved))
    rest = sum(layer.rest for layer in weights.layers) + weights.output
    return (rest + experts * routed) / max(rest + experts, 1)
