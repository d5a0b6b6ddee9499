"""Matches a file on disk with the catalog: its model, its uploader, and a sound copy on the Hub."""

import re

from qwendesk.hub.catalog import Catalog, CatalogMatch
from qwendesk.hub.catalog_schema import CatalogModel
from qwendesk.hub.evidence import Evidence
from qwendesk.hub.finding_texts import FixCode
from qwendesk.hub.findings import Detail, FindingFix, detail

UNSLOTH = "unsloth"
QWEN_ARCHITECTURES = ("qwen35", "qwen35moe")
"""Of Qwen3.5, 3.6 and Qwen3.8-27B. The rules on early files apply to no others: gpt-oss uses MXFP4 on purpose."""
_UD_NAME = re.compile(r"(?<![A-Za-z0-9])UD-", re.IGNORECASE)


def unsloth_detail(evidence: Evidence) -> Detail | None:
    """Return the detail that shows that Unsloth made the file; None if there is none."""
    repo, facts = evidence.origin.repo, evidence.first_facts
    if repo.lower().startswith(f"{UNSLOTH}/"):
        return detail("unsloth-repo", repo=repo)
    if facts is not None and facts.quantized_by:
        return detail("unsloth-quantizer") if facts.quantized_by.strip().lower() == UNSLOTH else None
    if facts is not None and UNSLOTH in facts.imatrix_file.lower():
        return detail("unsloth-imatrix", file=facts.imatrix_file)
    return detail("unsloth-name") if not repo and _UD_NAME.search(evidence.name) else None


def model_of(evidence: Evidence, catalog: Catalog) -> CatalogModel | None:
    """Return the catalog's model, by repository, header or file name."""
    repository = catalog.repository(evidence.origin.repo)
    if repository is not None:
        return catalog.model(repository.model)
    facts = evidence.first_facts
    names = (facts.name, facts.basename) if facts is not None else ()
    return catalog.model_of(evidence.origin.repo, *names, evidence.name)


def current_file(evidence: Evidence, catalog: Catalog) -> CatalogMatch | None:
    """Return the current file on the Hub of which this is a copy or an older version."""
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
    if unsloth_detail(evidence):
        named = [found for found in named if found.repository.uploader == UNSLOTH]
    return named[0] if len(named) == 1 else None


def download_again(evidence: Evidence, catalog: Catalog) -> FindingFix:
    """Return the fix that downloads an intact copy of the same file, or, if none is known, opens its repository."""
    return _download(evidence, catalog, "download_again")


def download_current(evidence: Evidence, catalog: Catalog) -> FindingFix:
    """Return the fix that downloads the current version of the file; otherwise like `download_again`."""
    return _download(evidence, catalog, "download_current")


def _download(evidence: Evidence, catalog: Catalog, code: FixCode) -> FindingFix:
    current, origin = current_file(evidence, catalog), evidence.origin
    if current is not None:
        return FindingFix(code, current.repository.repo, current.file.path, current.file.n_bytes)
    if origin.repo and origin.path:
        return FindingFix(code, origin.repo, origin.path)
    return FindingFix("find_on_hub", origin.repo)
