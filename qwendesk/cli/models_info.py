"""`qwendesk models info`: shows the files of a repository on the Hub, or the header of one file."""

import argparse
import asyncio
from typing import TYPE_CHECKING, Any

import msgspec

from qwendesk.cli.models_hub import connected_hub, split_name
from qwendesk.cli.terminal import Interrupts, Terminal
from qwendesk.core.model_titles import model_title
from qwendesk.core.number_format import show_date
from qwendesk.core.translation import tr, tr_n
from qwendesk.core.units import show_bytes, show_tokens

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]


def add_command(commands: "Commands") -> None:
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
