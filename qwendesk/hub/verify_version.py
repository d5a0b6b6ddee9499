"""Rules about the version: is it the present one, or one that was repaired since?

They follow an order in which each step's evidence is better than the next one's: bytes the catalog knows; the Hub;
tensors in the header; the chat template; a missing importance matrix. Dates count only for the repositories that have
cut-offs in the catalog, and alone only where they are certain.
"""

import datetime
import re
from collections.abc import Iterator
from pathlib import PurePath

from qwendesk.core.model_facts import ModelFacts
from qwendesk.hub.catalog import Catalog, is_first_part
from qwendesk.hub.catalog_schema import CutOff, Deletion, Superseded
from qwendesk.hub.evidence import Evidence, FileEvidence
from qwendesk.hub.findings import Finding, Fix
from qwendesk.hub.gguf_types import FILE_TYPE_GUESSED
from qwendesk.hub.provenance import QWEN_ARCHITECTURES, UNSLOTH, download_current, model_of, unsloth_evidence

MXFP4, FILE_TYPE_MXFP4_MOE = "MXFP4", 38
_REPAIRED_QUANT = re.compile(r"(?<![A-Za-z0-9])UD-Q[234]_K_XL(?![A-Za-z0-9])", re.IGNORECASE)
_ANY_QUANT = re.compile(r"(?<![A-Za-z0-9])(?:I?Q[1-8]_[A-Z0-9]|MXFP4|NVFP4|BF16|F16|F32)", re.IGNORECASE)
_UD_QUANT = re.compile(r"(?<![A-Za-z0-9])UD-(?:I?Q|TQ)[1-8]_", re.IGNORECASE)
_ATTENTION = re.compile(r"blk\.\d+\.(?:attn_|ssm_)")
_ATTENTION_OR_EXPERTS = re.compile(r"blk\.\d+\.(?:attn_|ssm_|ffn_\w*exps)")
_UNSLOTH_SOURCE = "huggingface.co/unsloth/Qwen3.5-35B-A3B-GGUF/discussions/10"


def version_findings(evidence: Evidence, catalog: Catalog) -> Iterator[Finding]:
    """outdated-upstream, unsloth-before-fix, mxfp4-attention, no-imatrix and deleted-upstream."""
    yield from _deleted(evidence, catalog)
    if _is_current(evidence, catalog):
        return
    outdated = list(_outdated(evidence, catalog))
    yield from outdated
    mxfp4 = list(_mxfp4(evidence, catalog))
    yield from mxfp4
    yield from _before_fix(evidence, catalog, is_outdated=bool(outdated), mxfp4=mxfp4)
    yield from _no_imatrix(evidence, catalog)


def _is_current(evidence: Evidence, catalog: Catalog) -> bool:
    """Computed hashes of all files are those of the catalog or of the Hub; shard 1 of a set says nothing."""
    judged = [file for file in evidence.files if not is_first_part(file.path)]
    return bool(judged) and all(
        file.sha256
        and (catalog.is_current(file.sha256) or (file.upstream is not None and file.upstream.sha256 == file.sha256))
        for file in judged
    )


def _outdated(evidence: Evidence, catalog: Catalog) -> Iterator[Finding]:
    for file in evidence.files:
        if is_first_part(file.path) or file.error is not None:
            continue
        reason = _replaced_since(file, catalog)
        if reason:
            yield Finding(
                code="outdated-upstream",
                severity="warning",
                message=f"{PurePath(file.path).name} has been replaced by its uploader since this copy was made.",
                evidence=reason,
                source=evidence.origin.repo,
                fix=download_current(evidence, catalog),
            )
            return


def _replaced_since(file: FileEvidence, catalog: Catalog) -> str:
    known = file.known_sha256
    stated = "computed from the file" if file.sha256 else f"by {file.origin.stated_by}"
    replaced = catalog.superseded(known) if known else None
    if replaced is not None:
        return f"SHA-256 {known} ({stated}) is {_in_catalog(replaced)}"
    there = file.upstream
    if there is None or there.is_gone:
        return ""
    if known and there.sha256 and known != there.sha256 and not _same_size_unpinned(file):
        return f"SHA-256 is {known} ({stated}); the Hub has {there.sha256} since {there.date or 'an unknown date'}"
    if not known and there.n_bytes and there.n_bytes != file.n_bytes:
        return f"{file.n_bytes:,} bytes on disk; the Hub has {there.n_bytes:,} since {there.date or 'an unknown date'}"
    return ""


def _same_size_unpinned(file: FileEvidence) -> bool:
    """Other bytes of the same length, and no record of what was downloaded: hash-mismatch says it."""
    return not file.origin.sha256 and file.upstream is not None and file.upstream.n_bytes == file.n_bytes


def _in_catalog(replaced: Superseded) -> str:
    by = f", by {replaced.replaced_by}" if replaced.replaced_by else ""
    since = f" (seen {replaced.replacement_seen})" if replaced.replacement_seen else ""
    reason = f": {replaced.reason}" if replaced.reason else ""
    return f"one that the catalog lists as replaced; it was offered on {replaced.seen}{by}{since}{reason}"


def _mxfp4(evidence: Evidence, catalog: Catalog) -> Iterator[Finding]:
    facts, theirs = evidence.first_facts, unsloth_evidence(evidence)
    if facts is None or not theirs or facts.architecture not in QWEN_ARCHITECTURES:
        return
    found = mxfp4_by_mistake(facts, evidence.path)
    if found:
        yield Finding(
            code="mxfp4-attention",
            severity="bad",
            message="Part of this file is in MXFP4 by mistake: answers are garbled or repeat themselves. "
            "Unsloth has replaced it.",
            evidence=f"header: {found} tensors of type MXFP4 (such as {_example(facts)}) and file type "
            f"{facts.file_type}, which is not MXFP4_MOE; {theirs}",
            source=_UNSLOTH_SOURCE,
            fix=download_current(evidence, catalog),
        )


def mxfp4_by_mistake(facts: ModelFacts, path: str) -> int:
    """How many tensors are in MXFP4 that should not be; 0 for MXFP4_MOE, which is MXFP4 on purpose.

    A file whose name says which quant it is must be one of those that had the mistake. A renamed one ("model.gguf")
    is judged by its attention tensors alone: no quant of the family has those in MXFP4 on purpose.
    """
    if facts.file_type >= 0 and facts.file_type & ~FILE_TYPE_GUESSED == FILE_TYPE_MXFP4_MOE:
        return 0
    name, folder = PurePath(path).name, PurePath(path).parent.name
    if _REPAIRED_QUANT.search(name) or _REPAIRED_QUANT.search(folder):
        judged = _ATTENTION_OR_EXPERTS
    elif _ANY_QUANT.search(name):
        return 0
    else:
        judged = _ATTENTION
    return sum(1 for tensor in facts.tensors if tensor.type == MXFP4 and judged.match(tensor.name))


def _example(facts: ModelFacts) -> str:
    wrong = (tensor.name for tensor in facts.tensors if tensor.type == MXFP4)
    return next((name for name in wrong if _ATTENTION_OR_EXPERTS.match(name)), "")


def _before_fix(evidence: Evidence, catalog: Catalog, *, is_outdated: bool, mxfp4: list[Finding]) -> Iterator[Finding]:
    facts, cut_off = evidence.first_facts, _cut_off(evidence, catalog)
    if facts is None or facts.kind != "model" or cut_off is None:
        return
    reason = mxfp4[0].evidence if mxfp4 else _date_evidence(evidence, cut_off, is_outdated=is_outdated)
    if reason:
        yield Finding(
            code="unsloth-before-fix",
            severity="bad" if mxfp4 else "warning",
            message="This is an early upload that Unsloth has repaired since: it has the old chat template and the "
            "old importance matrix.",
            evidence=reason,
            source=_UNSLOTH_SOURCE,
            fix=download_current(evidence, catalog),
        )


def _cut_off(evidence: Evidence, catalog: Catalog) -> CutOff | None:
    if catalog.repository(evidence.origin.repo) is not None:
        return catalog.cut_off(evidence.origin.repo)
    model = model_of(evidence, catalog)
    return catalog.cut_off(f"{UNSLOTH}/{model.id}-GGUF") if model is not None and unsloth_evidence(evidence) else None


def _date_evidence(evidence: Evidence, cut_off: CutOff, *, is_outdated: bool) -> str:
    """What the upload's date proves: alone before the first repair, later only for a file known to be outdated."""
    there = evidence.files[-1].upstream
    uploaded = _time(there.local_date) if there is not None else None
    if uploaded is None:
        return ""
    said = f"its commit {evidence.origin.commit} is of {uploaded:%Y-%m-%d %H:%M} UTC"
    if uploaded < _must(cut_off.certain_before):
        return f"{said}; the first repaired files came after {cut_off.certain_before}"
    last = cut_off.final_after or cut_off.fixed_after
    if is_outdated and uploaded < _must(last):
        return f"{said}, the last repaired files came after {last}, and the Hub has other bytes now"
    return ""


def _time(text: str) -> datetime.datetime | None:
    """A point in time from ISO 8601, in UTC; None for what is none."""
    try:
        found = datetime.datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=datetime.UTC)


def _must(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text)


def _no_imatrix(evidence: Evidence, catalog: Catalog) -> Iterator[Finding]:
    facts, theirs = evidence.first_facts, unsloth_evidence(evidence)
    if facts is None or facts.kind != "model" or facts.imatrix_file or not theirs:
        return
    is_judged = facts.architecture in QWEN_ARCHITECTURES and evidence.files[0].facts is not None
    if is_judged and _UD_QUANT.search(evidence.name):
        yield Finding(
            code="no-imatrix",
            severity="warning",
            message="Unsloth's UD quants are made with an importance matrix, and this one names none: "
            "it is an early upload, or was changed.",
            evidence=f"header: no quantize.imatrix.file; {theirs}",
            source=_UNSLOTH_SOURCE,
            fix=download_current(evidence, catalog),
        )


def _deleted(evidence: Evidence, catalog: Catalog) -> Iterator[Finding]:
    deletion = _deletion(evidence, catalog)
    if deletion is not None and deletion.instead:
        instead = PurePath(deletion.instead).name
        yield Finding(
            code="deleted-upstream",
            severity="warning",
            message=f"The uploader took this file back; {instead} replaced it.",
            evidence=f"the catalog: {deletion.path} was gone from {deletion.repo} on {deletion.noticed}",
            source=deletion.repo,
            fix=Fix("download_current", f"Download {instead}", deletion.repo, deletion.instead),
        )
        return
    gone = next((file for file in evidence.files if file.upstream is not None and file.upstream.is_gone), None)
    if gone is None and deletion is None:
        return
    reason = (
        f"the Hub: {evidence.origin.repo} has no {gone.origin.path} now"
        if gone is not None
        else f"the catalog: it was gone on {deletion.noticed}"
        if deletion is not None
        else ""
    )
    yield Finding(
        code="deleted-upstream",
        severity="info",
        message="Its repository no longer has this file. The copy here can be used, and cannot be downloaded again.",
        evidence=reason,
        source=evidence.origin.repo,
    )


def _deletion(evidence: Evidence, catalog: Catalog) -> Deletion | None:
    for file in evidence.files:
        sha256 = "" if is_first_part(file.path) else file.known_sha256
        found = catalog.deletion(file.origin.repo, file.origin.path, sha256)
        if found is not None:
            return found
    if evidence.origin.repo or not unsloth_evidence(evidence):
        return None
    named = [each for each in catalog.contents.deletions if each.repo.startswith(f"{UNSLOTH}/")]
    return next((each for each in named if PurePath(each.path).name == evidence.name), None)
