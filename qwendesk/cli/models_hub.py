"""The commands of `qwendesk models` that use the Hub: get, info, search and new."""

import argparse
import asyncio
import shlex
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from qwendesk.cli.made_up_pc import add_made_up_pc_options
from qwendesk.cli.terminal import Interrupts, Terminal
from qwendesk.core.errors import QwenDeskError
from qwendesk.core.model_titles import model_title
from qwendesk.core.number_format import show_date
from qwendesk.core.translation import mark, tr, tr_n
from qwendesk.core.units import show_bytes, show_tokens
from qwendesk.hub.catalog_updates import CatalogStore
from qwendesk.hub.model_folders import read_folders, repo_file

if TYPE_CHECKING:
    from qwendesk.hub.download import FileProgress
    from qwendesk.hub.download_control import DownloadControl, SpeedLimit
    from qwendesk.hub.remote import Hub, RemoteFile
    from qwendesk.models.new_models import NewLookUp, NewOffer

    Commands = argparse._SubParsersAction[argparse.ArgumentParser]


# Exit status of `new`.
_EXIT_NOT_ASKED = 1
# What to do about an error of the Hub, by its kind. The sentences of other kinds say it themselves.
_NEXT_STEPS: Mapping[str, str] = {
    "no_connection": mark("`qwendesk models list` shows the models on this PC."),
    "offline": mark("Turn off Offline in the settings of the window, then try again."),
    "bad_answer": mark("Check your internet connection and the Hub address in the settings of the window."),
    "disk": mark("Choose another folder with --to, or check the drive."),
}


def with_next_step(error: QwenDeskError) -> str:
    """Return the sentence of an error, with what to do next on the command line."""
    step = _NEXT_STEPS.get(getattr(error, "kind", ""))
    return f"{error.sentence} {tr(step)}" if step else error.sentence


def connected_hub() -> "Hub":
    """Return a Hub with the address, proxy, offline mode and token of the window's settings."""
    from qwendesk.models.network import NetworkService
    from qwendesk.settings.service import SettingsService

    return NetworkService(SettingsService()).hub()


def shared_limit() -> "SpeedLimit":
    """Return the speed limit for downloads from the window's settings."""
    from qwendesk.hub.download_control import SpeedLimit
    from qwendesk.models.network import NetworkService
    from qwendesk.settings.service import SettingsService

    return SpeedLimit(NetworkService(SettingsService()).connection.limit_bytes_per_s)


def split_name(name: str) -> tuple[str, str]:
    """Split "owner/name/file.gguf" into repository and path; the path is "" for a repository alone.

    Raises QwenDeskError if `name` is neither.
    """
    parts = name.split("/", 2)
    if len(parts) < 2 or not all(parts):
        raise QwenDeskError(
            tr("Bad name"), tr('"{0}" isn\'t a name on Hugging Face. Enter it as owner/name/file.gguf.', name)
        )
    return "/".join(parts[:2]), parts[2] if len(parts) == 3 else ""


_EXIT_NOT_DOWNLOADED = 1
_STEP_PERCENT = 10
_PHASES = {
    "checking": mark("{0}: checked {1}% of {2}"),
    "downloading": mark("{0}: downloaded {1}% of {2}"),
}


def add_get(commands: "Commands") -> None:
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
            self._terminal.note(tr(_PHASES[progress.phase], self._name, percent, size))


def add_info(commands: "Commands") -> None:
    parser = commands.add_parser(
        "info",
        help="look at a repository or a file on Hugging Face",
        description="List the GGUF files of a repository, or read the header of one file without downloading it.",
    )
    parser.add_argument("name", metavar="REPO[/FILE]", help="owner/name, or owner/name/file.gguf")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")
    parser.set_defaults(run=show_info)


async def show_info(options: argparse.Namespace, terminal: Terminal, _: Interrupts) -> int:
    """Ask the Hub, print the answer, and return the exit status. Raises QwenDeskError."""
    repo, path = split_name(options.name)
    result = await asyncio.to_thread(_file_info if path else _repo_info, repo, path)
    if options.json:
        terminal.write_json(result)
    else:
        terminal.write(_as_text(result))
    return 0


def _repo_info(repo: str, _path: str) -> dict[str, Any]:
    files = connected_hub().files(repo)
    return {"repo": repo, "files": [msgspec.to_builtins(file) for file in files]}


def _file_info(repo: str, path: str) -> dict[str, Any]:
    from qwendesk.hub.remote_header import remote_facts

    hub = connected_hub()
    file = hub.file(repo, path)
    facts = remote_facts(hub, file)
    header = {
        "kind": facts.kind,
        "name": facts.name,
        "architecture": facts.architecture,
        "quant": facts.quant,
        "context_length": facts.context_length,
        "block_count": facts.block_count,
        "expert_count": facts.expert_count,
        "mtp_layers": facts.nextn_layers,
        "split_count": facts.split_count,
    }
    return {"repo": repo, "files": [msgspec.to_builtins(file)], "header": header}


def _as_text(result: dict[str, Any]) -> str:
    lines = []
    for file in result["files"]:
        date = show_date(file["date"]) if file["date"] else tr("unknown date")
        sha256 = file["sha256"] or tr("unknown")
        lines.append(tr("{0}  ({1}, {2}, SHA-256 {3})", file["path"], show_bytes(file["n_bytes"]), date, sha256))
    if header := result.get("header"):
        layers = tr_n("{0} layer", "{0} layers", header["block_count"] - header["mtp_layers"])
        title = model_title(result["files"][0]["path"])
        lines.append(f"{title}: {header['architecture']}, {header['quant']}, {layers}")
        lines.append(tr("Context length {0}", show_tokens(header["context_length"])))
        if header["mtp_layers"]:
            lines.append(tr("MTP inside: a layer that drafts the next tokens. QwenDesk tries it in your answers."))
    return "\n".join(lines or [tr("No GGUF files found.")]) + "\n"


def add_search(commands: "Commands") -> None:
    parser = commands.add_parser("search", help="search Hugging Face for models")
    parser.add_argument("query", metavar="QUERY")
    parser.add_argument(
        "--sort", choices=("downloads", "likes", "last_modified", "trending_score"), default="downloads"
    )
    parser.add_argument("--limit", type=int, default=30, metavar="N", help="the number of results (default: 30)")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")
    parser.set_defaults(run=search)


async def search(options: argparse.Namespace, terminal: Terminal, _: Interrupts) -> int:
    """Search, print the results, and return the exit status. Raises QwenDeskError."""
    hub = connected_hub()
    found = await asyncio.to_thread(hub.search, options.query, sort=options.sort, limit=options.limit)
    if options.json:
        terminal.write_json({"repos": [msgspec.to_builtins(each) for each in found]})
        return 0
    for each in found:
        date = show_date(each.date) if each.date else tr("unknown date")
        downloads = tr_n("{0} download", "{0} downloads", each.downloads)
        parts = (downloads, date, *each.marks, *((tr("gated"),) if each.gated else ()))
        terminal.write(f"{each.repo}  ({', '.join(parts)})\n")
    if not found:
        terminal.write(tr("Nothing found.") + "\n")
    return 0


def add_new(commands: "Commands") -> None:
    parser = commands.add_parser(
        "new",
        help="look for new models on Hugging Face",
        description="Ask the uploaders of the catalog's models for new Qwen models, read a header of each, and say "
        "whether it can be loaded and fits this PC, or the described one. The window shows them too.",
        epilog="Exit status: 0 asked, 1 not all were asked (what is known is printed), 2 bad usage.",
    )
    add_made_up_pc_options(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")
    parser.set_defaults(run=show_new)


async def show_new(options: argparse.Namespace, terminal: Terminal, interrupts: Interrupts) -> int:
    """Ask, save and print what is new, and return the exit status. Ctrl+C ends the questions."""
    from qwendesk.cli.recommend import pc_of
    from qwendesk.core.engine_knowledge import read_knowledge
    from qwendesk.models.new_models import make_new_offers

    stop = threading.Event()
    interrupts.on_request(stop.set)
    pc, store = await pc_of(options, terminal), CatalogStore()
    found = await asyncio.to_thread(_look_up_new, store, stop)
    problem = found.problem or (tr("Not all were asked.") if stop.is_set() else "")
    offers = await asyncio.to_thread(lambda: make_new_offers(found.models, store.catalog, pc, engines=read_knowledge()))
    if options.json:
        terminal.write_json({"models": [_new_json(each) for each in offers], "problem": problem or None})
    else:
        endpoint = connected_hub().network.endpoint
        lines = [line for offer in offers for line in _new_lines(offer, endpoint)]
        if lines or not problem:
            terminal.write("\n".join(lines or [tr("No new models.")]) + "\n")
        if problem:
            terminal.note(problem)
    return _EXIT_NOT_ASKED if problem else 0


def _look_up_new(store: CatalogStore, stop: threading.Event) -> "NewLookUp":
    from qwendesk.models.catalog_service import GAP_S
    from qwendesk.models.new_models import look_up_new, new_models_file, still_new

    file = new_models_file(store.folder)
    known = still_new(file.read(), store.catalog)
    found = look_up_new(store.catalog, known, connected_hub(), stop, gap_s=GAP_S)
    file.try_write(found.models)
    return found


def _new_json(offer: "NewOffer") -> dict[str, Any]:
    model, item = offer.model, offer.item
    return {
        "name": model.name,
        "repo": model.repo,
        "also_from": list(model.others),
        "created": model.created,
        "licence": model.licence or None,
        "card": model.card,
        "architecture": model.facts.architecture if model.facts is not None else None,
        "known_model": offer.known or None,
        "why_not_loaded": offer.why_not or None,
        "file": {"path": item.path, "quant": item.quant, "n_bytes": item.n_bytes} if item is not None else None,
        "fit": item.fit.kind if item is not None and item.fit is not None else None,
        "n_ctx": item.fit.n_ctx if item is not None and item.fit is not None else None,
    }


def _new_lines(offer: "NewOffer", endpoint: str) -> list[str]:
    from qwendesk.models.view.offer_texts import fit_text, new_facts_text, new_model_texts, no_fit_text

    item = offer.item
    fit = item.fit if item is not None else None
    text = fit_text(fit)[0] if fit is not None else no_fit_text(offer.model)
    texts = (f"{text}.", *new_model_texts(offer), f"{endpoint}/{offer.model.card}")
    # The name of the file is what a stranger wrote.
    named = shlex.quote(f"{offer.model.repo}/{item.path}") if item is not None and fit and fit.fits else ""
    command = f"qwendesk models get {named}" if named else ""
    return [
        f"{offer.model.name}  ({new_facts_text(offer)})",
        *(f"  {text}" for text in (*texts, command) if text),
        "",
    ]
