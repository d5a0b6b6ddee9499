"""How fast a plan should write: the bytes one token reads, over the bandwidth of where they lie. An estimate, as two
ranges: at the start of a chat and when it is long. What is measured on this PC replaces it.

Checked against reports (qwen35moe 35B-A3B): a 24 GB card with 936 GB/s wrote 111 tok/s at 4K and 79 at 131K, a 32 GB
one 160-185 at the start, a 16 GB one with 16 expert layers on the CPU 51, a processor alone with DDR5 5-6.
"""

from qwendesk.core.model_facts import ModelFacts
from qwendesk.core.options import LoadOptions
from qwendesk.core.plan import Machine, Prices, SpeedEstimate
from qwendesk.hardware.bandwidth import PCIE_BANDWIDTH, RAM_BANDWIDTH, gpu_bandwidth
from qwendesk.hardware.estimate import kv_bytes, split_weights
from qwendesk.hardware.sharing import gpus_of

LONG_TOKENS = 131_072
"""Long chats are spoken of up to here: beyond, few reports exist."""
_START_TOKENS = 2_048
_GPU_SHARE = (0.6, 0.85)
"""Of its bandwidth that a GPU reaches while it reads weights."""
_RAM_SHARE = (0.55, 0.85)
_CPU_ALONE_SHARE = (0.22, 0.75)
"""A processor alone has the arithmetic to do too: 5-6 tok/s were reported where its RAM would allow thirty."""
_LAYER_S = {"mixture": (0.19e-3, 0.1e-3), "dense": (0.09e-3, 0.03e-3)}
"""Time a layer takes on a GPU beside its reading: starting kernels, choosing experts. Slow and fast."""
_HOP_S = (0.08e-3, 0.02e-3)
"""Waiting for each other when one layer is shared by GPU and CPU."""
_SLOW, _FAST = 0, 1


def estimate_speed(facts: ModelFacts, options: LoadOptions, prices: Prices, machine: Machine) -> SpeedEstimate | None:
    """Tokens/s while writing; None for a file whose header has no layers."""
    if not facts.block_count or not facts.tensors:
        return None
    n_ctx = options.n_ctx or facts.context_length
    long_tokens = min(n_ctx, LONG_TOKENS)
    speeds = {
        (depth, end): 1 / _seconds(facts, options, prices, machine, min(depth, n_ctx), end)
        for depth in (_START_TOKENS, long_tokens)
        for end in (_SLOW, _FAST)
    }
    return SpeedEstimate(
        start=(speeds[_START_TOKENS, _SLOW], speeds[_START_TOKENS, _FAST]),
        long=(speeds[long_tokens, _SLOW], speeds[long_tokens, _FAST]),
        long_tokens=long_tokens,
    )


def _seconds(facts: ModelFacts, options: LoadOptions, prices: Prices, machine: Machine, depth: int, end: int) -> float:
    """Of one token with `depth` tokens before it."""
    read = _active_share(facts, options)
    filled = kv_bytes(facts, depth, options.type_k, options.type_v)
    whole = kv_bytes(facts, options.n_ctx or facts.context_length, options.type_k, options.type_v)
    share = filled / max(whole, 1)
    seconds = 0.0
    for gpu, row in zip(gpus_of(machine, options), prices.gpus, strict=True):
        bandwidth = gpu_bandwidth(gpu.device.description or gpu.device.name, gpu.device.total_bytes)[end]
        n_bytes = row.weights_bytes * _gpu_active(facts, options) + row.kv_bytes * share + 2 * row.recurrent_bytes
        seconds += n_bytes / (bandwidth * _GPU_SHARE[end])
    ram_bandwidth = machine.ram_bandwidth or RAM_BANDWIDTH[end]
    is_alone = not prices.gpus or options.n_gpu_layers == 0
    reach = (_CPU_ALONE_SHARE if is_alone else _RAM_SHARE)[end]
    row = prices.ram
    input_bytes = split_weights(facts, ()).in_ram
    ram_bytes = max(row.weights_bytes - input_bytes, 0) * read + row.kv_bytes * share + 2 * row.recurrent_bytes
    seconds += ram_bytes / (ram_bandwidth * reach)
    if is_alone:
        return max(seconds, 1e-6)
    layers = facts.block_count
    seconds += layers * _LAYER_S["mixture" if facts.expert_count else "dense"][end]
    shared = options.n_cpu_moe if isinstance(options.n_cpu_moe, int) else 0
    seconds += min(shared, layers) * (_HOP_S[end] + 8 * facts.embedding_length / PCIE_BANDWIDTH)
    return seconds


def _active_share(facts: ModelFacts, options: LoadOptions) -> float:
    """Of the weights in RAM, what one token reads: with experts alone there, the chosen ones."""
    if not facts.expert_count:
        return 1.0
    routed = facts.expert_used_count / facts.expert_count
    if options.n_gpu_layers in ("auto", "all"):
        return routed
    return _mean_share(facts, options, routed)


def _gpu_active(facts: ModelFacts, options: LoadOptions) -> float:
    if not facts.expert_count:
        return 1.0
    return _mean_share(facts, options, facts.expert_used_count / facts.expert_count)


def _mean_share(facts: ModelFacts, options: LoadOptions, routed: float) -> float:
    """Share of the layers' weights that a token reads where experts and the rest lie together."""
    moved = options.n_cpu_moe if isinstance(options.n_cpu_moe, int) else 0
    weights = split_weights(facts, ())
    is_all_gpu = options.n_gpu_layers in ("auto", "all")
    experts = sum(block.experts for index, block in enumerate(weights.blocks) if not (is_all_gpu and index < moved))
    rest = sum(block.rest for block in weights.blocks) + weights.output
    return (rest + experts * routed) / max(rest + experts, 1)
