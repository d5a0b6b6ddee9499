"""`qwendesk models list`: every model file on this computer, with its picture file and what is wrong with it."""

import argparse
from typing import TYPE_CHECKING, Any

from qwendesk.cli.terminal import Interrupts, Terminal
from qwendesk.core.units import show_bytes
from qwendesk.hub.library import Library, LibraryModel
from qwendesk.hub.library_places import ORIGIN_NAMES
from qwendesk.services.models.service import ModelsService

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]


def add_command(commands: "Commands") -> None:
    parser = commands.add_parser(
        "list",
        help="the models on this computer",
        description="List the models in your folders and in those of LM Studio, Jan, Ollama, llama.cpp and the "
        "Hugging Face cache.",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")
    parser.set_defaults(run=list_models)


async def list_models(options: argparse.Namespace, terminal: Terminal, _: Interrupts) -> int:
    """Scans, prints, and returns the exit status."""
    models = ModelsService()
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
        return f"There are no models yet. They go to {models_folder}\n"
    paired = {model.mmproj.path for model in library.models if model.mmproj is not None}
    lone = [model for model in library.mmprojs if model.path not in paired]
    lines = [line for model in library.models for line in _lines(model)]
    for title, entries in (("Picture files without a model", lone), ("Other files", library.others)):
        if entries:
            lines += [f"{title}:", *(line for model in entries for line in _lines(model))]
    lines += [f"{folder} cannot be read." for folder in library.unreadable]
    return "\n".join(lines) + "\n"


def _lines(model: LibraryModel) -> list[str]:
    details = [show_bytes(model.n_bytes), ORIGIN_NAMES[model.origin]]
    if model.facts is not None and model.facts.quant and model.facts.quant not in model.name:
        details.insert(0, model.facts.quant)
    if len(model.files) > 1:
        details.append(f"{len(model.files)} parts")
    if model.mmproj is not None:
        details.append(f"pictures: {show_bytes(model.mmproj.n_bytes)}")
    lines = [f"{model.name}  ({', '.join(details)})", f"  {model.path}"]
    return [*lines, f"  ! {model.problem}"] if model.problem else lines
