"""`qwendesk reports`: adds measured speeds to this PC's advice, lists and removes them."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from qwendesk.cli.terminal import Interrupts, Terminal
from qwendesk.core.errors import BadOption, QwenDeskError
from qwendesk.core.text_decoding import decode_text
from qwendesk.core.translation import tr, tr_n
from qwendesk.hub.catalog_updates import CatalogStore
from qwendesk.models.pasted_report import add_reports, save_reports
from qwendesk.models.pasted_table import LONGEST
from qwendesk.models.view.speed_texts import report_text

Run = Callable[[argparse.Namespace, Terminal, Interrupts], int]


def add_reports_commands(parser: argparse.ArgumentParser) -> None:
    """Each subcommand sets the argument `run` to a function that returns the exit status."""
    commands = parser.add_subparsers(dest="reports_command", required=True, metavar="COMMAND")
    add = commands.add_parser(
        "add",
        help="add speeds from a text: a row of `qwendesk bench -o row`, or a table of llama-bench",
        description="Read the speeds of generation in a text and count them like the catalog's reports, on PCs with "
        "the same card. The text is what llama-bench prints as md, csv, json or jsonl, with the lines around it.",
        epilog="Exit status: 0 added, 2 not added, with the reason.",
    )
    add.add_argument("file", nargs="?", default="-", help="a text file (default: standard input)")
    add.add_argument(
        "--on",
        metavar="CARDS",
        default="",
        help='what it was measured on, if the text doesn\'t say: "RTX 3090 24 GB", "2x RTX 3090"; DDR5-5600 for a CPU',
    )
    add.set_defaults(run=_add)
    show = commands.add_parser("list", help="list the speeds that you added", epilog="Exit status: 0.")
    show.set_defaults(run=_list)
    remove = commands.add_parser(
        "remove", help="remove speeds that you added", epilog="Exit status: 0 removed, 2 not removed, with the reason."
    )
    remove.add_argument("numbers", nargs="+", type=int, metavar="NUMBER", help="as `qwendesk reports list` shows them")
    remove.set_defaults(run=_remove)


def _add(options: argparse.Namespace, terminal: Terminal, _interrupts: Interrupts) -> int:
    found = add_reports(_text_of(options.file), CatalogStore(), options.on)
    for report in found.reports:
        terminal.write(f"{report_text(report)}\n")
    for sentence in found.left_out:
        terminal.note(tr("Left out: {0}", sentence))
    terminal.note(tr_n("{0} speed was added.", "{0} speeds were added.", len(found.reports)))
    return 0


def _text_of(file: str) -> str:
    """Return the text of a file, or of standard input for "-": no more than can be a table. Raises QwenDeskError."""
    # Four bytes are the longest character. One more than allowed is refused for its length.
    most_bytes = 4 * LONGEST + 1
    try:
        if file == "-":
            raw = sys.stdin.buffer.read(most_bytes)
        else:
            with Path(file).open("rb") as opened:
                raw = opened.read(most_bytes)
    except OSError as error:
        raise QwenDeskError(tr("Not readable"), tr("{0} can't be read: {1}.", file, error.strerror or error)) from error
    decoded = decode_text(raw)
    return "" if decoded is None else decoded.text


def _list(_options: argparse.Namespace, terminal: Terminal, _interrupts: Interrupts) -> int:
    for number, report in enumerate(CatalogStore().read_reports(), 1):
        terminal.write(f"{number}. {report_text(report)}\n")
    return 0


def _remove(options: argparse.Namespace, _terminal: Terminal, _interrupts: Interrupts) -> int:
    store = CatalogStore()
    reports, numbers = store.read_reports(), set(options.numbers)
    unknown = min(numbers - set(range(1, len(reports) + 1)), default=None)
    if unknown is not None:
        raise BadOption(tr("Bad option"), tr("There is no speed with the number {0}.", unknown))
    save_reports(tuple(each for number, each in enumerate(reports, 1) if number not in numbers), store)
    return 0
