"""The state of a model file: its chip, its sentence, its button, and notes. Pure rules over the findings of a check."""

from collections.abc import Collection, Iterable, Mapping
from typing import Literal

import msgspec

from qwendesk.core.translation import tr
from qwendesk.hub.finding_texts import Chip
from qwendesk.hub.findings import Finding, FindingFix
from qwendesk.hub.library import Library, LibraryModel
from qwendesk.hub.library_places import ORIGIN_NAMES
from qwendesk.models.file_checker import ModelCheck

Tone = Literal["good", "warn", "bad", "plain"]
Action = Literal["", "verify", "fix"]

# By weight, among findings of the same severity.
_ORDER: tuple[Chip, ...] = (
    "missing_shard",
    "corrupt",
    "not_verified",
    "outdated",
    "broken_template",
    "not_recommended",
)
_SEVERITIES = ("bad", "warning", "info")
_TONES: Mapping[Chip, Tone] = {
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

    kind: Chip
    tone: Tone
    sentence: str
    evidence: str = ""
    action: Action = ""
    fix: FindingFix | None = None
    """Set if `action` is "fix"."""
    notes: tuple[Finding, ...] = ()
    """The other findings, which may have fixes of their own."""

    @property
    def is_alert(self) -> bool:
        """Whether the file is damaged or incomplete, or a newer one is available."""
        return self.kind in ("corrupt", "missing_shard", "outdated")


def state_of(
    model: LibraryModel, library: Library, checks: Mapping[str, ModelCheck], *, templates: Collection[str] = ()
) -> ModelState:
    """Return the state of `model`.

    `checks` has the checks of all models by path, `templates` the base repositories whose chat template is saved.
    """
    check = checks.get(model.path)
    if check is None:
        return ModelState(kind="checking", tone="plain", sentence=tr("Checking this file…"))
    chip = chip_of(check, templates)
    if check.problem:
        return ModelState(kind=chip, tone="plain", sentence=check.problem)
    findings = [_without_useless_fix(finding, model) for finding in effective_findings(check, templates)]
    main = main_finding(findings)
    notes = tuple(each for each in findings if each is not main)
    if main is None:
        state = _without_findings(chip, model, check)
    else:
        state = _with_finding(main, chip, model, library, checks)
        notes = tuple(each for each in notes if not _is_covered(each, main))
    return msgspec.structs.replace(state, notes=notes)


def chip_of(check: ModelCheck, templates: Collection[str]) -> Chip:
    """Return the one word that the window and the command line say about a file."""
    main = main_finding(effective_findings(check, templates))
    if main is not None and main.chip is not None:
        return main.chip
    return "verified" if check.is_confirmed else "not_verified"


def effective_findings(check: ModelCheck, templates: Collection[str]) -> tuple[Finding, ...]:
    """Return the findings. If a replacement of a broken chat template is saved, that finding becomes the last note."""
    replaced = [each for each in check.findings if _is_replaced(each, templates)]
    others = (each for each in check.findings if each not in replaced)
    return (*others, *(_as_replaced(each) for each in replaced))


def main_finding(findings: Iterable[Finding]) -> Finding | None:
    """Return the finding that decides the chip: by severity first, then by chip; None if there are only notes."""
    judged = [(each.chip, each) for each in findings if each.chip is not None]
    weights = [(_SEVERITIES.index(each.severity), _ORDER.index(chip), at) for at, (chip, each) in enumerate(judged)]
    return judged[min(weights)[-1]][1] if judged else None


def _with_finding(
    main: Finding, chip: Chip, model: LibraryModel, library: Library, checks: Mapping[str, ModelCheck]
) -> ModelState:
    if chip == "not_verified":
        # The file may be another, intact upload. It is called corrupt only if that is proven.
        fix = main.fix if main.code == "hash-mismatch" else None
        action: Action = "fix" if fix is not None else "verify"
        return ModelState(kind=chip, tone="warn", sentence=main.message, evidence=main.evidence, action=action, fix=fix)
    tone: Tone = "bad" if main.severity == "bad" else _TONES[chip]
    sentence, fix = main.message, main.fix
    if fix is not None and fix.kind in _DOWNLOADS and model.origin != "ours":
        # The file of another app isn't replaced; a copy is downloaded into a models folder.
        fix = msgspec.structs.replace(fix, code="download_copy")
        if not model.writable:
            sentence = tr("{0} The file of {1} won't be changed.", sentence, tr(ORIGIN_NAMES[model.origin]))
    copy = _repaired_copy(main.fix, model, library, checks)
    if copy is not None:
        sentence = tr("{0} The current file is already in QwenDesk's folder.", main.message)
        fix = FindingFix("delete_copy") if model.writable else None
    return ModelState(
        kind=chip, tone=tone, sentence=sentence, evidence=main.evidence, action="fix" if fix else "", fix=fix
    )


def _without_findings(chip: Chip, model: LibraryModel, check: ModelCheck) -> ModelState:
    if check.is_confirmed:
        sentence = tr("The file is whole: every byte matches what the uploader published.")
        return ModelState(kind=chip, tone="good", sentence=sentence)
    if not check.is_hashed:
        sentence = tr("No problems found. Verify checks the whole file.")
        return ModelState(kind=chip, tone="plain", sentence=sentence, action="verify")
    if model.repo:
        sentence = tr("The file is whole, but Hugging Face wasn't asked what it should contain.")
        return ModelState(kind=chip, tone="plain", sentence=sentence, action="verify")
    sentence = tr("The file is whole. Its source is unknown, so it can't be compared with the original.")
    return ModelState(kind=chip, tone="plain", sentence=sentence)


def _without_useless_fix(finding: Finding, model: LibraryModel) -> Finding:
    """Drop a fix that would delete a file that QwenDesk must not change."""
    if finding.fix is not None and finding.fix.kind == "delete" and not model.writable:
        return msgspec.structs.replace(finding, fix=None)
    return finding


def _repaired_copy(
    fix: FindingFix | None, model: LibraryModel, library: Library, checks: Mapping[str, ModelCheck]
) -> LibraryModel | None:
    """Return the file that the fix would download if an intact one is in a models folder already."""
    if fix is None or fix.kind not in _DOWNLOADS or not fix.path:
        return None
    for each in library.everything:
        is_it = (each.repo, each.repo_path, each.origin) == (fix.repo, fix.path, "ours")
        check = checks.get(each.path)
        if is_it and each.path != model.path and check is not None and not check.problem:
            main = main_finding(check.findings)
            if main is None or main.chip in ("broken_template", "not_recommended"):
                return each
    return None


def _is_covered(finding: Finding, main: Finding) -> bool:
    """Return whether `main` says the same, or its fix also fixes `finding`.

    Several findings may point to the same outdated upload, and a new download includes the vision projector.
    """
    if finding.fix is None:
        return finding.chip == main.chip
    is_covered = finding.fix.kind in _DOWNLOADS or finding.code == "no-mmproj"
    return is_covered and main.fix is not None and main.fix.kind in _DOWNLOADS


def _is_replaced(finding: Finding, templates: Collection[str]) -> bool:
    return finding.code == "broken-tool-template" and finding.fix is not None and finding.fix.repo in templates


def _as_replaced(finding: Finding) -> Finding:
    repo = finding.fix.repo if finding.fix is not None else ""
    return msgspec.structs.replace(finding, case="replaced", values={"repo": repo}, fix=None)
