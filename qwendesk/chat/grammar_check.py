"""Checks a GBNF grammar for the answers of a chat before it is sent.

Follows the rules of llama.cpp's own GBNF parser: it accepts every grammar that passes here, but the engine may still
refuse one for other reasons.
"""

from collections.abc import Iterator

import msgspec

from qwendesk.core.errors import BadRequest
from qwendesk.core.number_format import show_count
from qwendesk.core.translation import tr

_ROOT = "root"
_ESCAPES = {"x": 2, "u": 4, "U": 8}
_KNOWN_ESCAPES = r"\n, \r, \t, \\, \", \[, \], \-, \x, \u, \U"
_MAX_MINIMUM = 2000
"""Largest minimum of repetitions that llama.cpp accepts."""
_MAX_REPETITIONS = 20_000
"""llama.cpp accepts more, but needs unlimited memory and time for it."""
_MAX_DEPTH = 100
"""Deepest nesting of brackets; llama.cpp overflows its stack not far beyond it."""
_LETTERS_AND_DIGITS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
_NAME_CHARACTERS = _LETTERS_AND_DIGITS | {"-"}
_DIGITS = frozenset("0123456789")


def check_grammar(text: str) -> None:
    """Raise BadRequest for an invalid grammar, with a sentence that says what is wrong and in which line."""
    if not text.strip():
        return
    try:
        _check_rules(_Reader(text).rules())
    except RecursionError:
        raise _refusal(tr("Its repetitions are nested too deeply.")) from None


def _check_rules(rules: "dict[str, tuple[_Sequence, ...]]") -> None:
    if _ROOT not in rules:
        raise _refusal(tr('It needs a rule called "root", such as {0}.', 'root ::= "yes" | "no"'))
    for name, rule in rules.items():
        for item in _items(rule):
            if item.refers_to and item.refers_to not in rules:
                raise _refusal(tr('"{0}" refers to a rule "{1}", which doesn\'t exist.', name, item.refers_to))
    _check_left_recursion(rules)


class _Item(msgspec.Struct, frozen=True):
    """One item of a sequence, with only the facts that the check for left recursion needs."""

    refers_to: str = ""
    inside: "tuple[_Sequence, ...] | None" = None
    may_be_empty: bool = False


_Sequence = tuple[_Item, ...]


def _items(alternates: tuple[_Sequence, ...]) -> Iterator[_Item]:
    for sequence in alternates:
        for item in sequence:
            yield item
            yield from _items(item.inside or ())


class _Reader:
    def __init__(self, text: str) -> None:
        self._text, self._position, self._depth = text, 0, 0

    def rules(self) -> dict[str, tuple[_Sequence, ...]]:
        rules: dict[str, tuple[_Sequence, ...]] = {}
        self._skip_space(lines=True)
        while self._position < len(self._text):
            name = self._name()
            self._skip_space()
            if not self._text.startswith("::=", self._position):
                raise self._error_here(tr("the name of a rule must be followed by ::="))
            self._position += 3
            self._skip_space(lines=True)
            rules[name] = self._alternates(nested=False)
            if self._position < len(self._text) and self._peek() not in "\r\n":
                raise self._error_here(tr('unexpected "{0}"', self._peek()))
            self._skip_space(lines=True)
        return rules

    def _alternates(self, *, nested: bool) -> tuple[_Sequence, ...]:
        found = [self._sequence(nested=nested)]
        while self._peek() == "|":
            self._position += 1
            self._skip_space(lines=True)
            found.append(self._sequence(nested=nested))
        return tuple(found)

    def _sequence(self, *, nested: bool) -> _Sequence:
        items: list[_Item] = []
        while here := self._peek():
            if here in "*+?{":
                least, is_unlimited = self._repetition(nested=nested)
                if not items:
                    raise self._error_here(tr("there is nothing to repeat before {0}", here))
                if is_unlimited and items[-1].may_be_empty:
                    raise self._error_here(tr("something optional can't be repeated without a limit"))
                items[-1] = _Item(inside=((items[-1],),), may_be_empty=not least)
                self._skip_space(lines=nested)
                continue
            if here == '"':
                # Like llama.cpp, refuse a repetition after an empty text.
                n_before = self._position
                self._literal()
                items += [_Item()] if self._position > n_before + 2 else []
            elif here == "[":
                self._characters()
                items.append(_Item())
            elif here in "<!":
                self._token()
                items.append(_Item())
            elif here == "(":
                items.append(_Item(inside=self._group()))
            elif here == ".":
                self._position += 1
                items.append(_Item())
            elif here in _NAME_CHARACTERS:
                items.append(_Item(refers_to=self._name()))
            else:
                break
            self._skip_space(lines=nested)
        return tuple(items)

    def _group(self) -> tuple[_Sequence, ...]:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise _refusal(tr("It is nested more than {0} levels deep.", _MAX_DEPTH))
        self._position += 1
        self._skip_space(lines=True)
        inside = self._alternates(nested=True)
        if self._peek() != ")":
            raise self._error_here(tr("a bracket ( isn't closed"))
        self._position += 1
        self._depth -= 1
        return inside

    def _literal(self) -> None:
        self._position += 1
        while self._peek() != '"':
            self._character(tr('a text in "quotes" isn\'t closed'))
        self._position += 1

    def _characters(self) -> None:
        self._position += 1
        if self._peek() == "^":
            self._position += 1
        while self._peek() != "]":
            self._character(tr("a set of characters [ isn't closed"))
            if self._peek() == "-" and self._text[self._position + 1 : self._position + 2] != "]":
                self._position += 1
                self._character(tr("a set of characters [ isn't closed"))
        self._position += 1

    def _character(self, unless: str) -> None:
        here = self._peek()
        if not here:
            raise self._error_here(unless)
        self._position += 1
        if here != "\\":
            return
        kind = self._peek()
        self._position += 1
        digits = _ESCAPES.get(kind, 0)
        code = self._text[self._position : self._position + digits]
        if digits and (len(code) < digits or any(each not in "0123456789abcdefABCDEF" for each in code)):
            raise self._error_here(tr("\\{0} must be followed by {1} hexadecimal digits", kind, digits))
        if not digits and (not kind or kind not in 'trn\\"[]'):
            raise self._error_here(tr("\\{0} is unknown; use one of {1}", kind, _KNOWN_ESCAPES))
        self._position += digits

    def _token(self) -> None:
        """Read a token of the model: <think> or <[1234]>. A ! before it means any other token."""
        if self._peek() == "!":
            self._position += 1
        end = self._text.find(">", self._position)
        if self._peek() != "<" or end < 0:
            raise self._error_here(tr("a token is written as <name> or <[number]>"))
        inside = self._text[self._position + 1 : end]
        if inside.startswith("[") and not (inside.endswith("]") and inside[1:-1] and set(inside[1:-1]) <= _DIGITS):
            raise self._error_here(tr("a token's number is written as <[1234]>"))
        self._position = end + 1

    def _repetition(self, *, nested: bool) -> tuple[int, bool]:
        """Return the minimum number of repetitions, and whether there is no maximum."""
        here = self._peek()
        self._position += 1
        if here != "{":
            return int(here == "+"), here != "?"
        self._skip_space(lines=nested)
        least = most = self._number()
        is_unlimited = False
        self._skip_space(lines=nested)
        if self._peek() == ",":
            self._position += 1
            self._skip_space(lines=nested)
            is_unlimited = self._peek() not in _DIGITS
            most = least if is_unlimited else self._number()
            self._skip_space(lines=nested)
        if self._peek() != "}":
            raise self._error_here(tr("a number of repetitions is written as {0}", "{2}, {2,}, {2,5}"))
        if most < least or least > _MAX_MINIMUM or most > _MAX_REPETITIONS:
            raise self._error_here(
                tr(
                    "a number of repetitions goes from at most {0} to at most {1}, the lower one first",
                    show_count(_MAX_MINIMUM),
                    show_count(_MAX_REPETITIONS),
                )
            )
        self._position += 1
        return least, is_unlimited

    def _number(self) -> int:
        start = self._position
        while self._peek() and self._peek() in _DIGITS:
            self._position += 1
        if self._position == start:
            raise self._error_here(tr("a number of repetitions is written as {0}", "{2}, {2,}, {2,5}"))
        return int(self._text[start : self._position][:9])

    def _name(self) -> str:
        start = self._position
        while self._peek() and self._peek() in _NAME_CHARACTERS:
            self._position += 1
        if self._position == start:
            raise self._error_here(tr("a rule begins with its name, which consists of letters, digits and hyphens"))
        return self._text[start : self._position]

    def _skip_space(self, *, lines: bool = False) -> None:
        while (here := self._peek()) and (here in " \t#" or (lines and here in "\r\n")):
            if here != "#":
                self._position += 1
                continue
            while self._peek() and self._peek() not in "\r\n":
                self._position += 1

    def _peek(self) -> str:
        """Return the next character; "" at the end."""
        return self._text[self._position : self._position + 1]

    def _error_here(self, why: str) -> BadRequest:
        return _refusal(tr("Line {0}: {1}.", self._text.count("\n", 0, self._position) + 1, why))


def _check_left_recursion(rules: dict[str, tuple[_Sequence, ...]]) -> None:
    """Raise BadRequest for a rule that begins with itself, because llama.cpp would never finish it."""
    empty: set[str] = set()
    n_before = -1
    while n_before < len(empty):
        n_before = len(empty)
        # Most grammars define rules before the rules they consist of, so one pass from the end finds nearly all.
        for name in reversed(rules):
            if name not in empty and _may_be_empty(rules[name], empty):
                empty.add(name)
    first = {name: _first(rule, empty) for name, rule in rules.items()}
    done: set[str] = set()
    for start in rules:
        if start not in done:
            _follow_first_rules(start, first, done)


def _follow_first_rules(start: str, first: dict[str, set[str]], done: set[str]) -> None:
    """Follow the first rules from `start`. Raise BadRequest for a rule that leads to itself."""
    path, iterators = {start: None}, [iter(first[start])]
    while iterators:
        each = next(iterators[-1], None)
        if each is None:
            iterators.pop()
            done.add(path.popitem()[0])
        elif each in path:
            raise _refusal(tr('The rule "{0}" begins with itself. Start it with something else.', each))
        elif each not in done:
            path[each] = None
            iterators.append(iter(first[each]))


def _may_be_empty(alternates: tuple[_Sequence, ...], empty: set[str]) -> bool:
    return any(all(_is_empty(item, empty) for item in sequence) for sequence in alternates)


def _is_empty(item: _Item, empty: set[str]) -> bool:
    inside = item.inside is not None and _may_be_empty(item.inside, empty)
    return item.may_be_empty or inside or item.refers_to in empty


def _first(alternates: tuple[_Sequence, ...], empty: set[str]) -> set[str]:
    """Return the rules that may be at the very beginning."""
    found: set[str] = set()
    for sequence in alternates:
        for item in sequence:
            found |= {item.refers_to} - {""}
            if item.inside is not None:
                found |= _first(item.inside, empty)
            if not _is_empty(item, empty):
                break
    return found


def _refusal(why: str) -> BadRequest:
    return BadRequest(tr("The grammar can't be used"), tr("The grammar can't be used. {0}", why))
