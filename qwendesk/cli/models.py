"""`qwendesk models`: the commands list, delete and import, and its subcommands for the Hub."""

import argparse
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qwendesk.cli.models_hub import add_get, add_info, add_new, add_search
from qwendesk.cli.terminal import Interrupts, Terminal
from qwendesk.core.errors import QwenDeskError
from qwendesk.core.translation import tr, tr_n
from qwendesk.core.units import show_bytes
from qwendesk.hub.library import Library, LibraryModel
from qwendesk.hub.library_places import ORIGIN_NAMES
from qwendesk.hub.model_deletion import DeletionFailure, ModelDeletion
from qwendesk.hub.model_import import NotImported
from qwendesk.models.library_service import LibraryService

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]


def add_models_commands(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands. Each sets the argument `run` to a coroutine function.

    The function takes options, terminal and interrupts, and returns the exit status.
    """
    commands = parser.add_subparsers(dest="models_command", required=True, metavar="COMMAND")
    for add in (add_list, add_search, add_new, add_info, add_get, add_import, add_delete):
        add(commands)


def add_list(commands: "Commands") -> None:
    parser = commands.add_parser(
        "list",
        help="list the models on this PC",
        description="List the models in your folders and in those of LM Studio, Ollama, Open WebUI, Jan, llama.cpp "
        "and the Hugging Face cache.",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")
    parser.set_defaults(run=list_models)


async def list_models(options: argparse.Namespace, terminal: Terminal, _: Interrupts) -> int:
    """Scan the folders, print the list, and return the exit status."""
    models = LibraryService()
    library = await models.refresh()
    if options.json:
        terminal.write_json(as_json(library))
    else:
        terminal.write(as_text(library, models.folders.models[0]))
    return 0


def as_json(library: Library) -> dict[str, Any]:
    return {
        "models": [_model_as_json(model) for model in library.models],
        "mmprojs": [_model_as_json(model) for model in library.mmprojs],
        "others": [_model_as_json(model) for model in library.others],
        "unreadable": list(library.unreadable),
    }


def _model_as_json(model: LibraryModel) -> dict[str, Any]:
    facts = model.facts
    return {
        "name": model.name,
        "path": model.path,
        "files": [file.path for file in model.files],
        "n_bytes": model.n_bytes,
        "origin": model.origin,
        "repo": model.repo,
        "architecture": facts.architecture if facts else "",
        "quant": facts.quant if facts else "",
        "context_length": facts.context_length if facts else 0,
        "mmproj": model.mmproj.path if model.mmproj else "",
        "missing": list(model.missing),
        "problem": model.problem,
        "writable": model.writable,
    }


def as_text(library: Library, models_folder: str) -> str:
    if not library.everything:
        return tr("There are no models yet. Downloads go to {0}", models_folder) + "\n"
    paired = {model.mmproj.path for model in library.models if model.mmproj is not None}
    lone_projectors = [model for model in library.mmprojs if model.path not in paired]
    lines = [line for model in library.models for line in _lines(model)]
    for title, entries in ((tr("Vision files without a model"), lone_projectors), (tr("Other files"), library.others)):
        if entries:
            lines += [f"{title}:", *(line for model in entries for line in _lines(model))]
    lines += [tr("{0} can't be read.", folder) for folder in library.unreadable]
    return "\n".join(lines) + "\n"


def _lines(model: LibraryModel) -> list[str]:
    details = [show_bytes(model.n_bytes), ORIGIN_NAMES[model.origin]]
    if model.facts is not None and model.facts.quant and model.facts.quant not in model.name:
        details.insert(0, model.facts.quant)
    if len(model.files) > 1:
        details.append(tr_n("{0} shard", "{0} shards", len(model.files)))
    if model.mmproj is not None:
        details.append(tr("vision file: {0}", show_bytes(model.mmproj.n_bytes)))
    lines = [f"{model.name}  ({', '.join(details)})", f"  {model.path}"]
    return [*lines, f"  ! {model.problem}"] if model.problem else lines


_EXIT_NOT_DELETED = 1


def add_delete(commands: "Commands") -> None:
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
    count, size = len(deletion.files), show_bytes(deletion.n_bytes)
    terminal.note(
        tr_n("Permanently delete {0} file ({1})? [y/N]", "Permanently delete {0} files ({1})? [y/N]", count, size)
        if permanently
        else tr_n("Move {0} file ({1}) to the trash? [y/N]", "Move {0} files ({1}) to the trash? [y/N]", count, size)
    )
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _refused(outcome: DeletionFailure, options: argparse.Namespace, terminal: Terminal) -> int:
    hint = f" {tr('Add --permanently to delete it without the trash.')}" if outcome.trash_failed else ""
    if options.json:
        terminal.write_json({"deleted": [], "error": outcome.sentence + hint})
    else:
        terminal.note(outcome.sentence + hint)
    return _EXIT_NOT_DELETED


_EXIT_NOT_IMPORTED = 1
_STEP_PERCENT = 10


def add_import(commands: "Commands") -> None:
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
