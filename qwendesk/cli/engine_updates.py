"""`qwendesk engines update` and `use`: another release of llama.cpp as the engine, and back."""

import argparse
from pathlib import Path

from qwendesk.cli.terminal import Terminal, is_agreed
from qwendesk.core.errors import QwenDeskError
from qwendesk.core.observed import Observed
from qwendesk.core.translation import tr
from qwendesk.core.units import show_bytes
from qwendesk.engines.engine_choice import preferred_engine
from qwendesk.engines.engine_updates import EngineUpdates, what_is_trusted, what_it_costs
from qwendesk.engines.llama_releases import EngineRelease, ReleaseServer
from qwendesk.engines.pack_installer import PackInstaller
from qwendesk.engines.packs import read_packs
from qwendesk.models.network import NetworkService
from qwendesk.settings.service import SettingsService

AUTOMATIC = "automatic"
_EXIT_NOT_DONE = 1


async def update(options: argparse.Namespace, terminal: Terminal) -> int:
    """Find a newer release, or take the one in a folder, and add it as an engine. Return the exit status."""
    engines = await preferred_engine()
    settings = SettingsService()
    installer = PackInstaller(engines, read_packs())
    network = NetworkService(settings)
    updates = EngineUpdates(
        engines, installer, installer.add, Observed(settings.options), network.without_token, server=ReleaseServer()
    )
    try:
        return await _update(updates, settings, engines.engines.chosen, options, terminal)
    finally:
        await updates.close()
        await settings.close()


async def use(options: argparse.Namespace, terminal: Terminal) -> int:
    """Choose an engine in the settings. Return the exit status."""
    name = "" if options.name == AUTOMATIC else options.name
    engines = await preferred_engine()
    trial = engines.engines.find(name) if name else None
    if name and trial is None:
        sentence = tr('There is no engine named "{0}". `qwendesk engines list` shows their names.', name)
        raise QwenDeskError(tr("Not changed"), sentence)
    settings = SettingsService()
    settings.change({"engine": name})
    await settings.close()
    if settings.problem.value:
        raise QwenDeskError(tr("Not changed"), settings.problem.value)
    terminal.write((tr("{0} is used from now on.", name) if name else tr("The best engine is used.")) + "\n")
    return 0


async def _update(
    updates: EngineUpdates, settings: SettingsService, before: str, options: argparse.Namespace, terminal: Terminal
) -> int:
    if options.file is None:
        newer = await updates.look()
        _raise_problem(updates)
        if newer is None:
            terminal.write(_none_newer(updates) + "\n")
            return 0
        terminal.write(_offer(newer, updates.release_in_use) + "\n")
        if options.check:
            return 0
    terminal.note(what_it_costs())
    terminal.note(what_is_trusted())
    if not options.yes and not is_agreed(tr("Add it? [y/N]"), terminal):
        terminal.note(tr("Nothing was added."))
        return _EXIT_NOT_DONE
    await (updates.get() if options.file is None else updates.add_from(options.file.absolute()))
    _raise_problem(updates)
    state = updates.state.value
    for sentence in state.comparison.sentences if state.comparison is not None else ():
        terminal.note(sentence)
    terminal.write(tr("{0} was added.", state.added) + "\n")
    if options.use or (not options.yes and is_agreed(tr("Use it from now on? [y/N]"), terminal)):
        settings.change({"engine": state.added})
        back = before or AUTOMATIC
        terminal.write(tr("It is used from now on. Back: `qwendesk engines use {0}`", back) + "\n")
    else:
        terminal.write(tr("To use it: `qwendesk engines use {0}`", state.added) + "\n")
    return 0


def add_update_commands(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `update` and `use`. Their argument `run` is set by the caller."""
    found = commands.add_parser(
        "update",
        help="find a newer llama.cpp for this PC, and add it as an engine",
        description="Ask GitHub for llama.cpp's newest release, check its headers against QwenDesk's calls, "
        "download it with size and SHA-256, try it in a process of its own, and compare it with the engine in use.",
        epilog="Exit status: 0 done or nothing newer, 1 you didn't agree, 2 failed or refused, with the reason.",
    )
    found.add_argument("--check", action="store_true", help="only say whether there is a newer one")
    found.add_argument(
        "--from", dest="file", type=Path, metavar="FOLDER",
        help="take the release's archives and its source archive from this folder, without a network",
    )  # fmt: skip
    found.add_argument("--use", action="store_true", help="use it from now on")
    found.add_argument("--yes", action="store_true", help="don't ask for confirmation")
    chosen = commands.add_parser(
        "use",
        help="choose the engine that is used",
        description="Choose an engine by its name. Models are loaded with it from the next start of a command or "
        "window.",
        epilog="Exit status: 0 chosen, 2 there is no such engine.",
    )
    chosen.add_argument("name", help=f"the name shown by `qwendesk engines list`, or {AUTOMATIC} for the best one")


def _offer(release: EngineRelease, in_use: str) -> str:
    return tr(
        "llama.cpp {0} of {1} for {2}, {3} (in use: {4})",
        release.tag, release.date, release.backend, show_bytes(release.download_bytes), in_use,
    )  # fmt: skip


def _none_newer(updates: EngineUpdates) -> str:
    found = updates.state.value.found
    if found is None:
        return tr("No newer engine was found.")
    if found.tag == updates.release_in_use:
        return tr("{0} is in use, llama.cpp's newest release for this PC.", found.tag)
    return tr("{0} is llama.cpp's newest release for this PC, and you have it or a newer one.", found.tag)


def _raise_problem(updates: EngineUpdates) -> None:
    if updates.state.value.problem:
        raise QwenDeskError(tr("Engine not updated"), updates.state.value.problem)
