"""Decodes text files of users: which encoding they have, and whether they are text at all."""

_ENCODINGS = (("\ufeff".encode(), "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
"""Byte order marks at the beginning of a file, with their encodings."""
HEAD_BYTES = 64 * 1024
"""So much of a file tells whether it is text."""


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
