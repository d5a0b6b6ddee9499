"""Tools with schemas drawn at random, and calls drawn at random under their grammar."""

import json
import random
import re
from collections.abc import Iterable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from qwendesk.engine.worker.call_grammar import CallDialect
from qwendesk.engine.worker.call_parser import END_TAG, CallStream
from qwendesk.engine.worker.sampling import TOKEN_DATA, TokenGrammar
from qwendesk.engine.worker.tools import CallableTool
from tests.engine.worker.conftest import Demo

END_OF_TEXT_VALUE = f"\n{END_TAG}\n"
_MOST_TOKENS = 600
"""Of a call. A longer one is given up."""
_FEW = 20
"""Tokens drawn at random for each step, beside those of one byte."""
_IN_XML_VALUE = re.compile(r"<parameter=([^>\n]+)>\n((?:(?!\n</parameter>\n).)*)\Z", re.DOTALL)
_CLOSING = ("}", "]", '"', ":", ",", " ")
"""What ends JSON soonest, first."""

_NAMES = ("path", "n", "where", "größe", "max-lines")
DEFINITIONS = {
    "Colour": {"type": "string", "enum": ["red", "light green"]},
    "Point": {"type": "object", "properties": {"x": {"type": "number"}, "name": {"type": "string"}}, "required": ["x"]},
}
_words = st.sampled_from(["a", "Paris", "x y", "ß", '"', "it's", "<b>", "\\n"])
_lists_of_texts = st.lists(_words | st.sampled_from(["1", "null", "true", "[]"]), min_size=1, max_size=4)
_one_type = st.sampled_from([{"type": each} for each in ("string", "integer", "number", "boolean", "null")])
_lists_of_values = st.lists(_words | st.integers(-9, 99) | st.none() | st.booleans(), min_size=1, max_size=4)
_listed = st.one_of(
    _lists_of_texts.map(lambda texts: {"type": "string", "enum": texts}),
    _lists_of_values.map(lambda values: {"enum": values}),
    _words.map(lambda value: {"const": value}),
    st.just({"type": ["string", "null"], "enum": ["a", "b", None]}),
    st.just({"$ref": "#/$defs/Colour"}),
)
_nullable = st.one_of(
    st.sampled_from(["string", "integer", "boolean"]).map(lambda each: {"type": [each, "null"]}),
    (_listed | _one_type).map(lambda schema: {"anyOf": [schema, {"type": "null"}]}),
)
_without_texts = st.sampled_from(
    [{"type": "integer"}, {"type": "boolean"}, {"type": "array", "items": {"type": "string"}}, DEFINITIONS["Point"]]
)
_unions = st.lists(_without_texts, min_size=2, max_size=3).map(lambda schemas: {"anyOf": schemas})


@st.composite
def _arrays(draw: st.DrawFn, items: st.SearchStrategy[dict[str, Any]]) -> dict[str, Any]:
    least = draw(st.integers(0, 2))
    return {"type": "array", "items": draw(items), "minItems": least, "maxItems": least + draw(st.integers(0, 2))}


@st.composite
def _objects(draw: st.DrawFn, values: st.SearchStrategy[dict[str, Any]]) -> dict[str, Any]:
    names = draw(st.lists(st.sampled_from(_NAMES), min_size=1, max_size=3, unique=True))
    properties = {name: draw(values) for name in names}
    optional = draw(st.sets(st.sampled_from(_NAMES), max_size=1))
    required = [name for name in names if name not in optional]
    more = draw(st.sampled_from([{}, {"additionalProperties": False}]))
    return {"type": "object", "properties": properties, "required": required, **more}


_schemas: st.SearchStrategy[dict[str, Any]] = st.recursive(
    _one_type | _listed | _nullable | _unions | st.just({"$ref": "#/$defs/Point"}),
    lambda inner: _arrays(inner) | _objects(inner),
    max_leaves=4,
)
"""What a grammar can express. Limits of numbers and lengths of texts are not among that."""


@st.composite
def tools_json(draw: st.DrawFn) -> tuple[str, ...]:
    """Definitions of one or two tools."""
    schemas = draw(st.lists(_objects(_listed | _schemas), min_size=1, max_size=2))
    return tuple(
        json.dumps({"name": f"tool_{number}", "parameters": {**schema, "$defs": DEFINITIONS}})
        for number, schema in enumerate(schemas)
    )


class CallSampler:
    """Draws calls under a grammar, token by token. The model's markers are left out, as the engine does."""

    def __init__(self, demo: Demo, grammar: TokenGrammar, dialect: CallDialect, tools: dict[str, CallableTool]) -> None:
        self._demo, self._grammar, self._dialect, self._tools = demo, grammar, dialect, tools
        self._end = demo.vocabulary.user_defined["</tool_call>"]
        self._plain = sorted(set(demo.pieces) - demo.special_ids)
        self._short = [token for token in self._plain if len(demo.pieces[token]) == 1]
        self._ends = self._beginnings(END_OF_TEXT_VALUE)

    def sample(self, rng: random.Random, haste: float) -> str | None:
        """Return the text of a call. `haste` is the probability of a step that brings the end nearer.

        None if the call did not end, or ended in the middle of a character.
        """
        self._grammar.begin_again()
        written, stream = b"", CallStream(self._tools)
        for _ in range(_MOST_TOKENS):
            some = {*rng.sample(self._plain, _FEW), *self._short, *self._ends, self._end}
            allowed = self._allowed(sorted(some if stream.is_whole else some - {self._end}))
            assert allowed, f"nothing can follow {written!r}"
            text = written.decode("utf-8", "replace")
            token = self._soonest(text, allowed) if rng.random() < haste else rng.choice(allowed)
            self._grammar.accept(token)
            if token == self._end:
                return None if "\N{REPLACEMENT CHARACTER}" in text else text
            written += self._demo.pieces[token]
            stream.feed(self._demo.pieces[token].decode("utf-8", "replace"))
        return None

    def _allowed(self, tokens: list[int]) -> list[int]:
        candidates = np.zeros(len(tokens), dtype=TOKEN_DATA)
        candidates["id"] = tokens
        self._grammar.restrict(candidates)
        return [int(each["id"]) for each in candidates if each["logit"] > -np.inf]

    def _soonest(self, text: str, allowed: list[int]) -> int:
        """Return the token of `allowed` with which the call probably ends soonest."""
        if self._end in allowed:
            return self._end
        pieces = {self._demo.pieces[token].decode("utf-8", "replace"): token for token in allowed}
        value = _IN_XML_VALUE.search(text) if self._dialect == "xml" else None
        if value and self._is_written_as_text(value[1]):
            begun = next(n for n in range(len(END_OF_TEXT_VALUE), -1, -1) if value[2].endswith(END_OF_TEXT_VALUE[:n]))
            return self._longest(pieces, END_OF_TEXT_VALUE[begun:])
        if self._dialect == "json" or value:
            in_string = value[2] if value else text
            if _is_in_string(in_string):
                return pieces.get('"', allowed[0])
            return next((pieces[each] for each in _CLOSING if each in pieces), allowed[0])
        return self._longest(pieces, "</function>") if "<" in pieces else allowed[0]

    def _is_written_as_text(self, name: str) -> bool:
        parameters = (parameter for tool in self._tools.values() for parameter in tool.parameters)
        return any("string" in each.types for each in parameters if each.name == name)

    @staticmethod
    def _longest(pieces: dict[str, int], wanted: str) -> int:
        fitting = [piece for piece in pieces if piece and wanted.startswith(piece)]
        return pieces[max(fitting, key=len)] if fitting else next(iter(pieces.values()))

    def _beginnings(self, text: str) -> Iterable[int]:
        return [token for token in self._plain if text.startswith(self._demo.pieces[token].decode("utf-8", "replace"))]


def _is_in_string(json_text: str) -> bool:
    return len(re.sub(r"\\.", "", json_text).split('"')) % 2 == 0
