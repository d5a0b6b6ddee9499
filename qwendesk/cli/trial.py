"""`qwendesk trial`: measures every engine on this PC and writes a report that the user can send."""

import argparse
import sys
from pathlib import Path

from qwendesk.bench.bench_runs import BenchRuns
from qwendesk.bench.pc_report import make_report_folder, report_page, save_report
from qwendesk.bench.pc_trial import MOST_MODELS, PcTrial, PcTrialState
from qwendesk.cli.terminal import Interrupts, Terminal, is_agreed
from qwendesk.core.errors import QwenDeskError
from qwendesk.core.translation import tr
from qwendesk.models.library_service import LibraryService
from qwendesk.settings.service import SettingsService

EXIT_SAVED, EXIT_NOT_SAVED = 0, 1


def add_trial_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--out", metavar="FOLDER", type=Path, default=Path(), help="where to save the report (default: this folder)")
    add("--yes", action="store_true", help="save the report without asking")
    add(
        "--models",
        metavar="N",
        type=int,
        choices=range(MOST_MODELS + 1),
        default=MOST_MODELS,
        help=f"how many of your own models to measure, from 0 to {MOST_MODELS} (default: {MOST_MODELS})",
    )


async def trial(options: argparse.Namespace, terminal: Terminal, interrupts: Interrupts) -> int:
    """Run the trial, print the page, save the report if the user wants that, and return the exit status.

    Raises QwenDeskError if there is no terminal to ask on, or if the folder can't be written.
    """
    if not options.yes and not sys.stdin.isatty():
        raise QwenDeskError(tr("No terminal to ask on"), tr("Add --yes to save the report without asking."))
    folder = options.out.absolute()
    make_report_folder(folder)
    pc_trial = build_pc_trial()
    terminal.note(
        tr("This takes up to ten minutes. Close games and other programs that use the GPU. Ctrl+C stops early.")
    )
    interrupts.on_request(pc_trial.stop)
    n_shown = 0

    def show(state: PcTrialState) -> None:
        nonlocal n_shown
        for line in state.lines[n_shown:]:
            terminal.note(line)
        n_shown = len(state.lines)

    pc_trial.state.subscribe(show)
    await pc_trial.run(options.models)
    interrupts.stop_is_over()
    report = pc_trial.state.value.report
    if report is None:
        return EXIT_NOT_SAVED  # it was stopped before the first step
    terminal.write(report_page(report))
    if not options.yes and not is_agreed(tr("Save this page and the same as JSON? Nothing is sent. [y/N]"), terminal):
        terminal.note(tr("Nothing was saved."))
        return EXIT_NOT_SAVED
    path, page = save_report(report, folder)
    terminal.note(tr("Saved {0} and {1}. To help, send the first one.", path, page))
    return EXIT_SAVED


def build_pc_trial() -> PcTrial:
    """Return a trial of this PC's engines and models."""
    return PcTrial(BenchRuns(), LibraryService().largest_first, app=SettingsService().state)
