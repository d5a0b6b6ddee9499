"""What verification says of a file."""

from collections.abc import Iterable
from typing import Literal

import msgspec

FindingCode = Literal[
    "not-gguf",
    "lfs-pointer",
    "html-instead-of-model",
    "truncated",
    "size-mismatch",
    "hash-mismatch",
    "missing-shard",
    "shard-mismatch",
    "too-small-mmproj",
    "mmproj-mismatch",
    "no-mmproj",
    "unsupported-arch",
    "draft-file",
    "ollama-blob",
    "outdated-upstream",
    "unsloth-before-fix",
    "mxfp4-attention",
    "broken-tool-template",
    "no-imatrix",
    "quant-not-recommended",
    "deleted-upstream",
    "duplicate",
]
Severity = Literal["info", "warning", "bad"]
"""bad: the bytes are wrong or incomplete, or known to give wrong answers. warning: sound, but outdated, or not to be
used as one would expect. info: good to know."""
Verdict = Literal["ok", "warning", "bad"]
FixKind = Literal["download_again", "download_current", "fetch_mmproj", "fetch_template", "delete", "choose_other"]


class Fix(msgspec.Struct, frozen=True):
    """One click that helps. `repo` and `path` say what on the Hub, where that is known."""

    kind: FixKind
    label: str
    repo: str = ""
    path: str = ""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to say about a file."""

    code: FindingCode
    severity: Severity
    message: str
    """A plain sentence or two."""
    evidence: str
    """What decided it: the field, hash, size or date that was seen."""
    source: str = ""
    """Who says so, where it is not the file itself."""
    fix: Fix | None = None


def verdict(findings: Iterable[Finding]) -> Verdict:
    """The worst of the findings; information alone is "ok"."""
    severities = {finding.severity for finding in findings}
    if "bad" in severities:
        return "bad"
    return "warning" if "warning" in severities else "ok"
