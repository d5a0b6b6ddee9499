"""Saves a report as two files in a folder that the user chose."""

from pathlib import Path

from qwendesk.core.errors import QwenDeskError
from qwendesk.core.files import write_whole
from qwendesk.core.permissions import make_folder
from qwendesk.core.translation import tr
from qwendesk.engines.pc_trial.page import report_page
from qwendesk.engines.pc_trial.report import PcTrialReport, to_json


def make_report_folder(folder: Path) -> None:
    """Create the folder if it doesn't exist. Raises QwenDeskError."""
    try:
        make_folder(folder)
    except OSError as error:
        raise _not_saved(folder, error) from error


def save_report(report: PcTrialReport, folder: Path) -> tuple[Path, Path]:
    """Write the JSON file and the page, and return their paths. Existing reports stay. Raises QwenDeskError."""
    try:
        path = _free_path(folder, f"qwendesk-trial-{report.date}")
        page = path.with_suffix(".md")
        write_whole(path, to_json(report))
        write_whole(page, report_page(report).encode())
    except OSError as error:
        raise _not_saved(folder, error) from error
    return path, page


def _free_path(folder: Path, name: str) -> Path:
    """Return the path of a JSON file that doesn't exist, nor its page: with a number if needed."""
    number = 1
    while True:
        path = folder / (f"{name}.json" if number == 1 else f"{name}-{number}.json")
        if not path.exists() and not path.with_suffix(".md").exists():
            return path
        number += 1


def _not_saved(folder: Path, error: OSError) -> QwenDeskError:
    sentence = tr("{0} could not be written: {1}. Choose another folder.", folder, error.strerror or error)
    return QwenDeskError(tr("Report not saved"), sentence)
