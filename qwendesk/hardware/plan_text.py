"""Sentences that explain a plan to the user: one for each choice, and a warning for some plans."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

import msgspec

from qwendesk.core.architectures import FAMILIES, OTHER
from qwendesk.core.model_facts import ModelFacts
from qwendesk.core.number_format import show_number
from qwendesk.core.options import LoadOptions
from qwendesk.core.plan import DriveKind, MemoryUse, PlanKind
from qwendesk.core.presets import family_of_file
from qwendesk.core.translation import mark, tr, tr_n
from qwendesk.core.units import show_bytes, show_tokens
from qwendesk.hardware.ladder import is_placed_by_hand
from qwendesk.hardware.layer_split import HEADROOM_BYTES
from qwendesk.hardware.memory_estimate import AUTO_ABOVE_BYTES
from qwendesk.hardware.model_memory import kv_bytes, split_weights

_DEFAULT_UBATCH = 512
_CONTEXT_REASONS: Mapping[str, str] = MappingProxyType(
    {
        "speed": mark("Context: {0} of {1}, to stay fast."),
        "balanced": mark("Context: {0} of {1}, for a good balance."),
        "long_context": mark("Context: {0} of {1}, the longest that fits."),
    }
)


def explanations(
    facts: ModelFacts,
    mmproj: ModelFacts | None,
    requested: LoadOptions,
    chosen: LoadOptions,
    memory: MemoryUse,
    *,
    fits: bool,
    spends_headroom: bool,
    drive: DriveKind,
) -> tuple[str, ...]:
    """Return a sentence for each choice, the most important first."""
    choices = (
        *_memory(memory, fits=fits),
        _headroom(requested) if spends_headroom else "",
        _placement(facts, requested, chosen, memory),
        _context(facts, requested, chosen),
        _table(facts, requested, memory, drive),
        _cache(facts, requested, chosen),
        _vision(mmproj, requested, chosen, memory),
        _batch(requested, chosen),
        _unknown_family(facts),
    )
    return tuple(sentence for sentence in choices if sentence)


def _headroom(requested: LoadOptions) -> str:
    if is_placed_by_hand(requested):
        return tr("{0} that usually stay free are used for what you set.", show_bytes(HEADROOM_BYTES))
    return tr("{0} that usually stay free are used, so that the GPU can run the model.", show_bytes(HEADROOM_BYTES))


def nearest_text(requested: LoadOptions, nearest: LoadOptions) -> str:
    """Return a sentence about the value that would fit."""
    if nearest.n_cpu_moe != requested.n_cpu_moe:
        n_layers = nearest.n_cpu_moe if isinstance(nearest.n_cpu_moe, int) else 0
        return tr_n("{0} expert layer on the CPU would fit.", "{0} expert layers on the CPU would fit.", n_layers)
    if nearest.n_gpu_layers != requested.n_gpu_layers:
        n_layers = nearest.n_gpu_layers if isinstance(nearest.n_gpu_layers, int) else 0
        return tr_n("{0} layer on the GPU would fit.", "{0} layers on the GPU would fit.", n_layers)
    return tr("Without the split shares that you set, it would fit.")


def warning(kind: PlanKind, memory: MemoryUse, *, fits: bool, drive: DriveKind = "") -> str:
    """Return the warning that must be shown with a plan; "" if it needs none."""
    if fits and memory.lazy_bytes and drive == "hdd":
        return tr("Reads a table from a hard disk for each token: very slow. Move the model to an SSD.")
    if kind == "disk":
        return tr("Needs more than the RAM holds, so the rest is read from disk again and again. Very slow.")
    if not fits:
        return tr("Doesn't fit into the free memory minus the reserve.")
    if memory.is_unified and kind in ("all_experts_in_ram", "layers_in_ram"):
        return tr("The GPU may not use enough of the memory, so the CPU computes a part of the model: slower.")
    if kind == "all_experts_in_ram":
        return tr("All experts are in RAM: slower than with some on the GPU.")
    if kind == "layers_in_ram":
        return tr("Whole layers are in RAM: several times slower.")
    if kind == "cpu" and memory.gpus:
        return tr("Nothing is on the GPU: slow.")
    return ""


def _unknown_family(facts: ModelFacts) -> str:
    family, is_new = family_of_file(facts)
    if family == OTHER:
        return tr("QwenDesk doesn't know this model, so the plan is made from its header alone.")
    return like_family_text(family) if is_new else ""


def like_family_text(family: str) -> str:
    """Return what it means that a new model is like those of a family."""
    return tr(
        "This Qwen is newer than this QwenDesk. Its template, tokens and header are like Qwen{0}'s, so it's treated as "
        "one.",
        FAMILIES[family].version,
    )


def _memory(memory: MemoryUse, *, fits: bool) -> Iterator[str]:
    is_one_of_several = len(memory.gpus) > 1
    for gpu in memory.gpus:
        name, total = gpu.title if is_one_of_several else gpu.description or gpu.name, show_bytes(gpu.total_bytes)
        if is_one_of_several and not gpu.total_bytes:
            yield tr("{0} gets nothing: the others are faster or have more room.", name)
        elif gpu.budget_bytes is None:
            yield tr("{0} doesn't report its memory, so it's unknown whether {1} fit.", name, total)
        elif gpu.missing_bytes:
            budget, missing = show_bytes(gpu.budget_bytes), show_bytes(gpu.missing_bytes)
            yield tr("{0}: {1} of {2} available, {3} too much.", name, total, budget, missing)
        else:
            yield tr("{0}: {1} of {2} available.", name, total, show_bytes(gpu.budget_bytes))
    yield from _layers(memory) if is_one_of_several else ()
    ram = memory.ram
    if memory.is_unified:
        shared = memory.shared
        needed, free, missing = map(show_bytes, (shared.total_bytes, shared.budget_bytes or 0, ram.missing_bytes))
        if ram.missing_bytes:
            yield tr("GPU and CPU share the memory: {0} of {1} available, {2} too much.", needed, free, missing)
        else:
            yield tr("GPU and CPU share the memory: both need {0} of {1} available.", needed, free)
    elif not fits and ram.missing_bytes:
        needed, free, missing = map(show_bytes, (ram.total_bytes, ram.budget_bytes or 0, ram.missing_bytes))
        yield tr("RAM: {0} needed, {1} free, {2} too much.", needed, free, missing)


def _layers(memory: MemoryUse) -> Iterator[str]:
    """Yield how many layers each of several GPUs has."""
    for gpu in memory.gpus:
        if gpu.layers and gpu.cpu_expert_layers:
            yield tr_n(
                "{1} has {0} layer; the experts of {2} are in RAM.",
                "{1} has {0} layers; the experts of {2} are in RAM.",
                gpu.layers,
                gpu.title,
                gpu.cpu_expert_layers,
            )
        elif gpu.layers:
            yield tr_n("{1} has {0} layer.", "{1} has {0} layers.", gpu.layers, gpu.title)


def _placement(facts: ModelFacts, requested: LoadOptions, chosen: LoadOptions, memory: MemoryUse) -> str:
    layers = facts.block_count + 1
    if not memory.gpus:
        return tr("Everything is in RAM: no GPU is used.")
    if chosen.n_gpu_layers == 0:
        is_set = requested.n_gpu_layers == 0
        return tr("All layers are in RAM, as you set.") if is_set else tr("All layers are in RAM: the GPU is too full.")
    if isinstance(chosen.n_gpu_layers, int) and chosen.n_gpu_layers < layers:
        if requested.n_gpu_layers != "auto":
            return tr("{0} of {1} layers are on the GPU, as you set.", chosen.n_gpu_layers, layers)
        return tr("{0} of {1} layers are on the GPU: the most that fit.", chosen.n_gpu_layers, layers)
    n_expert_layers, moved = split_weights(facts).expert_layers, memory.cpu_expert_layers
    if not moved:
        return tr("All layers are on GPUs.") if len(memory.gpus) > 1 else tr("All layers are on the GPU.")
    if requested.n_cpu_moe != "auto":
        return tr("The experts of {0} of {1} layers are in RAM, as you set.", moved, n_expert_layers)
    if memory.is_unified:
        return tr(
            "The CPU computes the experts of {0} of {1} layers, because the GPU may not use more of the memory.",
            moved,
            n_expert_layers,
        )
    return tr(
        "The experts of {0} of {1} layers are in RAM, the fewest that fit. Everything else is on the GPU, which costs "
        "the least speed.",
        moved,
        n_expert_layers,
    )


def _context(facts: ModelFacts, requested: LoadOptions, chosen: LoadOptions) -> str:
    length = show_tokens(chosen.n_ctx)
    trained = facts.context_length
    if trained and chosen.n_ctx > trained:
        if chosen.rope_scaling != "yarn":
            return tr("Context: {0}, by RoPE scaling. The model was trained on {1}.", length, show_tokens(trained))
        return tr(
            "Context: {0} by YaRN with factor {1}: the model was trained on {2}. Answers to short prompts get worse, "
            "so choose this only for chats that need it.",
            length, show_number(round(1 / chosen.rope_freq_scale, 2)), show_tokens(trained),
        )  # fmt: skip
    if requested.rope_scaling == "yarn" and not requested.rope_freq_scale:
        return tr("Context: {0}. YaRN has no effect: the model reaches this without it.", length)
    if requested.n_ctx:
        return tr("Context: {0}, as you set.", length)
    if chosen.n_ctx >= facts.context_length:
        return tr("Context: {0}, all that the model supports.", length)
    return tr(_CONTEXT_REASONS[chosen.aim], length, show_tokens(facts.context_length))


def _table(facts: ModelFacts, requested: LoadOptions, memory: MemoryUse, drive: DriveKind) -> str:
    table = split_weights(facts).lazy_table
    size = show_bytes(table)
    if memory.lazy_bytes and drive == "hdd":
        return tr(
            "A table of {0} stays on the drive and takes no RAM. The drive is a hard disk, which is too slow for it: "
            "a user measured 5 tok/s instead of 22. Move the model to an SSD.",
            size,
        )
    if memory.lazy_bytes and drive == "ssd":
        return tr("A table of {0} stays on the SSD and takes no RAM: each token reads a few rows of it.", size)
    if memory.lazy_bytes:
        return tr(
            "A table of {0} stays on the drive, which should be an SSD, and takes no RAM: each token reads a few rows "
            "of it.",
            size,
        )
    if table <= AUTO_ABOVE_BYTES:
        return ""
    if requested.lazy_mode == "off":
        return tr("A table of {0} is in RAM, as you set.", size)
    return tr("A table of {0} is in RAM: llama.cpp doesn't read it from the file for a GPU that shares the RAM.", size)


def _cache(facts: ModelFacts, requested: LoadOptions, chosen: LoadOptions) -> str:
    n_bytes = kv_bytes(facts, chosen, chosen.n_ctx)
    exact = msgspec.structs.replace(chosen, type_k="f16", type_v="f16")
    if requested.type_k != "auto":
        return tr("KV cache: {0}, as you set ({1}).", chosen.type_k, show_bytes(n_bytes))
    if chosen.type_k == "f16":
        return tr("KV cache: f16, the most exact ({0}).", show_bytes(n_bytes))
    return tr(
        "KV cache: {0} instead of f16 saves {1}. Small mistakes in formulas were reported after 20K to 40K tokens.",
        chosen.type_k,
        show_bytes(kv_bytes(facts, exact, chosen.n_ctx) - n_bytes),
    )


def _vision(mmproj: ModelFacts | None, requested: LoadOptions, chosen: LoadOptions, memory: MemoryUse) -> str:
    if requested.vision == "off":
        return tr("Pictures are off.")
    if mmproj is None:
        return ""
    if not memory.gpus:
        return tr("The CPU processes pictures.")
    if chosen.vision == "gpu":
        return tr("The GPU processes pictures.")
    if requested.vision == "cpu":
        return tr("The CPU processes pictures, as you set. Slower.")
    if memory.is_unified:
        return tr("The CPU processes pictures, because the GPU may not use more of the memory. Slower.")
    return tr("The CPU processes pictures to save video memory. Slower.")


def _batch(requested: LoadOptions, chosen: LoadOptions) -> str:
    if requested.n_ubatch != "auto" or not isinstance(chosen.n_ubatch, int) or chosen.n_ubatch == _DEFAULT_UBATCH:
        return ""
    if chosen.n_ubatch < _DEFAULT_UBATCH:
        return tr("Prompts are processed {0} tokens at a time to save video memory.", chosen.n_ubatch)
    return tr("Prompts are processed {0} tokens at a time, which is faster with experts in RAM.", chosen.n_ubatch)
