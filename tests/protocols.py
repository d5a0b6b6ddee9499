"""Finds the Protocols of the package that at most one of its classes implements."""

import ast
from pathlib import Path

Members = dict[str, tuple[str, ...]]
"""Members by name: the parameters of a method, nothing for an attribute."""

ALLOWED = {
    "core.translation.Translator": "Language reads its texts with the words of translation.py, which is below it",
    "engine.contract.BenchClient": "only the worker measures; tests and screenshots put a double in its place",
    "engine.worker.cache.Memory": "the rules of the prompt cache are tested on made-up memories, without a model",
    "chat.view.thread.find_bar.SearchedThread": "ThreadView owns the find bar, which is below it",
    "chat.view.thread.highlighter.CodeView": "CodeCard asks the highlighter, which is below it",
}
"""Protocols with one implementation that stay, each with its reason. At most five."""
FOREIGN = ("engine.worker.devices._Ggml", "mcp.host.offers._Page", "chat.exchange.json_stream.Readable")
"""Protocols that only objects of other libraries implement."""


def lonely_protocols(root: Path) -> list[str]:
    """Return the Protocols below `root`/qwendesk that at most one class implements, as "module.Name".

    A class implements one if it has all its members, and its methods begin with the same parameters.
    """
    protocols: dict[str, Members] = {}
    classes: list[Members] = []
    for path in sorted((root / "qwendesk").rglob("*.py")):
        module = ".".join(path.relative_to(root / "qwendesk").with_suffix("").parts)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
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
