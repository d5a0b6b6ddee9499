"""`qwendesk models search`: searches the Hub for repositories with GGUF files."""

import argparse
import asyncio
from typing import TYPE_CHECKING

import msgspec

from qwendesk.cli.models_hub import connected_hub
from qwendesk.cli.terminal import Interrupts, Terminal
from qwendesk.core.number_format import show_count, show_date
from qwendesk.core.translation import tr

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]


def add_command(commands: "Commands") -> None:
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
        marks = "".join(f", {mark}" for mark in (*each.marks, *(("gated",) if each.gated else ())))
        terminal.write(tr("{0}  ({1} downloads, {2}{3})", each.repo, show_count(each.downloads), date, marks) + "\n")
    if not found:
        terminal.write(tr("Nothing found.") + "\n")
    return 0
