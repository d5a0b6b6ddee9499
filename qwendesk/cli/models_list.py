"""`qwendesk models list`: lists every model file on this PC, with its vision projector and any problem."""

import argparse
from typing import TYPE_CHECKING, Any

from qwendesk.cli.terminal import Interrupts, Terminal
from qwendesk.core.translation import tr, tr_n
from qwendesk.core.units import show_bytes
from qwendesk.hub.library import Library, LibraryModel
from qwendesk.hub.library_places import ORIGIN_NAMES
from qwendesk.models.library_service import LibraryService

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]


def add_command(commands: "Commands") -> None:
    parser = commands.add_parser(
        "list",
        help="list the models on this PC",
        description="List the models in your folders and in those of LM Studio, Jan, Ollama, llama.cpp and the "
        "Hugging Face cache.",
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
