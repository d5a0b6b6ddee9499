"""Judges model files by rules, which docs/verification.md lists.

A good file must never be called bad, so a rule yields a finding only if its evidence is conclusive. Modification times,
the number of imatrix chunks, and the hash of shard 1, which quants share, prove nothing and are ignored.
"""

from qwendesk.hub.catalog import Catalog
from qwendesk.hub.evidence import Evidence
from qwendesk.hub.findings import Finding
from qwendesk.hub.verify_bytes import byte_findings
from qwendesk.hub.verify_use import use_findings
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
