"""Reads every import of the package and holds it against the rules of docs/architecture.md."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tools.code_shape import import_cycles, import_graph

PACKAGE = "qwendesk"


@dataclass(frozen=True)
class Rule:
    """What modules below `who` may import of ours, of Qt and of llama.cpp. Names are relative to the package."""

    who: str
    may: tuple[str, ...]
    values_of: tuple[str, ...] = ()
    """From these, only names with a capital: types and constants, no functions and no whole modules."""
    qt: bool = False
    llama: bool = False
    anything: bool = False
    """All of ours but the worker: the places that put the parts together."""


FEATURES = (
    "settings",
    "remote",
    "commands",
    "engines",
    "models",
    "meters",
    "toolbox",
    "mcp",
    "chat",
    "server",
    "bench",
    "games",
    "help",
)
"""The order of the features: each may import those before it, directly, and none after it."""
_LIBRARIES = ("core", "decoding", "engine", "hub", "hardware", "store")
_VALUES = ("engine.state", "engine.protocol", "hub", "hardware")


def _feature_rules(name: str) -> tuple[Rule, Rule]:
    """A feature imports itself and those before it; its view imports their views as well."""
    known = FEATURES[: FEATURES.index(name) + 1]
    return (
        Rule(f"{name}.view", ("core", "decoding", "widgets", *known), _VALUES, qt=True),
        Rule(name, (*_LIBRARIES, *known)),
    )


RULES = (
    Rule("core", ("core",)),
    Rule("decoding", ("core", "decoding")),
    Rule("engine.protocol", ("core",)),
    Rule("engine.protocol_lines", ("core", "engine.protocol")),
    Rule("engine.dry_run_protocol", ("core", "engine.protocol", "engine.protocol_lines")),
    Rule("engine.state", ("core", "engine.protocol")),
    Rule(
        "engine.worker",
        ("core", "decoding", "engine.protocol", "engine.protocol_lines", "engine.dry_run_protocol", "engine.worker"),
        llama=True,
    ),
    Rule("engine", ("core", "engine")),
    Rule("hub", ("core", "hub")),
    Rule("hardware", ("core", "hardware")),
    Rule("store", ("core", "store")),
    Rule("widgets", ("core", "widgets"), ("engine.state", "engine.protocol"), qt=True),
    *(rule for feature in FEATURES for rule in _feature_rules(feature)),
    Rule("app", (), qt=True, anything=True),
    Rule("", (), anything=True),
)
"""The first rule whose `who` contains a module decides; the last is for cli, __main__ and their helpers."""

_QT = ("PySide6", "shiboken6", "qasync")
_LLAMA = ("llama_cpp",)
_WORKER = "engine.worker"
_ENTRY = "__main__"
"""The one module that starts the worker, or the window: each inside a function, so that neither loads the other."""


@dataclass(frozen=True)
class Import:
    """One imported module, and the name taken from it if there is one."""

    line: int
    module: str
    name: str = ""
    in_function: bool = False


def violations(root: Path) -> list[str]:
    """Every import below `root`/qwendesk that the rules forbid, as "file:line: sentence"."""
    found = []
    for path in sorted((root / PACKAGE).rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        module = ".".join(parts[1:-1] if parts[-1] == "__init__" else parts[1:])
        for item in imports_of(path):
            problem = _problem(module, item, root)
            if problem:
                found.append(f"{path.relative_to(root).as_posix()}:{item.line}: {problem}")
    return found


def cycles(root: Path) -> list[str]:
    """Each group of modules below `root`/qwendesk that need each other to be loaded, as "one <-> other"."""
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted((root / PACKAGE).rglob("*.py"))}
    return [" <-> ".join(cycle) for cycle in import_cycles(import_graph(trees, root))]


def imports_of(path: Path) -> Iterator[Import]:
    """Every import statement, and every import by a name that is written out (`import_module("x")`)."""
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    inside = {
        id(node)
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
    }
    for node in ast.walk(tree):
        lazy = id(node) in inside
        match node:
            case ast.Import(names=names, lineno=line):
                yield from (Import(line, alias.name, in_function=lazy) for alias in names)
            case ast.ImportFrom(module=source, names=names, level=0, lineno=line):
                yield from (Import(line, source or "", alias.name, lazy) for alias in names)
            case ast.ImportFrom(lineno=line):
                yield Import(line, "", "relative", lazy)
            case ast.Call(func=function, args=[ast.Constant(value=str(name)), *_], lineno=line):
                if ast.unparse(function) in {"import_module", "importlib.import_module", "__import__"}:
                    yield Import(line, name, in_function=lazy)


def _problem(module: str, item: Import, root: Path) -> str:
    """What is wrong with this import; empty if nothing."""
    if item.name == "relative":
        return "a relative import: write the absolute name, which the import rules can read"
    rule = next(rule for rule in RULES if _within(module, rule.who))
    who = rule.who or module or PACKAGE
    top = item.module.split(".")[0]
    if top in _LLAMA and not rule.llama:
        return f"{who} must not import {top}: only engine.worker may"
    if top in _QT and not rule.qt:
        return f"{who} must not import {top}: only widgets, app and the views may"
    if top != PACKAGE or (item.module == PACKAGE and not _is_module(root, item)):
        return ""
    target = _target(root, item)
    if not rule.qt and not rule.anything and any(_within(target, f"{feature}.view") for feature in FEATURES):
        return f"{who} must not import a view: only views and app may know Qt"
    if _within(target, _WORKER) and not _within(module, _WORKER):
        return _worker_problem(module, item, who)
    if module == _ENTRY and _within(target, "app") and not item.in_function:
        return "__main__ must import app inside a function, or the worker and the command line would load Qt"
    if rule.anything or any(_within(target, allowed) for allowed in rule.may):
        return ""
    if any(_within(target, allowed) for allowed in rule.values_of):
        if item.name[:1].isupper() and not _is_module(root, item):
            return ""
        return f"{who} may take only values (names with a capital) from {target}, not {item.name or 'the module'}"
    return f"{who} must not import {target}: it may import {', '.join(rule.may + rule.values_of)}"


def _worker_problem(module: str, item: Import, who: str) -> str:
    if module != _ENTRY:
        return f"{who} must not import engine.worker: the worker is a process of its own"
    if not item.in_function:
        return "__main__ must import engine.worker inside a function, or every start would load llama.cpp"
    return ""


def _within(module: str, package: str) -> bool:
    return not package or module == package or module.startswith(package + ".")


def _target(root: Path, item: Import) -> str:
    """The module that is meant, without the package's name: `from qwendesk.engine import client` is engine.client."""
    full = f"{item.module}.{item.name}" if _is_module(root, item) else item.module
    return full.removeprefix(PACKAGE).removeprefix(".")


def _is_module(root: Path, item: Import) -> bool:
    """Whether the imported name is itself a module or package."""
    path = root.joinpath(*item.module.split("."), item.name)
    return bool(item.name) and (path.with_suffix(".py").is_file() or path.is_dir())
