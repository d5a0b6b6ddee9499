"""The parser of all commands, and `main`, which runs one of them."""

import argparse
import asyncio
import sys
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, NamedTuple

from qwendesk import __version__
from qwendesk.cli.models_hub import with_next_step
from qwendesk.cli.terminal import Interrupts, Terminal, check_text, open_missing_streams
from qwendesk.core.errors import QwenDeskError
from qwendesk.core.permissions import restrict_own_folders
from qwendesk.core.translation import tr

EXIT_BAD_USAGE = 2
# 128 plus the number of SIGINT, as in shells.
EXIT_INTERRUPTED = 130

_WINDOW = """\
Without a command, QwenDesk opens its window. Options of the window:
  FILE ...                attach these files; a .gguf file is offered for loading
  --theme THEME           dark, light, contrast or system
  --lang CODE             the window's language: such as de or zh
  --safe                  start with default settings, on the CPU, without a model or chat
  --demo-tour             ask the demo model a question and show it a picture, then quit
  --screenshot FILE       with --demo-tour: save a picture of the window
"""


def main(arguments: Sequence[str]) -> int:
    """Run one command and return its exit status."""
    open_missing_streams()
    parser = make_parser(next((argument for argument in arguments if not argument.startswith("-")), ""))
    options = parser.parse_args(arguments)
    terminal = Terminal(sys.stdout, sys.stderr)
    try:
        for number, argument in enumerate(arguments, 1):
            check_text(argument, tr("Argument {0}", number))
        restrict_own_folders(with_contents=False)
        with Interrupts() as interrupts:
            running = options.run(options, terminal, interrupts)
            status = running if isinstance(running, int) else asyncio.run(running)
    except QwenDeskError as error:
        terminal.note(f"qwendesk {options.command}: {with_next_step(error)}")
        return EXIT_BAD_USAGE
    except (KeyboardInterrupt, asyncio.CancelledError):
        return EXIT_INTERRUPTED
    return EXIT_INTERRUPTED if interrupts.is_requested else status


Run = Callable[[argparse.Namespace, Terminal, Interrupts], int | Coroutine[Any, Any, int]]


def _add_ask(parser: argparse.ArgumentParser) -> Run:
    from qwendesk.cli.ask import add_ask_options, ask, request_of

    add_ask_options(parser)
    return lambda options, terminal, interrupts: ask(request_of(options), terminal, interrupts)


def _add_bench(parser: argparse.ArgumentParser) -> Run:
    from qwendesk.cli.bench import add_bench_options, bench

    add_bench_options(parser)
    return bench


def _add_why(parser: argparse.ArgumentParser) -> Run:
    from qwendesk.cli.why import add_why_options, why

    add_why_options(parser)
    return why


def _add_doctor(parser: argparse.ArgumentParser) -> Run:
    from qwendesk.cli.doctor import doctor

    parser.add_argument("--json", action="store_true", help="print one JSON object instead")
    return lambda options, terminal, interrupts: doctor(terminal, interrupts, as_json=options.json)


def _add_trial(parser: argparse.ArgumentParser) -> Run:
    from qwendesk.cli.trial import add_trial_options, trial

    add_trial_options(parser)
    return trial


def _add_verify(parser: argparse.ArgumentParser) -> Run:
    from qwendesk.cli.verify import add_verify_options, verify_files

    add_verify_options(parser)
    return lambda options, terminal, _interrupts: verify_files(options, terminal)


def _add_plan(parser: argparse.ArgumentParser) -> Run:
    from qwendesk.cli.plan import add_plan_options, plan

    add_plan_options(parser)
    return plan


def _add_recommend(parser: argparse.ArgumentParser) -> Run:
    from qwendesk.cli.recommend import add_recommend_options, recommend

    add_recommend_options(parser)
    return recommend


def _add_reports(parser: argparse.ArgumentParser) -> None:
    from qwendesk.cli.reports import add_reports_commands

    add_reports_commands(parser)


def _add_serve(parser: argparse.ArgumentParser) -> Run:
    from qwendesk.cli.serve import add_serve_options, serve

    add_serve_options(parser)
    return serve


def _add_start(parser: argparse.ArgumentParser) -> Run:
    from qwendesk.cli.start import add_start_options, start

    add_start_options(parser)
    return start


def _add_engines(parser: argparse.ArgumentParser) -> None:
    from qwendesk.cli.engines import add_engines_commands

    add_engines_commands(parser)


def _add_models(parser: argparse.ArgumentParser) -> None:
    from qwendesk.cli.models import add_models_commands

    add_models_commands(parser)


class CliCommand(NamedTuple):
    """A command. `add` imports its module, adds its options, and returns what runs it, unless its own commands do."""

    name: str
    add: Callable[[argparse.ArgumentParser], Run | None]
    help: str
    description: str | None = None
    exit_status: str | None = None


_COMMANDS = (
    CliCommand(
        "ask",
        _add_ask,
        "ask a model and print its answer",
        "Ask a model, by default the built-in demo model, and print its answer as it arrives.",
        "Exit status: 0 answered, 2 bad usage or an answer that failed, 3 the model can't be loaded, "
        "4 the engine crashed.",
    ),
    CliCommand(
        "bench",
        _add_bench,
        "measure the speed of a model, as llama-bench does",
        "Measure how fast a model processes prompts and generates text, by the number of tokens in "
        "memory before, with drafts and without, and how soon second questions are answered. The table has the "
        "median and the standard deviation. Ctrl+C stops; what was measured stays.",
        "Exit status: 0 measured, 2 bad usage, 3 the model can't be loaded, 4 the engine failed, 130 stopped early.",
    ),
    CliCommand(
        "why",
        _add_why,
        "say why a model isn't faster on this PC, and what to change",
        "Have a model answer, measure what this PC could do, and show where the time of a token goes: weights, KV "
        "cache, sampling, QwenDesk's own work and waits.",
        "Exit status: 0 explained, 2 bad usage, 3 the model can't be loaded, 4 the engine failed.",
    ),
    CliCommand(
        "doctor",
        _add_doctor,
        "check the installation with the built-in demo model",
        "Show versions, devices and folders, and test the engine with the built-in demo model.",
        "Exit status: 0 all tests passed, 3 the demo model can't be loaded, 4 a test or the engine failed.",
    ),
    CliCommand(
        "trial",
        _add_trial,
        "measure every engine on this PC, for a report that you can send",
        "Measure every engine on this PC with the demo model and up to two models of yours: answers, "
        "memory and speed. Takes up to ten minutes. Shows the report, which has no names and no chats, before "
        "saving it. Nothing is sent.",
        "Exit status: 0 saved, 1 not saved, 2 bad usage, 130 stopped early.",
    ),
    CliCommand(
        "verify",
        _add_verify,
        "check model files for damage, newer versions and known problems",
        "Check model files and suggest a fix for each problem.",
        "Exit status: 0 no problems, 1 warnings, 2 a file is bad or can't be read.",
    ),
    CliCommand(
        "plan",
        _add_plan,
        "estimate a model's memory and speed, even before you download it",
        "Plan how a model would be loaded: memory on each device, and expected speed.",
        "Exit status: 0 it fits, 1 it doesn't fit, 2 bad usage or a file that can't be read.",
    ),
    CliCommand(
        "recommend",
        _add_recommend,
        "say which model to take on this PC, or on one that you describe",
        "Rank the models of the catalog for a purpose: file, context, expected speed, published "
        "results, and what speaks for and against each.",
        "Exit status: 0 something fits, 1 nothing fits, 2 bad usage.",
    ),
    CliCommand("reports", _add_reports, "add speeds that you found or measured to the advice, list and remove them"),
    CliCommand(
        "serve",
        _add_serve,
        "let other programs use a model, by the APIs of OpenAI, Anthropic and llama-server",
        "Serve a model on this PC until Ctrl+C. Programs need the key, which is made at the first "
        "start. Without --model, a request can name any model on this PC; otherwise it gets the last one.",
        "Exit status: 0 stopped, 2 bad usage, or the address can't be used.",
    ),
    CliCommand(
        "start",
        _add_start,
        "start Claude Code, Codex, opencode, Cline or Continue with the running server",
        "Start a program in this terminal, set up for the server of the window or of `qwendesk serve`. "
        "Nothing in the program's own settings changes.",
        "Exit status: that of the program, 2 if it isn't installed or no server runs.",
    ),
    CliCommand("engines", _add_engines, "list, add and remove engines"),
    CliCommand("models", _add_models, "list, search, download, import and delete models"),
)


def make_parser(command: str | None = None) -> argparse.ArgumentParser:
    """Return the parser of all commands. With the name of one, only its module is imported, and only it has options."""
    parser = argparse.ArgumentParser(
        prog="qwendesk",
        description="Run Qwen 3.5, 3.6 and 3.8 at home.",
        epilog=_WINDOW,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"QwenDesk {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for each in _COMMANDS:
        own = commands.add_parser(each.name, help=each.help, description=each.description, epilog=each.exit_status)
        run = each.add(own) if command in (None, each.name) else None
        if run is not None:
            own.set_defaults(run=run)
    return parser
