"""Bounds of grammars and JSON schemas, checked before the engine or its converter see them.

llama.cpp's parser and matcher have none: brackets nest until the stack ends, a bound of repetitions that is lower than
the one before it or a rule that begins with itself never ends, and a text repeated 2,000 times is written out. The
checks take time proportional to the text. Syntax is left to the engine.
"""

import functools
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from itertools import chain
from typing import Any

import msgspec

from qwendesk.core.errors import BadRequest
from qwendesk.core.json_decoding import decode_json
from qwendesk.core.number_format import show_count
from qwendesk.core.translation import mark

# The largest lower bound of repetitions that llama.cpp accepts. It takes a larger upper bound for none.
MOST_REPEATED = 2000
MOST_BYTES = 1024**2
# Values in a schema, lists and objects included.
_MOST_VALUES = 50_000
_MOST_SCHEMA_DEPTH = 100
# Brackets, and rules that begin with a rule, in each other. The engine calls itself for each.
_MOST_BRACKETS = 500
# What the engine has in memory of a grammar, with all repetitions written out.
_MOST_ELEMENTS = 1_000_000
# Ways to go on at one place. The engine compares all of them with each other and with every token.
#
# With 248,320 tokens, 1,000 different texts take it 0.3 s, and 50 sets of characters 1 s.
_MOST_WAYS = 1000
_WAYS_OF_SET = 20
# Optional sets one after the other: each can read a text in more ways than the one before it.
_GROWTH = 1.1
_MOST_COUNT_DIGITS = 9
_PARTS = re.compile(
    r"""(?P<space>(?:[ \t\r\n]|\#[^\r\n]*+)++)
    |(?P<text>"(?:[^"\\]|\\.)*+"?)
    |(?P<set>\[(?:[^\]\\]|\\.)*+\]?)
    |(?P<token>!?<[^>]*+>?)
    |(?P<head>[A-Za-z0-9-]++(?=[ \t]*+::=))
    |(?P<name>[A-Za-z0-9-]++)
    |(?P<repeat>[*+?]|\{[^}]*+\}?)
    |(?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
_COUNTS = re.compile(r"\{\s*(\d+)\s*(?:(,)\s*(\d*)\s*)?\}")


@functools.lru_cache(maxsize=4)
def check_grammar_bounds(text: str, *, allows_tokens: bool = False) -> int:
    """Raise BadRequest for a GBNF grammar that the engine must not parse. Return in how many ways it goes on at most.

    `allows_tokens` is for grammars of our own: a token such as <think> after characters can end the engine.
    """
    if "\0" in text:
        raise _bad_grammar(mark("The grammar contains a NUL character."))
    if len(text.encode("utf-8", "replace")) > MOST_BYTES:
        raise _bad_grammar(mark("The grammar has more than {0} bytes."), show_count(MOST_BYTES))
    return _check_ways(_BoundsReader(allows_tokens=allows_tokens).rules(text))


class _Item:
    """One item of a sequence: a reference to a rule or bracket, or a text or set (`rule` is ""), which is one way.

    It is written out `n_copies` times, `n_optional_copies` times after it became optional.
    """

    __slots__ = ("is_optional", "n_copies", "n_optional_copies", "rule", "size", "ways")

    def __init__(self, rule: str, size: int, ways: int = 1) -> None:
        self.rule, self.size, self.ways, self.is_optional = rule, size, ways, False
        self.n_copies = self.n_optional_copies = 1


# The alternatives of each rule, and of each bracket under the name "(" with its number.
_Rules = dict[str, list[list[_Item]]]


class _BoundsReader:
    def __init__(self, *, allows_tokens: bool) -> None:
        self._allows_tokens = allows_tokens
        self._n_elements = 0

    def rules(self, text: str) -> _Rules:
        """Return the rules of a grammar. Invalid GBNF is passed over. Raise BadRequest if it is too large."""
        rules: _Rules = {}
        alternatives: list[list[_Item]] = [[]]
        around: list[list[list[_Item]]] = []
        weight = 1
        for found in _PARTS.finditer(text):
            part = found[0]
            match found.lastgroup:
                case "head":
                    alternatives = rules[part] = [[]]
                    around, weight = [], 2 + len(part) // 16
                case "name" | "text" | "set" | "token":
                    self._add(alternatives[-1], found.lastgroup, part)
                case "repeat" if alternatives[-1]:
                    self._repeat(alternatives[-1][-1], part, weight)
                case "other" if part == "(":
                    self._count(weight)
                    around.append(alternatives)
                    name = f"({len(rules)}"
                    alternatives[-1].append(_Item(name, 1))
                    alternatives = rules[name] = [[]]
                    if len(around) > _MOST_BRACKETS:
                        raise _bad_grammar(mark("The grammar is nested more than {0} levels deep."), _MOST_BRACKETS)
                case "other" if part == ")" and around:
                    alternatives = around.pop()
                case "other" if part == "|":
                    alternatives.append([])
                case "other" if part == ".":
                    self._add(alternatives[-1], "set", part)
        return rules

    def _add(self, sequence: list[_Item], kind: str, part: str) -> None:
        if kind == "token" and not self._allows_tokens:
            raise _bad_grammar(mark("Tokens such as {0} can't be used in a grammar. Write texts in quotes."), part[:40])
        size = {"text": len(part) - 2, "set": len(part) - 9 * part.count("\\U")}.get(kind, 1)
        if size > 0:
            self._count(size)
            sequence.append(_Item(part if kind == "name" else "", size, _WAYS_OF_SET if kind == "set" else 1))

    def _repeat(self, item: _Item, part: str, weight: int) -> None:
        least, most = _counts(part)
        n_optional = 1 if most is None else most - least
        n_in_place = item.size * max(least, 1) + 1
        self._count(n_in_place + n_optional * (item.size + weight))
        item.size = n_in_place
        n_copies = max(1, least + 1 if most is None else most)
        item.n_copies *= n_copies
        item.n_optional_copies *= n_copies if item.is_optional else 1
        item.is_optional = item.is_optional or not least

    def _count(self, n_elements: int) -> None:
        self._n_elements += n_elements
        if self._n_elements > _MOST_ELEMENTS:
            raise _bad_grammar(
                mark("With its repetitions written out, the grammar has more than {0} parts."),
                show_count(_MOST_ELEMENTS),
            )


def _counts(part: str) -> tuple[int, int | None]:
    """Return how often something is repeated at least and at most (None: without a limit)."""
    if part in "*+?":
        return int(part == "+"), 1 if part == "?" else None
    found = _COUNTS.fullmatch(part)
    if found is None or max(len(found[1]), len(found[3] or "")) > _MOST_COUNT_DIGITS:
        raise _bad_grammar(mark("In a grammar, a number of repetitions is written as {0}."), "{2}, {2,}, {2,5}")
    least = int(found[1])
    most = least if not found[2] else int(found[3]) if found[3] else None
    if most is not None and most < least:
        raise _bad_grammar(mark("In a grammar's number of repetitions, the lower one comes first."))
    if least > MOST_REPEATED:
        raise _bad_grammar(
            mark("A grammar can ask for at most {0} repetitions."),
            show_count(MOST_REPEATED),
        )
    return least, None if most is not None and most > MOST_REPEATED else most


def _check_ways(rules: _Rules) -> int:
    """Return in how many ways the rules go on at one place at most.

    Raise BadRequest for too many, and for a rule that begins with itself.
    """
    empty = _rules_that_may_be_empty(rules)
    first = {name: set(_first_rules(alternatives, empty)) for name, alternatives in rules.items()}
    try:
        order = list(TopologicalSorter(first).static_order())
    except CycleError as error:
        cycle = [name for name in error.args[1] if not name.startswith("(")]
        raise _bad_grammar(
            mark('The grammar\'s rule "{0}" begins with itself. Start it with something else.'), cycle[0]
        ) from None
    ways: dict[str, int] = {}
    depth: dict[str, int] = {}
    for name in order:
        depth[name] = 1 + max((depth[each] for each in first.get(name, ())), default=0)
        # A rule that is only referred to somewhere has no alternatives: the engine says so.
        ways[name] = sum(_ways_from(sequence, ways, empty)[0] for sequence in rules.get(name, ()))
        if depth[name] > _MOST_BRACKETS:
            raise _bad_grammar(mark("The grammar is nested more than {0} levels deep."), _MOST_BRACKETS)
        if ways[name] > _MOST_WAYS:
            raise _too_many_ways()
    sequences = (sequence for alternatives in rules.values() for sequence in alternatives)
    most = max((way for sequence in sequences for way in _ways_from(sequence, ways, empty)), default=0)
    if most > _MOST_WAYS:
        raise _too_many_ways()
    return max(most, *ways.values(), 0)


def _too_many_ways() -> BadRequest:
    return _bad_grammar(
        mark("The grammar can go on in more than {0} ways at one place. Make it simpler."), show_count(_MOST_WAYS)
    )


def _rules_that_may_be_empty(rules: _Rules) -> set[str]:
    left: dict[int, int] = {}
    used: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
    ready: list[str] = []
    for name, alternatives in rules.items():
        for sequence in alternatives:
            needed = [item for item in sequence if not item.is_optional]
            if not needed:
                ready.append(name)
            elif all(item.rule for item in needed):
                left[id(sequence)] = len(needed)
                for item in needed:
                    used[item.rule].append((id(sequence), name))
    empty: set[str] = set()
    while ready:
        name = ready.pop()
        if name in empty:
            continue
        empty.add(name)
        for sequence_id, user in used[name]:
            left[sequence_id] -= 1
            if not left[sequence_id]:
                ready.append(user)
    return empty


def _first_rules(alternatives: list[list[_Item]], empty: set[str]) -> Iterator[str]:
    for sequence in alternatives:
        for item in sequence:
            if item.rule:
                yield item.rule
            if not (item.is_optional or item.rule in empty):
                break


def _ways_from(sequence: list[_Item], ways: dict[str, int], empty: set[str]) -> list[int]:
    """Return for each place in a sequence in how many ways it can go on; for an empty one [1]."""
    found: list[int] = []
    after = 1
    for item in reversed(sequence):
        inside = ways.get(item.rule, 1) if item.rule else item.ways
        may_be_empty = item.rule in empty
        n_copies = item.n_copies if may_be_empty else item.n_optional_copies
        n_ways = inside * n_copies**2  # any of the copies may have matched what came before, too
        growth = _GROWTH if inside >= _WAYS_OF_SET else 1.0
        after = n_ways + (int(after * growth) if may_be_empty or item.is_optional else 0)
        after = min(after, 2 * _MOST_WAYS)
        found.append(after)
    return found[::-1] or [1]


def check_schema_bounds(text: str) -> Any:
    """Return the JSON schema in `text`. Raise BadRequest if it is no JSON, or too large to be turned into a grammar."""
    if len(text.encode("utf-8", "replace")) > MOST_BYTES:
        raise _bad_schema(mark("The JSON schema has more than {0} bytes."), show_count(MOST_BYTES))
    try:
        schema = decode_json(text)
    except msgspec.DecodeError as error:
        raise _bad_schema(mark("The schema isn't JSON: {0}."), error) from error
    n_values, depth = _size(schema)
    if n_values > _MOST_VALUES:
        raise _bad_schema(mark("The JSON schema has more than {0} values."), show_count(_MOST_VALUES))
    if depth > _MOST_SCHEMA_DEPTH:
        raise _bad_schema(mark("The JSON schema is nested more than {0} levels deep."), _MOST_SCHEMA_DEPTH)
    return schema


def check_tools_bounds(schemas: Mapping[str, Any]) -> None:
    """Raise BadRequest if the schemas of the tools of one request, by their names, are too large."""
    n_all = 0
    for name, schema in schemas.items():
        n_values, depth = _size(schema)
        n_all += n_values
        if depth > _MOST_SCHEMA_DEPTH:
            sentence = mark('The parameters of the tool "{0}" are nested more than {1} levels deep.')
            raise BadRequest(mark("Invalid tool"), sentence, name, _MOST_SCHEMA_DEPTH)
        if n_all > _MOST_VALUES:
            sentence = mark('The schemas of the tools up to "{1}" have more than {0} values. Use fewer tools.')
            raise BadRequest(mark("Invalid tool"), sentence, show_count(_MOST_VALUES), name)


def _size(value: Any) -> tuple[int, int]:
    """Return the number of values in a JSON value, itself included, and how deep they are nested."""
    n_values, depth, level = 0, 0, [value]
    while level:
        n_values += len(level)
        depth += 1
        level = list(chain.from_iterable(map(_children, level)))
    return n_values, depth


def _children(value: Any) -> Iterable[Any]:
    return value.values() if type(value) is dict else value if type(value) is list else ()


def _bad_schema(why: str, *values: object) -> BadRequest:
    return BadRequest(mark("Invalid JSON schema"), why, *values)


def _bad_grammar(why: str, *values: object) -> BadRequest:
    return BadRequest(mark("Invalid grammar"), why, *values)
