"""The commands `ask`, `bench`, `plan`, `recommend`, `verify`, `models`, `engines`, `serve`, `doctor` and `trial`."""

import argparse
import asyncio
import sys
from collections.abc import Sequence

from qwendesk import __version__
from qwendesk.cli.ask import add_ask_options, ask, request_of
from qwendesk.cli.bench import add_bench_options, bench
from qwendesk.cli.doctor import doctor
from qwendesk.cli.engines import add_engines_commands
from qwendesk.cli.models import add_models_commands
from qwendesk.cli.models_hub import with_next_step
from qwendesk.cli.plan import add_plan_options, plan
from qwendesk.cli.recommend import add_recommend_options, recommend
from qwendesk.cli.serve import add_serve_options, serve
from qwendesk.cli.terminal import Interrupts, Terminal, check_text, open_missing_streams
from qwendesk.cli.trial import add_trial_options, trial
from qwendesk.cli.verify import add_verify_options, verify_files
from qwendesk.core.errors import QwenDeskError
from qwendesk.core.permissions import restrict_own_folders
from qwendesk.core.translation import tr

EXIT_BAD_USAGE = 2
EXIT_INTERRUPTED = 130
"""128 plus the number of SIGINT, as in shells."""

_WINDOW = """\
Without a command, QwenDesk opens its window. Options of the window:
  FILE ...                attach these files; a .gguf file is offered for loading
  --theme THEME           dark, light, contrast or system
  --safe                  start with default settings, on the CPU, without a model or chat
  --demo-tour             ask the demo model a question and show it a picture, then quit
  --screenshot FILE       with --demo-tour: save a picture of the window
"""


def main(arguments: Sequence[str]) -> int:
    """Run one command and return its exit status."""
    open_missing_streams()
    parser = make_parser()
    options = parser.parse_args(arguments)
    terminal = Terminal(sys.stdout, sys.stderr)
    try:
        for number, argument in enumerate(arguments, 1):
            check_text(argument, tr("Argument {0}", number))
        restrict_own_folders(with_contents=False)
        with Interrupts() as interrupts:
            if options.command == "ask":
                status = asyncio.run(ask(request_of(options), terminal, interrupts))
            elif options.command == "bench":
                status = asyncio.run(bench(options, terminal, interrupts))
            elif options.command == "verify":
                status = verify_files(options, terminal)
            elif options.command == "plan":
                status = asyncio.run(plan(options, terminal, interrupts))
            elif options.command == "recommend":
                status = asyncio.run(recommend(options, terminal, interrupts))
            elif options.command in ("models", "engines"):
                status = asyncio.run(options.run(options, terminal, interrupts))
            elif options.command == "serve":
                status = asyncio.run(serve(options, terminal, interrupts))
            elif options.command == "trial":
                status = asyncio.run(trial(options, terminal, interrupts))
            else:
                status = asyncio.run(doctor(terminal, interrupts, as_json=options.json))
    except QwenDeskError as error:
        terminal.note(f"qwendesk {options.command}: {with_next_step(error)}")
        return EXIT_BAD_USAGE
    except (KeyboardInterrupt, asyncio.CancelledError):
        return EXIT_INTERRUPTED
    return EXIT_INTERRUPTED if interrupts.is_requested else status


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    parser = argparse.ArgumentParser(
        prog="qwendesk",
        description="Run Qwen 3.5, 3.6 and 3.8 at home.",
        epilog=_WINDOW,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"QwenDesk {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    add_ask_options(
        commands.add_parser(
            "ask",
            help="ask a model and print its answer",
            description="Ask a model, by default the built-in demo model, and print its answer as it arrives.",
            epilog="Exit status: 0 answered, 2 bad usage or an answer that failed, 3 the model can't be loaded, "
            "4 the engine crashed.",
        )
    )
    add_bench_options(
        commands.add_parser(
            "bench",
            help="measure the speed of a model, as llama-bench does",
            description="Measure how fast a model processes prompts and generates text, by the number of tokens in "
            "memory before, with drafts and without, and how soon second questions are answered. The table has the "
            "median and the standard deviation. Ctrl+C stops; what was measured stays.",
            epilog="Exit status: 0 measured, 2 bad usage, 3 the model can't be loaded, 4 the engine failed, "
            "130 stopped early.",
        )
    )
    check = commands.add_parser(
        "doctor",
        help="check the installation with the built-in demo model",
        description="Show versions, devices and folders, and test the engine with the built-in demo model.",
        epilog="Exit status: 0 all tests passed, 3 the demo model can't be loaded, 4 a test or the engine failed.",
    )
    check.add_argument("--json", action="store_true", help="print one JSON object instead")
    add_trial_options(
        commands.add_parser(
            "trial",
            help="measure every engine on this PC, for a report that you can send",
            description="Measure every engine on this PC with the demo model and up to two models of yours: answers, "
            "memory and speed. Takes up to ten minutes. Shows the report, which has no names and no chats, before "
            "saving it. Nothing is sent.",
            epilog="Exit status: 0 saved, 1 not saved, 2 bad usage, 130 stopped early.",
        )
    )
    add_verify_options(
        commands.add_parser(
            "verify",
            help="check model files for damage, newer versions and known problems",
            description="Check model files and suggest a fix for each problem.",
            epilog="Exit status: 0 no problems, 1 warnings, 2 a file is bad or can't be read.",
        )
    )
    add_plan_options(
        commands.add_parser(
            "plan",
            help="estimate a model's memory and speed, even before you download it",
            description="Plan how a model would be loaded: memory on each device, and expected speed.",
            epilog="Exit status: 0 it fits, 1 it doesn't fit, 2 bad usage or a file that can't be read.",
        )
    )
    add_recommend_options(
        commands.add_parser(
            "recommend",
            help="say which model to take on this PC, or on one that you describe",
            description="Rank the models of the catalog for a purpose: file, context, expected speed, published "
            "results, and what speaks for and against each.",
            epilog="Exit status: 0 something fits, 1 nothing fits, 2 bad usage.",
        )
    )
    add_serve_options(
        commands.add_parser(
            "serve",
            help="let other programs use a model, by the APIs of OpenAI, Anthropic and llama-server",
            description="Serve a model on this PC until Ctrl+C. Programs need the key, which is made at the first "
            "start. Without --model, a request can name any model on this PC; otherwise it gets the last one.",
            epilog="Exit status: 0 stopped, 2 bad usage, or the address can't be used.",
        )
    )
    add_engines_commands(commands.add_parser("engines", help="list, add and remove engines"))
    add_models_commands(commands.add_parser("models", help="list, search, download, import and delete models"))
    return parser
