"""`qwendesk verify`: whether model files are what they should be, and what helps if they are not."""

import argparse
import datetime
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from qwendesk.cli.models_hub import connected_hub
from qwendesk.cli.terminal import Terminal
from qwendesk.core import paths
from qwendesk.core.errors import QwenDeskError
from qwendesk.core.units import show_bytes
from qwendesk.hub.catalog import Catalog
from qwendesk.hub.catalog_updates import joined, load_updated_catalog, read_updates, update_of, updated, write_updates
from qwendesk.hub.evidence import Evidence, gather_all, model_files, with_duplicates, with_hashes
from qwendesk.hub.findings import Finding, Verdict, verdict
from qwendesk.hub.hashing import HashMemory
from qwendesk.hub.verify import verify

if TYPE_CHECKING:
    from qwendesk.hub.remote import RemoteFile

_EXITS: dict[Verdict, int] = {"ok": 0, "warning": 1, "bad": 2}
_WORDS: dict[Verdict, str] = {"ok": "ok     ", "warning": "WARNING", "bad": "BAD    "}
_HASH_FILE = "hashes.json"


class FileReport(msgspec.Struct, frozen=True):
    """The verdict on one file or split set; `path` is its first part that is there."""

    path: str
    n_bytes: int
    verdict: Verdict
    findings: tuple[Finding, ...]


def add_verify_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="a model file, or a folder of them")
    parser.add_argument("--full", action="store_true", help="compute the SHA-256 of every file too (seconds per GB)")
    parser.add_argument("--offline", action="store_true", help="make no connection: judge by files and catalog alone")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")


def verify_files(options: argparse.Namespace, terminal: Terminal) -> int:
    """Verifies, prints, and returns the exit status. Raises QwenDeskError for a path that cannot be read."""
    catalog = load_updated_catalog()
    everything = _gathered(options.paths)
    if options.full:
        everything = with_duplicates(_hashed(everything, terminal))
    if not options.offline:
        everything, catalog = _asked(everything, catalog, terminal)
    reports = [_report(evidence, catalog) for evidence in everything]
    if options.json:
        terminal.write_json({"files": [_as_json(report) for report in reports]})
    else:
        terminal.write(_as_text(reports, catalog))
    return max((_EXITS[report.verdict] for report in reports), default=0)


def _gathered(wanted: Sequence[Path]) -> list[Evidence]:
    try:
        for path in wanted:
            path.stat()
        return gather_all(file for path in wanted for file in model_files(path))
    except OSError as error:
        raise _unreadable(error) from error


def _hashed(everything: Sequence[Evidence], terminal: Terminal) -> list[Evidence]:
    memory = HashMemory(paths.cache_folder() / _HASH_FILE)

    def hash_of(path: Path) -> str:
        if memory.recall(path) is None:
            terminal.note(f"Computing the SHA-256 of {path.name} ({show_bytes(path.stat().st_size)})")
        return memory.hash_file(path)

    try:
        return [with_hashes(evidence, hash_of) for evidence in everything]
    except OSError as error:
        raise _unreadable(error) from error
    finally:
        _save(memory, terminal)


def _asked(everything: list[Evidence], catalog: Catalog, terminal: Terminal) -> tuple[list[Evidence], Catalog]:
    """Both with what the Hub says; what it does not say is noted, and judged by the catalog as it is."""
    if not any(evidence.origin.repo for evidence in everything):
        return everything, catalog
    # The Hub's library takes half a second to import, which --offline need not wait for.
    from qwendesk.hub.asking import ask_hub

    asked = ask_hub(everything, connected_hub(), catalog)
    for trouble in asked.troubles:
        terminal.note(f"{trouble} Judged by the catalog of {catalog.date}.")
    return list(asked.everything), _learnt(asked.files, catalog, terminal)


def _learnt(files: "Mapping[str, tuple[RemoteFile, ...]]", catalog: Catalog, terminal: Terminal) -> Catalog:
    """The catalog with what the Hub just said, which is remembered."""
    today = _today().isoformat()
    fresh = {repo: update_of(found, today) for repo, found in files.items() if catalog.repository(repo) is not None}
    updates = joined(read_updates(), fresh)
    try:
        write_updates(updates)
    except OSError as error:
        terminal.note(f"What the Hub says cannot be remembered: {error.strerror or error}.")
    return updated(catalog, updates)


def _save(memory: HashMemory, terminal: Terminal) -> None:
    try:
        memory.save()
    except OSError as error:
        terminal.note(f"The hashes cannot be remembered for the next time: {error.strerror or error}.")


def _unreadable(error: OSError) -> QwenDeskError:
    sentence = f"{error.filename or 'A file'} cannot be read: {error.strerror or error}."
    return QwenDeskError("File not readable", sentence)


def _report(evidence: Evidence, catalog: Catalog) -> FileReport:
    findings = verify(evidence, catalog)
    return FileReport(evidence.path, evidence.n_bytes, verdict(findings), findings)


def _as_json(report: FileReport) -> dict[str, Any]:
    return {
        "path": report.path,
        "verdict": report.verdict,
        "findings": [
            {
                "code": finding.code,
                "severity": finding.severity,
                "message": finding.message,
                "fix": msgspec.to_builtins(finding.fix),
                "evidence": finding.evidence,
            }
            for finding in report.findings
        ],
    }


def _as_text(reports: Sequence[FileReport], catalog: Catalog) -> str:
    if not reports:
        return "No model files there.\n"
    blocks = []
    for report in reports:
        lines = [f"{_WORDS[report.verdict]}  {report.path}  ({show_bytes(report.n_bytes)})"]
        for finding in report.findings:
            lines.append(f"  {finding.code}: {finding.message}")
            lines.append(f"    seen: {finding.evidence}")
            if finding.fix is not None:
                where = f" [{finding.fix.repo}/{finding.fix.path}]" if finding.fix.path else ""
                lines.append(f"    fix:  {finding.fix.label}{where}")
        blocks.append("\n".join(lines))
    age = catalog.age_days(_today())
    return "\n".join(blocks) + f"\n\nThe catalog is of {catalog.date}, {age} days old.\n"


def _today() -> datetime.date:
    return datetime.datetime.now(datetime.UTC).date()
