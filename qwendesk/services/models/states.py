"""What is said of a model in one word and one sentence, and the button that puts it right. Pure."""

from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

from qwendesk.hub.findings import Finding, FindingCode, Fix
from qwendesk.hub.library import Library, LibraryModel
from qwendesk.hub.library_places import ORIGIN_NAMES
from qwendesk.services.models.judging import ModelCheck

StateKind = Literal[
    "checking", "verified", "not_verified", "outdated", "corrupt", "missing_shard", "broken_template", "not_recommended"
]
Tone = Literal["good", "warn", "bad", "plain"]
Action = Literal["", "verify", "fix"]

_KINDS: Mapping[FindingCode, StateKind] = {
    "not-gguf": "corrupt",
    "lfs-pointer": "corrupt",
    "html-instead-of-model": "corrupt",
    "truncated": "corrupt",
    "size-mismatch": "corrupt",
    "hash-mismatch": "corrupt",
    "shard-mismatch": "corrupt",
    "too-small-mmproj": "corrupt",
    "missing-shard": "missing_shard",
    "mxfp4-attention": "outdated",
    "unsloth-before-fix": "outdated",
    "outdated-upstream": "outdated",
    "no-imatrix": "outdated",
    "deleted-upstream": "outdated",
    "broken-tool-template": "broken_template",
    "unsupported-arch": "not_recommended",
    "ollama-blob": "not_recommended",
    "mmproj-mismatch": "not_recommended",
    "quant-not-recommended": "not_recommended",
}
"""In the order of their weight; what is not here is only noted."""
_ORDER: tuple[StateKind, ...] = ("missing_shard", "corrupt", "outdated", "broken_template", "not_recommended")
_NEVER_A_STATE_ALONE = ("deleted-upstream",)
"""As information it says that nothing newer is there: the file is as good as before."""
_TONES: Mapping[StateKind, Tone] = {
    "checking": "plain",
    "verified": "good",
    "not_verified": "plain",
    "outdated": "warn",
    "corrupt": "bad",
    "missing_shard": "bad",
    "broken_template": "warn",
    "not_recommended": "warn",
}
_DOWNLOADS = ("download_again", "download_current")


class ModelState(msgspec.Struct, frozen=True, kw_only=True):
    """A model's chip, sentence and button."""

    kind: StateKind
    tone: Tone
    sentence: str
    evidence: str = ""
    action: Action = ""
    fix: Fix | None = None
    """With `action` "fix"."""
    notes: tuple[Finding, ...] = ()
    """What else there is to say; a note may have a fix of its own."""

    @property
    def is_alert(self) -> bool:
        """Worth saying before anything else: the bytes are wrong, or a repaired file is there."""
        return self.kind in ("corrupt", "missing_shard", "outdated")


def state_of(
    model: LibraryModel, library: Library, checks: Mapping[str, ModelCheck], *, templates: Iterable[str] = ()
) -> ModelState:
    """`checks` are by path; `templates` the repositories whose chat template is kept and used for a broken one."""
    check = checks.get(model.path)
    if check is None:
        return ModelState(kind="checking", tone="plain", sentence="Looking at it…")
    if check.problem:
        return ModelState(kind="not_verified", tone="plain", sentence=check.problem)
    findings = [_without_useless_fix(finding, model) for finding in check.findings]
    repaired = [each for each in findings if _has_template(each, templates)]
    findings = [each for each in findings if each not in repaired]
    main = _main(findings)
    notes = tuple(each for each in findings if each is not main)
    if main is None:
        state = _sound(model, check)
    else:
        state = _found(main, model, library, checks)
        notes = tuple(each for each in notes if not _says_the_same(each, main))
    notes += tuple(_in_use(each) for each in repaired)
    return msgspec.structs.replace(state, notes=notes)


def _main(findings: Iterable[Finding]) -> Finding | None:
    """The finding that names the state: by severity first, then by kind."""
    judged = [each for each in findings if each.code in _KINDS and not _is_aside(each)]
    weights = ("bad", "warning", "info")
    return min(judged, key=lambda each: (weights.index(each.severity), _ORDER.index(_KINDS[each.code])), default=None)


def _is_aside(finding: Finding) -> bool:
    return finding.code in _NEVER_A_STATE_ALONE and finding.severity == "info"


def _found(main: Finding, model: LibraryModel, library: Library, checks: Mapping[str, ModelCheck]) -> ModelState:
    kind = _KINDS[main.code]
    if kind == "corrupt" and main.severity != "bad":
        # It may be another sound upload: nothing that is not proven is called corrupt.
        fix = main.fix if main.code == "hash-mismatch" else None
        action: Action = "fix" if fix is not None else "verify"
        return ModelState(
            kind="not_verified", tone="warn", sentence=main.message, evidence=main.evidence, action=action, fix=fix
        )
    tone: Tone = "bad" if main.severity == "bad" else _TONES[kind]
    sentence, fix = main.message, _for_its_owner(main.fix, model)
    copy = _repaired_copy(main.fix, model, library, checks)
    if copy is not None:
        sentence = f"{sentence} The present file is in QwenDesk's folder already."
        fix = Fix("delete", "Delete this copy") if model.writable else None
    return ModelState(
        kind=kind, tone=tone, sentence=sentence, evidence=main.evidence, action="fix" if fix else "", fix=fix
    )


def _sound(model: LibraryModel, check: ModelCheck) -> ModelState:
    if check.is_confirmed:
        return ModelState(kind="verified", tone="good", sentence="Every byte is as its uploader has it.")
    if check.is_hashed:
        sentence = "Its bytes were read and add up, and nobody here knows what they should be: " + (
            "the Hub was not asked." if model.repo else "which repository it is from is not known."
        )
        return ModelState(kind="not_verified", tone="plain", sentence=sentence, action="verify" if model.repo else "")
    return ModelState(
        kind="not_verified",
        tone="plain",
        sentence="Nothing speaks against it. A full check reads every byte.",
        action="verify",
    )


def _for_its_owner(fix: Fix | None, model: LibraryModel) -> Fix | None:
    """For a file we do not write to, a download is a copy of our own beside it."""
    if fix is None or fix.kind not in _DOWNLOADS or model.origin == "ours":
        return fix
    size = fix.label[fix.label.find("(") :] if "(" in fix.label else ""
    label = " ".join(filter(None, ("Download a fixed copy", size)))
    if not model.writable:
        label = f"{label}; {ORIGIN_NAMES[model.origin]}'s stays"
    return msgspec.structs.replace(fix, label=label)


def _without_useless_fix(finding: Finding, model: LibraryModel) -> Finding:
    """Nothing of another app is offered for deletion."""
    if finding.fix is not None and finding.fix.kind == "delete" and not model.writable:
        return msgspec.structs.replace(finding, fix=None)
    return finding


def _repaired_copy(
    fix: Fix | None, model: LibraryModel, library: Library, checks: Mapping[str, ModelCheck]
) -> LibraryModel | None:
    """The file that the fix would download, where it is on this PC already, beside the bad one, and sound."""
    if fix is None or fix.kind not in _DOWNLOADS or not fix.path:
        return None
    for each in library.everything:
        is_it = (each.repo, each.repo_path, each.origin) == (fix.repo, fix.path, "ours")
        check = checks.get(each.path)
        if is_it and each.path != model.path and check is not None and not check.problem:
            main = _main(check.findings)
            if main is None or _KINDS[main.code] in ("broken_template", "not_recommended"):
                return each
    return None


def _says_the_same(finding: Finding, main: Finding) -> bool:
    """An early upload is often found by several signs, and a file that is fetched anew comes with its picture file."""
    if finding.fix is None:
        return _KINDS.get(finding.code) == _KINDS[main.code]
    is_covered = finding.fix.kind in _DOWNLOADS or finding.code == "no-mmproj"
    return is_covered and main.fix is not None and main.fix.kind in _DOWNLOADS


def _has_template(finding: Finding, templates: Iterable[str]) -> bool:
    return finding.code == "broken-tool-template" and finding.fix is not None and finding.fix.repo in templates


def _in_use(finding: Finding) -> Finding:
    repo = finding.fix.repo if finding.fix is not None else ""
    return msgspec.structs.replace(
        finding,
        severity="info",
        message=f"Its own chat template is broken; it is loaded with that of {repo}.",
        fix=None,
    )
