"""Texts of pages in whatever encoding they have, without characters that nobody sees."""

import re
import unicodedata

_MARKS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
_KNOWN = re.compile(
    r"utf-?8|utf-?16(le|be)?|us-ascii|ascii|iso-?8859-?\d{1,2}|latin-?\d|windows-?125\d|cp125\d|koi8-[ru]|macintosh|"
    r"gb2312|gbk|gb18030|big5(-hkscs)?|shift_?jis|sjis|euc-?(jp|kr)|iso-2022-jp|windows-?(874|31j)|tis-620|x-sjis"
)
"""Names of encodings that pages have. Python knows more, of which some are no encodings of texts, or slow."""
_NOT_LIKE_UTF_8 = ("utf-16", "utf16", "iso-2022")
"""Texts in these can be valid UTF-8 without meaning that."""
_DECLARED = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([A-Za-z0-9_-]{2,20})", re.IGNORECASE)
_HEAD_BYTES = 4096
_PIECE = 50_000
"""Characters that are looked at together: few, so that the window's thread gets its turn while a long text is read."""
_INVISIBLE = ("Cc", "Cf", "Cs", "Co")
"""Unicode's categories: control characters, marks of format, halves of pairs, private use."""
_KEPT_INVISIBLE = "\n\t\u200c\u200d"
"""The last two join letters or keep them apart, in Persian, Hindi and emoji."""


def decode_page(raw: bytes, charset: str) -> str:
    """Return the text of a page. `charset` is what the server says it is, which is often wrong; "" if it doesn't."""
    mark = next((encoding for mark, encoding in _MARKS if raw.startswith(mark)), "")
    declared = _DECLARED.search(raw[:_HEAD_BYTES])
    named = [_known(charset), _known(declared[1].decode("ascii") if declared else "")]
    first = [mark, *(name for name in named if name.startswith(_NOT_LIKE_UTF_8))]
    for encoding in filter(None, (*first, "utf-8", *named)):
        try:
            return raw.decode(encoding)
        except (LookupError, UnicodeError):
            continue
    return raw.decode("cp1252", "replace")


def readable(text: str) -> str:
    """Return a text with plain line ends and without invisible characters, which can hide instructions."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\u2028", "\n").replace("\u2029", "\n")
    return "".join(_without_invisible(text[start : start + _PIECE]) for start in range(0, len(text), _PIECE))


def _without_invisible(text: str) -> str:
    invisible = {ord(c): None for c in set(text) if unicodedata.category(c) in _INVISIBLE and c not in _KEPT_INVISIBLE}
    return text.translate(invisible) if invisible else text


def _known(name: str) -> str:
    name = name.strip().strip("\"'").lower()
    return name if _KNOWN.fullmatch(name) else ""
