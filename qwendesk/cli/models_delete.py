"""`qwendesk models delete`: moves a model to the trash after a confirmation."""

import argparse
import sys
from typing import TYPE_CHECKING

from qwendesk.cli.terminal import Interrupts, Terminal
from qwendesk.core.errors import QwenDeskError
from qwendesk.core.translation import tr, tr_n
from qwendesk.core.units import show_bytes
from qwendesk.hub.model_deletion import DeletionFailure, ModelDeletion
from qwendesk.models.library_service import LibraryService

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

_EXIT_NOT_DELETED = 1


def add_command(commands: "Commands") -> None:
    parser = commands.add_parser(
        "delete",
        help="move a model to the trash",
        description="Move a model to the trash, with its vision file if no other model uses it.",
        epilog="Exit status: 0 deleted, 1 not deleted, 2 bad usage.",
    )
    parser.add_argument("model", help="the name shown by `qwendesk models list`, or the path of the file")
    parser.add_argument("--yes", action="store_true", help="don't ask for confirmation")
    parser.add_argument("--permanently", action="store_true", help="delete permanently instead of using the trash")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")
    parser.set_defaults(run=delete_model)


async def delete_model(options: argparse.Namespace, terminal: Terminal, _: Interrupts) -> int:
    """Ask for confirmation, delete, print the result, and return the exit status.

    Raises QwenDeskError if there is no terminal to ask on.
    """
    models = LibraryService()
    await models.refresh()
    deletion = models.deletion_of(models.find(options.model))
    if isinstance(deletion, DeletionFailure):
        return _refused(deletion, options, terminal)
    if not options.yes and not _is_confirmed(deletion, terminal, permanently=options.permanently):
        return _refused(DeletionFailure(tr("Nothing was deleted.")), options, terminal)
    outcome = await models.delete(deletion, permanently=options.permanently)
    if isinstance(outcome, DeletionFailure):
        return _refused(outcome, options, terminal)
    if options.json:
        files = [file.path for file in deletion.files]
        terminal.write_json({"deleted": files, "n_bytes": outcome.n_bytes, "in_trash": outcome.in_trash})
    else:
        text = tr("{0}: {1} moved to the trash.") if outcome.in_trash else tr("{0}: {1} deleted.")
        terminal.write(text.format(deletion.name, show_bytes(outcome.n_bytes)) + "\n")
    return 0


def _is_confirmed(deletion: ModelDeletion, terminal: Terminal, *, permanently: bool) -> bool:
    if not sys.stdin.isatty():
        raise QwenDeskError(tr("No terminal to ask on"), tr("Add --yes to delete without confirmation."))
    for file in deletion.files:
        terminal.note(f"  {file.path}  {show_bytes(file.n_bytes)}")
    how = tr("Permanently delete") if permanently else tr("Move to the trash")
    count = tr_n("{0} file", "{0} files", len(deletion.files))
    terminal.note(f"{how}: {count}, {show_bytes(deletion.n_bytes)}? [y/N]")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _refused(outcome: DeletionFailure, options: argparse.Namespace, terminal: Terminal) -> int:
    hint = f" {tr('Add --permanently to delete it without the trash.')}" if outcome.trash_failed else ""
    if options.json:
        terminal.write_json({"deleted": [], "error": outcome.sentence + hint})
    else:
        terminal.note(outcome.sentence + hint)
    return _EXIT_NOT_DELETED
