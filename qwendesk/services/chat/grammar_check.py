"""Whether a text can be the grammar of a chat's answers, said before anything is sent.

Follows the rules of llama.cpp's own reader of GBNF: what passes here is read there, and the engine has the last word.
"""

from collections.abc import Iterator

import msgspec

from qwendesk.core.errors import BadRequest

_ROOT = "root"
_ESCAPES = {"x": 2, "u": 4, "U": 8}
_MOST_REPEATED = 2000
"""llama.cpp refuses a lowest number above this."""
_MOST_AT_ALL = 20_000
"""llama.cpp takes more, and memory and time without a bound with it."""
_DEEPEST = 100
"""Brackets in brackets; llama.cpp would end by a full stack some way beyond."""
_ASCII = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
_NAME = _ASCII | {"-"}
_DIGITS = frozenset("0123456789")


def check_grammar(text: str) -> None:
    """Raises BadRequest with what is wrong and in which line."""
    if not text.strip():
        return
    try:
        _check(_Reader(text).rules())
    except RecursionError:
        raise _bad("Its repetitions are nested too deep.") from None


def _check(rules: "dict[str, tuple[_Sequence, ...]]") -> None:
    if _ROOT not in rules:
        raise _bad('It needs a rule called "root", such as root ::= "yes" | "no".')
    for name, rule in rules.items():
        for item in _items(rule):
            if item.refers_to and item.refers_to not in rules:
                raise _bad(f'"{name}" refers to "{item.refers_to}", which is no rule of it.')
    _check_recursion(rules)


class _Item(msgspec.Struct, frozen=True):
    """One thing in a sequence, as far as left recursion needs it."""

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
        self._text, self._at, self._depth = text, 0, 0

    def rules(self) -> dict[str, tuple[_Sequence, ...]]:
        rules: dict[str, tuple[_Sequence, ...]] = {}
        self._space(lines=True)
        while self._at < len(self._text):
            name = self._name()
            self._space()
            if not self._text.startswith("::=", self._at):
                raise self._wrong("::= must follow the name of a rule")
            self._at += 3
            self._space(lines=True)
            rules[name] = self._alternates(nested=False)
            if self._at < len(self._text) and self._here() not in "\r\n":
                raise self._wrong(f'"{self._here()}" is not expected here')
            self._space(lines=True)
        return rules

    def _alternates(self, *, nested: bool) -> tuple[_Sequence, ...]:
        found = [self._sequence(nested=nested)]
        while self._here() == "|":
            self._at += 1
            self._space(lines=True)
            found.append(self._sequence(nested=nested))
        return tuple(found)

    def _sequence(self, *, nested: bool) -> _Sequence:
        items: list[_Item] = []
        while here := self._here():
            if here in "*+?{":
                least, has_no_end = self._repetition(nested=nested)
                if not items:
                    raise self._wrong(f"something must stand before {here}")
                if has_no_end and items[-1].may_be_empty:
                    raise self._wrong("what may be left out cannot be repeated without an end")
                items[-1] = _Item(inside=((items[-1],),), may_be_empty=not least)
                self._space(lines=nested)
                continue
            if here == '"':
                # An empty text is nothing that could be repeated, as llama.cpp sees it.
                n_before = self._at
                self._literal()
                items += [_Item()] if self._at > n_before + 2 else []
            elif here == "[":
                self._characters()
                items.append(_Item())
            elif here in "<!":
                self._token()
                items.append(_Item())
            elif here == "(":
                items.append(_Item(inside=self._group()))
            elif here == ".":
                self._at += 1
                items.append(_Item())
            elif here in _NAME:
                items.append(_Item(refers_to=self._name()))
            else:
                break
            self._space(lines=nested)
        return tuple(items)

    def _group(self) -> tuple[_Sequence, ...]:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise _bad(f"It is nested more than {_DEEPEST} deep.")
        self._at += 1
        self._space(lines=True)
        inside = self._alternates(nested=True)
        if self._here() != ")":
            raise self._wrong("a bracket ( is not closed")
        self._at += 1
        self._depth -= 1
        return inside

    def _literal(self) -> None:
        self._at += 1
        while self._here() != '"':
            self._character('a text in "quotes" is not closed')
        self._at += 1

    def _characters(self) -> None:
        self._at += 1
        if self._here() == "^":
            self._at += 1
        while self._here() != "]":
            self._character("a set of characters [ is not closed")
            if self._here() == "-" and self._text[self._at + 1 : self._at + 2] != "]":
                self._at += 1
                self._character("a set of characters [ is not closed")
        self._at += 1

    def _character(self, unless: str) -> None:
        here = self._here()
        if not here:
            raise self._wrong(unless)
        self._at += 1
        if here != "\\":
            return
        kind = self._here()
        self._at += 1
        digits = _ESCAPES.get(kind, 0)
        code = self._text[self._at : self._at + digits]
        if digits and (len(code) < digits or any(each not in "0123456789abcdefABCDEF" for each in code)):
            raise self._wrong(f"\\{kind} must be followed by {digits} hexadecimal digits")
        if not digits and (not kind or kind not in 'trn\\"[]'):
            raise self._wrong(f'\\{kind} is unknown; use \\n, \\r, \\t, \\\\, \\", \\[, \\], \\-, \\x, \\u or \\U')
        self._at += digits

    def _token(self) -> None:
        """A whole token of the model: <think>, <[1234]>, or ! before it for any other one."""
        if self._here() == "!":
            self._at += 1
        end = self._text.find(">", self._at)
        if self._here() != "<" or end < 0:
            raise self._wrong("a token is written <name> or <[number]>")
        inside = self._text[self._at + 1 : end]
        if inside.startswith("[") and not (inside.endswith("]") and inside[1:-1] and set(inside[1:-1]) <= _DIGITS):
            raise self._wrong("a token by its number is written <[1234]>")
        self._at = end + 1

    def _repetition(self, *, nested: bool) -> tuple[int, bool]:
        """The least number of times, and whether there is no highest."""
        here = self._here()
        self._at += 1
        if here != "{":
            return int(here == "+"), here != "?"
        self._space(lines=nested)
        least = most = self._number()
        has_no_end = False
        self._space(lines=nested)
        if self._here() == ",":
            self._at += 1
            self._space(lines=nested)
            has_no_end = self._here() not in _DIGITS
            most = least if has_no_end else self._number()
            self._space(lines=nested)
        if self._here() != "}":
            raise self._wrong("a number of times is written {2}, {2,} or {2,5}")
        if most < least or least > _MOST_REPEATED or most > _MOST_AT_ALL:
            raise self._wrong(f"a number of times goes from low (up to {_MOST_REPEATED:,}) to high ({_MOST_AT_ALL:,})")
        self._at += 1
        return least, has_no_end

    def _number(self) -> int:
        start = self._at
        while self._here() and self._here() in _DIGITS:
            self._at += 1
        if self._at == start:
            raise self._wrong("a number of times is written {2}, {2,} or {2,5}")
        return int(self._text[start : self._at][:9])

    def _name(self) -> str:
        start = self._at
        while self._here() and self._here() in _NAME:
            self._at += 1
        if self._at == start:
            raise self._wrong("a rule begins with its name, of letters, digits and hyphens")
        return self._text[start : self._at]

    def _space(self, *, lines: bool = False) -> None:
        while (here := self._here()) and (here in " \t#" or (lines and here in "\r\n")):
            if here != "#":
                self._at += 1
                continue
            while self._here() and self._here() not in "\r\n":
                self._at += 1

    def _here(self) -> str:
        """The character that comes next; "" at the end."""
        return self._text[self._at : self._at + 1]

    def _wrong(self, why: str) -> BadRequest:
        return _bad(f"Line {self._text.count(chr(10), 0, self._at) + 1}: {why}.")


def _check_recursion(rules: dict[str, tuple[_Sequence, ...]]) -> None:
    """A rule that begins with itself never ends for llama.cpp."""
    empty: set[str] = set()
    n_before = -1
    while n_before < len(empty):
        n_before = len(empty)
        # Most grammars go from the whole to its parts, so one pass from the end finds nearly all.
        for name in reversed(rules):
            if name not in empty and _may_be_empty(rules[name], empty):
                empty.add(name)
    first = {name: _first(rule, empty) for name, rule in rules.items()}
    done: set[str] = set()
    for start in rules:
        if start not in done:
            _walk(start, first, done)


def _walk(start: str, first: dict[str, set[str]], done: set[str]) -> None:
    """Goes down from `start` by first rules; one that is met on its own way down is refused."""
    way, left = {start: None}, [iter(first[start])]
    while left:
        each = next(left[-1], None)
        if each is None:
            left.pop()
            done.add(way.popitem()[0])
        elif each in way:
            raise _bad(f'"{each}" begins with itself. Put what must come first before it.')
        elif each not in done:
            way[each] = None
            left.append(iter(first[each]))


def _may_be_empty(alternates: tuple[_Sequence, ...], empty: set[str]) -> bool:
    return any(all(_is_empty(item, empty) for item in sequence) for sequence in alternates)


def _is_empty(item: _Item, empty: set[str]) -> bool:
    inside = item.inside is not None and _may_be_empty(item.inside, empty)
    return item.may_be_empty or inside or item.refers_to in empty


def _first(alternates: tuple[_Sequence, ...], empty: set[str]) -> set[str]:
    """The rules that may stand at the very beginning."""
    found: set[str] = set()
    for sequence in alternates:
        for item in sequence:
            found |= {item.refers_to} - {""}
            if item.inside is not None:
                found |= _first(item.inside, empty)
            if not _is_empty(item, empty):
                break
    return found


def _bad(why: str) -> BadRequest:
    return BadRequest("The grammar cannot be used", f"The grammar cannot be used. {why}")
