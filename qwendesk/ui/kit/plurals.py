"""Which form of a text a count takes, by the rules that CLDR (unicode.org) gives for whole numbers."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

import msgspec


class PluralRule(msgspec.Struct, frozen=True):
    n_forms: int
    form: Callable[[int], int]
    """The form of a count of 0 or more, from 0."""


def _slavic(n: int) -> int:
    if n % 10 == 1 and n % 100 != 11:
        return 0
    return 1 if n % 10 in (2, 3, 4) and n % 100 not in (12, 13, 14) else 2


def _polish(n: int) -> int:
    return 0 if n == 1 else _slavic(n) or 2


def _arabic(n: int) -> int:
    if n < 3:
        return n
    return 3 if 3 <= n % 100 <= 10 else 4 if n % 100 >= 11 else 5


PLURALS: Mapping[str, PluralRule] = MappingProxyType(
    {
        "same": PluralRule(1, lambda _n: 0),
        "one": PluralRule(2, lambda n: int(n != 1)),
        "zero_or_one": PluralRule(2, lambda n: int(n > 1)),
        "slavic": PluralRule(3, _slavic),
        "polish": PluralRule(3, _polish),
        "czech": PluralRule(3, lambda n: 0 if n == 1 else 1 if n in (2, 3, 4) else 2),
        "arabic": PluralRule(6, _arabic),
    }
)
"""By the name that a language file gives under "plural". The order of the forms is CLDR's: one, few, many."""
