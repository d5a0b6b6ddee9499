"""Grammars of JSON that is valid by a schema."""

from __future__ import annotations

import json
from typing import Any

from llama_cpp.llama_grammar import SchemaConverter

from qwendesk.engine.worker.tools import has_type, value_types

_CHARACTER, _JSON_CHARACTER = r'char ::= [^"\\] |', r'char ::= [^"\\\x7F\x00-\x1F] |'
"""The converter's characters of a string, and those that JSON allows there unescaped."""


class SchemaGrammar(SchemaConverter):
    """Collects the rules of schemas. The library's converter, with what it gets wrong put right.

    Listed values beside a type, texts with backslashes, and line breaks in strings, which JSON doesn't allow.
    """

    def __init__(self) -> None:
        begin: Any = super().__init__  # it has no types
        begin(prop_order={}, allow_fetch=False, dotall=False, raw_pattern=False)

    def add(self, schema: Any, name: str) -> str:
        """Return the name of the rule of a value of `schema`. Raises errors of any kind for what can't be turned."""
        resolve: Any = self.resolve_refs
        return self.visit(resolve(json.loads(json.dumps(schema)), name) or schema, name)

    def rules(self) -> str:
        """Return all rules, one on each line."""
        written: Any = super().format_grammar
        return str(written()).replace(_CHARACTER, _JSON_CHARACTER)

    def visit(self, schema: Any, name: str) -> str:
        types = value_types(schema, {})
        if isinstance(schema.get("enum"), list) and schema["enum"]:
            schema = {"enum": [value for value in schema["enum"] if has_type(value, types)] or schema["enum"]}
        elif "const" in schema:
            schema = {"const": schema["const"]}
        convert: Any = super().visit
        return str(convert(schema, name))

    def _format_literal(self, literal: str) -> str:
        """`literal` is JSON."""
        return quoted(json.dumps(json.loads(literal), ensure_ascii=False))


def json_grammar(schema: str) -> str:
    """Return a GBNF grammar of JSON that is valid by `schema`, which is JSON too. Raises errors of any kind."""
    grammar = SchemaGrammar()
    grammar.add(json.loads(schema), "")
    return grammar.rules()


def quoted(text: str) -> str:
    """Return `text` as GBNF has it."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{escaped}"'
