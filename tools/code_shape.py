"""Counts that show how the package is built: `python -m tools.code_shape [--list] [--run]`.

`--list` names what was counted; `--run` also starts a window and two commands and counts the modules that they import.
The numbers to reach stand beside the counts. tests/test_code_shape.py holds those that must stay at 0.
"""

import ast
import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

PACKAGE = "qwendesk"
ROOT = Path(__file__).resolve().parent.parent
SERVICES_OF_A_BUILDER = 5
"""A function that takes or builds so many services is composition."""
_WIRING = ("wiring.py", "services.py", "parts.py")
_SIMPLE = {"bool", "int", "float", "str"}
_CLOCKS = {"clock", "now"}
_CANCEL_CHECKS = {"is_cancelled", "is_cut", "cancelled", "is_stopped", "done", "is_gone"}

Function = ast.FunctionDef | ast.AsyncFunctionDef
Trees = Mapping[Path, ast.Module]
Members = dict[str, tuple[str, ...]]
"""Members by name: the parameters of a method, nothing for an attribute."""


class Count(NamedTuple):
    """One line of the output."""

    title: str
    value: int
    goal: int | None = None
    details: tuple[str, ...] = ()
    note: str = ""


def main(root: Path = ROOT) -> int:
    """Print one line per count. Returns 0."""
    for count in counts(root) + (runs(root) if "--run" in sys.argv else []):
        goal = "" if count.goal is None else f"  goal {count.goal:,}"
        print(f"{count.title:<58}{count.value:>8,}{goal}{count.note}")
        if "--list" in sys.argv:
            print(*(f"    {line}" for line in count.details), sep="\n", end="\n" if count.details else "")
    return 0


def counts(root: Path) -> list[Count]:
    """Return what is counted by reading the code."""
    trees = trees_of(root)
    lines = {path: path.read_text(encoding="utf-8").count("\n") for path in trees}
    data = sum(path.read_text(encoding="utf-8").count("\n") for path in (root / "resources").rglob("*.py"))
    largest = max(lines, key=lambda path: lines[path])
    tests = sum(path.read_text(encoding="utf-8").count("\n") for path in (root / "tests").rglob("*.py"))
    lengths = [node.end_lineno - node.lineno + 1 for node in _functions(trees) if node.end_lineno is not None]
    protocols = lonely_protocols(trees, root)
    doubled = doubled_classes(trees, root)
    cycles = import_cycles(import_graph(trees, root))
    getters = getter_parameters(trees, root)
    wiring = composition(trees, root)
    forwards = [
        f"{_show(path, root)}:{node.lineno} {node.name}" for path in trees for node in pure_forwards(trees[path])
    ]
    mean = f"  (a function's mean: {sum(lengths) / len(lengths):.1f} lines)"
    return [
        Count("product lines", sum(lines.values()) + data, 102_000, note=mean),
        Count("files", len(lines), 640),
        Count("lines of the largest file", lines[largest], 600, (_show(largest, root),)),
        Count("Protocols with at most one implementation", len(protocols), 8, tuple(protocols)),
        Count("double class names", len(doubled), 0, tuple(f"{name}: {', '.join(doubled[name])}" for name in doubled)),
        Count("circles of imports", len(cycles), 0, tuple(" <-> ".join(cycle) for cycle in cycles)),
        Count("getter parameters without clocks and cancel checks", len(getters), 10, tuple(getters)),
        Count("lines of composition", sum(wiring.values()), 1_300, tuple(f"{name} {wiring[name]}" for name in wiring)),
        Count("pure forwards", len(forwards), details=tuple(forwards)),
        Count("test lines", tests, 78_000),
    ]


def runs(root: Path) -> list[Count]:
    """Return what is counted by starting a window and by importing: the modules of ours that each needs."""
    window = _modules_of(root, "import sys\nsys.argv = ['bench.startup', '--draw', 'ours']\n", draws=True)
    found = {
        "modules of chat.service": _modules_of(root, "import qwendesk.chat.service"),
        "modules of `qwendesk ask`": _modules_of(root, "from qwendesk.__main__ import main\nmain(['ask', 'Hi'])"),
    }
    files = [root.joinpath(*name.split(".")) for name in window]
    lines = sum(_source(path).read_text(encoding="utf-8").count("\n") for path in files)
    return [
        Count("own lines imported to draw the window", lines, 60_000, note=f"  ({len(window)} modules)"),
        Count("modules of chat.service", len(found["modules of chat.service"]), 40),
        Count("modules of `qwendesk ask`", len(found["modules of `qwendesk ask`"]), 250),
    ]


def trees_of(root: Path) -> Trees:
    """Return the syntax tree of each file of the package."""
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted((root / PACKAGE).rglob("*.py"))}


def doubled_classes(trees: Trees, root: Path) -> dict[str, list[str]]:
    """Return the files of each class name that stands for more than one class, private ones included."""
    places: dict[str, list[str]] = defaultdict(list)
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(_show(path, root))
    return {name: found for name, found in sorted(places.items()) if len(found) > 1}


def lonely_protocols(trees: Trees, root: Path) -> list[str]:
    """Return the Protocols that at most one class implements, as "module.Name".

    A class implements one if it has all its members, and its methods begin with the same parameters.
    """
    protocols: dict[str, Members] = {}
    classes: list[Members] = []
    for path, tree in trees.items():
        module = _module(path, root).removeprefix(f"{PACKAGE}.")
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and any(ast.unparse(base) == "Protocol" for base in node.bases):
                protocols[f"{module}.{node.name}"] = _members(node)
            elif isinstance(node, ast.ClassDef):
                classes.append(_members(node))
    return [
        name
        for name, wanted in protocols.items()
        if sum(all(_fits(wanted, each, member) for member in wanted) for each in classes) < 2
    ]


def _fits(wanted: Members, found: Members, member: str) -> bool:
    return member in found and found[member][: len(wanted[member])] == wanted[member]


def _members(node: ast.ClassDef) -> Members:
    found: Members = {}
    for each in ast.walk(node):
        match each:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                is_property = any(ast.unparse(mark) == "property" for mark in each.decorator_list)
                found[name] = () if is_property else tuple(arg.arg.strip("_") for arg in each.args.args[1:])
            case ast.AnnAssign(target=ast.Name(id=name)) | ast.AnnAssign(target=ast.Attribute(attr=name)):
                found[name] = ()
            case ast.Assign(targets=targets):
                names = (part for target in targets for part in ast.walk(target))
                found |= {
                    part.id if isinstance(part, ast.Name) else part.attr: ()
                    for part in names
                    if isinstance(part, ast.Name | ast.Attribute)
                }
    return found


def getter_parameters(trees: Trees, root: Path) -> list[str]:
    """Return each parameter that is a function without arguments giving a plain value, such as `is_offline`."""
    found = []
    for path, tree in trees.items():
        for node in _functions({path: tree}):
            for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
                given = ast.unparse(each.annotation) if each.annotation is not None else ""
                result = given.removeprefix("Callable[[], ").removesuffix("]").removesuffix(" | None")
                is_getter = given.startswith("Callable[[], ") and result in _SIMPLE
                if is_getter and each.arg not in _CLOCKS | _CANCEL_CHECKS:
                    found.append(f"{_show(path, root)}:{node.lineno} {each.arg}")
    return found


def composition(trees: Trees, root: Path) -> dict[str, int]:
    """Return the lines of each file, or single function elsewhere, that puts services together."""
    services = {
        node.name
        for tree in trees.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and node.name.endswith(("Service", "Services"))
    }
    found: dict[str, int] = {}
    for path, tree in trees.items():
        if path.name in _WIRING:
            found[_show(path, root)] = path.read_text(encoding="utf-8").count("\n")
            continue
        for node in _functions({path: tree}):
            names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)} & services
            if len(names) >= SERVICES_OF_A_BUILDER and node.end_lineno is not None:
                found[f"{_show(path, root)} {node.name}"] = node.end_lineno - node.lineno + 1
    return found


def _functions(trees: Trees) -> Iterator[Function]:
    return (node for tree in trees.values() for node in ast.walk(tree) if isinstance(node, Function))


def pure_forwards(tree: ast.AST) -> Iterator[Function]:
    """Yield each function whose whole body is one call on another object, with only its own parameters as arguments."""
    for node in ast.walk(tree):
        if isinstance(node, Function) and _only_forwards(node):
            yield node


def _only_forwards(function: Function) -> bool:
    body = function.body[1:] if ast.get_docstring(function, clean=False) is not None else function.body
    if len(body) != 1 or not isinstance(body[0], ast.Return | ast.Expr):
        return False
    value = body[0].value
    if isinstance(value, ast.Await):
        value = value.value
    parameters = {argument.arg for argument in ast.walk(function.args) if isinstance(argument, ast.arg)}
    if isinstance(value, ast.Attribute):  # a property that hands on a property of another object
        return isinstance(body[0], ast.Return) and _is_other_object(value.value, parameters)
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
        return False
    arguments = [*value.args, *(keyword.value for keyword in value.keywords)]
    handed_on = [each.value if isinstance(each, ast.Starred) else each for each in arguments]
    own = all(isinstance(each, ast.Name) and each.id in parameters for each in handed_on)
    return own and _is_other_object(value.func.value, parameters)


def _is_other_object(node: ast.expr, parameters: set[str]) -> bool:
    """Whether this is `self.something` or deeper, and so not the object itself, a module or a local value."""
    depth = 0
    while isinstance(node, ast.Attribute):
        node, depth = node.value, depth + 1
    return isinstance(node, ast.Name) and node.id == "self" and "self" in parameters and depth > 0


def import_graph(trees: Trees, root: Path) -> dict[str, set[str]]:
    """Map each module to the modules of the package that it imports when it is loaded."""
    modules = {_module(path, root) for path in trees}
    graph: dict[str, set[str]] = {}
    for path, tree in trees.items():
        name = _module(path, root)
        graph[name] = {target for target in _imported(tree.body, modules) if target != name}
    return graph


def _imported(body: Iterable[ast.stmt], modules: set[str]) -> Iterator[str]:
    for node in body:
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names if alias.name in modules)
            case ast.ImportFrom(module=str(source), names=names):
                for alias in names:
                    inner = f"{source}.{alias.name}"
                    if inner in modules:
                        yield inner
                    elif source in modules:
                        yield source
            case ast.If(body=inside, orelse=other) | ast.Try(body=inside, orelse=other):
                yield from _imported([*inside, *other], modules)


def import_cycles(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """Return each group of modules that import each other, directly or through others (Tarjan's algorithm)."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        order[name] = lowest[name] = len(order)
        stack.append(name)
        for target in graph[name]:
            if target not in order:
                visit(target)
                lowest[name] = min(lowest[name], lowest[target])
            elif target in stack:
                lowest[name] = min(lowest[name], order[target])
        if lowest[name] == order[name]:
            start = stack.index(name)
            group = stack[start:]
            del stack[start:]
            if len(group) > 1:
                found.append(sorted(group))

    for name in graph:
        if name not in order:
            visit(name)
    return sorted(found)


def _modules_of(root: Path, code: str, *, draws: bool = False) -> list[str]:
    """Run `code` in another process, with folders of its own, and return the modules of ours that it has imported."""
    shown = "import atexit, json, os, sys\n" + (
        "def show():\n"
        f"    names = sorted(name for name in sys.modules if name.split('.')[0] == '{PACKAGE}')\n"
        "    print('\\n' + json.dumps(names), flush=True)\n"
    )
    if draws:
        code = (
            f"{code}import bench.startup as startup\nstartup._report = lambda: (show(), os._exit(0))\nstartup.main()\n"
        )
    else:
        code = f"atexit.register(show)\n{code}\n"
    with tempfile.TemporaryDirectory() as folder:
        from tests.user_folders import user_variables  # noqa: PLC0415 - the counts by reading need no tests

        environment = {**os.environ, **user_variables(Path(folder)), "QT_QPA_PLATFORM": "offscreen"}
        done = subprocess.run(
            (sys.executable, "-c", shown + code),
            cwd=root, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True,
        )  # fmt: skip
    names: list[str] = json.loads(done.stdout.splitlines()[-1])
    return names


def _source(path: Path) -> Path:
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def _module(path: Path, root: Path) -> str:
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _show(path: Path, root: Path) -> str:
    return path.relative_to(root / PACKAGE).as_posix()


if __name__ == "__main__":
    sys.exit(main())
