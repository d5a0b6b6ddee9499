"""Rules about use: can the engine run it, will tool calls and pictures work, is there something better?"""

import re
from collections.abc import Iterator
from pathlib import PurePath

from qwendesk.hub.architectures import SUPPORTED_ARCHITECTURES
from qwendesk.hub.catalog import Catalog
from qwendesk.hub.evidence import Evidence
from qwendesk.hub.findings import Finding, Fix
from qwendesk.hub.pairing import mmproj_mismatch, pair_mmproj
from qwendesk.hub.provenance import QWEN_ARCHITECTURES, UNSLOTH, current_file, model_of, unsloth_evidence

_DRAFT_NAME = re.compile(r"(?:mtp|dflash)-", re.IGNORECASE)
_DRAFT_ARCHITECTURES = ("dflash", "eagle3")
_COMMENT = re.compile(r"\{#.*?#\}", re.DOTALL)
_ARGUMENTS = r"tool_call\s*(?:\.\s*arguments|\[\s*['\"]arguments['\"]\s*\])"
_ITERATES_ARGUMENTS = re.compile(_ARGUMENTS + r"\s*\|\s*items")
_TESTS_ARGUMENTS = re.compile(_ARGUMENTS + r"\s+is\s+(?:not\s+)?(?:mapping|string)")
_TEMPLATE_PATH = "chat_template.jinja"
_OLLAMA_LIBRARY = "registry.ollama.ai/library/"


def use_findings(evidence: Evidence, catalog: Catalog) -> Iterator[Finding]:
    """unsupported-arch, draft-file, ollama-blob, broken-tool-template, mmproj-mismatch, no-mmproj,
    quant-not-recommended and duplicate."""
    yield from _duplicate(evidence)
    facts = evidence.first_facts
    if facts is None:
        return
    if facts.kind == "mmproj":
        yield from _picture_file(evidence)
        return
    if _is_draft(evidence):
        yield Finding(
            code="draft-file",
            severity="info",
            message="A helper for speculative decoding, not a model to chat with.",
            evidence=f"its name begins with {evidence.name.partition('-')[0]}-"
            if _DRAFT_NAME.match(evidence.name)
            else f"header: architecture {facts.architecture}",
        )
        return
    if facts.kind != "model":
        return
    yield from _unsupported(evidence)
    yield from _ollama(evidence)
    yield from _template(evidence, catalog)
    yield from _pictures(evidence, catalog)
    yield from _quant(evidence, catalog)


def is_broken_template(template: str) -> bool:
    """Whether rendering an earlier tool call fails when its arguments are JSON text, as the protocol has them."""
    text = _COMMENT.sub("", template)
    return bool(_ITERATES_ARGUMENTS.search(text)) and not _TESTS_ARGUMENTS.search(text)


def _is_draft(evidence: Evidence) -> bool:
    facts = evidence.first_facts
    return bool(_DRAFT_NAME.match(evidence.name)) or (facts is not None and facts.architecture in _DRAFT_ARCHITECTURES)


def _duplicate(evidence: Evidence) -> Iterator[Finding]:
    if evidence.same_as:
        others = ", ".join(evidence.same_as[:3])
        yield Finding(
            code="duplicate",
            severity="info",
            message=f"The same bytes lie here a second time: {others}. One of them can go.",
            evidence=f"SHA-256 of all is {evidence.files[-1].sha256}",
            fix=Fix("delete", "Delete this copy"),
        )


def _unsupported(evidence: Evidence) -> Iterator[Finding]:
    facts = evidence.first_facts
    if facts is not None and facts.architecture not in SUPPORTED_ARCHITECTURES:
        yield Finding(
            code="unsupported-arch",
            severity="warning",
            message=f'The engine does not know the architecture "{facts.architecture}". The file may be sound and for '
            "another program.",
            evidence=f"header: general.architecture is {facts.architecture}",
            fix=Fix("choose_other", "Choose another model"),
        )


def _ollama(evidence: Evidence) -> Iterator[Finding]:
    facts, origin = evidence.first_facts, evidence.origin
    if facts is None or facts.architecture not in QWEN_ARCHITECTURES or not origin.is_ollama_blob:
        return
    pictures_inside = next((tensor.name for tensor in facts.tensors if tensor.name.startswith("v.")), "")
    if origin.ollama_model.startswith(_OLLAMA_LIBRARY):
        reason = f"Ollama's manifest {origin.ollama_model} names it"
    elif pictures_inside:
        reason = f"header: the tensor {pictures_inside} of a picture encoder lies inside the model"
    else:
        return
    yield Finding(
        code="ollama-blob",
        severity="warning",
        message="Ollama's own Qwen3.5 files are made for Ollama alone and do not load here. "
        "Nothing is wrong with it for Ollama.",
        evidence=reason,
        source="Ollama's model library",
        fix=Fix("choose_other", "Download a file that loads here"),
    )


def _template(evidence: Evidence, catalog: Catalog) -> Iterator[Finding]:
    facts = evidence.first_facts
    if facts is None or not is_broken_template(facts.chat_template):
        return
    model = model_of(evidence, catalog)
    yield Finding(
        code="broken-tool-template",
        severity="warning",
        message="Its chat template breaks when a chat holds a tool call. QwenDesk works around it; "
        "other programs may not.",
        evidence="chat template: it goes through tool_call.arguments|items without asking whether it is a mapping",
        fix=Fix("fetch_template", f"Use the template of {model.base_repo}", model.base_repo, _TEMPLATE_PATH)
        if model is not None
        else None,
    )


def _picture_file(evidence: Evidence) -> Iterator[Finding]:
    """A picture file beside models of which it fits none."""
    facts, models = evidence.facts, evidence.neighbours
    if facts is None or not models or any(pair_mmproj(model, [facts]) for model in models):
        return
    reasons = [reason for model in models if (reason := mmproj_mismatch(model, facts))]
    yield Finding(
        code="mmproj-mismatch",
        severity="warning",
        message=reasons[0] if reasons else f"{evidence.name} belongs to a model of another size than those beside it.",
        evidence=f"header: projection width {facts.projection_dim:,}, name {facts.name or 'not given'}; "
        + ", ".join(f"{PurePath(model.path).name} needs {model.embedding_length:,}" for model in models[:3]),
        fix=Fix("fetch_mmproj", "Download the one that fits"),
    )


def _pictures(evidence: Evidence, catalog: Catalog) -> Iterator[Finding]:
    facts = evidence.facts
    if facts is None or facts.architecture not in QWEN_ARCHITECTURES or evidence.origin.is_ollama_blob:
        return
    beside = evidence.neighbours
    if pair_mmproj(facts, beside) is not None:
        return
    fix = _mmproj_fix(evidence, catalog)
    wrong = [reason for each in beside if (reason := mmproj_mismatch(facts, each))]
    if wrong and len(wrong) == len(beside):
        yield Finding(
            code="mmproj-mismatch",
            severity="warning",
            message=wrong[0],
            evidence=f"header: the model's embedding length is {facts.embedding_length:,}; "
            + ", ".join(f"{PurePath(each.path).name} gives {each.projection_dim:,}" for each in beside[:3]),
            fix=fix,
        )
    elif fix is not None:
        yield Finding(
            code="no-mmproj",
            severity="info",
            message="The model can read pictures, and its picture file (mmproj) is not beside it.",
            evidence=f"{len(beside)} picture files near it, none for this model",
            fix=fix,
        )


def _mmproj_fix(evidence: Evidence, catalog: Catalog) -> Fix | None:
    """The picture file of the model's own repository, else of any of the same model; None for unknown models."""
    found, model = current_file(evidence, catalog), model_of(evidence, catalog)
    if model is None:
        return None
    same = [each for each in catalog.repositories if each.model == model.id and each.mmproj_path]
    repository = catalog.repository(evidence.origin.repo) or (found.repository if found else None)
    chosen = repository if repository is not None and repository.mmproj_path else next(iter(same), None)
    if chosen is None:
        return Fix("fetch_mmproj", "Find its picture file")
    return Fix("fetch_mmproj", "Download its picture file", chosen.mmproj_repo, chosen.mmproj_path)


def _quant(evidence: Evidence, catalog: Catalog) -> Iterator[Finding]:
    facts, model = evidence.facts, model_of(evidence, catalog)
    if facts is None or model is None:
        return
    uploader = evidence.origin.repo.partition("/")[0] or (UNSLOTH if unsloth_evidence(evidence) else "")
    for note in catalog.notes(model.id, uploader, facts.quant):
        if note.instead and (not note.uploader or note.uploader == uploader):
            yield Finding(
                code="quant-not-recommended",
                severity="info",
                message=note.text,
                evidence=f"the catalog of {catalog.date}: {facts.quant} of {model.id}",
                source=note.source,
                fix=Fix("choose_other", f"Look at {note.instead}", evidence.origin.repo),
            )
