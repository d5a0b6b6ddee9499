"""`qwendesk models`: adds its subcommands, each of which has its own module."""

import argparse

from qwendesk.cli import (
    models_delete,
    models_get,
    models_import,
    models_info,
    models_list,
    models_search,
)

_SUBCOMMANDS = (
    models_list,
    models_search,
    models_info,
    models_get,
    models_import,
    models_delete,
)
"""Each module's `add_command` sets the argument `run` to a coroutine function.

The function takes options, terminal and interrupts, and returns the exit status.
"""


def add_models_commands(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(dest="models_command", required=True, metavar="COMMAND")
    for module in _SUBCOMMANDS:
        module.add_command(commands)
