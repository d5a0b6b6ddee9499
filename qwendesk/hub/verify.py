"""Is this file what it should be? Pure rules over evidence gathered before; docs/verification.md lists them.

A rule speaks only when its evidence decides: a good file must never be called bad. Nothing is judged by modification
time, by a number of imatrix chunks, or by the hash of shard 1 of a split set, which quants share.
"""

from qwendesk.hub.catalog import Catalog
from qwendesk.hub.evidence import Evidence
from qwendesk.hub.findings import Finding, FindingCode, Fix, Verdict, verdict
from qwendesk.hub.verify_bytes import byte_findings
from qwendesk.hub.verify_use import use_findings
from qwendesk.hub.verify_version import version_findings

__all__ = ["Finding", "FindingCode", "Fix", "Verdict", "verdict", "verify"]

_WORST_FIRST = ("bad", "warning", "info")


def verify(evidence: Evidence, catalog: Catalog) -> tuple[Finding, ...]:
    """All there is to say about one file or split set, the worst first; empty for a file with nothing to say about."""
    findings = [
        *byte_findings(evidence, catalog),
        *version_findings(evidence, catalog),
        *use_findings(evidence, catalog),
    ]
    return tuple(sorted(findings, key=lambda finding: _WORST_FIRST.index(finding.severity)))
