"""The commands: `qwendesk ask`, `doctor`, `verify` and `models`. The same services as the window, without Qt."""

import argparse
import asyncio
import sys
from collections.abc import Sequence

from qwendesk import __version__
from qwendesk.cli.ask import add_ask_options, ask, request_of
from qwendesk.cli.doctor import doctor
from qwendesk.cli.models import add_models_commands
from qwendesk.cli.plan import add_plan_options, plan
from qwendesk.cli.terminal import Interrupts, Terminal, open_missing_streams
from qwendesk.cli.verify import add_verify_options, verify_files
from qwendesk.core.errors import QwenDeskError

EXIT_BAD_USAGE = 2
EXIT_INTERRUPTED = 130
"""128 plus the number of SIGINT, as shells have it."""

_WINDOW = """\
Without a command the window opens. It takes:
  FILE ...                pictures for the question; a .gguf model is offered to load
  --theme THEME           dark, light or system
  --safe                  defaults, the processor alone, no model; no setting is changed
  --demo-tour             ask the demo one question and one picture, then end
  --screenshot FILE       with --demo-tour: save a picture of the window
"""


def main(arguments: Sequence[str]) -> int:
    """Runs one command; returns its exit status."""
    open_missing_streams()
    parser = _parser()
    options = parser.parse_args(arguments)
    terminal = Terminal(sys.stdout, sys.stderr)
    try:
        with Interrupts() as interrupts:
            if options.command == "ask":
                status = asyncio.run(ask(request_of(options), terminal, interrupts))
            elif options.command == "verify":
                status = verify_files(options, terminal)
            elif options.command == "plan":
                status = asyncio.run(plan(options, terminal, interrupts))
            elif options.command == "models":
                status = asyncio.run(options.run(options, terminal, interrupts))
            else:
                status = asyncio.run(doctor(terminal, interrupts, as_json=options.json))
    except QwenDeskError as error:
        terminal.note(f"qwendesk {options.command}: {error.sentence}")
        return EXIT_BAD_USAGE
    except (KeyboardInterrupt, asyncio.CancelledError):
        return EXIT_INTERRUPTED
    return EXIT_INTERRUPTED if interrupts.asked else status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="qwendesk",
        description="Run Qwen 3.5 and 3.6 at home.",
        epilog=_WINDOW,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"QwenDesk {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    add_ask_options(
        commands.add_parser(
            "ask",
            help="ask a model and print its answer",
            description="Ask a model and print its answer as it comes. Without --model: the built-in demo.",
            epilog="Exit status: 0 answered, 2 bad usage, 3 the model cannot be loaded, 4 the engine died.",
        )
    )
    check = commands.add_parser(
        "doctor",
        help="check the installation with the built-in demo model",
        description="Show versions, devices and folders, and test the engine with the built-in demo model.",
        epilog="Exit status: 0 all tests passed, 3 the demo cannot be loaded, 4 a test failed or the engine died.",
    )
    check.add_argument("--json", action="store_true", help="print one JSON object instead")
    add_verify_options(
        commands.add_parser(
            "verify",
            help="check model files: damaged, outdated, or known to answer badly",
            description="Check model files, and say what helps if something is wrong with one.",
            epilog="Exit status: 0 all files are good, 1 there are warnings, 2 a file is bad or cannot be read.",
        )
    )
    add_plan_options(
        commands.add_parser(
            "plan",
            help="what a model would take here, or on another PC, before it is downloaded",
            description="Plan how a model is loaded: what it takes of each device, and how fast it should be.",
            epilog="Exit status: 0 it fits, 1 it does not fit, 2 bad usage or a file that cannot be read.",
        )
    )
    add_models_commands(commands.add_parser("models", help="the models on this computer"))
    return parser
