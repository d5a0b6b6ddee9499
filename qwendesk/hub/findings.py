"""Findings of a check of a model file, as codes with values. `finding_texts` has their texts."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import msgspec

from qwendesk.hub.finding_texts import (
    DETAILS,
    FINDINGS,
    FIXES,
    Chip,
    DetailCode,
    FindingCode,
    FixCode,
    FixKind,
    Severity,
    Value,
    fill,
)

Verdict = Literal["ok", "warning", "bad"]


class Detail(msgspec.Struct, frozen=True):
    """One fact that decided a finding: a field, hash, size or date."""

    code: DetailCode
    values: Mapping[str, Value] = {}

    @property
    def text(self) -> str:
        return fill(DETAILS[self.code], self.values)


def detail(code: DetailCode, **values: Value) -> Detail:
    return Detail(code, values)


class FindingFix(msgspec.Struct, frozen=True):
    """A fix that the user can apply with one click. `repo` and `path` name the file on the Hub, if that is known."""

    code: FixCode
    repo: str = ""
    path: str = ""
    n_bytes: int = 0
    """Size of the download; 0 if unknown."""
    name: str = ""
    """The file or quant that the label mentions."""

    @property
    def kind(self) -> FixKind:
        return FIXES[self.code].kind

    @property
    def label(self) -> str:
        text = FIXES[self.code]
        label = text.label_with_size if self.n_bytes and text.label_with_size else text.label
        return fill(label, {"repo": self.repo, "size": self.n_bytes, "name": self.name})


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that a check says about a model file."""

    code: FindingCode
    case: str = ""
    """The situation, if `finding_texts.FINDINGS` distinguishes several for the code."""
    values: Mapping[str, Value] = {}
    """Values that the message contains, by name."""
    details: tuple[Detail, ...] = ()
    source: str = ""
    """Source of the statement, if it isn't the file itself."""
    fix: FindingFix | None = None

    @property
    def severity(self) -> Severity:
        return FINDINGS[self.code, self.case].severity

    @property
    def chip(self) -> Chip | None:
        """The chip that the finding gives the file; None if it is only a note."""
        return FINDINGS[self.code, self.case].chip

    @property
    def message(self) -> str:
        """The message for users, in a sentence or two."""
        return fill(FINDINGS[self.code, self.case].message, self.values)

    @property
    def evidence(self) -> str:
        """The details that decided the finding, for a tooltip or a line of details."""
        return "; ".join(each.text for each in self.details)


def verdict(findings: Iterable[Finding]) -> Verdict:
    """Return the worst severity of the findings; "ok" if there is none worse than "info"."""
    severities = {finding.severity for finding in findings}
    if "bad" in severities:
        return "bad"
    return "warning" if "warning" in severities else "ok"


def finding_as_json(finding: Finding) -> dict[str, Any]:
    """Return a finding as a JSON object for other programs."""
    fix = finding.fix
    return {
        "code": finding.code,
        "severity": finding.severity,
        "message": finding.message,
        "fix": None if fix is None else {"kind": fix.kind, "label": fix.label, "repo": fix.repo, "path": fix.path},
        "evidence": finding.evidence,
    }
