"""A file read into the words that a question quotes. Blocks: call it on another thread."""

from collections.abc import Sequence
from pathlib import Path

from qwendesk.core.errors import BadRequest
from qwendesk.core.messages import DocumentPart
from qwendesk.core.units import MIB, show_bytes
from qwendesk.services.documents.languages import is_pdf, language_of
from qwendesk.services.documents.pdf import pdf_text

LARGEST_TEXT_BYTES = 16 * MIB
"""Some four million tokens: more than any context holds, and little enough to read at once."""
_ENCODINGS = (("\ufeff".encode(), "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
"""By the mark that a file begins with."""
_LOOK_BYTES = 64 * 1024


def read_document(path: Path, pages: Sequence[int] = ()) -> DocumentPart:
    """The file as part of a question; of a PDF these `pages`, all without any.

    Raises BadRequest with a sentence when it is no text, too large or unreadable.
    """
    name = path.name.encode("utf-8", "replace").decode()
    if is_pdf(path.name) and not path.is_dir():
        text, n_pages = pdf_text(path, pages)
        return DocumentPart(name, text.encode("utf-8", "replace").decode(), pages=n_pages)
    try:
        if path.is_dir():
            raise BadRequest("A folder", f"{path.name} is a folder. Attach the files in it instead.")
        n_bytes = path.stat().st_size
        if n_bytes > LARGEST_TEXT_BYTES:
            size, most = show_bytes(n_bytes), show_bytes(LARGEST_TEXT_BYTES)
            raise BadRequest("Too large", f"{path.name} has {size}, and text of at most {most} can be attached.")
        raw = path.read_bytes()
    except OSError as error:
        raise BadRequest("File not readable", f"{path.name} cannot be read: {error.strerror or error}.") from error
    if not raw.strip():
        raise BadRequest("Nothing in it", f"{path.name} is empty.")
    return DocumentPart(name, _decoded(path.name, raw), language=language_of(path.name) or "")


def is_document(path: Path) -> bool:
    """Whether a file can be quoted: by its name, or by what it begins with. Reads a little; blocks."""
    if is_pdf(path.name) or language_of(path.name) is not None:
        return True
    try:
        with path.open("rb") as file:
            head = file.read(_LOOK_BYTES)
    except OSError:
        return False
    return bool(head) and _is_text(head)


def _decoded(name: str, raw: bytes) -> str:
    encoding = next((each for mark, each in _ENCODINGS if raw.startswith(mark)), "")
    if not encoding and not _is_text(raw[:_LOOK_BYTES]):
        raise BadRequest("Not a text", f"{name} is no text file. Pictures, PDF, text and code can be attached.")
    try:
        text = raw.decode(encoding or "utf-8")
    except UnicodeDecodeError:
        # Old Windows files; every byte means something there, so that nothing is lost.
        text = raw.decode("cp1252", errors="replace")
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\x00", "")


def _is_text(head: bytes) -> bool:
    """No zero byte, and hardly any other control character."""
    if any(head.startswith(mark) for mark, _ in _ENCODINGS):
        return True
    controls = sum(byte < 32 and byte not in b"\t\n\r\f\x1b" for byte in head)
    return b"\x00" not in head and controls * 100 <= len(head)
