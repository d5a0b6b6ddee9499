"""`qwendesk engines`: lists the engines of this PC, adds one from a file, removes one, and finds newer ones."""

import argparse
import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec

from qwendesk.cli.engine_updates import add_update_commands, update, use
from qwendesk.cli.terminal import Interrupts, Terminal, is_agreed
from qwendesk.core.errors import QwenDeskError
from qwendesk.core.translation import tr
from qwendesk.core.units import show_bytes
from qwendesk.engines.engine_choice import EngineChoice, installed_engines, preferred_engine
from qwendesk.engines.pack_file import pack_facts
from qwendesk.engines.pack_installer import PackInstaller
from qwendesk.engines.packs import read_packs
from qwendesk.engines.self_test import engine_use
from qwendesk.engines.trial import EngineTrial
from qwendesk.settings.service import SettingsService

Run = Callable[[argparse.Namespace, Terminal], Awaitable[int]]

_EXIT_NOT_DONE = 1


def add_engines_commands(parser: argparse.ArgumentParser) -> None:
    """Each subcommand sets the argument `run` to a coroutine function that returns the exit status."""
    commands = parser.add_subparsers(dest="engines_command", required=True, metavar="COMMAND")
    add = commands.add_parser(
        "add",
        help="add an engine pack from a file or folder",
        description="Show an engine pack's SHA-256, unpack it, try it in a process of its own, and keep it if it runs.",
        epilog="Exit status: 0 added, 1 not added because you didn't agree, 2 not added, with the reason.",
    )
    add.add_argument("file", type=Path, help="a pack's zip file, or the folder of an engine")
    add.add_argument("--yes", action="store_true", help="don't ask for confirmation")
    add.set_defaults(run=_runner(_add))
    show = commands.add_parser(
        "list",
        help="list the engines of this PC",
        description="Try each engine in a process of its own, and show which one is used and why others can't be.",
        epilog="Exit status: 0.",
    )
    show.add_argument("--json", action="store_true", help="print one JSON object instead")
    show.set_defaults(run=_runner(_list))
    remove = commands.add_parser(
        "remove",
        help="delete an engine that you added or downloaded",
        description="Delete an engine that was added or downloaded. The engines that belong to QwenDesk stay.",
        epilog="Exit status: 0 deleted, 1 not deleted because you didn't agree, 2 not deleted, with the reason.",
    )
    remove.add_argument("name", help="the name shown by `qwendesk engines list`")
    remove.add_argument("--yes", action="store_true", help="don't ask for confirmation")
    remove.set_defaults(run=_runner(_remove))
    add_update_commands(commands)
    commands.choices["update"].set_defaults(run=_runner(update))
    commands.choices["use"].set_defaults(run=_runner(use))


def _runner(run: Run) -> Callable[[argparse.Namespace, Terminal, Interrupts], Awaitable[int]]:
    """Return a coroutine function that Ctrl+C cancels."""

    async def cancellable(options: argparse.Namespace, terminal: Terminal, interrupts: Interrupts) -> int:
        task = asyncio.current_task()
        if task is not None:
            interrupts.on_request(task.cancel)
        return await run(options, terminal)

    return cancellable


async def _add(options: argparse.Namespace, terminal: Terminal) -> int:
    installer = PackInstaller(installed_engines(), read_packs())
    pack = await installer.read(options.file.absolute())
    name = pack.manifest.name
    for fact in pack_facts(pack):
        terminal.note(fact)
    if not pack.is_listed and not options.yes and not is_agreed(tr("Add {0}? [y/N]", name), terminal):
        terminal.note(tr("Nothing was added."))
        return _EXIT_NOT_DONE
    await installer.add(pack)
    terminal.write(tr("{0} was added. `qwendesk engines list` shows which engine is used.", name) + "\n")
    return 0


async def _list(options: argparse.Namespace, terminal: Terminal) -> int:
    engines = (await preferred_engine(try_all=True)).engines
    if options.json:
        found = [_as_json(trial, engines) for trial in engines.trials]
        terminal.write_json({"chosen": engines.chosen, "engines": found})
        return 0
    for trial in engines.trials:
        terminal.write(f"{trial.name}  ({', '.join(_details(trial))})\n  {engine_use(trial, engines.chosen)}\n")
    if not engines.trials:
        terminal.write(tr("There is no engine here. Install QwenDesk again.") + "\n")
    if engines.note:
        terminal.note(engines.note)
    return 0


async def _remove(options: argparse.Namespace, terminal: Terminal) -> int:
    engines = installed_engines()
    trial = (await engines.find_engines()).find(options.name)
    if trial is None:
        sentence = tr('There is no engine named "{0}". `qwendesk engines list` shows their names.', options.name)
        raise QwenDeskError(tr("Not deleted"), sentence)
    if trial.is_own and not options.yes and not is_agreed(tr("Delete {0}? [y/N]", trial.folder), terminal):
        terminal.note(tr("Nothing was deleted."))
        return _EXIT_NOT_DONE
    await engines.delete(trial.name)
    terminal.write(tr("{0} was deleted.", trial.name) + "\n")
    await _note_deletion(trial, terminal)
    return 0


async def _note_deletion(deleted: EngineTrial, terminal: Terminal) -> None:
    """Change the settings after a deletion.

    If the user chose the engine there, set that back to automatic, and say so. An engine for CUDA is not downloaded
    again automatically.
    """
    settings = SettingsService()
    was_chosen = settings.options.engine == deleted.name
    settings.change(
        {
            "engine": "" if was_chosen else settings.options.engine,
            "gpu_engine": "never" if deleted.backend == "cuda" else settings.options.gpu_engine,
        }
    )
    await settings.close()
    if settings.problem.value:
        terminal.note(settings.problem.value)
    elif was_chosen:
        terminal.note(tr("It was the engine chosen in the settings. The best one that runs is used now."))


def _details(trial: EngineTrial) -> list[str]:
    """Return what is known of an engine, such as "vulkan", "release 0.3.36", "64 MB" and its folder."""
    if trial.engine is None:
        return [trial.backend, *([trial.folder] if trial.folder else [])]
    manifest = trial.engine.manifest
    size = show_bytes(sum(file.n_bytes for file in manifest.files))
    return [trial.backend, tr("release {0}", manifest.shown_release), size, trial.folder]


def _as_json(trial: EngineTrial, engines: EngineChoice) -> dict[str, object]:
    return {
        "name": trial.name,
        "backend": trial.backend,
        "folder": trial.folder,
        "is_own": trial.is_own,
        "usable": trial.usable,
        "reason": trial.reason,
        "in_use": trial.name == engines.chosen,
        "devices": msgspec.to_builtins(trial.devices),
    }
