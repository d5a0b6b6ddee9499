"""The texts of the window for translators: `python -m tools.i18n` lists what each language lacks.

`python -m tools.i18n update` rewrites the files in resources/i18n: every text of the sources in alphabetical order, so
that moved code changes nothing, "" where a translation is missing, without unused texts. `update CODE` rewrites that
of one language; a new CODE makes a new file.
"""

import argparse
import ast
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from qwendesk.core.app_options import AppOptions
from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.options import LoadOptions
from qwendesk.core.settings import table
from qwendesk.core.translation import FORM_SEPARATOR, PLURALS, Language, languages_folder, translation_problem
from qwendesk.hub.catalog import load_catalog
from qwendesk.widgets.actions import COMMANDS, FIXED_KEYS, GROUPS

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
            for text in (
                said.label,
                said.help,
                said.section,
                said.unit,
                said.source,
                said.example,
                said.minus_one,
                *said.choice_help.values(),
            ):
                if text:
                    found.setdefault(text, f"the option {key}")
    for text in (*GROUPS, *(each.text for each in COMMANDS.values()), *(key.text for key in FIXED_KEYS)):
        found.setdefault(text, "the table of commands")
    for text in _catalog_texts():
        found.setdefault(text, "the catalog of models")
    return found


def _catalog_texts() -> Iterator[str]:
    """Yield the texts of the catalog that are shown, without web addresses."""
    contents = load_catalog().contents
    for text in (
        *(
            text
            for model in contents.models
            for text in (model.purpose, model.cpu_purpose, model.problem, model.licence.restriction)
        ),
        *(text for note in contents.notes for text in (note.text, note.source)),
        *(text for quality in contents.quality for text in (quality.series, quality.source)),
        *(replaced.reason for replaced in contents.superseded),
    ):
        if " " in text:
            yield text


def texts_of(source: str) -> Iterator[tuple[str, int]]:
    """Each text that a module hands to tr, tr_n or mark, with its line."""
    for call in calls(source):
        pieces = [text.value for text in call.args[: _N_TEXTS[name_of(call)]] if isinstance(text, ast.Constant)]
        if len(pieces) == _N_TEXTS[name_of(call)]:
            yield FORM_SEPARATOR.join(map(str, pieces)), call.lineno


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
        if problem := translation_problem(source, text, PLURALS[language.plural].n_forms):
            lines.append(f"{problem}: {source!r}")
    return lines


def updated(language: Language, wanted: Mapping[str, str]) -> Language:
    """Return the language with exactly the wanted texts, in alphabetical order."""
    texts = {text: language.texts.get(text, "") for text in sorted(wanted, key=lambda text: (text.casefold(), text))}
    return msgspec.structs.replace(language, texts=texts)


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
    update = commands.add_parser("update", help="write the languages' files anew")
    update.add_argument("codes", nargs="*", metavar="CODE", help="such as de or pt_BR; without one, every language")
    arguments = parser.parse_args(argv)
    if arguments.command == "update":
        for code in arguments.codes or sorted(file.stem for file in languages_folder().glob("*.json")):
            _update(code)
        return 0
    return _check()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
