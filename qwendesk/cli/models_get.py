"""`qwendesk models get`: downloads a model with all its shards and its vision file."""

import argparse
import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from qwendesk.cli.models_hub import connected_hub, shared_limit, split_name, with_next_step
from qwendesk.cli.terminal import Interrupts, Terminal
from qwendesk.core.translation import mark, tr
from qwendesk.core.units import show_bytes
from qwendesk.hub.model_folders import read_folders, repo_file

if TYPE_CHECKING:
    from qwendesk.hub.download import FileProgress
    from qwendesk.hub.download_control import DownloadControl
    from qwendesk.hub.remote import Hub, RemoteFile

    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

_EXIT_NOT_DOWNLOADED = 1
_STEP_PERCENT = 10
_PHASES = {
    "checking": mark("checking"),
    "downloading": mark("downloading"),
    "waiting": mark("waiting"),
}


def add_command(commands: "Commands") -> None:
    parser = commands.add_parser(
        "get",
        help="download a model",
        description="Download a GGUF file with all its shards and its vision file. An interrupted download resumes "
        "where it stopped. Every file is verified by its SHA-256.",
        epilog="Exit status: 0 downloaded, 1 not downloaded, 2 bad usage. The network settings of the window apply; "
        "HF_ENDPOINT and HF_TOKEN are used if those are empty.",
    )
    parser.add_argument("file", metavar="REPO/FILE", help="owner/name/file.gguf")
    parser.add_argument(
        "--to", type=Path, metavar="DIR", help="the folder to download to (default: the first models folder)"
    )
    parser.add_argument("--no-mmproj", action="store_true", help="don't download the vision file")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")
    parser.set_defaults(run=get_model)


async def get_model(options: argparse.Namespace, terminal: Terminal, interrupts: Interrupts) -> int:
    """Download, print the paths, and return the exit status. After Ctrl+C the next call resumes."""
    from qwendesk.hub.catalog import load_catalog
    from qwendesk.hub.download_control import DownloadControl
    from qwendesk.hub.download_plan import plan_download
    from qwendesk.hub.network import HubError
    from qwendesk.models.view.offer_texts import licence_text

    control = DownloadControl(shared_limit())
    interrupts.on_request(control.stop)
    repo, path = split_name(options.file)
    folder = options.to.absolute() if options.to else Path(read_folders().models[0])
    done: list[dict[str, object]] = []
    try:
        hub = connected_hub()
        plan = await asyncio.to_thread(plan_download, hub, repo, path, with_mmproj=not options.no_mmproj)
        licence = await asyncio.to_thread(lambda: load_catalog().licence_of(repo))
        if licence is not None:
            terminal.note(licence_text(licence))
        targets = [repo_file(folder, repo, file.path) for file in plan.files]
        for file, target in zip(plan.files, targets, strict=True):
            await asyncio.to_thread(_download, hub, file, target, control, terminal)
            done.append({"path": str(target), "n_bytes": file.n_bytes, "sha256": file.sha256, "commit": file.revision})
            if not options.json:
                terminal.write(f"{target}\n")
    except HubError as trouble:
        if options.json:
            terminal.write_json({"files": done, "error": {"kind": trouble.kind, "sentence": with_next_step(trouble)}})
        else:
            terminal.note(with_next_step(trouble))
        return _EXIT_NOT_DOWNLOADED
    if options.json:
        name = licence.name if licence is not None else None
        terminal.write_json({"files": done, "licence": name})
    return 0


def _download(hub: "Hub", file: "RemoteFile", target: Path, control: "DownloadControl", terminal: Terminal) -> None:
    from qwendesk.hub.download import download_file

    download_file(hub, file, target, _DownloadProgress(terminal, target.name, file.n_bytes).show, control)


class _DownloadProgress:
    """Prints a line for every 10%, and one for each wait."""

    def __init__(self, terminal: Terminal, name: str, n_bytes: int) -> None:
        self._terminal, self._name, self._n_bytes = terminal, name, n_bytes
        self._shown: tuple[str, int] = ("", -1)

    def show(self, progress: "FileProgress") -> None:
        if progress.phase == "waiting":
            self._terminal.note(tr("{0} Retrying.", progress.note))
            return
        percent = 100 * progress.n_bytes // max(self._n_bytes, 1) // _STEP_PERCENT * _STEP_PERCENT
        if (progress.phase, percent) != self._shown:
            self._shown = (progress.phase, percent)
            size = show_bytes(self._n_bytes)
            self._terminal.note(tr("{0}: {1} {2}% of {3}", self._name, tr(_PHASES[progress.phase]), percent, size))
