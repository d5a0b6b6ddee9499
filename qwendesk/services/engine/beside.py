"""What lies beside a model file and belongs to it."""

from pathlib import Path

from qwendesk.core.errors import BadModelFile
from qwendesk.core.model_facts import ModelFacts
from qwendesk.hub.gguf import read_facts
from qwendesk.hub.pairing import pair_mmproj


def mmproj_beside(model: Path) -> Path | None:
    """The picture file (mmproj) in the model's folder that fits it by their headers; None if there is none.

    Reads headers; blocks. A model that cannot be read has none: loading it tells why.
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
