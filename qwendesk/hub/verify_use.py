"""Rules about use: whether the engine can run the model, tool calls and images work, and a better file exists."""

import re
from collections.abc import Iterator
from pathlib import PurePath

from qwendesk.core.file_names import draft_mark, is_draft_name
from qwendesk.core.model_facts import ModelFacts, is_trained_to_chat
from qwendesk.hub.catalog import Catalog
from qwendesk.hub.catalog_matching import QWEN_ARCHITECTURES, UNSLOTH, current_file, model_of, unsloth_detail
from qwendesk.hub.draft_head_pairing import draft_head_mismatch
from qwendesk.hub.evidence import Evidence
from qwendesk.hub.findings import Finding, FindingFix, detail
from qwendesk.hub.gguf_types import DRAFT_ARCHITECTURES, SUPPORTED_ARCHITECTURES
from qwendesk.hub.mmproj_pairing import mmproj_mismatch, pair_mmproj

_COMMENT = re.compile(r"\{#.*?#\}", re.DOTALL)
_ARGUMENTS = r"tool_call\s*(?:\.\s*arguments|\[\s*['\"]arguments['\"]\s*\])"
_ITERATES_ARGUMENTS = re.compile(_ARGUMENTS + r"\s*\|\s*items")
_TESTS_ARGUMENTS = re.compile(_ARGUMENTS + r"\s+is\s+(?:not\s+)?(?:mapping|string)")
_TEMPLATE_PATH = "chat_template.jinja"
_OLLAMA_LIBRARY = "registry.ollama.ai/library/"
_MAX_NAMED = 3
"""How many files the details of a finding name."""


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


def is_broken_template(template: str) -> bool:
    """Return True if rendering an earlier tool call fails when its arguments are JSON text, as in OpenAI's protocol."""
    text = _COMMENT.sub("", template)
    return bool(_ITERATES_ARGUMENTS.search(text)) and not _TESTS_ARGUMENTS.search(text)


def _duplicate(evidence: Evidence) -> Iterator[Finding]:
    if evidence.same_as:
        details = (detail("sha256", source="file", sha256=evidence.files[-1].sha256),)
        values = {"names": evidence.same_as}
        yield Finding(code="duplicate", values=values, details=details, fix=FindingFix("delete_copy"))


def _unsupported_architecture(evidence: Evidence) -> Iterator[Finding]:
    facts = evidence.first_facts
    if facts is not None and facts.architecture not in SUPPORTED_ARCHITECTURES:
        yield Finding(
            code="unsupported-arch",
            case="architecture",
            values={"architecture": facts.architecture},
            details=(detail("architecture", architecture=facts.architecture),),
            fix=FindingFix("find_model"),
        )


def _ollama_blob(evidence: Evidence) -> Iterator[Finding]:
    facts, origin = evidence.first_facts, evidence.origin
    if facts is None or facts.architecture not in QWEN_ARCHITECTURES or not origin.is_ollama_blob:
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
    if facts is None or facts.architecture not in QWEN_ARCHITECTURES or evidence.origin.is_ollama_blob:
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
