"""`qwendesk models get`: downloads a model, all its parts and its picture file."""

import argparse
import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from qwendesk.cli.models_hub import connected_hub, shared_limit, split_name
from qwendesk.cli.terminal import Interrupts, Terminal
from qwendesk.core.units import show_bytes
from qwendesk.hub.folders import read_folders, repo_file

if TYPE_CHECKING:
    from qwendesk.hub.download import FileProgress
    from qwendesk.hub.download_control import Control
    from qwendesk.hub.remote import Hub, RemoteFile

    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

_EXIT_NOT_DOWNLOADED = 1
_STEP_PERCENT = 10


def add_command(commands: "Commands") -> None:
    parser = commands.add_parser(
        "get",
        help="download a model",
        description="Download a GGUF file, all parts of it and its picture file. A download that was broken off goes "
        "on where it was; a file gets its name only when its SHA-256 is right.",
        epilog="Exit status: 0 downloaded, 1 not downloaded, 2 bad usage. The window's settings of the "
        "network are used, and HF_ENDPOINT and HF_TOKEN where those are empty.",
    )
    parser.add_argument("file", metavar="REPO/FILE", help="owner/name/file.gguf")
    parser.add_argument("--to", type=Path, metavar="DIR", help="another models folder than the first")
    parser.add_argument("--no-mmproj", action="store_true", help="without the picture file")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")
    parser.set_defaults(run=get_model)


async def get_model(options: argparse.Namespace, terminal: Terminal, interrupts: Interrupts) -> int:
    """Downloads, prints, and returns the exit status. Ctrl-C keeps what is there for the next time."""
    from qwendesk.hub.download_control import Control
    from qwendesk.hub.download_plan import plan_download
    from qwendesk.hub.network import HubTrouble

    control = Control(shared_limit())
    interrupts.on_request(control.stop)
    repo, path = split_name(options.file)
    folder = options.to.absolute() if options.to else Path(read_folders().models[0])
    done: list[dict[str, object]] = []
    try:
        hub = connected_hub()
        plan = await asyncio.to_thread(plan_download, hub, repo, path, with_mmproj=not options.no_mmproj)
        targets = [repo_file(folder, repo, file.path) for file in plan.files]
        for file, target in zip(plan.files, targets, strict=True):
            await asyncio.to_thread(_fetch, hub, file, target, control, terminal)
            done.append({"path": str(target), "n_bytes": file.n_bytes, "sha256": file.sha256, "commit": file.revision})
            if not options.json:
                terminal.write(f"{target}\n")
    except HubTrouble as trouble:
        if options.json:
            terminal.write_json({"files": done, "error": {"kind": trouble.kind, "sentence": trouble.sentence}})
        else:
            terminal.note(trouble.sentence)
        return _EXIT_NOT_DOWNLOADED
    if options.json:
        terminal.write_json({"files": done})
    return 0


def _fetch(hub: "Hub", file: "RemoteFile", target: Path, control: "Control", terminal: Terminal) -> None:
    from qwendesk.hub.download import download_file

    download_file(hub, file, target, _Progress(terminal, target.name, file.n_bytes).show, control)


class _Progress:
    """A line for every tenth, and one for each wait."""

    def __init__(self, terminal: Terminal, name: str, n_bytes: int) -> None:
        self._terminal, self._name, self._n_bytes = terminal, name, n_bytes
        self._shown: tuple[str, int] = ("", -1)

    def show(self, progress: "FileProgress") -> None:
        if progress.phase == "waiting":
            self._terminal.note(f"{progress.note} Trying again.")
            return
        percent = 100 * progress.n_bytes // max(self._n_bytes, 1) // _STEP_PERCENT * _STEP_PERCENT
        if (progress.phase, percent) != self._shown:
            self._shown = (progress.phase, percent)
            self._terminal.note(f"{self._name}: {progress.phase} {percent}% of {show_bytes(self._n_bytes)}")
