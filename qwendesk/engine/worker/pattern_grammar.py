"""The grammar of a JSON string that matches the `pattern` of a schema, a regular expression as JavaScript has it.

Characters that stand in such a string only with a backslash are allowed where the pattern names them one by one, not
where a class or a dot includes them: the grammar allows less then, never more.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from qwendesk.core.grammar_bounds import check_grammar_bounds
from qwendesk.engine.worker.tools import as_json

_MOST_CHARACTERS = 5000
_MOST_REPEATED = 1000
"""Larger upper bounds are left out: llama.cpp writes each repetition out."""
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
_NOT_BARE: _Ranges = [(0, 0x1F), (0x22, 0x22), (0x5C, 0x5C), (0x7F, 0x7F), (0xD800, 0xDFFF)]
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
    left = list(_without(ranges, _NOT_BARE))
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
