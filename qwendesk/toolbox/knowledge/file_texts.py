"""The texts of files of any kind: text, code, PDF and Office documents. All functions block."""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

import msgspec

from qwendesk.core.citations import Unit
from qwendesk.core.errors import BadRequest
from qwendesk.core.input_files import FileTooLarge, OnlineOnlyFile, OpenFile, read_bounded
from qwendesk.core.text_decoding import ENCODINGS, HEAD_BYTES, decode_text, is_text
from qwendesk.core.translation import tr
from qwendesk.core.units import MIB, show_bytes
from qwendesk.decoding.documents import UNITS, document_format, read_pieces

LARGEST_TEXT_BYTES: Final = 16 * MIB
_LINES: Final[Mapping[str, str]] = MappingProxyType({"sheet": "rows", "chapter": "paragraphs"})
_WITH_PARAGRAPHS: Final = frozenset({"docx", "odt", "rtf"})


class UnreadableFile(Exception):
    """A file that should have a text could not be read. The text is a sentence for the user."""


class NoText(Exception):
    """A file of another kind, such as a picture or a program."""


class FilePart(msgspec.Struct, frozen=True):
    """A page, slide, sheet or chapter, or the whole text of a file."""

    lines: tuple[str, ...]
    at: int = 0
    """Its number, from 1; 0 for a whole text."""
    name: str = ""
    encoding: str = ""
    """Encoding that the file was guessed to be in, as people call it; "" if there was no doubt."""


def unit_of(name: str) -> Unit:
    """Return what a file of this name is made of."""
    return UNITS.get(document_format(name), "")


def lines_word(name: str) -> str:
    """Return what the lines of a file of this name are called."""
    kind = document_format(name)
    return "paragraphs" if kind in _WITH_PARAGRAPHS else _LINES.get(unit_of(name), "lines")


def read_parts(
    path: Path, open_file: OpenFile, is_cancelled: Callable[[], bool] = lambda: False
) -> tuple[FilePart, ...]:
    """Return the text of a file that `open_file` opens. Raise UnreadableFile, or NoText if its kind has none."""
    if document_format(path.name):
        return _document_parts(path, open_file, is_cancelled)
    try:
        with open_file(path, None) as file:
            head = file.read(HEAD_BYTES)
        if not is_text(head):
            raise NoText
        decoded = decode_text(read_bounded(path, LARGEST_TEXT_BYTES, open_file))
    except FileTooLarge as error:
        sentence = tr(
            "It has {0}; texts are read up to {1}.", show_bytes(error.size_bytes), show_bytes(error.limit_bytes)
        )
        raise UnreadableFile(sentence) from None
    except OSError as error:
        raise UnreadableFile(_reason(error)) from None
    if decoded is None:
        raise NoText
    _, encoding = ENCODINGS.get(decoded.encoding, ("", ""))
    return (FilePart(tuple(decoded.text.removesuffix("\n").split("\n")), encoding=encoding),)


def _document_parts(path: Path, open_file: OpenFile, is_cancelled: Callable[[], bool]) -> tuple[FilePart, ...]:
    try:
        open_file(path, None).close()
        pieces = read_pieces(path, is_cancelled=is_cancelled, open_file=open_file)
    except BadRequest as error:
        raise UnreadableFile(error.sentence) from None
    except OSError as error:
        raise UnreadableFile(_reason(error)) from None
    if not any(piece.text.strip() for piece in pieces):
        raise UnreadableFile(tr("It has no text; it may consist of scanned pictures."))
    has_parts = bool(unit_of(path.name))
    return tuple(
        FilePart(tuple(piece.text.split("\n")), number if has_parts else 0, piece.name)
        for number, piece in enumerate(pieces, 1)
    )


def _reason(error: OSError) -> str:
    if isinstance(error, OnlineOnlyFile):
        return tr("It is only in the cloud.")
    return tr("It can't be read: {0}.", error.strerror or error)
