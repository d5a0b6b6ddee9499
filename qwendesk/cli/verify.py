"""`qwendesk verify`: checks model files as the window does, and prints each problem with its fix."""

import argparse
import datetime
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from qwendesk.cli.models_hub import connected_hub
from qwendesk.cli.terminal import Terminal
from qwendesk.core.errors import QwenDeskError
from qwendesk.core.number_format import show_date
from qwendesk.core.translation import tr
from qwendesk.core.units import show_bytes
from qwendesk.hub.catalog import Catalog
from qwendesk.hub.catalog_updates import CatalogStore
from qwendesk.hub.file_hashes import hash_file
from qwendesk.hub.finding_texts import CHIPS, Chip
from qwendesk.hub.findings import Finding, Verdict, finding_as_json, verdict
from qwendesk.hub.header_cache import HeaderCache
from qwendesk.models.file_checker import FileChecker, FileSet, ModelCheck, file_sets_at, unreadable
from qwendesk.models.model_state import chip_of, effective_findings
from qwendesk.models.templates import TemplatesService

_EXITS: dict[Verdict, int] = {"ok": 0, "warning": 1, "bad": 2}


class FileReport(msgspec.Struct, frozen=True):
    """The check of one file or split model."""

    path: str
    n_bytes: int
    chip: Chip
    findings: tuple[Finding, ...]

    @property
    def verdict(self) -> Verdict:
        return verdict(self.findings)


def add_verify_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="a model file, or a folder of them")
    parser.add_argument("--full", action="store_true", help="also compute the SHA-256 of every file (seconds per GB)")
    parser.add_argument("--offline", action="store_true", help="don't ask Hugging Face; use the catalog only")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")


def verify_files(options: argparse.Namespace, terminal: Terminal) -> int:
    """Check the files, print the result, and return the exit status. Raises QwenDeskError for an unreadable path."""
    catalog = CatalogStore()
    checker = FileChecker(HeaderCache(), catalog)
    files = file_sets_at(options.paths)
    if options.full:
        _compute_hashes(files, checker, terminal)
    if not options.offline:
        for trouble in checker.ask(files, connected_hub):
            terminal.note(f"{trouble} {tr('Using the catalog of {0}.', show_date(catalog.catalog.date))}")
    templates = TemplatesService().repos.value
    checks = checker.check(files)[: len(files)]
    reports = [_report(each, check, templates) for each, check in zip(files, checks, strict=True)]
    if options.json:
        terminal.write_json({"files": [_as_json(report) for report in reports]})
    else:
        terminal.write(_as_text(reports, catalog.catalog))
    return max((_EXITS[report.verdict] for report in reports), default=0)


def _compute_hashes(files: Sequence[FileSet], checker: FileChecker, terminal: Terminal) -> None:
    """Hash every file that is new or has changed since it was last hashed, and remember the hashes."""
    for path in (Path(path) for each in files for path in each.paths):
        try:
            if checker.recall(path) is None:
                size = show_bytes(path.stat().st_size)
                terminal.note(tr("Computing the SHA-256 of {0} ({1})", path.name, size))
                checker.remember([(path, hash_file(path))])
        except OSError as error:
            raise unreadable(str(path), error) from error


def _report(files: FileSet, check: ModelCheck, templates: frozenset[str]) -> FileReport:
    if check.problem:
        raise QwenDeskError(tr("Can't read the file"), check.problem)
    n_bytes = sum(Path(path).stat().st_size for path in files.paths)
    return FileReport(files.path, n_bytes, chip_of(check, templates), effective_findings(check, templates))


def report_line(report: FileReport) -> str:
    """Return a line that begins with the text of the chip: "Verified: /models/a.gguf (20.5 GB)"."""
    return f"{tr(CHIPS[report.chip])}: {report.path} ({show_bytes(report.n_bytes)})"


def _as_json(report: FileReport) -> dict[str, Any]:
    return {
        "path": report.path,
        "state": report.chip,
        "verdict": report.verdict,
        "findings": [finding_as_json(finding) for finding in report.findings],
    }


def _as_text(reports: Sequence[FileReport], catalog: Catalog) -> str:
    if not reports:
        return tr("No model files found.") + "\n"
    blocks = []
    for report in reports:
        lines = [report_line(report)]
        for finding in report.findings:
            lines.append(f"  {finding.code}: {finding.message}")
            lines.append(f"    {tr('Details: {0}', finding.evidence)}")
            if finding.fix is not None:
                where = f" [{finding.fix.repo}/{finding.fix.path}]" if finding.fix.path else ""
                lines.append(f"    {tr('Fix: {0}', finding.fix.label)}{where}")
        blocks.append("\n".join(lines))
    age = catalog.age_days(datetime.datetime.now(datetime.UTC).date())
    date = tr("The catalog is from {0} ({1} days old).", show_date(catalog.date), age)
    return "\n".join(blocks) + f"\n\n{date}\n"
