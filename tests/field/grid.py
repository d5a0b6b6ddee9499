"""The grid of faults that people reported of programs like ours: each kind of fault by each way into the app.

A kind is a fault as people meet it, not one input of it. Its cases are ordinary tests, marked with what they cover:

    EMPTY_TEXT = Kind("An empty text argument swallows the rest of the call", {Way.IMPORT: "an import runs no calls"})

    @case(EMPTY_TEXT, Way.CHAT, Way.MESSAGES, report="llama.cpp#26763", before="failed")
    def test_an_empty_text_argument_is_an_empty_text(...) -> None: ...

tests/field/test_grid.py fails where a cell of the grid has neither a case nor a reason, and where a kind has fewer than
five cases. `python -m tests.field` prints the grid.
"""

import enum
import importlib
import math
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Literal, TypeVar

import tests.field

Before = Literal["failed", "held"]
"""What the case did at commit c9f491f, where this work began.

Some are read from the code of that commit. To try one, tests/field is copied into a checkout of it, with the helpers
it lacks, and each file runs there alone. A case that ends there for want of a module is "failed" only if the fault
itself was there.
"""


class Way(enum.Enum):
    """A way into the app by which an input can come."""

    WINDOW = "window"
    CLI = "CLI"
    CHAT = "Chat Completions"
    RESPONSES = "Responses"
    MESSAGES = "Messages"
    MCP = "MCP"
    IMPORT = "import"


SERVER = (Way.CHAT, Way.RESPONSES, Way.MESSAGES)
"""The APIs of our server."""


@dataclass(frozen=True)
class Kind:
    """A kind of fault. `cannot` says for each way by which it can't occur why not."""

    name: str
    cannot: Mapping[Way, str] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class Case:
    """A test that covers a kind by some ways. `report` is a public report ("llama.cpp#26763") or says how it was found.

    `test` is the test's module and name.
    """

    kind: Kind
    ways: tuple[Way, ...]
    report: str
    before: Before
    test: str


Test = TypeVar("Test", bound=Callable[..., Any])


def case(kind: Kind, *ways: Way, report: str, before: Before) -> Callable[[Test], Test]:
    """Mark a test as a case of `kind` by `ways`."""

    def mark(test: Test) -> Test:
        name = f"{test.__module__}.{test.__name__}"
        cases = (*getattr(test, "field_cases", ()), Case(kind, ways, report, before, name))
        test.field_cases = cases  # type: ignore[attr-defined]
        return test

    return mark


def all_kinds() -> list[Kind]:
    """Return the kinds that the modules of tests/field declare, in their order."""
    return list(dict.fromkeys(value for module in _modules() for value in vars(module).values() if type(value) is Kind))


def all_cases() -> list[Case]:
    """Return the cases of all modules of tests/field."""
    return [each for test in _tests() for each in test.field_cases]


def count_cases() -> Mapping[Kind, int]:
    """Return how many cases of each kind pytest runs: a test with parameters is one for each of their rows."""
    counts = dict.fromkeys(all_kinds(), 0)
    for test in _tests():
        rows = math.prod(len(mark.args[1]) for mark in getattr(test, "pytestmark", ()) if mark.name == "parametrize")
        for kind in {each.kind for each in test.field_cases}:
            counts[kind] += rows
    return counts


def _tests() -> list[Any]:
    """Return the tests that are cases, each once."""
    found = {id(value): value for module in _modules() for value in vars(module).values()}
    return [each for each in found.values() if hasattr(each, "field_cases")]


def _modules() -> list[ModuleType]:
    names = [info.name for info in pkgutil.iter_modules(tests.field.__path__) if info.name.startswith("test_")]
    return [importlib.import_module(f"tests.field.{name}") for name in sorted(names)]
