"""Which vision encoder (mmproj file) belongs to which model."""

import re
from collections.abc import Collection, Sequence
from pathlib import PurePath

from qwendesk.core.model_facts import ModelFacts

QUANT_ORDER = ("F16", "BF16", "Q8_0", "F32")
"""Best first: F16 runs everywhere, BF16 is slow on older cards, F32 only costs memory."""
_SIZE = re.compile(r"(?<![A-Za-z0-9.])\d+(?:\.\d+)?B(?:-A\d+(?:\.\d+)?B)?(?![A-Za-z0-9])", re.IGNORECASE)


def mmproj_mismatch(model: ModelFacts, mmproj: ModelFacts) -> str | None:
    """Why `mmproj` cannot see for `model`, as a sentence; None when nothing speaks against it.

    Only Qwen's mergers are judged by their width: other projectors use the same header fields in other ways.
    """
    name = PurePath(mmproj.path).name
    if mmproj.kind != "mmproj":
        return f"{name} is not a picture file (mmproj): its architecture is {mmproj.architecture or 'not given'}."
    judged = mmproj.projector_type.startswith("qwen") and model.embedding_length and mmproj.projection_dim
    if judged and mmproj.projection_dim != model.embedding_length:
        return (
            f"{name} belongs to another model: it gives pictures a width of {mmproj.projection_dim:,}, and "
            f"{PurePath(model.path).name} needs {model.embedding_length:,}. "
            "Take the mmproj file from the repository of the model."
        )
    return None


def pair_mmproj(model: ModelFacts, candidates: Sequence[ModelFacts], own: Collection[str] = ()) -> ModelFacts | None:
    """The best of `candidates` for `model`, or None. `own` are paths of those known to be of the model's repository.

    A file of the same name (all repositories have a `mmproj-F16.gguf`) only counts when it lies in the model's folder,
    is one of its own or its header names the same model, and never when both name a size and the sizes differ: the
    width alone is the same in Qwen3.5-2B and 35B-A3B.
    """
    fitting = [each for each in candidates if mmproj_mismatch(model, each) is None]
    if model.kind != "model" or not fitting:
        return None
    folder, names, sizes = PurePath(model.path).parent, header_names(model), _sizes(model)
    ranked: list[tuple[tuple[bool, bool, int, str], ModelFacts]] = []
    for each in fitting:
        is_near = each.path in own or PurePath(each.path).parent == folder
        is_named = not names.isdisjoint(header_names(each))
        other_sizes = _sizes(each)
        sizes_differ = bool(sizes and other_sizes) and sizes.isdisjoint(other_sizes)
        if (is_near or is_named) and not sizes_differ:
            quant = QUANT_ORDER.index(each.quant) if each.quant in QUANT_ORDER else len(QUANT_ORDER)
            ranked.append(((not is_named, not is_near, quant, each.path), each))
    return min(ranked, key=lambda each: each[0])[1] if ranked else None


def header_names(facts: ModelFacts) -> set[str]:
    """What the header calls the model, without spelling differences; empty when it does not say."""
    return {re.sub(r"[^a-z0-9.]+", "", name.lower()) for name in (facts.name, facts.basename) if name}


def _sizes(facts: ModelFacts) -> set[str]:
    """Sizes like "35B-A3B" in the header's names and the file's name."""
    texts = (facts.name.replace(" ", "-"), facts.basename, PurePath(facts.path).stem)
    return {found.upper() for text in texts for found in _SIZE.findall(text)}
