"""`qwendesk models search`: repositories with GGUF files on the Hub."""

import argparse
import asyncio
from typing import TYPE_CHECKING

import msgspec

from qwendesk.cli.models_hub import connected_hub
from qwendesk.cli.terminal import Interrupts, Terminal

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]


def add_command(commands: "Commands") -> None:
    parser = commands.add_parser("search", help="search Hugging Face for models")
    parser.add_argument("query", metavar="QUERY")
    parser.add_argument(
        "--sort", choices=("downloads", "likes", "last_modified", "trending_score"), default="downloads"
    )
    parser.add_argument("--limit", type=int, default=30, metavar="N", help="show at most so many")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")
    parser.set_defaults(run=search)


async def search(options: argparse.Namespace, terminal: Terminal, _: Interrupts) -> int:
    """Asks, prints, and returns the exit status. Raises QwenDeskError when there is no answer."""
    hub = connected_hub()
    found = await asyncio.to_thread(hub.search, options.query, sort=options.sort, limit=options.limit)
    if options.json:
        terminal.write_json({"repos": [msgspec.to_builtins(each) for each in found]})
        return 0
    for each in found:
        marks = "".join(f", {mark}" for mark in (*each.marks, *(("gated",) if each.gated else ())))
        terminal.write(f"{each.repo}  ({each.downloads:,} downloads, {(each.date or '')[:10]}{marks})\n")
    if not found:
        terminal.write("Nothing found.\n")
    return 0
