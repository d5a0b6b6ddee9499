"""`qwendesk models`: the list of its parts, each in a module of its own."""

import argparse

from qwendesk import (
    cli_models_delete,
    cli_models_get,
    cli_models_import,
    cli_models_info,
    cli_models_list,
    cli_models_search,
)

_PARTS = (
    cli_models_list,
    cli_models_search,
    cli_models_info,
    cli_models_get,
    cli_models_import,
    cli_models_delete,
)
"""Each adds one command and sets as its default `run` the coroutine function that serves it: options, terminal and
interrupts in, exit status out."""


def add_models_commands(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(dest="models_command", required=True, metavar="COMMAND")
    for part in _PARTS:
        part.add_command(commands)
