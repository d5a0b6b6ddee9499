"""Rules about the bytes: whether they are a model file, complete, and the same as on the Hub."""

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePath

from qwendesk.core.file_names import Shard, is_first_shard
from qwendesk.hub.catalog import Catalog
from qwendesk.hub.catalog_matching import QWEN_ARCHITECTURES, download_again
from qwendesk.hub.evidence import Evidence, FileEvidence, HeaderError
from qwendesk.hub.finding_texts import DetailSource
from qwendesk.hub.findings import Detail, Finding, FindingFix, detail

_MIN_MMPROJ_BYTES = 1024**2
"""Smaller files can't be an mmproj: the smallest one of the family has 190 MB."""
_MAX_TAIL_BYTES = 4096
"""How many bytes may follow the last tensor: padding, and what some tools append."""
_LAYER_NUMBER = re.compile(r"blk\.(\d+)\.")


def byte_findings(evidence: Evidence, catalog: Catalog) -> Iterator[Finding]:
    """Yield findings about the bytes of the files.

    Their codes are not-gguf, lfs-pointer, html-instead-of-model, truncated, size-mismatch, hash-mismatch,
    missing-shard, shard-mismatch, too-small-mmproj, and unsupported-arch for a format that the engine doesn't know.
    """
    fix = download_again(evidence, catalog)
    for file in evidence.files:
        if file.error is not None:
            yield _unreadable_header(file, file.error, fix)
    yield from _too_small_mmproj(evidence, fix)
    yield from _missing_shards(evidence, fix)
    yield from _mismatched_shards(evidence, fix)
    for file in evidence.files:
        yield from _wrong_size(file, catalog, fix)
        yield from _wrong_hash(file, catalog, fix)


def _unreadable_header(file: FileEvidence, error: HeaderError, fix: FindingFix) -> Finding:
    size = detail("size", source="file", n_bytes=file.n_bytes)
    beginning = detail("first-bytes", hex=file.head[:8].hex(" "))
    reason = detail("header-error", title=error.title)
    details: Mapping[str, tuple[Detail, ...]] = {
        "lfs-pointer": (detail("starts-like-lfs"),),
        "html-instead-of-model": (detail("starts-like-html"),),
        "truncated": (size, reason),
        "unsupported-arch": (reason,),
        "not-gguf": (size, beginning, reason),
    }
    return Finding(
        code=error.code,
        case=error.case,
        values=error.values,
        details=details[error.code],
        fix=FindingFix("find_file") if error.code == "unsupported-arch" else fix,
    )


def _too_small_mmproj(evidence: Evidence, fix: FindingFix) -> Iterator[Finding]:
    file = evidence.files[0]
    is_empty = file.facts is not None and file.facts.kind == "mmproj" and not file.facts.tensors
    is_stub = file.error is not None and evidence.is_mmproj and file.n_bytes < _MIN_MMPROJ_BYTES
    if is_empty or is_stub:
        yield Finding(
            code="too-small-mmproj",
            values={"name": evidence.name, "size": file.n_bytes},
            details=(
                detail("size", source="file", n_bytes=file.n_bytes),
                detail("no-tensors" if is_empty else "no-header"),
            ),
            fix=fix,
        )


def _missing_shards(evidence: Evidence, fix: FindingFix) -> Iterator[Finding]:
    facts, total = evidence.files[0].facts, len(evidence.files) + len(evidence.missing)
    if evidence.missing:
        yield Finding(
            code="missing-shard",
            values={"count": len(evidence.missing), "total": total, "names": evidence.missing},
            details=(detail("shards-found", count=len(evidence.files), total=total),),
            fix=fix,
        )
    elif facts is not None and facts.split_count > 1 and len(evidence.files) == 1:
        yield Finding(
            code="missing-shard",
            case="renamed",
            values={"name": evidence.name, "number": facts.split_number + 1, "total": facts.split_count},
            details=(detail("split-count", total=facts.split_count),),
            fix=fix,
        )


def _mismatched_shards(evidence: Evidence, fix: FindingFix) -> Iterator[Finding]:
    """Yield a finding if the shards are intact, but don't belong to one model."""
    total = len(evidence.files) + len(evidence.missing)
    if total < 2:
        return
    reason = _shard_fault(evidence, total) or _set_fault(evidence)
    if reason is not None:
        yield Finding(code="shard-mismatch", details=(reason,), fix=fix)


def _shard_fault(evidence: Evidence, total: int) -> Detail | None:
    for file in evidence.files:
        facts, name = file.facts, PurePath(file.path).name
        if facts is None:
            continue
        shard = Shard.parse(name)
        number = 1 if shard is None else shard.number
        if facts.split_count != total:
            return detail("shard-count", name=name, total=total, stated=facts.split_count)
        if facts.split_number != number - 1:
            return detail("shard-number", name=name, number=facts.split_number + 1)
    return None


def _set_fault(evidence: Evidence) -> Detail | None:
    facts = evidence.facts
    if facts is None:
        return None
    if facts.split_tensors and facts.split_tensors != len(facts.tensors):
        return detail("tensor-count", count=len(facts.tensors), stated=facts.split_tensors)
    names = {tensor.name for tensor in facts.tensors}
    if len(names) != len(facts.tensors):
        return detail("repeated-tensors", count=len(facts.tensors) - len(names))
    layers = {int(match[1]) for name in names if (match := _LAYER_NUMBER.match(name))}
    stated = facts.block_count - facts.nextn_layers
    is_model = facts.kind == "model" and facts.architecture in QWEN_ARCHITECTURES
    if is_model and layers and len(layers) < stated:
        return detail("layer-count", count=len(layers), stated=stated)
    return None


def _wrong_size(file: FileEvidence, catalog: Catalog, fix: FindingFix) -> Iterator[Finding]:
    name, facts = PurePath(file.path).name, file.facts
    recorded = _recorded_size(file, catalog)
    is_cut = file.error is not None and file.error.code == "truncated" and file.n_bytes > 0
    if recorded is not None and recorded[0] != file.n_bytes and not is_cut:
        expected, source = recorded
        yield Finding(
            code="size-mismatch",
            case="recorded",
            values={"name": name, "n_bytes": file.n_bytes, "expected": expected},
            details=(_recorded_hash(file), detail("size", source=source, n_bytes=expected)),
            fix=fix,
        )
    elif facts is not None and facts.tensors and file.n_bytes > facts.needed_bytes + _MAX_TAIL_BYTES:
        yield Finding(
            code="size-mismatch",
            case="longer",
            values={"name": name, "size": file.n_bytes - facts.needed_bytes},
            details=(
                detail("size", source="file", n_bytes=file.n_bytes),
                detail("size", source="header", n_bytes=facts.needed_bytes),
            ),
            fix=fix,
        )


def _recorded_size(file: FileEvidence, catalog: Catalog) -> tuple[int, DetailSource] | None:
    """Return the exact size of the file with the hash in the record of the download, and the source of that size."""
    if not file.origin.sha256:
        return None
    for match in catalog.find_by_sha256(file.origin.sha256):
        if match.n_bytes is not None:
            return match.n_bytes, "catalog"
    upstream = file.upstream
    if upstream is not None and upstream.sha256 == file.origin.sha256 and upstream.n_bytes:
        return upstream.n_bytes, "hub"
    return None


def _recorded_hash(file: FileEvidence) -> Detail:
    return detail("sha256", source=file.origin.record, sha256=file.origin.sha256)


def _wrong_hash(file: FileEvidence, catalog: Catalog, fix: FindingFix) -> Iterator[Finding]:
    """Yield a finding if the computed hash differs from the recorded one.

    Bytes that the catalog knows are intact, whatever the record says.
    """
    if not file.sha256 or catalog.find_by_sha256(file.sha256) or catalog.superseded(file.sha256):
        return
    upstream, values = file.upstream, {"name": PurePath(file.path).name}
    if upstream is not None and upstream.sha256 == file.sha256:
        return
    computed = detail("sha256", source="file", sha256=file.sha256)
    if file.origin.sha256 and file.origin.sha256 != file.sha256:
        details = (computed, _recorded_hash(file))
        yield Finding(code="hash-mismatch", case="recorded", values=values, details=details, fix=fix)
        return
    current = _current_hash(file, catalog)
    if current is None or is_first_shard(file.origin.path) or file.origin.sha256:
        return
    if current.values["sha256"] != file.sha256:
        yield Finding(code="hash-mismatch", case="current", values=values, details=(computed, current), fix=fix)


def _current_hash(file: FileEvidence, catalog: Catalog) -> Detail | None:
    """Return the SHA-256 of the current file with the same repository, path and size."""
    upstream = file.upstream
    if upstream is not None and upstream.sha256:
        is_same_size = upstream.n_bytes == file.n_bytes
        return detail("sha256", source="hub", sha256=upstream.sha256) if is_same_size else None
    match = catalog.find_file(file.origin.repo, file.origin.path)
    if match is None or match.n_bytes != file.n_bytes or not match.sha256:
        return None
    return detail("sha256", source="catalog", sha256=match.sha256)
