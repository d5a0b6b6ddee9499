"""Reads the text of one Office document, e-book or RTF file. Runs in the decoding process only.

Both families of formats are read as a stream of tags, told apart by their local names: Office Open XML (docx, pptx) and
OpenDocument (odt, odp). A document type, with which XML bombs begin, is refused; no Office program writes one.
"""

import datetime
import posixpath
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import BinaryIO, Final
from urllib.parse import unquote
from xml.parsers import expat

from qwendesk.core.units import MIB
from qwendesk.decoding.page_decoder import html_text
from qwendesk.decoding.protocol import MAX_FILE_BYTES, DecodeRefusal, DecodeRefused, DocumentText, ReadOfficeText

_MOST_ENTRIES = 20_000
# Of all entries that are read of one file together, so that a small file can't unpack to any size.
_MOST_UNPACKED_BYTES = 128 * MIB


class UnreadableDocument(Exception):
    """The file is no document of its kind. The text says why."""


class Archive:
    """A zip file of which only so much is unpacked."""

    def __init__(self, file: BinaryIO) -> None:
        """Raise UnreadableDocument if it is no zip file, and DecodeRefused for more entries than a document has."""
        try:
            self._zip = zipfile.ZipFile(file)
        except zipfile.BadZipFile as error:
            raise UnreadableDocument(str(error)) from None
        self._left_bytes = _MOST_UNPACKED_BYTES
        self.names = frozenset(self._zip.namelist())
        if len(self.names) > _MOST_ENTRIES:
            raise DecodeRefused(DecodeRefusal(reason="too_large", detail="it has too many parts"))

    def read(self, name: str) -> bytes:
        """Return an entry; nothing if there is none. Raise UnreadableDocument, and DecodeRefused for too much."""
        if name not in self.names:
            return b""
        try:
            with self._zip.open(name) as entry:
                data = entry.read(self._left_bytes + 1)
        except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError, ValueError) as error:
            raise UnreadableDocument(str(error)) from None
        self._left_bytes -= len(data)
        if self._left_bytes < 0:
            raise DecodeRefused(DecodeRefusal(reason="too_large", detail="it unpacks to too much"))
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


# The beginning of old Office files, and of new ones that are protected by a password.
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
# Of one sheet.
_MOST_ROWS = 200_000
# Name and text of a part: one slide, sheet or chapter, or the whole document.
Part = tuple[str, str]


def decode_office(file: BinaryIO, request: ReadOfficeText) -> tuple[DocumentText | DecodeRefusal, bytes]:
    """Return the reply to `request`, and the texts that follow it."""
    is_locked = request.format not in ("xls", "rtf") and file.read(len(_OLE)) == _OLE
    file.seek(0)
    if is_locked:
        return DecodeRefusal(reason="locked"), b""
    names, texts, n_characters = [], [], 0
    try:
        for name, text in _READERS[request.format](file):
            n_characters += len(text)
            if n_characters > request.max_characters:
                return DecodeRefusal(reason="too_much_text"), b""
            names.append(name.encode("utf-8", "replace").decode())
            texts.append(text.encode("utf-8", "replace"))
    except UnreadableDocument as error:
        return DecodeRefusal(reason="not_a_document", detail=str(error)), b""
    return DocumentText(tuple(map(len, texts)), tuple(names)), b"".join(texts)


def _docx(file: BinaryIO) -> Iterator[Part]:
    archive = Archive(file)
    _require(archive, "word/document.xml")
    notes = ("word/footnotes.xml", "word/endnotes.xml")
    texts = [office_open_text(archive.read(name)) for name in ("word/document.xml", *notes) if name in archive.names]
    yield "", "\n".join(text for text in texts if text)


def _pptx(file: BinaryIO) -> Iterator[Part]:
    archive = Archive(file)
    main = "ppt/presentation.xml"
    _require(archive, main)
    slides: list[str] = []

    def begin(name: str, attributes: dict[str, str]) -> None:
        if name == "sldId":
            slides.extend(value for key, value in attributes.items() if key.endswith("relationships id"))

    parse_xml(archive.read(main), begin)
    targets = _relations(archive, main)
    for slide in dict.fromkeys(targets[key][1] for key in slides if key in targets):
        texts = [office_open_text(archive.read(slide))] if slide in archive.names else []
        for kind, target in _relations(archive, slide).values():
            if kind.endswith("/notesSlide") and target in archive.names:
                texts.append(office_open_text(archive.read(target)))
        yield "", "\n".join(text for text in texts if text)


def _odt(file: BinaryIO) -> Iterator[Part]:
    archive = Archive(file)
    _require(archive, "content.xml")
    yield "", "\n".join(page for page in open_document_pages(archive.read("content.xml")) if page)


def _odp(file: BinaryIO) -> Iterator[Part]:
    archive = Archive(file)
    _require(archive, "content.xml")
    yield from (("", page) for page in open_document_pages(archive.read("content.xml"))[1:])


def _sheets(file: BinaryIO) -> Iterator[Part]:
    from python_calamine import CalamineError, CalamineWorkbook

    try:
        workbook = CalamineWorkbook.from_filelike(file)
        for name in workbook.sheet_names:
            sheet = workbook.get_sheet_by_name(name)
            if sheet.total_height > _MOST_ROWS:
                detail = f"a sheet has more than {_MOST_ROWS:,} rows"
                raise DecodeRefused(DecodeRefusal(reason="too_large", detail=detail))
            yield name, "\n".join("\t".join(map(_cell, row)).rstrip() for row in sheet.iter_rows()).rstrip()
    except CalamineError as error:
        raise UnreadableDocument(str(error)) from None


def _epub(file: BinaryIO) -> Iterator[Part]:
    archive = Archive(file)
    container = "META-INF/container.xml"
    _require(archive, container)
    roots: list[str] = []
    paths: dict[str, str] = {}
    order: list[str] = []

    def begin(name: str, attributes: dict[str, str]) -> None:
        match name:
            case "rootfile":
                roots.append(attributes.get("full-path", ""))
            case "item":
                paths[attributes.get("id", "")] = attributes.get("href", "")
            case "itemref":
                order.append(attributes.get("idref", ""))

    parse_xml(archive.read(container), begin)
    package = roots[0] if roots else ""
    _require(archive, package)
    parse_xml(archive.read(package), begin)
    places = (posixpath.join(posixpath.dirname(package), unquote(paths.get(key, ""))) for key in order)
    # Each once, even if a book names it again and again.
    for chapter in dict.fromkeys(map(posixpath.normpath, places)):
        if chapter in archive.names:
            yield "", html_text(archive.read(chapter))


# Pictures in hexadecimal digits, which a text never has so many of.
_RTF_PICTURE = re.compile(rb"(?<![0-9A-Fa-f\r\n])[0-9A-Fa-f\r\n]{1000,}+")
# Of a file without its pictures. Each MB takes striprtf a second.
_MOST_RTF_BYTES = 8 * MIB


def _rtf(file: BinaryIO) -> Iterator[Part]:
    from striprtf.striprtf import rtf_to_text

    data = file.read(MAX_FILE_BYTES)
    if not data.startswith(b"{\\rtf"):
        raise UnreadableDocument("it is no RTF file")
    data = _RTF_PICTURE.sub(b"", data)
    if len(data) > _MOST_RTF_BYTES:
        raise DecodeRefused(DecodeRefusal(reason="too_much_text"))
    text = str(rtf_to_text(data.decode("latin-1"), errors="replace"))  # type: ignore[no-untyped-call]
    # Characters beyond the first 65,536 are written as two halves.
    yield "", text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace("\r", "").strip("\n")


_READERS: Final[Mapping[str, Callable[[BinaryIO], Iterable[Part]]]] = MappingProxyType(
    {
        "docx": _docx, "pptx": _pptx, "odt": _odt, "odp": _odp, "epub": _epub, "rtf": _rtf,
        "xlsx": _sheets, "xls": _sheets, "ods": _sheets,
    }
)  # fmt: skip


def _require(archive: Archive, name: str) -> None:
    if name not in archive.names:
        raise UnreadableDocument(f"it has no {name}")


def _relations(archive: Archive, name: str) -> dict[str, tuple[str, str]]:
    """Return kind and path of what a part of an Office Open XML file refers to, by id."""
    folder, file = posixpath.split(name)
    found: dict[str, tuple[str, str]] = {}

    def begin(tag: str, attributes: dict[str, str]) -> None:
        if tag == "Relationship" and attributes.get("TargetMode") != "External":
            target = posixpath.normpath(posixpath.join("/", folder, attributes.get("Target", ""))).lstrip("/")
            found[attributes.get("Id", "")] = attributes.get("Type", ""), target

    data = archive.read(f"{folder}/_rels/{file}.rels")
    if data:
        parse_xml(data, begin)
    return found


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.15g}"
    if isinstance(value, datetime.datetime) and value.time() == datetime.time():
        value = value.date()
    return " ".join(str(value).split())
