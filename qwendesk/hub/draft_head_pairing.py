"""Finds the draft head in a file of its own that belongs to a model."""

from collections.abc import Callable, Iterable
from pathlib import Path, PurePath

from qwendesk.core.errors import BadModelFile
from qwendesk.core.file_names import is_mmproj_name
from qwendesk.core.model_facts import ModelFacts
from qwendesk.core.translation import tr
from qwendesk.hub.gguf import read_facts


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


def find_draft_head(model: Path, read: Callable[[Path], ModelFacts] = read_facts) -> Path | None:
    """Return the draft head in the model's folder that fits it by their headers; None if there is none.

    Reads headers; blocks. Return None for a model that can't be read: loading it will report why.
    """
    try:
        facts = read(model)
    except BadModelFile:
        return None
    if facts.kind != "model" or facts.nextn_layers:
        return None
    neighbours = (
        each for each in sorted(model.parent.glob("*.gguf")) if each != model and not is_mmproj_name(each.name)
    )
    found = pair_draft_head(facts, (head for each in neighbours if (head := _head_or_none(each, read)) is not None))
    return None if found is None else Path(found.path)


def _head_or_none(path: Path, read: Callable[[Path], ModelFacts]) -> ModelFacts | None:
    try:
        facts = read(path)
    except BadModelFile:
        return None
    return facts if facts.kind == "draft_head" else None
