"""`qwendesk models import`: copies or moves a model into a models folder and verifies it."""

import argparse
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from qwendesk.cli.terminal import Interrupts, Terminal
from qwendesk.core.translation import tr
from qwendesk.core.units import show_bytes
from qwendesk.hub.model_import import NotImported
from qwendesk.models.library_service import LibraryService

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

_EXIT_NOT_IMPORTED = 1
_STEP_PERCENT = 10


def add_command(commands: "Commands") -> None:
    parser = commands.add_parser(
        "import",
        help="copy or move a model into the models folder",
        description="Copy a model with all its shards and its vision file into the models folder, and verify the copy. "
        "Models of other apps are also used in place; import one to have your own copy.",
        epilog="Exit status: 0 imported, 1 not imported (nothing was changed), 2 bad usage.",
    )
    parser.add_argument("path", type=Path, help="a GGUF file, or the first shard of a split model")
    parser.add_argument("--move", action="store_true", help="move the files instead of copying them")
    parser.add_argument(
        "--to", type=Path, metavar="FOLDER", help="the folder to import to (default: the first models folder)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")
    parser.set_defaults(run=import_model)


async def import_model(options: argparse.Namespace, terminal: Terminal, interrupts: Interrupts) -> int:
    """Import, print the paths, and return the exit status. Ctrl+C undoes the import."""
    stop = threading.Event()
    interrupts.on_request(stop.set)
    outcome = await LibraryService().import_model(
        options.path,
        "move" if options.move else "copy",
        options.to.absolute() if options.to else None,
        cancelled=stop.is_set,
        progress=_ImportProgress(terminal).show,
    )
    if isinstance(outcome, NotImported):
        if options.json:
            terminal.write_json({"imported": [], "error": outcome.sentence})
        else:
            terminal.note(outcome.sentence)
        return _EXIT_NOT_IMPORTED
    if options.json:
        hashes = dict(zip(outcome.files, outcome.sha256, strict=True))
        files = [{"path": path, "sha256": sha256} for path, sha256 in hashes.items()]
        terminal.write_json({"imported": files, "n_bytes": outcome.n_bytes, "left_behind": list(outcome.left_behind)})
        return 0
    for path in outcome.files:
        terminal.write(f"{path}\n")
    terminal.note(tr("{0} imported.", show_bytes(outcome.n_bytes)))
    for path in outcome.left_behind:
        terminal.note(tr("Couldn't delete the original: {0}", path))
    return 0


class _ImportProgress:
    """Prints a note for every 10%."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._told = 0

    def show(self, done: int, total: int) -> None:
        percent = 100 * done // total
        if percent >= self._told + _STEP_PERCENT:
            self._told = percent - percent % _STEP_PERCENT
            self._terminal.note(tr("Copying and verifying: {0}% of {1}", self._told, show_bytes(total // 2)))
