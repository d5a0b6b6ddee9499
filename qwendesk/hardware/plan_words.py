"""Why a plan is as it is: one sentence for each choice, and the warning that some plans need."""

from collections.abc import Iterator

from qwendesk.core.model_facts import ModelFacts
from qwendesk.core.options import LoadOptions
from qwendesk.core.plan import DevicePlan, PlanKind, Prices
from qwendesk.core.units import show_bytes, show_tokens
from qwendesk.hardware.estimate import kv_bytes, split_weights


def sentences(
    facts: ModelFacts, mmproj: ModelFacts | None, asked: LoadOptions, chosen: LoadOptions, prices: Prices, *, fits: bool
) -> tuple[str, ...]:
    """One sentence a choice, the most important first."""
    return tuple(
        sentence
        for sentence in (
            *_room(prices, fits=fits),
            _placement(facts, asked, chosen, prices),
            _context(facts, asked, chosen),
            _cache(facts, asked, chosen),
            _pictures(mmproj, asked, chosen, prices),
            _batch(asked, chosen),
        )
        if sentence
    )


def label_of(kind: PlanKind, prices: Prices, *, fits: bool) -> str:
    """What must be said beside the plan; "" where nothing must."""
    if kind == "disk":
        return "More than RAM holds: the rest is read from disk again and again. Very slow."
    if not fits:
        return "Does not fit into what is free and not reserved."
    if kind == "all_experts_in_ram":
        return "All experts are in RAM: slower than with some on the GPU."
    if kind == "layers_in_ram":
        return "Whole layers are in RAM: several times slower."
    if kind == "cpu" and prices.gpus:
        return "The GPU holds none of it: slow."
    return ""


def _room(prices: Prices, *, fits: bool) -> Iterator[str]:
    for gpu in prices.gpus:
        name = gpu.description or gpu.name
        if gpu.budget_bytes is None:
            yield f"{name} does not tell its memory, so nobody knows whether {show_bytes(gpu.total_bytes)} fit."
        elif gpu.missing_bytes:
            yield f"{name}: {_of(gpu)}, {show_bytes(gpu.missing_bytes)} too much."
        else:
            yield f"{name}: {_of(gpu)}."
    if not fits and prices.ram.missing_bytes:
        yield (
            f"RAM: {show_bytes(prices.ram.total_bytes)} needed, {show_bytes(prices.ram.budget_bytes or 0)} free: "
            f"{show_bytes(prices.ram.missing_bytes)} too much."
        )


def _of(device: DevicePlan) -> str:
    return f"{show_bytes(device.total_bytes)} of the {show_bytes(device.budget_bytes or 0)} that may be used"


def _placement(facts: ModelFacts, asked: LoadOptions, chosen: LoadOptions, prices: Prices) -> str:
    layers = facts.block_count + 1
    if not prices.gpus:
        return "Everything is in RAM: no GPU takes part."
    if chosen.n_gpu_layers == 0:
        return "All layers are in RAM" + (", as you set." if asked.n_gpu_layers == 0 else ": the GPU is too full.")
    blocks = split_weights(facts, chosen.override_tensor).expert_blocks
    moved = min(chosen.n_cpu_moe, blocks) if isinstance(chosen.n_cpu_moe, int) else 0
    if isinstance(chosen.n_gpu_layers, int) and chosen.n_gpu_layers < layers:
        how = "as you set" if asked.n_gpu_layers != "auto" else "what fits after everything else was given up"
        return f"{chosen.n_gpu_layers} of {layers} layers are on the GPU, {how}."
    if moved:
        how = "as you set" if asked.n_cpu_moe != "auto" else "the fewest that fit"
        return (
            f"Experts of {moved} of {blocks} layers are in RAM, {how}; attention and shared experts stay on the GPU, "
            "which costs least speed."
        )
    return "All layers are on the GPU."


def _context(facts: ModelFacts, asked: LoadOptions, chosen: LoadOptions) -> str:
    length = show_tokens(chosen.n_ctx)
    if asked.n_ctx:
        return f"A context of {length}, as you set."
    if chosen.n_ctx >= facts.context_length:
        return f"The model's whole context of {length} fits."
    aims = {"speed": "to stay fast", "balanced": "for a good balance", "long_context": "which is the longest that fits"}
    return f"A context of {length} of {show_tokens(facts.context_length)}, {aims[chosen.aim]}."


def _cache(facts: ModelFacts, asked: LoadOptions, chosen: LoadOptions) -> str:
    n_bytes = kv_bytes(facts, chosen.n_ctx, chosen.type_k, chosen.type_v)
    if asked.type_k != "auto":
        return f"A KV cache in {chosen.type_k}, as you set: {show_bytes(n_bytes)}."
    if chosen.type_k == "f16":
        return f"A KV cache in f16, the most exact: {show_bytes(n_bytes)}."
    saved = kv_bytes(facts, chosen.n_ctx) - n_bytes
    return (
        f"A KV cache in {chosen.type_k} instead of f16 saves {show_bytes(saved)}; small slips in formulas were "
        "reported from 20-40K tokens on."
    )


def _pictures(mmproj: ModelFacts | None, asked: LoadOptions, chosen: LoadOptions, prices: Prices) -> str:
    if asked.vision == "off":
        return "Pictures are off."
    if mmproj is None:
        return ""
    n_bytes = sum(device.vision_bytes for device in (*prices.gpus, prices.ram))
    if chosen.vision == "gpu" and prices.gpus:
        return f"Pictures are read on the GPU: {show_bytes(n_bytes)}."
    if not prices.gpus:
        return f"Pictures are read by the processor: {show_bytes(n_bytes)}."
    how = "as you set" if asked.vision == "cpu" else "to save video memory"
    return f"Pictures are read on the CPU, {how}: slower, {show_bytes(n_bytes)}."


def _batch(asked: LoadOptions, chosen: LoadOptions) -> str:
    if asked.n_ubatch != "auto" or chosen.n_ubatch in ("auto", 512):
        return ""
    return f"Prompts are read {chosen.n_ubatch} tokens at a time, which pays with experts in RAM."
