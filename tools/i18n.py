"""The texts of the window for translators: `python -m tools.i18n` lists what each language lacks.

`python -m tools.i18n update CODE` writes resources/i18n/CODE.json anew: every text of the sources in their order, ""
where there is no translation yet, without texts that are no more. A new CODE makes a new file.
"""

import argparse
import ast
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from qwendesk.core.app_options import AppOptions
from qwendesk.core.options import GenerationOptions, LoadOptions
from qwendesk.core.settings import table
from qwendesk.ui.frame.actions import COMMANDS, FIXED_KEYS, GROUPS
from qwendesk.ui.kit.language import Language, languages_folder, problem_of
from qwendesk.ui.kit.plurals import PLURALS
from qwendesk.ui.kit.text import BETWEEN_FORMS

ROOT = Path(__file__).resolve().parent.parent
_OPTIONS: tuple[type[msgspec.Struct], ...] = (AppOptions, LoadOptions, GenerationOptions)
_N_TEXTS: Mapping[str, int] = {"tr": 1, "mark": 1, "tr_n": 2}
"""How many of the first arguments of each function are texts."""


def sources() -> dict[str, str]:
    """Where each text that people may read is: "file:line" by text, in the order of files and lines."""
    found: dict[str, str] = {}
    for file in sorted((ROOT / "qwendesk").rglob("*.py")):
        for text, line in texts_of(file.read_text(encoding="utf-8")):
            found.setdefault(text, f"{file.relative_to(ROOT).as_posix()}:{line}")
    for options in _OPTIONS:
        for key, entry in table(options).items():
            said = entry.setting
            for text in (said.label, said.help, said.section, said.unit, said.source):
                if text:
                    found.setdefault(text, f"the option {key}")
    for text in (*GROUPS, *(each.text for each in COMMANDS.values()), *(key.text for key in FIXED_KEYS)):
        found.setdefault(text, "the table of commands")
    return found


def texts_of(source: str) -> Iterator[tuple[str, int]]:
    """Each text that a module hands to tr, tr_n or mark, with its line."""
    for call in calls(source):
        pieces = [text.value for text in call.args[: _N_TEXTS[name_of(call)]] if isinstance(text, ast.Constant)]
        if len(pieces) == _N_TEXTS[name_of(call)]:
            yield BETWEEN_FORMS.join(map(str, pieces)), call.lineno


def calls(source: str) -> Iterator[ast.Call]:
    """The calls of tr, tr_n and mark of a module, by line."""
    found = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call) and name_of(node) in _N_TEXTS]
    yield from sorted(found, key=lambda call: (call.lineno, call.col_offset))


def name_of(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else ""


def problems(language: Language, wanted: Mapping[str, str]) -> list[str]:
    """What a language file lacks, has too much, or has wrong; a line each."""
    lines = [f"{place}: not translated: {text!r}" for text, place in wanted.items() if not language.texts.get(text)]
    lines += [f"no more in the sources: {text!r}" for text in language.texts if text not in wanted]
    for source, text in language.texts.items():
        if problem := problem_of(source, text, PLURALS[language.plural].n_forms):
            lines.append(f"{problem}: {source!r}")
    return lines


def updated(language: Language, wanted: Mapping[str, str]) -> Language:
    """The language with exactly the wanted texts."""
    return msgspec.structs.replace(language, texts={text: language.texts.get(text, "") for text in wanted})


def _read(file: Path) -> Language:
    return msgspec.json.decode(file.read_bytes(), type=Language)


def _update(code: str) -> None:
    file = languages_folder() / f"{code}.json"
    language = updated(_read(file) if file.exists() else Language(name=code, texts={}), sources())
    file.write_bytes(msgspec.json.format(msgspec.json.encode(language), indent=2) + b"\n")
    missing = sum(not text for text in language.texts.values())
    print(f"{file.name}: {len(language.texts)} texts, {missing} to be translated")


def _check() -> int:
    wanted, n_problems = sources(), 0
    for file in sorted(languages_folder().glob("*.json")):
        lines = problems(_read(file), wanted)
        n_problems += len(lines)
        print("\n".join([f"{file.name}: {len(lines)} to do", *(f"  {line}" for line in lines)]))
    return 1 if n_problems else 0


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.i18n", description="Texts for translators.")
    commands = parser.add_subparsers(dest="command")
    commands.add_parser("check", help="list what each language lacks (done without a command, too)")
    commands.add_parser("update", help="write a language's file anew").add_argument("code", help="such as de or pt_BR")
    arguments = parser.parse_args(argv)
    if arguments.command == "update":
        _update(arguments.code)
        return 0
    return _check()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
