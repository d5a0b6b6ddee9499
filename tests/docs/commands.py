"""What may be typed: commands of QwenDesk, flags of llama.cpp, Ollama and vLLM, targets of the Makefile, file names."""

import argparse
import functools
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from qwendesk.cli.main import make_parser
from qwendesk.commands.command_reader import read_command
from qwendesk.core.engine_manifest import MANIFEST_NAME
from qwendesk.core.flags import search_flag
from qwendesk.core.model_titles import read_model_name
from qwendesk.decoding.ffmpeg import INSTALLERS, install_line

_ROOT = Path(__file__).resolve().parents[2]
_BLOCK = re.compile(r"^```(?P<kind>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


def without_blocks(markdown: str) -> str:
    """Return the page without its blocks of code."""
    return _BLOCK.sub("", markdown)


def command_lines(markdown: str) -> list[str]:
    """Return the lines of the blocks that have no language: commands to type. Output is in blocks of "text"."""
    return [line for match in _BLOCK.finditer(markdown) if not match["kind"] for line in match["text"].splitlines()]


def check_command_line(line: str) -> None:
    """Parse a complete command of QwenDesk as the command line would. Raises SystemExit if it is wrong."""
    program, *arguments = shlex.split(line)
    assert program == "qwendesk", line
    make_parser().parse_args(arguments)


def is_typed(text: str) -> bool:
    """Whether a word in backticks is something to type that exists."""
    return text in _words() or _is_begun_command(text) or _belongs_to_another_program(text)


def _belongs_to_another_program(text: str) -> bool:
    name = read_model_name(text) if re.fullmatch(r"[\w.-]+/[\w.-]+:[\w.-]+", text) else None
    return name is not None or search_flag(text) is not None or read_command(text) is not None


def _is_begun_command(text: str) -> bool:
    """Whether it begins with `qwendesk`, and goes on with its commands, their options and placeholders in capitals."""
    program, *words = text.split()
    if program != "qwendesk" or not words:
        return False
    parser: argparse.ArgumentParser | None = make_parser()
    known: set[str] = set(_window_flags())
    for word in words:
        commands = _commands(parser) if parser is not None else {}
        if word in commands:
            parser = commands[word]
            known = set(parser._option_string_actions)
        elif word not in known and not word.isupper():
            return False
    return True


@functools.cache
def _words() -> frozenset[str]:
    return frozenset(_all_words())


def _all_words() -> Iterator[str]:
    parsers = [make_parser()]
    for parser in parsers:
        yield from parser._option_string_actions
        for option, choice in _choices(parser):
            yield from (choice, f"{option} {choice}")
        yield from _commands(parser)
        parsers += _commands(parser).values()
    yield from (MANIFEST_NAME, "qwendesk", "--unified 64")
    yield from (install_line("win32"), install_line("darwin"), *(line for _, line in INSTALLERS))
    yield from _window_flags()
    makefile = (_ROOT / "Makefile").read_text(encoding="utf-8")
    engines = re.search(r"ENGINE=(\w+(?:\|\w+)+)", makefile)
    assert engines is not None
    for name in engines[1].split("|"):
        yield from (f"make run ENGINE={name}", f"set ENGINE={name}")
    on_windows = re.search(r"ENGINE = (.+?),  ?e\.g\.", (_ROOT / "run.cmd").read_text(encoding="utf-8"))
    assert on_windows is not None
    yield from (f"set ENGINE={name}" for name in re.findall(r"\w+", on_windows[1]))
    yield from (path.name for path in _ROOT.glob("*.cmd"))
    yield from (".venv/bin/python -m qwendesk", r".venv\Scripts\python -m qwendesk")
    spec = (_ROOT / "packaging" / "qwendesk.spec").read_text(encoding="utf-8")
    for name in re.findall(r'name="(\w+)", console=True', spec):
        yield from (f"{name}.exe", f"{name}.exe doctor")


def _window_flags() -> list[str]:
    return re.findall(r"\"(--[\w-]+)\"", (_ROOT / "qwendesk" / "app" / "main.py").read_text(encoding="utf-8"))


def _commands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    groups = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    return {name: each for group in groups for name, each in group.choices.items()}


def _choices(parser: argparse.ArgumentParser) -> Iterator[tuple[str, str]]:
    for action in parser._actions:
        for option in action.option_strings:
            yield from ((option, str(choice)) for choice in action.choices or ())
