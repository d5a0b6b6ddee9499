"""Rules about the bytes: are they a model file, all there, and those that the Hub sent?"""

import re
from collections.abc import Iterator
from pathlib import PurePath

from qwendesk.core.units import show_bytes
from qwendesk.hub.catalog import Catalog, is_first_part
from qwendesk.hub.evidence import Evidence, FileEvidence
from qwendesk.hub.findings import Finding, Fix
from qwendesk.hub.provenance import QWEN_ARCHITECTURES, download_again

_LFS = b"version https://git-lfs"
_HTML_STARTS = (b"<!doctype", b"<html", b"<head", b"<?xml", b"<!--")
_BLANKS = b"\xef\xbb\xbf \t\r\n"
_SMALL_MMPROJ_BYTES = 1024**2
"""The smallest of the family's picture files has 190 MB."""
_MAX_TAIL_BYTES = 4096
"""What padding and the odd tool may leave after the last tensor."""
_BLOCK = re.compile(r"blk\.(\d+)\.")


def byte_findings(evidence: Evidence, catalog: Catalog) -> Iterator[Finding]:
    """not-gguf, lfs-pointer, html-instead-of-model, truncated, size-mismatch, hash-mismatch, missing-shard,
    shard-mismatch, too-small-mmproj, and unsupported-arch for a format the engine does not know."""
    fix = download_again(evidence, catalog)
    for file in evidence.files:
        if file.error is not None:
            yield _broken(file, fix)
    yield from _small_mmproj(evidence, fix)
    yield from _missing_parts(evidence, fix)
    yield from _mismatched_parts(evidence, fix)
    for file in evidence.files:
        yield from _sizes(file, catalog, fix)
        yield from _hashes(file, catalog, fix)


def _broken(file: FileEvidence, fix: Fix) -> Finding:
    """What a file whose header cannot be read is."""
    error, name = file.error, PurePath(file.path).name
    assert error is not None
    start = file.head.lstrip(_BLANKS).lower()
    if start.startswith(_LFS):
        message = f"{name} is only a Git LFS pointer: a note of {show_bytes(file.n_bytes)} in place of the real file."
        return Finding(
            code="lfs-pointer", severity="bad", message=message, evidence="it begins like a Git LFS pointer", fix=fix
        )
    if start.startswith(_HTML_STARTS):
        message = f"{name} is a web page, probably an error message saved under this name."
        return Finding(
            code="html-instead-of-model", severity="bad", message=message, evidence="it begins like a web page", fix=fix
        )
    if error.kind == "unsupported_architecture":
        return Finding(
            code="unsupported-arch",
            severity="warning",
            message=error.sentence,
            evidence=f"header: {error.title}",
            fix=Fix("choose_other", "Choose another file"),
        )
    if error.kind == "truncated" or not file.n_bytes:
        message = error.sentence if file.n_bytes else f"{name} is empty: its download was lost."
        evidence = f"{file.n_bytes:,} bytes on disk; {error.title.lower()}"
        return Finding(code="truncated", severity="bad", message=message, evidence=evidence, fix=fix)
    beginning = file.head[:8].hex(" ") or "nothing"
    evidence = f"{file.n_bytes:,} bytes that begin with {beginning}; {error.title.lower()}"
    return Finding(code="not-gguf", severity="bad", message=error.sentence, evidence=evidence, fix=fix)


def _small_mmproj(evidence: Evidence, fix: Fix) -> Iterator[Finding]:
    file = evidence.files[0]
    is_empty = file.facts is not None and file.facts.kind == "mmproj" and not file.facts.tensors
    is_stub = file.error is not None and evidence.is_mmproj and file.n_bytes < _SMALL_MMPROJ_BYTES
    if is_empty or is_stub:
        yield Finding(
            code="too-small-mmproj",
            severity="bad",
            message=f"{evidence.name} has {show_bytes(file.n_bytes)}; a picture file has hundreds of MB. "
            "Models cannot see with it.",
            evidence=f"{file.n_bytes:,} bytes, {'no tensors' if is_empty else 'no readable header'}",
            fix=fix,
        )


def _missing_parts(evidence: Evidence, fix: Fix) -> Iterator[Finding]:
    facts = evidence.files[0].facts
    if evidence.missing:
        names = ", ".join(evidence.missing[:3]) + (" and more" if len(evidence.missing) > 3 else "")
        total = len(evidence.files) + len(evidence.missing)
        yield Finding(
            code="missing-shard",
            severity="bad",
            message=f"The model has {total} parts, and {_count_missing(len(evidence.missing))}: {names}.",
            evidence=f"{len(evidence.files)} of {total} parts lie in the folder",
            fix=fix,
        )
    elif facts is not None and facts.split_count > 1 and len(evidence.files) == 1:
        yield Finding(
            code="missing-shard",
            severity="bad",
            message=f"{evidence.name} is part {facts.split_number + 1} of {facts.split_count}, and its name does not "
            "say so: the engine cannot find the others.",
            evidence=f"header: split.count is {facts.split_count}; the name has no -0000N-of-0000M",
            fix=fix,
        )


def _count_missing(count: int) -> str:
    return "one is missing" if count == 1 else f"{count} are missing"


def _mismatched_parts(evidence: Evidence, fix: Fix) -> Iterator[Finding]:
    """Parts that are sound alone and do not make one model together."""
    total = len(evidence.files) + len(evidence.missing)
    if total < 2:
        return
    reason = _part_fault(evidence, total) or _set_fault(evidence)
    if reason:
        yield Finding(
            code="shard-mismatch",
            severity="bad",
            message="The parts do not belong together: they come from different models, quants or uploads.",
            evidence=reason,
            fix=fix,
        )


def _part_fault(evidence: Evidence, total: int) -> str:
    for file in evidence.files:
        facts, name = file.facts, PurePath(file.path).name
        if facts is None:
            continue
        number = int(name[-len("00001-of-00002.gguf") :][:5])
        if facts.split_count != total:
            return f"{name}: its name says {total} parts, its header {facts.split_count}"
        if facts.split_number != number - 1:
            return f"{name}: its header says that it is part {facts.split_number + 1}"
    return ""


def _set_fault(evidence: Evidence) -> str:
    facts = evidence.facts
    if facts is None:
        return ""
    if facts.split_tensors and facts.split_tensors != len(facts.tensors):
        return f"{len(facts.tensors)} tensors in all parts, and the first part's header says {facts.split_tensors}"
    names = {tensor.name for tensor in facts.tensors}
    if len(names) != len(facts.tensors):
        return f"{len(facts.tensors) - len(names)} tensors are in two parts"
    blocks = {int(found[1]) for name in names if (found := _BLOCK.match(name))}
    wanted = facts.block_count - facts.nextn_layers
    if facts.architecture in QWEN_ARCHITECTURES and blocks and len(blocks) < wanted:
        return f"tensors of {len(blocks)} layers, and the header says {wanted}"
    return ""


def _sizes(file: FileEvidence, catalog: Catalog, fix: Fix) -> Iterator[Finding]:
    name = PurePath(file.path).name
    wanted = _pinned_size(file, catalog)
    if wanted is not None and wanted[0] != file.n_bytes and (file.error is None or file.error.kind != "truncated"):
        message = f"{name} has {file.n_bytes:,} bytes, and this version of it has {wanted[0]:,}."
        yield Finding(code="size-mismatch", severity="bad", message=message, evidence=wanted[1], fix=fix)
    elif file.facts is not None and file.facts.tensors and file.n_bytes > file.facts.needed_bytes + _MAX_TAIL_BYTES:
        excess = file.n_bytes - file.facts.needed_bytes
        yield Finding(
            code="size-mismatch",
            severity="warning",
            message=f"{name} is {show_bytes(excess)} longer than its header says: "
            "a download may have been joined wrongly. Check its SHA-256.",
            evidence=f"{file.n_bytes:,} bytes on disk, {file.facts.needed_bytes:,} by the header",
            fix=fix,
        )


def _pinned_size(file: FileEvidence, catalog: Catalog) -> tuple[int, str] | None:
    """The exact size of the very version this file was fetched as, and who says so."""
    if not file.origin.sha256:
        return None
    for found in catalog.find_by_sha256(file.origin.sha256):
        if found.n_bytes is not None:
            return found.n_bytes, f"{file.origin.stated_by} names bytes that the catalog has as {found.n_bytes:,} long"
    there = file.upstream
    if there is not None and there.sha256 == file.origin.sha256 and there.n_bytes:
        return there.n_bytes, f"{file.origin.stated_by} names bytes that are {there.n_bytes:,} long on the Hub"
    return None


def _hashes(file: FileEvidence, catalog: Catalog, fix: Fix) -> Iterator[Finding]:
    """Only a hash that was computed can disagree with a record; bytes the catalog knows are sound whatever it says."""
    if not file.sha256 or catalog.find_by_sha256(file.sha256) or catalog.superseded(file.sha256):
        return
    there, name = file.upstream, PurePath(file.path).name
    if there is not None and there.sha256 == file.sha256:
        return
    if file.origin.sha256 and file.origin.sha256 != file.sha256:
        yield Finding(
            code="hash-mismatch",
            severity="bad",
            message=f"{name} does not hold the bytes that were downloaded: it was damaged, or changed since.",
            evidence=f"SHA-256 is {file.sha256}; {file.origin.stated_by} says {file.origin.sha256}",
            fix=fix,
        )
        return
    wanted, who = _current(file, catalog)
    if wanted and not is_first_part(file.origin.path) and wanted != file.sha256 and not file.origin.sha256:
        yield Finding(
            code="hash-mismatch",
            severity="warning",
            message=f"{name} has exactly the size of the present file and other bytes: it is damaged, or another "
            "upload of the same length.",
            evidence=f"SHA-256 is {file.sha256}; {who} says {wanted}",
            fix=fix,
        )


def _current(file: FileEvidence, catalog: Catalog) -> tuple[str, str]:
    """The SHA-256 of the present file of the same size in the same place, and who says so."""
    there = file.upstream
    if there is not None and there.sha256:
        return (there.sha256, "the Hub") if there.n_bytes == file.n_bytes else ("", "")
    found = catalog.find_file(file.origin.repo, file.origin.path)
    if found is None or found.n_bytes != file.n_bytes:
        return "", ""
    return found.sha256, f"the catalog of {catalog.date}"
