"""Counts that show how the package is built: `python -m tools.code_shape`.

Standard library only. Nothing is judged, and no test enforces a limit.
"""

import ast
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

PACKAGE = "qwendesk"
ROOT = Path(__file__).resolve().parent.parent
SMALL_LINES = 40
_WIRING = ("wiring.py", "services.py")

Function = ast.FunctionDef | ast.AsyncFunctionDef


def main(root: Path = ROOT) -> int:
    """Print one line per count, with details below it if `--list` is given. Returns 0."""
    sources = {path: path.read_text(encoding="utf-8") for path in sorted((root / PACKAGE).rglob("*.py"))}
    trees = {path: ast.parse(source, str(path)) for path, source in sources.items()}
    lines = {path: source.count("\n") for path, source in sources.items()}
    forwards = [
        f"{_show(path, root)}:{node.lineno} {node.name}" for path in trees for node in pure_forwards(trees[path])
    ]
    classes = {name: places for name, places in _classes(trees, root).items() if len(places) > 1}
    wiring = {path: count for path, count in lines.items() if _is_wiring(path.relative_to(root / PACKAGE))}
    cycles = import_cycles(import_graph(trees, root))
    for title, count, details in (
        ("lines", sum(lines.values()), ()),
        ("Python files", len(lines), ()),
        (f"files under {SMALL_LINES} lines", sum(count < SMALL_LINES for count in lines.values()), ()),
        ("pure forwards", len(forwards), forwards),
        ("lines of wiring", sum(wiring.values()), [f"{_show(path, root)} {wiring[path]}" for path in wiring]),
        ("class names that mean two things", len(classes), [f"{name}: {', '.join(classes[name])}" for name in classes]),
        ("import cycles", len(cycles), [" <-> ".join(cycle) for cycle in cycles]),
    ):
        print(f"{title:<34}{count:>8,}")
        if "--list" in sys.argv:
            print(*(f"    {line}" for line in details), sep="\n")
    return 0


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


def _classes(trees: Mapping[Path, ast.Module], root: Path) -> dict[str, list[str]]:
    places: dict[str, list[str]] = defaultdict(list)
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(_show(path, root))
    return places


def _is_wiring(path: Path) -> bool:
    """Application start-up, the bridges that are left, and what builds a feature."""
    parts = path.parts
    starts_up = parts[0] == "app" and len(parts) == 2
    return starts_up or path.name in _WIRING or "bridges" in parts or path.stem.endswith("_bridge")


def import_graph(trees: Mapping[Path, ast.Module], root: Path) -> dict[str, set[str]]:
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


def _module(path: Path, root: Path) -> str:
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _show(path: Path, root: Path) -> str:
    return path.relative_to(root / PACKAGE).as_posix()


if __name__ == "__main__":
    sys.exit(main())
