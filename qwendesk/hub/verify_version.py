"""Rules about the version: whether the file is the current one, or has been replaced since.

Stronger evidence comes first: bytes that the catalog knows, the Hub, tensors in the header, a missing importance
matrix, and last a size other than that of the current file, which is a sign and no proof. Dates count only for
repositories with cut-offs in the catalog. A date alone decides only before the first cut-off, which is certain.
"""

import datetime
import re
from collections.abc import Iterator
from pathlib import PurePath

from qwendesk.core.architectures import architecture_named
from qwendesk.core.file_names import is_first_shard, quant_in_name, quants_in
from qwendesk.core.model_facts import EXPERT_TENSORS, ModelFacts
from qwendesk.hub.catalog import Catalog, CatalogMatch
from qwendesk.hub.catalog_schema import CutOff, Superseded, WithdrawnFile
from qwendesk.hub.evidence import (
    UNSLOTH,
    Evidence,
    FileEvidence,
    current_file,
    download_current,
    model_of,
    unsloth_detail,
)
from qwendesk.hub.finding_texts import DetailSource
from qwendesk.hub.findings import Detail, Finding, FindingFix, detail
from qwendesk.hub.gguf_types import FILE_TYPE_GUESSED

MXFP4, FILE_TYPE_MXFP4_MOE = "MXFP4", 38
_REPAIRED_QUANTS = frozenset({"UD-Q2_K_XL", "UD-Q3_K_XL", "UD-Q4_K_XL"})
# By which part a size of the catalog that is rounded to three digits may be wrong: 0.5%, doubled.
_ROUNDED = 0.01
# Versions of one quant differ by less (Q4_K_M of 35B-A3B: 21.2 and 22.0 GB). A file further off is something else.
_LARGEST_CHANGE = 0.25
_ATTENTION = re.compile(r"blk\.\d+\.(?:attn_|ssm_)")
_ATTENTION_OR_EXPERTS = re.compile(rf"blk\.\d+\.(?:attn_|ssm_|{EXPERT_TENSORS})")
_UNSLOTH_SOURCE = "huggingface.co/unsloth/Qwen3.5-35B-A3B-GGUF/discussions/10"


def version_findings(evidence: Evidence, catalog: Catalog) -> Iterator[Finding]:
    """Yield findings about the version of the model.

    Their codes are outdated-upstream, unsloth-before-fix, mxfp4-attention, no-imatrix and deleted-upstream.
    """
    withdrawn = list(_withdrawn(evidence, catalog))
    yield from withdrawn
    if _is_current(evidence, catalog):
        return
    outdated = list(_outdated(evidence, catalog))
    mxfp4 = list(_mxfp4(evidence, catalog))
    before_fix = list(_before_fix(evidence, catalog, is_outdated=bool(outdated), mxfp4=mxfp4))
    found = [*outdated, *mxfp4, *before_fix, *_no_imatrix(evidence, catalog)]
    yield from found
    if not found and not withdrawn:
        yield from _other_size(evidence, catalog)


def _is_current(evidence: Evidence, catalog: Catalog) -> bool:
    """Return True if the computed hashes of all files are the catalog's or the Hub's. Shard 1 is ignored."""
    judged = [file for file in evidence.files if not is_first_shard(file.path)]
    return bool(judged) and all(
        file.sha256
        and (catalog.is_current(file.sha256) or (file.upstream is not None and file.upstream.sha256 == file.sha256))
        for file in judged
    )


def _outdated(evidence: Evidence, catalog: Catalog) -> Iterator[Finding]:
    for file in evidence.files:
        if is_first_shard(file.path) or file.error is not None:
            continue
        reasons = _replaced_since(file, catalog)
        if reasons:
            yield Finding(
                code="outdated-upstream",
                values={"name": PurePath(file.path).name},
                details=reasons,
                source=evidence.origin.repo,
                fix=download_current(evidence, catalog),
            )
            return


def _replaced_since(file: FileEvidence, catalog: Catalog) -> tuple[Detail, ...]:
    known, upstream = file.known_sha256, file.upstream
    ours = detail("sha256", source="file" if file.sha256 else file.origin.record, sha256=known)
    replaced = catalog.superseded(known) if known else None
    if replaced is not None:
        return (ours, *_replacement(replaced))
    if upstream is None or upstream.is_gone:
        return ()
    changed = (detail("changed-on-hub", date=upstream.date),) if upstream.date else ()
    if known and upstream.sha256 and known != upstream.sha256 and not _is_same_size_unrecorded(file):
        return (ours, detail("sha256", source="hub", sha256=upstream.sha256), *changed)
    if not known and upstream.n_bytes and upstream.n_bytes != file.n_bytes:
        sizes: tuple[tuple[DetailSource, int], ...] = (("file", file.n_bytes), ("hub", upstream.n_bytes))
        return (*(detail("size", source=source, n_bytes=n_bytes) for source, n_bytes in sizes), *changed)
    return ()


def _is_same_size_unrecorded(file: FileEvidence) -> bool:
    """Return True for a file of the current size with other bytes, without a record of its download.

    Its finding is hash-mismatch.
    """
    return not file.origin.sha256 and file.upstream is not None and file.upstream.n_bytes == file.n_bytes


def _replacement(replaced: Superseded) -> Iterator[Detail]:
    yield detail("replaced", date=replaced.seen)
    if replaced.replaced_by:
        yield detail("replacement", sha256=replaced.replaced_by, date=replaced.replacement_seen)
    if replaced.reason:
        yield detail("reason", catalog_text=replaced.reason)


def _other_size(evidence: Evidence, catalog: Catalog) -> Iterator[Finding]:
    """Yield a finding if the file has another size than its current version, and versions of it are known as replaced.

    It is for files of which only the size is known: without a record of the download and without an answer of the Hub.
    The uploader must be known by folder or header, because other uploaders' files have other sizes.
    """
    facts, made_by = evidence.facts, unsloth_detail(evidence)
    current = current_file(evidence, catalog)
    if facts is None or current is None or any(file.origin.sha256 or file.upstream for file in evidence.files):
        return
    is_by_header = made_by is not None and made_by.code != "unsloth-name"
    if not (evidence.origin.repo or is_by_header) or _may_be_mtp(facts, current, catalog):
        return
    cut_off, expected = catalog.cut_off(current.repository.repo), current.file.n_bytes
    was_replaced = cut_off is not None or any(
        (each.repo, each.path) == (current.repository.repo, current.path) for each in catalog.contents.superseded
    )
    least = 0 if current.file.is_exact else round(expected * _ROUNDED)
    is_other = least < abs(evidence.n_bytes - expected) < expected * _LARGEST_CHANGE
    if was_replaced and current.file.kind == "model" and is_other:
        yield Finding(
            code="outdated-upstream",
            case="size" if current.file.is_exact else "rounded-size",
            values={"name": evidence.name, "n_bytes": evidence.n_bytes, "expected": expected}
            if current.file.is_exact
            else {"name": evidence.name, "size": evidence.n_bytes, "expected_size": expected},
            details=(
                detail("size", source="file", n_bytes=evidence.n_bytes),
                detail("current-size", date=current.file.seen or current.repository.seen, n_bytes=expected),
                *((made_by,) if made_by is not None else (detail("uploader-folder", repo=evidence.origin.repo),)),
                *((detail("first-repair", time=cut_off.certain_before),) if cut_off is not None else ()),
            ),
            source=current.repository.repo,
            fix=download_current(evidence, catalog),
        )


def _may_be_mtp(facts: ModelFacts, current: CatalogMatch, catalog: Catalog) -> bool:
    """Return True for a model with layers for speculative decoding whose repository of such models isn't `current`.

    Its files have the same names and are larger.
    """
    repository = current.repository
    return (
        facts.nextn_layers > 0
        and not repository.is_mtp
        and any(each.is_mtp and each.model == repository.model for each in catalog.repositories)
    )


def _mxfp4(evidence: Evidence, catalog: Catalog) -> Iterator[Finding]:
    facts, unsloth = evidence.first_facts, unsloth_detail(evidence)
    if facts is None or unsloth is None or not architecture_named(facts.architecture).is_of_qwen35:
        return
    count = mxfp4_by_mistake(facts, evidence.path)
    if count:
        yield Finding(
            code="mxfp4-attention",
            details=(
                detail("mxfp4-tensors", count=count, tensor=_example(facts)),
                detail("file-type", file_type=facts.file_type),
                unsloth,
            ),
            source=_UNSLOTH_SOURCE,
            fix=download_current(evidence, catalog),
        )


def mxfp4_by_mistake(facts: ModelFacts, path: str) -> int:
    """Return the number of tensors that are in MXFP4 by mistake; 0 for MXFP4_MOE, which uses it on purpose.

    If the file name contains a quant, only quants that had the mistake count. A renamed file ("model.gguf") is judged
    by its attention tensors alone: no quant of the family has those in MXFP4 on purpose.
    """
    if facts.file_type >= 0 and facts.file_type & ~FILE_TYPE_GUESSED == FILE_TYPE_MXFP4_MOE:
        return 0
    name, folder = PurePath(path).name, PurePath(path).parent.name
    if not _REPAIRED_QUANTS.isdisjoint(quants_in(f"{folder}/{name}")):
        judged = _ATTENTION_OR_EXPERTS
    elif quants_in(name):
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
    details = mxfp4[0].details if mxfp4 else _date_details(evidence, cut_off, is_outdated=is_outdated)
    if details:
        yield Finding(
            code="unsloth-before-fix",
            case="tensors" if mxfp4 else "date",
            details=details,
            source=_UNSLOTH_SOURCE,
            fix=download_current(evidence, catalog),
        )


def _cut_off(evidence: Evidence, catalog: Catalog) -> CutOff | None:
    if catalog.repository(evidence.origin.repo) is not None:
        return catalog.cut_off(evidence.origin.repo)
    model = model_of(evidence, catalog)
    return catalog.cut_off(f"{UNSLOTH}/{model.id}-GGUF") if model is not None and unsloth_detail(evidence) else None


def _date_details(evidence: Evidence, cut_off: CutOff, *, is_outdated: bool) -> tuple[Detail, ...]:
    """Return the details that the upload's date proves; () if it proves nothing.

    A date before the first repair is a proof by itself, a date before the last one only for an outdated file.
    """
    upstream = evidence.files[-1].upstream
    uploaded = _time(upstream.local_date) if upstream is not None else None
    if uploaded is None:
        return ()
    commit = detail("commit-date", commit=evidence.origin.commit, time=f"{uploaded:%Y-%m-%d %H:%M}")
    if uploaded < _certain_time(cut_off.certain_before):
        return commit, detail("first-repair", time=cut_off.certain_before)
    last = cut_off.final_after or cut_off.fixed_after
    return (commit, detail("last-repair", time=last)) if is_outdated and uploaded < _certain_time(last) else ()


def _time(text: str) -> datetime.datetime | None:
    """Parse a point in time in ISO 8601, in UTC if it has no time zone. Return None for any other text."""
    try:
        found = datetime.datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=datetime.UTC)


def _certain_time(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text)


def _no_imatrix(evidence: Evidence, catalog: Catalog) -> Iterator[Finding]:
    facts, unsloth = evidence.first_facts, unsloth_detail(evidence)
    if facts is None or facts.kind != "model" or facts.imatrix_file or unsloth is None:
        return
    is_judged = architecture_named(facts.architecture).is_of_qwen35 and evidence.files[0].facts is not None
    if is_judged and quant_in_name(evidence.name).startswith(("UD-Q", "UD-IQ", "UD-TQ")):
        yield Finding(
            code="no-imatrix",
            details=(detail("no-imatrix"), unsloth),
            source=_UNSLOTH_SOURCE,
            fix=download_current(evidence, catalog),
        )


def _withdrawn(evidence: Evidence, catalog: Catalog) -> Iterator[Finding]:
    deletion, repo = _deletion(evidence, catalog), evidence.origin.repo
    noted = (
        detail("gone-in-catalog", path=deletion.path, repo=deletion.repo, date=deletion.noticed)
        if deletion is not None
        else None
    )
    if deletion is not None and noted is not None and deletion.instead:
        name = PurePath(deletion.instead).name
        yield Finding(
            code="deleted-upstream",
            case="replaced",
            values={"replacement": name},
            details=(noted,),
            source=deletion.repo,
            fix=FindingFix("download_replacement", deletion.repo, deletion.instead, name=name),
        )
        return
    gone = next((file for file in evidence.files if file.upstream is not None and file.upstream.is_gone), None)
    reason = noted if gone is None else detail("gone-on-hub", repo=repo, path=gone.origin.path)
    if reason is not None:
        yield Finding(code="deleted-upstream", case="gone", details=(reason,), source=repo)


def _deletion(evidence: Evidence, catalog: Catalog) -> WithdrawnFile | None:
    for file in evidence.files:
        sha256 = "" if is_first_shard(file.path) else file.known_sha256
        found = catalog.deletion(file.origin.repo, file.origin.path, sha256)
        if found is not None:
            return found
    if evidence.origin.repo or not unsloth_detail(evidence):
        return None
    named = [each for each in catalog.contents.deletions if each.repo.startswith(f"{UNSLOTH}/")]
    return next((each for each in named if PurePath(each.path).name == evidence.name), None)
