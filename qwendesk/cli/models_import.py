"""`qwendesk models import`: brings a model file into a folder of ours, by a verified copy or a move."""

import argparse
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from qwendesk.cli.terminal import Interrupts, Terminal
from qwendesk.core.units import show_bytes
from qwendesk.hub.importing import NotImported
from qwendesk.services.models.service import ModelsService

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

_EXIT_NOT_IMPORTED = 1
_STEP_PERCENT = 10


def add_command(commands: "Commands") -> None:
    parser = commands.add_parser(
        "import",
        help="bring a model file into the models folder",
        description="Copy a model, all its parts and its picture file into the models folder, verified by SHA-256. "
        "Files of other apps are used in place too; import one to have a copy of your own.",
        epilog="Exit status: 0 imported, 1 not imported (nothing was changed), 2 bad usage.",
    )
    parser.add_argument("path", type=Path, help="a GGUF file, or the first part of a split model")
    parser.add_argument("--move", action="store_true", help="move it instead: at once on the same drive")
    parser.add_argument("--to", type=Path, metavar="FOLDER", help="another models folder than the first")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")
    parser.set_defaults(run=import_model)


async def import_model(options: argparse.Namespace, terminal: Terminal, interrupts: Interrupts) -> int:
    """Imports, prints, and returns the exit status. Ctrl-C undoes what was begun."""
    stop = threading.Event()
    interrupts.on_request(stop.set)
    outcome = await ModelsService().import_model(
        options.path,
        "move" if options.move else "copy",
        options.to.absolute() if options.to else None,
        cancelled=stop.is_set,
        progress=_Progress(terminal).show,
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
    terminal.note(f"{show_bytes(outcome.n_bytes)} imported.")
    for path in outcome.left_behind:
        terminal.note(f"{path} could not be deleted after its copy was in place.")
    return 0


class _Progress:
    """A note at every tenth."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._told = 0

    def show(self, done: int, total: int) -> None:
        percent = 100 * done // total
        if percent >= self._told + _STEP_PERCENT:
            self._told = percent - percent % _STEP_PERCENT
            self._terminal.note(f"Copying and verifying: {self._told}% of {show_bytes(total // 2)}")
