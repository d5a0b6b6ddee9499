"""What the window says: its labels and shortcuts, for texts that name them."""

import ast
import functools
import re
from pathlib import Path

from qwendesk.widgets.actions import COMMANDS

_PACKAGE = Path(__file__).resolve().parents[2] / "qwendesk"


def is_label(text: str) -> bool:
    """Whether the app has it: whole, before "…", or as the beginning of one that goes on with a value."""
    return any(text == label or label.startswith(f"{text}: {{") or label == f"{text}…" for label in _labels())


def unknown_shortcuts(text: str) -> set[str]:
    """The shortcuts that `text` names and the window does not have."""
    known = {keys for command in COMMANDS.values() for keys in command.shortcuts}
    known |= {keys.replace("Return", "Enter") for keys in known} | {"Shift+Enter", "Ctrl+Enter"}
    return set(re.findall(r"(?:Ctrl|Shift|Alt)\+(?:Shift\+)?(?:\w+|[,.+])", text)) - known


@functools.cache
def _labels() -> frozenset[str]:
    """Every line of every string in the package; {0} and the like stand for anything."""
    found = {command.text for command in COMMANDS.values()}
    for path in _PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found |= set(node.value.splitlines())
    return frozenset(found)
