"""Grammars of JSON that is valid by a schema, with strings that match its patterns.

Characters that stand in such a string only with a backslash are allowed where the pattern names them one by one, not
where a class or a dot includes them: the grammar allows less then, never more.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from llama_cpp.llama_grammar import PRIMITIVE_RULES, STRING_FORMAT_RULES, BuiltinRule

from qwendesk.core.errors import BadRequest
from qwendesk.core.grammar_bounds import MOST_BYTES, check_grammar_bounds, check_schema_bounds
from qwendesk.core.json_schema import JSON_TYPES, Form, SchemaReader
from qwendesk.core.number_format import show_count
from qwendesk.core.translation import mark
from qwendesk.engine.worker.tools import as_json

# Characters that stand in a string of JSON only with a backslash, as in a class of GBNF.
_NOT_BARE = r'"\\\x00-\x1F\x7F'
# Optional properties of an object, each of which comes once at most.
_MOST_ONCE = 40
# Texts that differ in more places one after the other are written side by side.
_MOST_SHARED = 40
# The library's rules have 16 digits, ids and amounts of money up to 78 (2^256), decimals of a float 17 and zeros.
_DIGITS = {"integral-part": "[0-9] | [1-9] [0-9]{0,77}", "decimal-part": "[0-9]{1,20}"}
# Larger bounds of lengths are left out: llama.cpp writes each repetition out.
_MOST_REPEATED = 1000


class SchemaGrammar:
    """Collects the rules of schemas. Those of plain values are the library's."""

    def __init__(self) -> None:
        self._rules: dict[str, str] = {"space": '| " " | "\\n"{1,2} [ \\t]{0,20}'}
        self._n_characters = 0
        self._names: dict[str, str] = {}
        """The rules of texts of GBNF."""
        self._values: dict[tuple[int, str], str] = {}
        """The rules of schemas, by document and JSON."""
        self._used: set[str] = set()
        self._documents: list[SchemaReader] = []
        self.unknown_patterns: list[str] = []
        """Those that can't be turned, so that any string is allowed."""

    def rules(self) -> str:
        """Return all rules, one on each line."""
        return "\n".join(f"{name} ::= {rule}" for name, rule in self._rules.items())

    def rule(self, text: str) -> str:
        """Return the name of a rule with this text."""
        if re.fullmatch(r"[a-zA-Z0-9-]+", text):
            return text
        if text not in self._names:
            self._n_characters += len(text)
            if self._n_characters > MOST_BYTES:
                raise BadRequest(
                    mark("Invalid JSON schema"),
                    mark("Turned into a grammar, the schema has more than {0} bytes. Make it simpler."),
                    show_count(MOST_BYTES),
                )
            self._names[text] = f"r{len(self._names)}"
            self._rules[self._names[text]] = text
        return self._names[text]

    def add(self, rules: Mapping[str, str]) -> None:
        """Add rules that have names of their own."""
        self._rules.update(rules)

    def choice(self, ways: Mapping[str, str], depth: int = 0) -> str:
        """Return the text of a rule of one of several texts, each with the name of a rule for what follows it.

        Texts share what they begin with, so that llama.cpp has few ways to follow at once.
        """
        parts = []
        for _, group in groupby(sorted(ways), key=lambda text: text[:1]):
            texts = list(group)
            first, last = texts[0], texts[-1]  # in their order, so what these share is shared by all
            shared = first[: next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))]
            if len(texts) == 1 or not shared or depth > _MOST_SHARED:
                parts += [f"{quoted(text)} {ways[text]}".strip() for text in texts]
            else:
                inner = {text[len(shared) :]: ways[text] for text in texts}
                parts.append(f"{quoted(shared)} {self.rule(self.choice(inner, depth + 1))}")
        return " | ".join(parts)

    def any_but(self, texts: Iterable[str], characters: str, *, not_first: str = "", escape: str = "") -> str:
        """Return the name of a rule for any text that is none of `texts`, which is not empty if it has a `not_first`.

        `characters` and `not_first` are what it doesn't hold, or doesn't begin with, as in a class. `escape` is a rule
        of more characters, which don't occur in `texts`.
        """
        known = set(texts)
        firsts = sorted({text[0] for text in known if text})
        any_text = f"([^{characters}]{f' | {escape}' if escape else ''})*"
        parts = [f"[^{characters}{not_first}{''.join(map(in_class, firsts))}] {any_text}"]
        for first in firsts:
            tails = {text[1:] for text in known if text.startswith(first)}
            parts.append(f"{quoted(first)} {self.any_but(tails, characters, escape=escape)}")
        if escape and "\\" not in firsts:
            parts.append(f"{escape} {any_text}")
        if "" not in known and not not_first:
            parts.append('""')
        return self.rule(" | ".join(parts))

    def string_but(self, texts: Iterable[str]) -> str:
        """Return the text of a rule of a JSON string that is none of `texts`."""
        escape = self.rule('"\\\\" (["\\\\/bfnrt] | "u" [0-9a-fA-F]{4})')
        return f'"\\"" {self.any_but((as_json(text)[1:-1] for text in texts), _NOT_BARE, escape=escape)} "\\""'

    def value(self, schema: Any, reader: SchemaReader) -> str:
        """Return the name of a rule of a JSON value of `schema`, which is part of the reader's document."""
        if reader not in self._documents:
            self._documents.append(reader)
        key = (self._documents.index(reader), json.dumps(schema, sort_keys=True))
        if key in self._values:
            self._used.add(self._values[key])
            return self._values[key]
        self._values[key] = name = f"v{len(self._values)}"
        try:
            text = " | ".join(dict.fromkeys(self._form(form, reader) for form in reader.forms(schema)))
        except RecursionError:
            text = ""
        text = text or self._any("value")
        if name in self._used:  # it refers to itself
            self._rules[name] = text
        else:
            self._values[key] = self.rule(text)
        return self._values[key]

    def object(self, form: Form, reader: SchemaReader) -> str:
        """Return the text of a rule of a JSON object: the required properties first, in the order of the schema."""
        required, optional, other = [], {}, ""
        for name, schema in form.all_properties.items():
            if name in form.required:
                required.append(f'{quoted(as_json(name))} space ":" space {self.value(schema, reader)}')
            elif schema is not False:
                optional[as_json(name)] = f'space ":" space {self.value(schema, reader)}'
        if form.free is not False:
            name, value = self.string_but(form.all_properties), self.value(form.free, reader)
            other = self.rule(f'{name} space ":" space {value}')
        first, more = self._optional_properties(optional, other)
        members = ' "," space '.join(required)
        members += f" {more}" if required else f" ({first})?" if first else ""
        return f'"{{" space {members} "}}" space'

    def _optional_properties(self, values: Mapping[str, str], other: str) -> tuple[str, str]:
        """Return the texts of rules of one or more properties, as the first ones of an object and after others.

        Each comes once at most, in their order, those with other names last. Of very many, any comes as often as it
        likes, because the number of rules grows with its square.
        """
        if len(values) > _MOST_ONCE:
            ways = {name: self.rule(value) for name, value in values.items()}
            each = self.rule(self._either(self.choice(ways), other))
            return f'{each} ("," space {each})*', f'("," space {each})*'
        more = f'("," space {other})*' if other else ""
        first = others = f"{other} {more}".strip()
        ways = {}
        for name, value in reversed(list(values.items())):
            ways[name] = self.rule(f"{value} {more}".strip())
            first = self.rule(self._either(self.choice(ways), others))
            more = self.rule(f'("," space {first})?')
        return first, more

    @staticmethod
    def _either(*ways: str) -> str:
        return " | ".join(filter(None, ways))

    def literals(self, values: Sequence[Any]) -> str:
        return self.rule(self.choice({as_json(value): "space" for value in values}))

    def _form(self, form: Form, reader: SchemaReader) -> str:
        values = form.allowed_values
        if values is not None:
            return self.literals(values)
        types = form.allowed_types
        if types == JSON_TYPES and not form.meant:
            return self._any("value")
        return " | ".join(self._typed(kind, form, reader) for kind in sorted(types))

    def _typed(self, kind: str, form: Form, reader: SchemaReader) -> str:
        match kind:
            case "object" if form.meant & {"object"}:
                return self.rule(self.object(form, reader))
            case "array" if form.meant & {"array"}:
                return self.rule(self._array(form, reader))
            case "string" if form.meant & {"string"}:
                return self._string(form)
        return self._any(kind)

    def _array(self, form: Form, reader: SchemaReader) -> str:
        """Return the text of a rule of an array: first the items that have places of their own, then all others."""
        least, most = form.n_items
        most = None if most is None or most > _MOST_REPEATED else max(least, most)
        first = [self.value(each, reader) for each in form.first_items][:most]
        has_more = form.items is not False and (form.items is not None or not first) and most != len(first)
        rest = ""
        if has_more:
            item = self.value(True if form.items is None else form.items, reader)
            n_least = min(max(0, least - max(1, len(first))), _MOST_REPEATED)
            n_most = "" if most is None else most - max(1, len(first))
            rest = f'("," space {item}){{{n_least},{n_most}}}'
            first = first or [item]
        for number, rule in reversed(list(enumerate(first))):
            comma = '"," space ' if number else ""
            rest = f"{comma}{rule} {rest}" if number < least else f"({comma}{rule} {rest})?"
        return f'"[" space {rest} "]" space'

    def _string(self, form: Form) -> str:
        if form.pattern is not None:
            try:
                inside = pattern_rule(form.pattern, f"{self._any('char')}*")
                return self.rule(f'"\\"" {inside} "\\"" space')
            except (ValueError, BadRequest):
                self.unknown_patterns.append(form.pattern)
        if form.format is not None and f"{form.format}-string" in STRING_FORMAT_RULES:
            return self._any(f"{form.format}-string")
        if form.format is not None and re.fullmatch("uuid[1-5]?", form.format):
            return self._any("uuid")
        least, most = form.n_characters
        most = None if most is None or most > _MOST_REPEATED else max(most, least)
        if not least and most is None:
            return self._any("string")
        counts = f"{{{min(least, _MOST_REPEATED)},{'' if most is None else most}}}"
        return self.rule(f'"\\"" {self._any("char")}{counts} "\\"" space')

    def without_blank(self, name: str) -> str:
        """Return the name of a rule of the same values as a rule of this grammar, without a blank at their end."""
        text = self._rules[name]
        bare = text.removesuffix(" space")
        return self.rule(f"({bare})") if bare != text and name in _SCALARS else name

    def _any(self, kind: str) -> str:
        """Return the name of the library's rule of a plain value."""
        builtin: BuiltinRule = PRIMITIVE_RULES.get(kind) or STRING_FORMAT_RULES[kind]
        if kind not in self._rules:
            text = builtin.content.replace(r'[^"\\]', f"[^{_NOT_BARE}]")
            text = text.replace("[-+]? integral-part", "[-+]? [0-9] [0-9]?")  # no float has more
            self._rules[kind] = _DIGITS.get(kind, text)
            for each in builtin.deps:
                self._any(each)
        return kind


# Rules of the library whose values templates write without a blank behind them.
_SCALARS = frozenset(("integer", "number", "boolean", "null"))


def json_grammar(schema: str) -> str:
    """Return a GBNF grammar of JSON that is valid by `schema`, which is JSON too. Raise ValueError or BadRequest."""
    document = check_schema_bounds(schema)
    grammar, reader = SchemaGrammar(), SchemaReader(document)
    grammar.add({"root": grammar.value(document, reader)})
    for problem, texts in (
        ("{0} is not in it", reader.lost_references),
        ("{0} is not a type", reader.unknown_types),
        ("the pattern {0} is not supported", grammar.unknown_patterns),
    ):
        if texts:
            raise ValueError(problem.format(texts[0][:100]))
    return f"{grammar.rules()}\n"


# Larger upper bounds are left out: llama.cpp writes each repetition out.
_MOST_CHARACTERS = 5000
_PARTS = re.compile(
    r"""(?P<escape>\\(?:u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.))
    |\[(?P<negated>\^?)(?P<members>(?:[^\]\\]|\\.)*+)(?P<close>\]?)
    |(?P<open>\((?:\?:|\?P?<[A-Za-z]\w*>)?)
    |(?P<repeat>(?:[*+?]|\{\d+(?:,\d*)?\})\??)
    |(?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
_MEMBERS = re.compile(r"(\\(?:u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)|.)", re.DOTALL)
_COUNTS = re.compile(r"\{(\d+)(?:(,)(\d*))?\}")
_Ranges = list[tuple[int, int]]
_LAST = 0x10FFFF
_NOT_BARE_RANGES: _Ranges = [(0, 0x1F), (0x22, 0x22), (0x5C, 0x5C), (0x7F, 0x7F), (0xD800, 0xDFFF)]
_CLASSES: dict[str, _Ranges] = {
    "d": [(0x30, 0x39)],
    "w": [(0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)],
    "s": [(0x20, 0x20), (0xA0, 0xA0)],
}
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t", "f": "\f", "v": "\v", "0": "\0"}


def pattern_rule(pattern: str, any_characters: str) -> str:
    """Return the text of a rule of what stands between the quotes.

    `any_characters` is one of any number of characters, for a pattern that doesn't say where it begins or ends. Raise
    ValueError for what a grammar can't have, such as a look ahead, and BadRequest for what is too large for the engine.
    """
    if len(pattern) > _MOST_CHARACTERS:
        raise ValueError(pattern)
    depth, ways = 0, [[""]]
    """The parts of each way to match the whole pattern."""
    for found in _PARTS.finditer(pattern):
        way = ways[-1]
        if found["open"]:
            depth += 1
            way.append("(")
        elif found[0] == ")":
            depth -= 1
            way.append(")")
        elif found[0] == "|" and not depth:
            ways.append([""])
        elif found[0] in ("^", "$"):
            if depth or (found[0] == "^" and way != [""]):
                raise ValueError(pattern)
            way.append(found[0])
        elif found["repeat"]:
            way.append(_repeated(found["repeat"], after=way[-1]))
        else:
            way.append(_one_of(found))
        if depth < 0:
            raise ValueError(pattern)
    if depth:
        raise ValueError(pattern)
    texts = [_whole(way, any_characters) for way in ways]
    text = texts[0] if len(texts) == 1 else f"({' | '.join(texts)})"
    check_grammar_bounds(f"root ::= {text}")
    return text


def quoted(text: str) -> str:
    """Return `text` as GBNF has it."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{escaped}"'


def in_class(character: str) -> str:
    """Return a character as it stands in a class of GBNF."""
    return character if character.isalnum() and character.isascii() else f"\\U{ord(character):08X}"


def _whole(way: list[str], any_characters: str) -> str:
    """Return a way with what may stand around it. Raise ValueError if it has its end in the middle."""
    begins, ends = way[1:2] == ["^"], way[-1] == "$"
    inner = way[2 if begins else 1 : -1 if ends else None]
    if "$" in inner:
        raise ValueError("$")
    if not inner:
        return '""' if begins and ends else any_characters
    return " ".join(filter(None, ("" if begins else any_characters, *inner, "" if ends else any_characters)))


def _one_of(found: re.Match[str]) -> str:
    """Return one character, or one of a class. Raise ValueError."""
    text = found[0]
    if found["members"] is not None:
        if not found["close"]:
            raise ValueError(text)
        listed = _members(found["members"])
        return _class(_complement(listed) if found["negated"] else listed)
    if text == ".":
        return _class([(0, _LAST)])
    if text == "|":
        return text
    if (ranges := _shorthand(text)) is not None:
        return _class(ranges)
    return quoted(as_json(_character(text))[1:-1])


def _shorthand(text: str) -> _Ranges | None:
    """Return the characters of an escape such as \\d; None if it is another escape, or a character."""
    ranges = _CLASSES.get(text[1:].lower()) if text[0] == "\\" else None
    return ranges if ranges is None or text[1].islower() else _complement(ranges)


def _character(text: str) -> str:
    """Return the character that is written so. Raise ValueError for an escape that stands for something else."""
    if text[0] != "\\":
        return text
    if len(text) > 2:
        return chr(int(text[2:], 16))
    if text[1] in _CONTROLS:
        return _CONTROLS[text[1]]
    if text[1].isalnum():  # an edge of a word, what a group has matched, a property
        raise ValueError(text)
    return text[1]


def _members(text: str) -> _Ranges:
    """Return the characters that a class lists. Raise ValueError."""
    found: _Ranges = []
    members = _MEMBERS.findall(text)
    while members:
        first, *members = members
        if (ranges := _shorthand(first)) is not None:
            found += ranges
            continue
        low = high = ord(_character(first))
        if members[:1] == ["-"] and len(members) > 1 and _shorthand(members[1]) is None:
            high = ord(_character(members[1]))
            members = members[2:]
        if high < low:
            raise ValueError(text)
        found.append((low, high))
    return found


def _complement(ranges: Iterable[tuple[int, int]]) -> _Ranges:
    return list(_without([(0, _LAST)], ranges))


def _without(ranges: Iterable[tuple[int, int]], others: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the ranges without the characters of the others."""
    left = list(ranges)
    for low, high in others:
        left = [
            part
            for first, last in left
            for part in ((first, min(last, low - 1)), (max(first, high + 1), last))
            if part[0] <= part[1]
        ]
    yield from left


def _class(ranges: Iterable[tuple[int, int]]) -> str:
    """Return a class of GBNF of those characters that stand in a string of JSON as they are. Raise ValueError."""
    left = list(_without(ranges, _NOT_BARE_RANGES))
    if not left:
        raise ValueError("no character")
    texts = (in_class(chr(low)) + (f"-{in_class(chr(high))}" if high > low else "") for low, high in left)
    return f"[{''.join(texts)}]"


def _repeated(text: str, after: str) -> str:
    """Return a repetition of what stands before it. Which of several lengths comes first says nothing."""
    if after in ("", "(", "|", "^", "$") or after[0] in "*+?{":
        raise ValueError(text)
    text = text.removesuffix("?") or "?"
    counts = _COUNTS.fullmatch(text)
    if counts is None:
        return text
    least, most = int(counts[1][:9]), int(counts[3][:9]) if counts[3] else None
    if least > _MOST_REPEATED:
        raise ValueError(text)
    if not counts[2]:
        return f"{{{least}}}"
    return f"{{{least},{'' if most is None or most > _MOST_REPEATED else most}}}"
