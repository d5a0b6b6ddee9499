"""Decodes JSON and base64 that others have written. Encodes what they may read.

One function, so that nothing that JSON can hold surprises the code behind it: deep nesting, numbers that no float can
have, half characters.
"""

import base64
import re
from itertools import chain
from typing import Any, TypeVar, overload
from urllib.parse import unquote

import msgspec

# From the alphabet for addresses to the ordinary one.
_ALPHABET = str.maketrans("-_", "+/")


def decode_base64(text: str) -> bytes:
    """Return the bytes of base64, or of a data URL. Raise ValueError, with the reason, for anything else.

    White space, missing padding and the alphabet for addresses are no faults: other programs take them too.
    """
    head, comma, encoded = text.partition(",")
    if comma and "base64" not in (each.strip().lower() for each in head.split(";")):
        raise ValueError("it is a data URL without base64")
    encoded = encoded if comma else text
    if "%" in encoded:
        encoded = unquote(encoded)
    plain = "".join(encoded.split()).rstrip("=").translate(_ALPHABET)
    return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)


T = TypeVar("T")

# Lists and objects in each other. Code that walks a value calls itself for each level; Python allows 1,000 calls.
MOST_DEPTH = 200
_TOO_DEEP = "it is nested too deeply"
# The largest float. A larger integer can't be converted to one.
_LARGEST = int(1.7976931348623157e308)
# A pair of surrogates, half of one (the group), or any other escape.
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)


@overload
def decode_json(content: bytes | bytearray | str) -> Any: ...
@overload
def decode_json(content: bytes | bytearray | str, kind: type[T], *, strict: bool = True) -> T: ...
def decode_json(content: bytes | bytearray | str, kind: Any = Any, *, strict: bool = True) -> Any:
    """Return the value in `content`, of type `kind`. Raise msgspec.DecodeError for everything else.

    Refused are also more than MOST_DEPTH levels, and numbers that no float can have. Half characters (lone surrogates)
    become U+FFFD, and a byte order mark is skipped. `strict` is that of msgspec.
    """
    try:
        value = _decoded(_utf8(content).removeprefix(b"\xef\xbb\xbf"))
        _check(value)
        return value if kind is Any else msgspec.convert(value, kind, strict=strict, str_keys=True)
    except UnicodeDecodeError as error:
        raise msgspec.DecodeError(str(error)) from error
    except RecursionError as error:
        raise msgspec.DecodeError(_TOO_DEEP) from error


def json_bytes(value: Any) -> bytes:
    """Return a value as JSON in UTF-8. Half characters, which pasted text and file names may have, become U+FFFD."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return msgspec.json.encode(_with_whole_characters(msgspec.to_builtins(value)))


def whole_characters(text: str) -> str:
    """Return `text` so that UTF-8 can encode it: surrogate pairs are joined, lone surrogates replaced by U+FFFD."""
    return text if text.isascii() else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def with_whole_escapes(content: bytes | bytearray) -> bytes:
    """Return JSON with U+FFFD in place of escapes of half characters, which most decoders refuse."""
    return _ESCAPE.sub(lambda found: rb"\ufffd" if found[1] else found[0], content)


def _with_whole_characters(value: Any) -> Any:
    match value:
        case str():
            return whole_characters(value)
        case list() | tuple():
            return [_with_whole_characters(item) for item in value]
        case dict():
            return {_with_whole_characters(key): _with_whole_characters(item) for key, item in value.items()}
        case _:
            return value


def _utf8(content: bytes | bytearray | str) -> bytes | bytearray:
    if not isinstance(content, str):
        return content
    return whole_characters(content).encode()


def _decoded(content: bytes | bytearray) -> Any:
    try:
        return msgspec.json.decode(content)
    except msgspec.DecodeError:
        whole = with_whole_escapes(content)
        if whole == content:
            raise
        return msgspec.json.decode(whole)


def _check(value: Any) -> None:
    """Raise msgspec.DecodeError if `value` is nested too deeply, or has too large an integer."""
    level = [value]
    for _ in range(MOST_DEPTH + 1):
        for each in level:
            if type(each) is int and not -_LARGEST <= each <= _LARGEST:
                raise msgspec.DecodeError("a number has more than 308 digits")
        level = list(
            chain.from_iterable(
                each.values() if type(each) is dict else each for each in level if type(each) in (dict, list)
            )
        )
        if not level:
            return
    raise msgspec.DecodeError(_TOO_DEEP)
