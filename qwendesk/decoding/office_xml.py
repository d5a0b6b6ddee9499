"""Collects the text of Office documents, which are zipped XML. Runs in the decoding process only.

Both families of formats are read as a stream of tags, told apart by their local names: Office Open XML (docx, pptx) and
OpenDocument (odt, odp). A document type, with which XML bombs begin, is refused; no Office program writes one.
"""

import zipfile
from collections.abc import Callable
from typing import BinaryIO
from xml.parsers import expat

from qwendesk.core.units import MIB

_MOST_ENTRIES = 20_000
_MOST_UNPACKED_BYTES = 512 * MIB
"""Of all entries that are read of one file together, so that a small file can't unpack to any size."""


class UnreadableDocument(Exception):
    """The file is no document of its kind. The text says why."""


class Archive:
    """A zip file of which only so much is unpacked."""

    def __init__(self, file: BinaryIO) -> None:
        """Raise UnreadableDocument if it is no zip file, or has more entries than a document has."""
        try:
            self._zip = zipfile.ZipFile(file)
        except zipfile.BadZipFile as error:
            raise UnreadableDocument(str(error)) from None
        self._left_bytes = _MOST_UNPACKED_BYTES
        self.names = frozenset(self._zip.namelist())
        if len(self.names) > _MOST_ENTRIES:
            raise UnreadableDocument("it has too many parts")

    def read(self, name: str) -> bytes:
        """Return an entry; nothing if there is none. Raise UnreadableDocument if it unpacks to too much."""
        if name not in self.names:
            return b""
        try:
            with self._zip.open(name) as entry:
                data = entry.read(self._left_bytes + 1)
        except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError, ValueError) as error:
            raise UnreadableDocument(str(error)) from None
        self._left_bytes -= len(data)
        if self._left_bytes < 0:
            raise UnreadableDocument("it unpacks to too much")
        return data


class TextLines:
    """Text in lines: a paragraph is a line, and so is a row of a table, with tabs between its cells."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._n_rows_open = 0

    def add(self, text: str) -> None:
        self._pieces.append(text)

    def end_paragraph(self) -> None:
        self._pieces.append(" " if self._n_rows_open else "\n")

    def begin_row(self) -> None:
        self._n_rows_open += 1

    def end_cell(self) -> None:
        if self._n_rows_open == 1:
            self._pieces.append("\t")

    def end_row(self) -> None:
        self._n_rows_open = max(0, self._n_rows_open - 1)
        self.end_paragraph()

    @property
    def text(self) -> str:
        lines = "".join(self._pieces).split("\n")
        return "\n".join(_line(line) for line in lines).strip("\n")


def _line(line: str) -> str:
    if "\t" not in line:
        return line.rstrip()
    return "\t".join(" ".join(cell.split()) for cell in line.split("\t")).rstrip()


def office_open_text(data: bytes) -> str:
    """Return the text of a part of a docx or pptx file. Raise UnreadableDocument."""
    lines = TextLines()
    inside = {"t": 0, "Fallback": 0}

    def begin(name: str, _attributes: dict[str, str]) -> None:
        match name:
            case "t" | "Fallback":  # what a fallback says is said before it already
                inside[name] += 1
            case "tab" | "ptab" if not inside["Fallback"]:
                lines.add("\t")
            case "br" | "cr" if not inside["Fallback"]:
                lines.end_paragraph()
            case "tr":
                lines.begin_row()

    def end(name: str) -> None:
        match name:
            case "t" | "Fallback":
                inside[name] -= 1
            case "p" if not inside["Fallback"]:
                lines.end_paragraph()
            case "tc":
                lines.end_cell()
            case "tr":
                lines.end_row()

    parse_xml(data, begin, end, lambda text: lines.add(text) if inside["t"] and not inside["Fallback"] else None)
    return lines.text


def open_document_pages(data: bytes) -> list[str]:
    """Return the text of the content of an odt or odp file, one text for each slide. Raise UnreadableDocument."""
    pages = [TextLines()]
    inside = {"p": 0, "h": 0, "tracked-changes": 0}

    def begin(name: str, attributes: dict[str, str]) -> None:
        match name:
            case "p" | "h" | "tracked-changes":
                inside[name] += 1
            case "page":
                pages.append(TextLines())
            case "s":
                count = next((value for key, value in attributes.items() if _local(key) == "c"), "1")
                pages[-1].add(" " * (min(int(count), 1000) if count.isascii() and count.isdecimal() else 1))
            case "tab":
                pages[-1].add("\t")
            case "line-break":
                pages[-1].end_paragraph()
            case "table-row":
                pages[-1].begin_row()

    def end(name: str) -> None:
        match name:
            case "p" | "h":
                inside[name] -= 1
                if not inside["tracked-changes"]:
                    pages[-1].end_paragraph()
            case "tracked-changes":
                inside[name] -= 1
            case "table-cell":
                pages[-1].end_cell()
            case "table-row":
                pages[-1].end_row()

    def write(text: str) -> None:
        if (inside["p"] or inside["h"]) and not inside["tracked-changes"]:
            pages[-1].add(text)

    parse_xml(data, begin, end, write)
    return [page.text for page in pages]


def parse_xml(
    data: bytes,
    begin: Callable[[str, dict[str, str]], None],
    end: Callable[[str], None] = lambda _name: None,
    write: Callable[[str], None] = lambda _text: None,
) -> None:
    """Call `begin` and `end` with the local name of each element, and `write` with its text. Raise UnreadableDocument.

    Attributes keep their namespaces.
    """
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    parser.StartElementHandler = lambda name, attributes: begin(_local(name), attributes)
    parser.EndElementHandler = lambda name: end(_local(name))
    parser.CharacterDataHandler = write
    parser.StartDoctypeDeclHandler = _refuse_document_type
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise UnreadableDocument(str(error)) from None


def _refuse_document_type(*_arguments: object) -> None:
    raise UnreadableDocument("it has a document type")


def _local(name: str) -> str:
    return name.rpartition(" ")[2]
