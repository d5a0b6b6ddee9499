"""Finds the files that belong to a model: its mmproj, and its draft head in a file of its own."""

import re
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path, PurePath

from qwendesk.core.errors import BadModelFile
from qwendesk.core.file_names import is_mmproj_name, sizes_in
from qwendesk.core.model_facts import ModelFacts
from qwendesk.core.translation import tr
from qwendesk.hub.findings import Finding
from qwendesk.hub.gguf import read_facts

# Best first: F16 runs everywhere, BF16 is slow on older GPUs, F32 only takes more memory.
QUANT_ORDER = ("F16", "BF16", "Q8_0", "F32")


def mmproj_mismatch(model: ModelFacts, mmproj: ModelFacts) -> Finding | None:
    """Return why `mmproj` doesn't work with `model`; None if it may.

    Only Qwen's mergers are judged by their width, because other projectors use the same header fields differently.
    """
    name = PurePath(mmproj.path).name
    if mmproj.kind != "mmproj":
        values = {"name": name, "architecture": mmproj.architecture}
        return Finding(code="mmproj-mismatch", case="other-kind", values=values)
    is_judged = mmproj.projector_type.startswith("qwen") and model.embedding_length and mmproj.projection_dim
    if is_judged and mmproj.projection_dim != model.embedding_length:
        return Finding(
            code="mmproj-mismatch",
            case="width",
            values={
                "name": name,
                "width": mmproj.projection_dim,
                "model": PurePath(model.path).name,
                "needed": model.embedding_length,
            },
        )
    return None


def pair_mmproj(model: ModelFacts, candidates: Sequence[ModelFacts], own: Collection[str] = ()) -> ModelFacts | None:
    """Return the best of `candidates` for `model`, or None. `own` are paths in the model's repository.

    A candidate must be in the model's folder, be one of `own`, or name the same model in its header. Its file name
    doesn't count, because all repositories have a `mmproj-F16.gguf`. Its names must not contain another model size: the
    width can't tell Qwen3.5-2B from 35B-A3B.
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
    """Return the names of the model in the header without spelling differences; empty if there are none."""
    return {re.sub(r"[^a-z0-9.]+", "", name.lower()) for name in (facts.name, facts.basename) if name}


def _sizes(facts: ModelFacts) -> frozenset[str]:
    """Return sizes such as "35B-A3B" in the names of header and file."""
    texts = (facts.name.replace(" ", "-"), facts.basename, PurePath(facts.path).stem)
    return frozenset().union(*(sizes_in(text) for text in texts))


def find_mmproj(model: Path) -> Path | None:
    """Return the mmproj file in the model's folder that fits it by their headers; None if there is none.

    Reads headers; blocks. Return None for a model that can't be read: loading it will report why.
    """
    try:
        facts = read_facts(model)
    except BadModelFile:
        return None
    neighbours = [path for path in sorted(model.parent.glob("*.gguf")) if "mmproj" in path.name.lower()]
    readable = [found for path in neighbours if (found := _facts_or_none(path)) is not None]
    best = pair_mmproj(facts, readable)
    return None if best is None else Path(best.path)


def _facts_or_none(path: Path) -> ModelFacts | None:
    try:
        return read_facts(path)
    except BadModelFile:
        return None


def draft_head_mismatch(model: ModelFacts, head: ModelFacts) -> str:
    """Return why `head` can't draft for `model`, in a sentence; "" if it can, as far as the headers tell."""
    name = PurePath(head.path).name
    if head.kind != "draft_head":
        return tr("{0} isn't a draft head.", name)
    if _model_of(head) != _model_of(model):
        return tr("The draft head {0} is for another model than {1}.", name, PurePath(model.path).name)
    return ""


def _model_of(facts: ModelFacts) -> tuple[object, ...]:
    """Return what a head and its model have in common: widths, layers without the head's, and vocabulary."""
    return (
        facts.architecture,
        facts.embedding_length,
        facts.block_count - facts.nextn_layers,
        facts.vocab_size,
        facts.tokenizer_model,
        facts.tokenizer_pre,
    )


def pair_draft_head(model: ModelFacts, heads: Iterable[ModelFacts]) -> ModelFacts | None:
    """Return the largest of `heads` that fits `model`, because it guesses best; None if none fits.

    A model with a head inside needs none.
    """
    if model.kind != "model" or model.nextn_layers:
        return None
    fitting = [each for each in heads if not draft_head_mismatch(model, each)]
    return max(fitting, key=lambda each: (each.file_bytes, each.path), default=None)


def find_draft_head(model: Path) -> Path | None:
    """Return the draft head in the model's folder that fits it by their headers; None if there is none.

    Reads headers; blocks. Return None for a model that can't be read: loading it will report why.
    """
    try:
        facts = read_facts(model)
    except BadModelFile:
        return None
    if facts.kind != "model" or facts.nextn_layers:
        return None
    neighbours = (
        each for each in sorted(model.parent.glob("*.gguf")) if each != model and not is_mmproj_name(each.name)
    )
    found = pair_draft_head(facts, (head for each in neighbours if (head := _head_or_none(each)) is not None))
    return None if found is None else Path(found.path)


def _head_or_none(path: Path) -> ModelFacts | None:
    try:
        facts = read_facts(path)
    except BadModelFile:
        return None
    return facts if facts.kind == "draft_head" else None
