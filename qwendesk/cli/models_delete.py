"""`qwendesk models delete`: says what goes and how much it is, asks, and uses the system's trash."""

import argparse
import sys
from typing import TYPE_CHECKING

from qwendesk.cli.terminal import Interrupts, Terminal
from qwendesk.core.errors import QwenDeskError
from qwendesk.core.units import show_bytes
from qwendesk.hub.deleting import Deletion, NotDeleted
from qwendesk.services.models.service import ModelsService

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

_EXIT_NOT_DELETED = 1


def add_command(commands: "Commands") -> None:
    parser = commands.add_parser(
        "delete",
        help="move a model to the trash",
        description="Move a model, and its picture file if nothing else uses it, to the trash.",
        epilog="Exit status: 0 deleted, 1 not deleted, 2 bad usage.",
    )
    parser.add_argument("model", help="its name in `qwendesk models list`, or the path of its file")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument("--permanently", action="store_true", help="delete for good instead of using the trash")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")
    parser.set_defaults(run=delete_model)


async def delete_model(options: argparse.Namespace, terminal: Terminal, _: Interrupts) -> int:
    """Asks, deletes, prints, and returns the exit status. Raises QwenDeskError when it cannot ask."""
    models = ModelsService()
    await models.refresh()
    deletion = models.deletion_of(models.find(options.model))
    if isinstance(deletion, NotDeleted):
        return _refused(deletion, options, terminal)
    if not options.yes and not _agreed(deletion, terminal, permanently=options.permanently):
        return _refused(NotDeleted("Nothing was deleted."), options, terminal)
    outcome = await models.delete(deletion, permanently=options.permanently)
    if isinstance(outcome, NotDeleted):
        return _refused(outcome, options, terminal)
    where = "moved to the trash" if outcome.in_trash else "deleted"
    if options.json:
        files = [file.path for file in deletion.files]
        terminal.write_json({"deleted": files, "n_bytes": outcome.n_bytes, "in_trash": outcome.in_trash})
    else:
        terminal.write(f"{deletion.name}: {show_bytes(outcome.n_bytes)} {where}.\n")
    return 0


def _agreed(deletion: Deletion, terminal: Terminal, *, permanently: bool) -> bool:
    if not sys.stdin.isatty():
        raise QwenDeskError("Nobody to ask", "Add --yes to delete without being asked.")
    for file in deletion.files:
        terminal.note(f"  {file.path}  {show_bytes(file.n_bytes)}")
    how = "Delete for good" if permanently else "Move to the trash"
    terminal.note(f"{how}: {len(deletion.files)} file(s), {show_bytes(deletion.n_bytes)}? [y/N]")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _refused(outcome: NotDeleted, options: argparse.Namespace, terminal: Terminal) -> int:
    hint = " Add --permanently to delete it for good." if outcome.trash_failed else ""
    if options.json:
        terminal.write_json({"deleted": [], "error": outcome.sentence + hint})
    else:
        terminal.note(outcome.sentence + hint)
    return _EXIT_NOT_DELETED
