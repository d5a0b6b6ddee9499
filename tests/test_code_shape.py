"""The package keeps its shape: one name for one thing, no Protocol for one class, and the counts are right."""

import ast
from pathlib import Path

import pytest

from tools.code_shape import Trees, doubled_classes, getter_parameters, lonely_protocols, trees_of

ROOT = Path(__file__).resolve().parent.parent
LONELY = {
    "core.translation.Translator": "Language reads its texts with the words of translation.py, which is below it",
    "engine.contract.BenchClient": "only the worker measures; tests and screenshots put a double in its place",
    "engine.worker.cache.Memory": "the rules of the prompt cache are tested on made-up memories, without a model",
    "chat.view.thread.find_bar.SearchedThread": "ThreadView owns the find bar, which is below it",
    "chat.view.answer.highlighter.CodeView": "CodeCard asks the highlighter, which is below it",
}
"""Protocols with one implementation that stay, each with its reason."""
FOREIGN = {"engine.worker.devices._Ggml", "mcp.host.offers._Page", "chat.exchange.json_stream.Readable"}
"""Protocols that only objects of other libraries implement."""


@pytest.fixture(scope="module")
def trees() -> Trees:
    return trees_of(ROOT)


def test_no_class_name_stands_for_two_things(trees: Trees) -> None:
    assert doubled_classes(trees, ROOT) == {}


def test_a_name_that_two_classes_have_is_found(tmp_path: Path) -> None:
    source = "class A: ...\nclass B:\n    class A: ..."

    assert doubled_classes(tree_of(tmp_path, source), tmp_path) == {"A": ["core/x.py", "core/x.py"]}


def test_a_protocol_has_two_implementations_or_a_reason(trees: Trees) -> None:
    found = set(lonely_protocols(trees, ROOT)) - FOREIGN

    assert found == set(LONELY), "import the class itself; LONELY has the few Protocols that stay"
    assert len(LONELY) <= 5


def test_a_protocol_with_one_implementation_is_found(tmp_path: Path) -> None:
    once = "class Once(Protocol):\n    def f(self, a): ..."
    twice = "class Twice(Protocol):\n    n: int\n    def g(self): ..."
    classes = "class A:\n    n = 1\n    def f(self, a): ...\n    def g(self): ..."
    other = "class B:\n    def __init__(self):\n        self.n = 1\n    def f(self, b): ...\n    def g(self): ..."
    made_up = tree_of(tmp_path, "\n".join((once, twice, classes, other)))

    assert lonely_protocols(made_up, tmp_path) == ["core.x.Once"]


def test_getters_are_counted_and_clocks_are_not(tmp_path: Path) -> None:
    source = (
        "def f(a: Callable[[], bool], clock: Callable[[], float], b: Callable[[int], bool], c: Callable[[], X]): ..."
    )

    assert getter_parameters(tree_of(tmp_path, source), tmp_path) == ["core/x.py:1 a"]


def tree_of(tmp_path: Path, source: str) -> Trees:
    return {tmp_path / "qwendesk/core/x.py": ast.parse(source)}
