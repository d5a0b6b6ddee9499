"""Decodes text files of others: UTF-8, with a few damaged bytes too, UTF-16, and the encodings before them."""

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

import msgspec

from qwendesk.core.translation import mark

# Byte order marks at the beginning of a file, with their encodings.
_MARKS: Final = (("\ufeff".encode(), "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
# So much of a file tells whether it is text.
HEAD_BYTES = 64 * 1024
_WESTERN: Final = "cp1252"
# Encodings by Python's names, in the order of a menu: what they are for, and the name that people know.
ENCODINGS: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "utf-8": (mark("Unicode"), "UTF-8"),
        "utf-16-le": (mark("Unicode"), "UTF-16 LE"),
        "utf-16-be": (mark("Unicode"), "UTF-16 BE"),
        "cp932": (mark("Japanese"), "Shift JIS"),
        "euc_jp": (mark("Japanese"), "EUC-JP"),
        "iso2022_jp": (mark("Japanese"), "ISO-2022-JP"),
        "gb18030": (mark("Simplified Chinese"), "GB 18030"),
        "big5hkscs": (mark("Traditional Chinese"), "Big5"),
        "cp949": (mark("Korean"), "EUC-KR"),
        "cp1251": (mark("Cyrillic"), "Windows-1251"),
        "koi8_r": (mark("Cyrillic"), "KOI8-R"),
        "cp866": (mark("Cyrillic"), "CP866"),
        "iso8859_5": (mark("Cyrillic"), "ISO-8859-5"),
        _WESTERN: (mark("Western"), "Windows-1252"),
        "cp1250": (mark("Central European"), "Windows-1250"),
        "cp1253": (mark("Greek"), "Windows-1253"),
        "cp1254": (mark("Turkish"), "Windows-1254"),
        "cp1255": (mark("Hebrew"), "Windows-1255"),
        "cp1256": (mark("Arabic"), "Windows-1256"),
        "cp874": (mark("Thai"), "Windows-874"),
    }
)


class DecodedText(msgspec.Struct, frozen=True):
    text: str
    """With plain line ends, and U+FFFD for each byte that is no character."""
    encoding: str = ""
    """A name of ENCODINGS if it was guessed or chosen, or bytes were lost; "" if there is no doubt."""


def decode_text(raw: bytes, encoding: str = "") -> DecodedText | None:
    """Return the text of a file, and its encoding unless that is beyond doubt; None if it is no text.

    `encoding` is one of ENCODINGS that the user chose; "" finds it.
    """
    marked = next((name for mark, name in _MARKS if raw.startswith(mark)), "")
    if not encoding and not marked:
        if not is_text(raw[:HEAD_BYTES]):
            return None
        encoding = _find_encoding(raw)
    text = raw.decode(encoding or marked or "utf-8", "replace").removeprefix("\ufeff")
    return DecodedText(text.replace("\r\n", "\n").replace("\r", "\n").replace("\x00", ""), encoding)


def is_text(head: bytes) -> bool:
    """Return True for UTF-16, and if there is no zero byte and hardly any other control character."""
    return any(head.startswith(mark) for mark, _ in _MARKS) or not _looks_binary(head) or bool(_utf16(head))


def _looks_binary(head: bytes) -> bool:
    controls = sum(byte < 32 and byte not in b"\t\n\r\f\x1b" for byte in head)
    return b"\x00" in head or controls * 100 > len(head)


def _find_encoding(raw: bytes) -> str:
    """Return the encoding of a text without a mark; "" for faultless UTF-8."""
    if _looks_binary(raw[:HEAD_BYTES]):
        return _utf16(raw[:HEAD_BYTES])
    if _SHIFT.search(raw) and "\ufffd" not in raw.decode("iso2022_jp", "replace"):
        return "iso2022_jp"
    share = _utf8_share(raw)
    if share > _UTF8_SHARE:
        return "" if share == 1 else "utf-8"
    return _guess(b"\n".join(_telling_lines(raw)))


# ISO-2022-JP changes to Japanese by one of these.
_SHIFT = re.compile(rb"\x1b\$[@B]")
# Of the bytes above 127, so many belong to valid UTF-8 at least where it is UTF-8 with damage. In other encodings it is
# less than a third (docling#4202 measured 0 to 0.29, and 0.99 where a byte was damaged); short texts have few of them.
_UTF8_SHARE = 0.6
_ASCII = bytes(range(128))


def _utf8_share(raw: bytes) -> float:
    """Return the share of the bytes above 127 that UTF-8 reads; 1 if there are none."""
    n_high = len(raw.translate(None, _ASCII))
    try:
        raw.decode()
    except UnicodeDecodeError:
        return 1 - (len(raw) - len(raw.decode("utf-8", "ignore").encode())) / n_high
    return 1.0


# Characters of the scripts in use. In UTF-16 of the wrong byte order or in other files, about half are others.
_IN_USE = re.compile(
    r"[\t\n\f\r -~\u00a0-\u052f\u0590-\u06ff\u0900-\u097f\u0e00-\u0e7f\u1e00-\u1eff\u2000-\u206f\u20a0-\u20bf"
    r"\u2100-\u22ff\u2460-\u26ff\u3000-\u30ff\u4e00-\u9fff\uac00-\ud7a3\uff01-\uffee\U0001f300-\U0001faff]"
)
_IN_USE_SHARE = 0.97


def _utf16(head: bytes) -> str:
    """Return the byte order in which text without a mark is UTF-16; "" if it is none."""
    even = head[: len(head) // 2 * 2]
    found = []
    for encoding in ("utf-16-le", "utf-16-be"):
        text = even.decode(encoding, "replace")
        # In the wrong order, Latin letters are CJK characters. Hardly any text has no blank and no line break.
        n_ascii = sum(map(str.isascii, text))
        if n_ascii and len(_IN_USE.findall(text)) >= _IN_USE_SHARE * len(text):
            found.append((n_ascii, encoding))
    return max(found)[1] if found else ""


# So much of the lines with other characters than ASCII is enough to guess by.
_TELLING_BYTES = 64 * 1024


def _telling_lines(raw: bytes) -> Iterator[bytes]:
    """Yield whole lines that have bytes above 127, up to _TELLING_BYTES and a line."""
    length = 0
    for line in raw.splitlines():
        if length > _TELLING_BYTES:
            return
        if not line.isascii():
            length += len(line)
            yield line


# What is guessed. The first of each is taken where others are as good.
_OF_LATIN = (_WESTERN, "cp1250", "cp1254")
_OF_OTHER_SCRIPTS = ("cp1251", "koi8_r", "cp866", "iso8859_5", "cp1253", "cp1255", "cp1256", "cp874")
_OF_MANY_BYTES = ("cp932", "euc_jp", "gb18030", "big5hkscs", "cp949")
# Of the bytes above 127 a text may lose so many to damage.
_LOST_SHARE = 0.02
# A byte above 127 beside a letter of ASCII, and one with nothing but ASCII around it. Words of other scripts than Latin
# have hardly any of the first, and characters of two bytes, of which the second may be ASCII, hardly any of the other.
_BESIDE_LATIN = re.compile(rb"[A-Za-z][\x80-\xff]|[\x80-\xff][A-Za-z]")
_ALONE = re.compile(rb"(?<![\x80-\xff].)(?<![\x80-\xff])[\x80-\xff](?![\x80-\xff])(?!.[\x80-\xff])", re.DOTALL)
# Half-width katakana, which Shift JIS makes of Cyrillic; kana, without which hardly any Japanese is written; and a Thai
# mark without the letter that it stands on.
_HALF_WIDTH = re.compile("[\uff61-\uff9f]")
_KANA = re.compile("[\u3040-\u30ff]")
_THAI_ALONE = re.compile("(?<![\u0e01-\u0e2e\u0e31\u0e34-\u0e3a\u0e47-\u0e4e])[\u0e31\u0e34-\u0e3a\u0e47-\u0e4e]")
_HANGUL = re.compile("[\uac00-\ud7a3]")


def _guess(sample: bytes) -> str:
    """Return the encoding in which charset-normalizer finds the least mess and the most language."""
    # A file that isn't UTF-8 is rare.
    from charset_normalizer import CharsetMatch, CharsetMatches, from_bytes  # noqa: PLC0415

    matches: list[CharsetMatch] = []
    for encoding in _candidates(sample):
        whole = sample.decode(encoding, "ignore").encode(encoding, "ignore")
        matches += from_bytes(whole, cp_isolation=[encoding], preemptive_behaviour=False, enable_fallback=False)
    best = CharsetMatches(matches).best()
    return _WESTERN if best is None else best.encoding


def _candidates(sample: bytes) -> Iterator[str]:
    """Yield the encodings in which nearly all of a text can be read, without those that its bytes speak against."""
    n_high = len(sample.translate(None, _ASCII))
    if 2 * len(_ALONE.findall(sample)) > n_high:
        names: tuple[str, ...] = _OF_LATIN
    elif 2 * len(_BESIDE_LATIN.findall(sample)) > n_high:
        names = (*_OF_MANY_BYTES, *_OF_LATIN)
    else:
        names = (*_OF_MANY_BYTES, _WESTERN, *_OF_OTHER_SCRIPTS)
    for name in names:
        text = sample.decode(name, "replace")
        if text.count("\ufffd") <= _LOST_SHARE * n_high and _is_likely(name, text, sample, n_high):
            yield name


def _is_likely(name: str, text: str, sample: bytes, n_high: int) -> bool:
    """Return False for an encoding in which the text would be one that hardly anybody writes."""
    if name == "cp932":
        return 3 * len(_HALF_WIDTH.findall(text)) < n_high
    if name == "euc_jp":
        return _KANA.search(text) is not None
    if name == "cp874":
        n_hangul = len(_HANGUL.findall(sample.decode("cp949", "ignore")))
        return _THAI_ALONE.search(text) is None and 2 * n_hangul < 0.9 * n_high
    if name in ("cp1251", "koi8_r"):  # each shows small letters of the other as capitals
        return sum(map(str.isupper, text)) <= sum(map(str.islower, text))
    return True
