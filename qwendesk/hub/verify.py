"""Judges model files by rules, which docs/verification.md lists. Those about versions are in verify_version.py.

A good file must never be called bad, so a rule yields a finding only if its evidence is conclusive. Modification times,
the number of imatrix chunks, and the hash of shard 1, which quants share, prove nothing and are ignored.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePath

from qwendesk.core.architectures import architecture_named
from qwendesk.core.file_names import Shard, draft_mark, is_draft_name, is_first_shard
from qwendesk.core.model_facts import ModelFacts, is_broken_template, is_trained_to_chat
from qwendesk.hub.catalog import Catalog
from qwendesk.hub.companion_pairing import draft_head_mismatch, mmproj_mismatch, pair_mmproj
from qwendesk.hub.evidence import (
    UNSLOTH,
    Evidence,
    FileEvidence,
    HeaderError,
    current_file,
    download_again,
    model_of,
    unsloth_detail,
)
from qwendesk.hub.finding_texts import DetailSource
from qwendesk.hub.findings import Detail, Finding, FindingFix, detail
from qwendesk.hub.gguf_types import DRAFT_ARCHITECTURES, SUPPORTED_ARCHITECTURES
from qwendesk.hub.verify_version import version_findings

_WORST_FIRST = ("bad", "warning", "info")


def verify(evidence: Evidence, catalog: Catalog) -> tuple[Finding, ...]:
    """Return the findings about one model, split or not, worst first; empty if there are none."""
    findings = [
        *byte_findings(evidence, catalog),
        *version_findings(evidence, catalog),
        *use_findings(evidence, catalog),
    ]
    return tuple(sorted(findings, key=lambda finding: _WORST_FIRST.index(finding.severity)))


# Smaller files can't be an mmproj: the smallest one of the family has 190 MB.
_MIN_MMPROJ_BYTES = 1024**2
# How many bytes may follow the last tensor: padding, and what some tools append.
_MAX_TAIL_BYTES = 4096
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
    is_model = facts.kind == "model" and architecture_named(facts.architecture).is_of_qwen35
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


_TEMPLATE_PATH = "chat_template.jinja"
_OLLAMA_LIBRARY = "registry.ollama.ai/library/"
# How many files the details of a finding name.
_MAX_NAMED = 3


def use_findings(evidence: Evidence, catalog: Catalog) -> Iterator[Finding]:
    """Yield findings about the use of the model.

    Their codes are unsupported-arch, draft-file, ollama-blob, broken-tool-template, no-template, mmproj-mismatch,
    no-mmproj, quant-not-recommended and duplicate.
    """
    yield from _duplicate(evidence)
    facts = evidence.first_facts
    if facts is None:
        return
    if facts.kind == "mmproj":
        yield from _unfitting_mmproj(evidence)
        return
    if facts.kind == "draft_head":
        yield _draft_head(evidence, facts)
        return
    if is_draft_name(evidence.name):
        details = (detail("draft-name", prefix=draft_mark(evidence.name)),)
        yield Finding(code="draft-file", details=details)
        return
    if facts.architecture in DRAFT_ARCHITECTURES:
        yield Finding(code="draft-file", details=(detail("architecture", architecture=facts.architecture),))
        return
    if facts.kind != "model":
        return
    yield from _unsupported_architecture(evidence)
    yield from _ollama_blob(evidence)
    yield from _broken_template(evidence, catalog)
    yield from _no_template(evidence, facts)
    yield from _missing_mmproj(evidence, catalog)
    yield from _better_quant(evidence, catalog)


def _draft_head(evidence: Evidence, facts: ModelFacts) -> Finding:
    models = [each for each in evidence.neighbours if not draft_head_mismatch(each, facts)]
    details = (detail("architecture", architecture=facts.architecture),)
    return Finding(code="draft-file", case="head" if models else "lone-head", details=details)


def _duplicate(evidence: Evidence) -> Iterator[Finding]:
    if evidence.same_as:
        details = (detail("sha256", source="file", sha256=evidence.files[-1].sha256),)
        values = {"names": evidence.same_as}
        yield Finding(code="duplicate", values=values, details=details, fix=FindingFix("delete_copy"))


def _unsupported_architecture(evidence: Evidence) -> Iterator[Finding]:
    facts = evidence.first_facts
    if facts is None or facts.architecture in SUPPORTED_ARCHITECTURES:
        return
    newest = evidence.engines.newest
    if not evidence.engines.engine_for(facts.architecture):
        is_known = newest is not None and facts.architecture in newest.architectures
        yield Finding(
            code="unsupported-arch",
            case="architecture" if newest is None else "newer-engine" if is_known else "no-engine",
            values={"architecture": facts.architecture, "engine": newest.tag if newest is not None else ""},
            details=(detail("architecture", architecture=facts.architecture),),
            fix=FindingFix("find_model"),
        )


def _ollama_blob(evidence: Evidence) -> Iterator[Finding]:
    facts, origin = evidence.first_facts, evidence.origin
    if facts is None or not architecture_named(facts.architecture).is_of_qwen35 or not origin.is_ollama_blob:
        return
    vision_tensor = next((tensor.name for tensor in facts.tensors if tensor.name.startswith("v.")), "")
    if origin.ollama_model.startswith(_OLLAMA_LIBRARY):
        reason = detail("ollama-manifest", manifest=origin.ollama_model)
    elif vision_tensor:
        reason = detail("vision-tensor", tensor=vision_tensor)
    else:
        return
    fix = FindingFix("find_loadable")
    yield Finding(code="ollama-blob", details=(reason,), source="Ollama's model library", fix=fix)


def _broken_template(evidence: Evidence, catalog: Catalog) -> Iterator[Finding]:
    facts = evidence.first_facts
    if facts is None or not is_broken_template(facts.chat_template):
        return
    model = model_of(evidence, catalog)
    fix = FindingFix("use_template", model.base_repo, _TEMPLATE_PATH) if model is not None else None
    yield Finding(code="broken-tool-template", details=(detail("template"),), fix=fix)


def _no_template(evidence: Evidence, facts: ModelFacts) -> Iterator[Finding]:
    if not facts.chat_template:
        is_base = not is_trained_to_chat(facts.name, PurePath(facts.path).stem)
        yield Finding(code="no-template", case="base" if is_base else "", details=(detail("no-template"),))


def _unfitting_mmproj(evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding for an mmproj that fits none of the models in its folder."""
    facts, models = evidence.facts, evidence.neighbours
    if facts is None or not models or any(pair_mmproj(model, [facts]) for model in models):
        return
    mismatch = next((found for model in models if (found := mmproj_mismatch(model, facts))), None)
    yield Finding(
        code="mmproj-mismatch",
        case="model-size" if mismatch is None else mismatch.case,
        values={"name": evidence.name} if mismatch is None else mismatch.values,
        details=(
            detail("mmproj-width", name=evidence.name, width=facts.projection_dim),
            detail("mmproj-name", model_name=facts.name),
            *(
                detail("model-width", name=PurePath(model.path).name, width=model.embedding_length)
                for model in models[:_MAX_NAMED]
            ),
        ),
        fix=FindingFix("find_matching_mmproj"),
    )


def _missing_mmproj(evidence: Evidence, catalog: Catalog) -> Iterator[Finding]:
    facts, nearby = evidence.facts, evidence.neighbours
    if facts is None or not architecture_named(facts.architecture).is_of_qwen35 or evidence.origin.is_ollama_blob:
        return
    if pair_mmproj(facts, nearby) is not None:
        return
    fix = _mmproj_fix(evidence, catalog)
    mismatches = [mismatch for each in nearby if (mismatch := mmproj_mismatch(facts, each))]
    if mismatches and len(mismatches) == len(nearby):
        yield Finding(
            code="mmproj-mismatch",
            case=mismatches[0].case,
            values=mismatches[0].values,
            details=(
                detail("model-width", name=evidence.name, width=facts.embedding_length),
                *(
                    detail("mmproj-width", name=PurePath(each.path).name, width=each.projection_dim)
                    for each in nearby[:_MAX_NAMED]
                ),
            ),
            fix=fix,
        )
    elif fix is not None:
        yield Finding(code="no-mmproj", details=(detail("mmproj-count", count=len(nearby)),), fix=fix)


def _mmproj_fix(evidence: Evidence, catalog: Catalog) -> FindingFix | None:
    """Return the fix that downloads an mmproj: from the model's own repository, or else from another of the same model.

    Return None if the model is unknown.
    """
    current, model = current_file(evidence, catalog), model_of(evidence, catalog)
    if model is None:
        return None
    same = [each for each in catalog.repositories if each.model == model.id and each.mmproj_path]
    repository = catalog.repository(evidence.origin.repo) or (current.repository if current else None)
    chosen = repository if repository is not None and repository.mmproj_path else next(iter(same), None)
    if chosen is None:
        return FindingFix("find_mmproj")
    return FindingFix("download_mmproj", chosen.mmproj_repo, chosen.mmproj_path)


def _better_quant(evidence: Evidence, catalog: Catalog) -> Iterator[Finding]:
    facts, model = evidence.facts, model_of(evidence, catalog)
    if facts is None or model is None:
        return
    uploader = evidence.origin.repo.partition("/")[0] or (UNSLOTH if unsloth_detail(evidence) else "")
    for note in catalog.notes(model.id, uploader, facts.quant):
        if note.instead and (not note.uploader or note.uploader == uploader):
            yield Finding(
                code="quant-not-recommended",
                values={"catalog_text": note.text},
                details=(detail("catalog-note", date=catalog.date, quant=facts.quant, model=model.id),),
                source=note.source,
                fix=FindingFix("find_quant", evidence.origin.repo, name=note.instead),
            )
