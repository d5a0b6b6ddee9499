"""Decodes text files of users: which encoding they have, and whether they are text at all. Decodes base64."""

import base64
from urllib.parse import unquote

# Byte order marks at the beginning of a file, with their encodings.
_ENCODINGS = (("\ufeff".encode(), "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
# From the alphabet for addresses to the ordinary one.
_ALPHABET = str.maketrans("-_", "+/")
# So much of a file tells whether it is text.
HEAD_BYTES = 64 * 1024


def decode_text(raw: bytes) -> str | None:
    """Return the text of a file with plain line ends; None if it is no text."""
    encoding = next((each for mark, each in _ENCODINGS if raw.startswith(mark)), "")
    if not encoding and not is_text(raw[:HEAD_BYTES]):
        return None
    try:
        text = raw.decode(encoding or "utf-8")
    except UnicodeDecodeError:
        # Probably an old Windows file. Nearly every byte is a character in this encoding.
        text = raw.decode("cp1252", errors="replace")
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\x00", "")


def is_text(head: bytes) -> bool:
    """Return True if there is no zero byte and hardly any other control character."""
    if any(head.startswith(mark) for mark, _ in _ENCODINGS):
        return True
    controls = sum(byte < 32 and byte not in b"\t\n\r\f\x1b" for byte in head)
    return b"\x00" not in head and controls * 100 <= len(head)


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
