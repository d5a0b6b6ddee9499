"""Splits C headers into tokens: without comments and directives, with macros replaced.

`c_headers.py` reads the declarations in them.
"""

import ast
import operator
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

# Stands where a condition of the preprocessor begins, changes or ends. What lies within may differ in the library.
CONDITION = "#"

_TOKEN = re.compile(
    r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|[A-Za-z_]\w*|\d[\w.]*|\.\.\.|<<|>>|&&|\|\||[=!<>]=|::|\S'
)
_COMMENT = re.compile(r'("(?:\\.|[^"\\\n])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_DIRECTIVE = re.compile(r"\s*#\s*(\w+)\s*(.*)")
_MACRO = re.compile(r"([A-Za-z_]\w*)(\(([^)]*)\))?\s*(.*)")
_DEFINED = re.compile(r"defined\s*\(?\s*(\w+)\s*\)?")
_UNSIGNED_OR_LONG = re.compile(r"(?<=[0-9a-fA-F])[uUlL]+$")
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")
_MOST_NESTED_MACROS = 16
_LONGEST_EXPRESSION = 200
_LARGEST_SHIFT = 64


class CannotRead(Exception):
    """A declaration or expression is of a kind that these modules don't know."""


class Macro(NamedTuple):
    parameters: tuple[str, ...] | None
    """None for a macro without parentheses."""
    body: tuple[str, ...]


def tokens_of(text: str, macros: dict[str, Macro]) -> list[str]:
    """Return the tokens of a header, without what its conditions exclude. Its macros are added to `macros`.

    No macro of a compiler or of C++ is known. Raise CannotRead if the header changes how structs are packed.
    """
    text = _COMMENT.sub(lambda found: found[1] or " ", text).replace("\\\n", " ")
    # For each open condition: whether this branch is read, and whether one of its branches was.
    open_conditions: list[tuple[bool, bool]] = []
    pieces: list[str] = []
    for line in text.splitlines():
        directive = _DIRECTIVE.match(line)
        is_read = all(branch for branch, _ in open_conditions)
        if directive is None:
            if is_read:
                pieces += _TOKEN.findall(line)
            continue
        word, rest = directive[1], directive[2]
        if word in ("if", "ifdef", "ifndef"):
            holds = _holds(word, rest, macros)
            open_conditions.append((holds, holds))
        elif word in ("elif", "else") and open_conditions:
            _, had_one = open_conditions.pop()
            holds = not had_one and (word == "else" or _holds("if", rest, macros))
            open_conditions.append((holds, had_one or holds))
        elif word == "endif" and open_conditions:
            open_conditions.pop()
        elif is_read and word == "define" and (macro := _MACRO.match(rest)):
            parameters = tuple(name.strip() for name in macro[3].split(",")) if macro[2] else None
            macros[macro[1]] = Macro(parameters, tuple(_TOKEN.findall(macro[4])))
        elif is_read and word == "pragma" and rest.startswith("pack"):
            raise CannotRead("#pragma pack")
        if word in ("if", "ifdef", "ifndef", "elif", "else", "endif"):
            pieces.append(CONDITION)
    return list(_expanded(pieces, macros, 0))


def closing(tokens: Sequence[str], start: int) -> int:
    """Return the position of the bracket that closes the one at `start`. Raise CannotRead if there is none."""
    depth = 0
    for position in range(start, len(tokens)):
        depth += (tokens[position] in _OPENING) - (tokens[position] in _CLOSING)
        if depth == 0:
            return position
    raise CannotRead("a bracket that isn't closed")


def split(tokens: Sequence[str], separator: str) -> list[list[str]]:
    """Split at each `separator` that isn't within brackets."""
    parts: list[list[str]] = [[]]
    depth = 0
    for token in tokens:
        depth += (token in _OPENING) - (token in _CLOSING)
        if token == separator and depth == 0:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def value_of(tokens: Sequence[str], constants: Mapping[str, int]) -> int:
    """Return the value of an integer expression. Raise CannotRead if it isn't one."""
    words = {"&&": " and ", "||": " or ", "!": " not ", "/": "//"}
    numbers = [_UNSIGNED_OR_LONG.sub("", token) if token[0].isdigit() else token for token in tokens]
    text = " ".join(words.get(token, token) for token in numbers).strip()
    if len(text) > _LONGEST_EXPRESSION:
        raise CannotRead("a long expression")
    try:
        return _evaluate(ast.parse(text, mode="eval").body, constants)
    except (SyntaxError, KeyError, ValueError, ArithmeticError, RecursionError) as error:
        raise CannotRead(text) from error


def _holds(word: str, condition: str, macros: dict[str, Macro]) -> bool:
    """Return whether a condition of the preprocessor holds; one that can't be read doesn't."""
    if word != "if":
        name = (condition.split() or [""])[0]
        return (name in macros) == (word == "ifdef")
    asked = _DEFINED.sub(lambda found: str(int(found[1] in macros)), condition)
    tokens = _expanded(_TOKEN.findall(asked), macros, 0)
    try:
        return value_of(["0" if token.isidentifier() else token for token in tokens], {}) != 0
    except CannotRead:
        return False


def _expanded(tokens: Sequence[str], macros: Mapping[str, Macro], depth: int) -> Iterator[str]:
    """Yield the tokens with macros replaced."""
    position = 0
    while position < len(tokens):
        token = tokens[position]
        position += 1
        macro = macros.get(token)
        if macro is None or depth > _MOST_NESTED_MACROS:
            yield token
        elif macro.parameters is None:
            yield from _expanded(macro.body, macros, depth + 1)
        elif tokens[position : position + 1] == ["("]:
            end = closing(tokens, position)
            given = dict(zip(macro.parameters, split(tokens[position + 1 : end], ","), strict=False))
            yield from _expanded([part for word in macro.body for part in given.get(word, [word])], macros, depth + 1)
            position = end + 1
        else:
            yield token


_OPERATORS = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
    ast.LShift: operator.lshift, ast.RShift: operator.rshift, ast.BitOr: operator.or_, ast.BitAnd: operator.and_,
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}  # fmt: skip


def _evaluate(node: ast.expr, constants: Mapping[str, int]) -> int:
    match node:
        case ast.Constant(value=int(value)):
            return value
        case ast.Name(id=name):
            return constants[name]
        case ast.BoolOp(op=word, values=values):
            parts = [_evaluate(value, constants) != 0 for value in values]
            return int(all(parts) if isinstance(word, ast.And) else any(parts))
        case ast.UnaryOp(op=ast.Not(), operand=value):
            return int(not _evaluate(value, constants))
        case ast.UnaryOp(op=ast.USub(), operand=value):
            return -_evaluate(value, constants)
        case ast.Compare(left=left, ops=[sign], comparators=[right]) | ast.BinOp(left=left, op=sign, right=right):
            one, two = _evaluate(left, constants), _evaluate(right, constants)
            if isinstance(sign, ast.LShift) and two > _LARGEST_SHIFT:
                raise CannotRead("a large shift")
            return int(_OPERATORS[type(sign)](one, two))
    raise CannotRead(ast.dump(node))
