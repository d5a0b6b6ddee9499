"""Other uploaders of a model than the one whose files are offered, and what is different about their files."""

from collections.abc import Sequence

import msgspec

from qwendesk.core.translation import tr
from qwendesk.core.units import GIB, show_bytes
from qwendesk.hub.catalog import Catalog
from qwendesk.hub.catalog_schema import CatalogModel, Repository
from qwendesk.hub.gguf_types import PRISM_ML

# Uploaders whose files are offered, by preference: the first one has most quants and measurements of their quality.
UPLOADERS = ("unsloth", "bartowski", "lmstudio-community", "ggml-org", "ISTA-DASLab", "prism-ml", "ukisai")
# Uploaders whose files are offered beside those of the preferred one: their quants are unlike anyone else's.
_OFFERED_TOO = ("ISTA-DASLab",)
_NAMES = {"unsloth": "Unsloth"}
# Quants whose sizes are compared between uploaders; the first one that both have.
_COMPARED = ("Q4_K_M", "Q8_0", "Q6_K", "Q5_K_M")
_LEAST_DIFFERENCE = 0.25 * GIB


class OtherUploader(msgspec.Struct, frozen=True):
    """A repository of the same model by another uploader."""

    repo: str
    n_files: int
    """Models in it; of a split model one."""
    sentences: tuple[str, ...]
    """Differences of its files, most important first; at least one."""

    @property
    def uploader(self) -> str:
        return self.repo.partition("/")[0]


def preferred_repository(catalog: Catalog, model: CatalogModel) -> Repository | None:
    """Return the preferred uploader's repository of `model`, except base models and those for speculative decoding."""
    return next(iter(_repositories(catalog, model)), None)


def offered_repositories(catalog: Catalog, model: CatalogModel) -> tuple[Repository, ...]:
    """Return the repositories whose files of `model` are offered, the preferred one first; () if there is none."""
    first, *others = _repositories(catalog, model) or (None,)
    return (first, *(each for each in others if each.uploader in _OFFERED_TOO)) if first is not None else ()


def other_uploaders(catalog: Catalog, model: CatalogModel) -> tuple[OtherUploader, ...]:
    """Return the other uploaders of `model` in the catalog, by preference."""
    repositories = _repositories(catalog, model)
    return tuple(
        OtherUploader(
            repo=each.repo,
            n_files=sum(file.kind == "model" for file in each.files),
            sentences=_sentences(catalog, repositories[0], each),
        )
        for each in repositories[1:]
    )


def uploader_name(uploader: str) -> str:
    """Return the name as its owner writes it: "Unsloth" for "unsloth"."""
    return _NAMES.get(uploader, uploader)


def _repositories(catalog: Catalog, model: CatalogModel) -> Sequence[Repository]:
    """Return one repository of `model` for each uploader that has files of it, by preference."""
    found = {
        each.uploader: each
        for each in reversed(catalog.repositories)
        if each.model == model.id
        and not each.is_mtp
        and not each.is_base
        and any(file.kind == "model" for file in each.files)
    }
    return [found[uploader] for uploader in UPLOADERS if uploader in found]


def _sentences(catalog: Catalog, ours: Repository, theirs: Repository) -> tuple[str, ...]:
    lines = [_who(theirs.uploader)]
    if catalog.cut_off(ours.repo) is not None and catalog.cut_off(theirs.repo) is None:
        lines.append(tr("Never had the fault of {0}'s early uploads.", uploader_name(ours.uploader)))
    lines += [_mtp(theirs), _size(ours, theirs)]
    return tuple(line for line in lines if line)


def _who(uploader: str) -> str:
    return {
        "bartowski": tr("A well-known uploader with the usual quants, made with an importance matrix."),
        "lmstudio-community": tr("The files that LM Studio downloads: a few usual quants."),
        "ggml-org": tr("By the makers of llama.cpp: a few plain quants."),
        "ISTA-DASLab": tr("A university's lab: 2 and 3 bits, chosen for each tensor by a search (GSQ-RCO)."),
        "prism-ml": tr("Weights of three values, which only {0} loads.", PRISM_ML),
        "ukisai": tr("Swift, a model that was trained further from this one."),
    }.get(uploader, tr("Another uploader of the same model."))


def _mtp(repository: Repository) -> str:
    """Return where the layer for speculative decoding is; "" if unknown, or if the model's files have none."""
    if repository.mtp == "inside":
        return tr("MTP inside: a layer for speculative decoding.")
    return tr("MTP not inside, but in a file of its own.") if repository.mtp == "separate" else ""


def _size(ours: Repository, theirs: Repository) -> str:
    """Return how files of like names differ in size; "" if they don't, or have no quant in common."""
    mine, other = ({file.quant: file.n_bytes for file in each.files if file.kind == "model"} for each in (ours, theirs))
    pairs = [(quant, prefix + quant) for prefix in ("", "UD-") for quant in _COMPARED]
    quant, our_quant = next(((one, two) for one, two in pairs if one in other and two in mine), ("", ""))
    if not quant or abs(mine[our_quant] - other[quant]) < _LEAST_DIFFERENCE:
        return ""
    here, there, name = show_bytes(other[quant]), show_bytes(mine[our_quant]), uploader_name(ours.uploader)
    if quant == our_quant:
        return tr("Same name, other size: {0} has {1} here, {2} from {3}.", quant, here, there, name)
    return tr("Other sizes: {0} has {1} here, {2} from {3} has {4}.", quant, here, our_quant, name, there)
