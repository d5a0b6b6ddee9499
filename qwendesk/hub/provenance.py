"""Which repository, uploader and model a file belongs to, as far as evidence goes, and where a sound copy is."""

import re

from qwendesk.core.units import show_bytes
from qwendesk.hub.catalog import Catalog, Found
from qwendesk.hub.catalog_schema import Model
from qwendesk.hub.evidence import Evidence
from qwendesk.hub.findings import Fix, FixKind

UNSLOTH = "unsloth"
QWEN_ARCHITECTURES = ("qwen35", "qwen35moe")
"""Of Qwen3.5 and 3.6. What is known of Unsloth's early files holds for these alone: gpt-oss is MXFP4 on purpose."""
_UD_NAME = re.compile(r"(?<![A-Za-z0-9])UD-", re.IGNORECASE)


def unsloth_evidence(evidence: Evidence) -> str:
    """What says that Unsloth made the file; "" when nothing does."""
    repo, facts = evidence.origin.repo, evidence.first_facts
    if repo.lower().startswith(f"{UNSLOTH}/"):
        return f"it comes from {repo}"
    if facts is not None and facts.quantized_by:
        is_theirs = facts.quantized_by.strip().lower() == UNSLOTH
        return 'header: general.quantized_by is "Unsloth"' if is_theirs else ""
    if facts is not None and UNSLOTH in facts.imatrix_file.lower():
        return f'header: quantize.imatrix.file is "{facts.imatrix_file}"'
    if not repo and _UD_NAME.search(evidence.name):
        return "its name has UD-, Unsloth's mark"
    return ""


def model_of(evidence: Evidence, catalog: Catalog) -> Model | None:
    """The catalogued model by repository, header or file name."""
    repository = catalog.repository(evidence.origin.repo)
    if repository is not None:
        return catalog.model(repository.model)
    facts = evidence.first_facts
    names = (facts.name, facts.basename) if facts is not None else ()
    return catalog.model_of(evidence.origin.repo, *names, evidence.name)


def current_file(evidence: Evidence, catalog: Catalog) -> Found | None:
    """The present file on the Hub that this one is a copy of, or an older version of."""
    origin = evidence.origin
    if origin.repo and origin.path:
        return catalog.find_file(origin.repo, origin.path)
    for sha256 in filter(None, (file.known_sha256 for file in evidence.files)):
        same = catalog.find_by_sha256(sha256)
        if len(same) == 1:
            return same[0]
        replaced = catalog.superseded(sha256)
        if replaced is not None:
            return catalog.find_file(replaced.repo, replaced.path)
    named = [found for found in catalog.find_by_name(evidence.name) if not found.repository.is_mtp]
    if unsloth_evidence(evidence):
        named = [found for found in named if found.repository.uploader == UNSLOTH]
    return named[0] if len(named) == 1 else None


def download_again(evidence: Evidence, catalog: Catalog) -> Fix:
    """A sound copy of the same file, where it is known which; else a look at the Hub."""
    return _download(evidence, catalog, "download_again", "Download again")


def download_current(evidence: Evidence, catalog: Catalog) -> Fix:
    """The present version of the file."""
    return _download(evidence, catalog, "download_current", "Download the present file")


def _download(evidence: Evidence, catalog: Catalog, kind: FixKind, label: str) -> Fix:
    found, origin = current_file(evidence, catalog), evidence.origin
    if found is not None:
        size = show_bytes(found.file.n_bytes)
        return Fix(kind, f"{label} ({size})", found.repository.repo, found.file.path)
    if origin.repo and origin.path:
        return Fix(kind, label, origin.repo, origin.path)
    return Fix("choose_other", "Find it on Hugging Face", origin.repo)
