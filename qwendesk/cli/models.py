"""`qwendesk models`: the list of its parts, each in a module of its own."""

import argparse

from qwendesk.cli import (
    models_delete,
    models_get,
    models_import,
    models_info,
    models_list,
    models_search,
)

_PARTS = (
    models_list,
    models_search,
    models_info,
    models_get,
    models_import,
    models_delete,
)
"""Each adds one command and sets as its default `run` the coroutine function that serves it: options, terminal and
interrupts in, exit status out."""


def add_models_commands(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(dest="models_command", required=True, metavar="COMMAND")
    for part in _PARTS:
        part.add_command(commands)
