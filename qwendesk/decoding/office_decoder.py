"""Reads the text of one Office document, e-book or RTF file. Runs in the decoding process only."""

import datetime
import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import BinaryIO, Final
from urllib.parse import unquote

from qwendesk.decoding.limits import MAX_FILE_BYTES
from qwendesk.decoding.office_xml import (
    Archive,
    UnreadableDocument,
    office_open_text,
    open_document_pages,
    parse_xml,
)
from qwendesk.decoding.page_decoder import html_text
from qwendesk.decoding.protocol import DecodeRefusal, DocumentText, ReadOfficeText

_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
"""The beginning of old Office files, and of new ones that are protected by a password."""
_MOST_ROWS = 200_000
"""Of one sheet."""
Part = tuple[str, str]
"""Name and text of a part: one slide, sheet or chapter, or the whole document."""


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
    for slide in (targets[key][1] for key in slides if key in targets):
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
                raise UnreadableDocument("a sheet has too many rows")
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
    for key in order:
        chapter = posixpath.normpath(posixpath.join(posixpath.dirname(package), unquote(paths.get(key, ""))))
        if chapter in archive.names:
            yield "", html_text(archive.read(chapter))


def _rtf(file: BinaryIO) -> Iterator[Part]:
    from striprtf.striprtf import rtf_to_text

    data = file.read(MAX_FILE_BYTES)
    if not data.startswith(b"{\\rtf"):
        raise UnreadableDocument("it is no RTF file")
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
