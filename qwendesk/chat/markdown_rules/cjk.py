"""Which characters are Chinese, Japanese or Korean, as the CJK-friendly amendments to CommonMark define it."""

import functools
import unicodedata

# Hangul letters that Unicode counts as narrow.
_NARROW_HANGUL = (("\u1160", "\u11ff"), ("\ud7b0", "\ud7fb"))
_EMOJI_FROM, _EMOJI_TO = "\U0001f000", "\U0001ffff"
_FIRST_WIDE_SYMBOL = "\u2e80"


@functools.lru_cache(1024)
def is_cjk(character: str) -> bool:
    """Return True for a wide, fullwidth or halfwidth character, unless it is an emoji, and for a Hangul letter.

    Emoji are told by their place and category, not from Unicode's list: a few symbols such as 🈯 and ☰ are judged
    otherwise than there.
    """
    if any(first <= character <= last for first, last in _NARROW_HANGUL):
        return True
    if unicodedata.east_asian_width(character) not in ("W", "F", "H"):
        return False
    is_symbol = unicodedata.category(character) == "So"
    return not (_EMOJI_FROM <= character <= _EMOJI_TO or (is_symbol and character < _FIRST_WIDE_SYMBOL))
