"""The package keeps its shape: one name for one thing, and what tools/code_shape.py counts is counted right."""

import ast
from pathlib import Path

from tools.code_shape import Trees, doubled_classes, getter_parameters, lonely_protocols, trees_of

ROOT = Path(__file__).resolve().parent.parent


def tree_of(tmp_path: Path, source: str) -> Trees:
    file = tmp_path / "qwendesk/core/x.py"
    return {file: ast.parse(source)}


def test_no_class_name_stands_for_two_things() -> None:
    assert doubled_classes(trees_of(ROOT), ROOT) == {}


def test_a_name_that_two_classes_have_is_found(tmp_path: Path) -> None:
    source = "class A: ...\nclass B:\n    class A: ..."

    assert doubled_classes(tree_of(tmp_path, source), tmp_path) == {"A": ["core/x.py", "core/x.py"]}


def test_a_protocol_counts_with_one_implementation_and_not_with_two_or_none(tmp_path: Path) -> None:
    protocol = "class P(Protocol):\n    n: int\n    def f(self): ...\n"
    one = "class Base:\n    def f(self): ...\nclass A(Base):\n    def __init__(self):\n        self.n = 1\n"
    other = "class B:\n    n = 2\n    def f(self): ...\n"

    assert lonely_protocols(tree_of(tmp_path, protocol + one)) == ["P: A"]
    assert lonely_protocols(tree_of(tmp_path, protocol + one + other)) == []
    assert lonely_protocols(tree_of(tmp_path, protocol)) == []


def test_getters_are_counted_and_clocks_are_not(tmp_path: Path) -> None:
    source = (
        "def f(a: Callable[[], bool], clock: Callable[[], float], b: Callable[[int], bool], c: Callable[[], X]): ..."
    )

    assert getter_parameters(tree_of(tmp_path, source), tmp_path) == ["core/x.py:1 a"]
