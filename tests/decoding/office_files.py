"""Makes small Office documents, e-books and RTF files, laid out by hand, and hostile ones."""

import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

_W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
_A = (
    'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" '
    'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main" '
    'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
)
_RELATIONS = 'xmlns="http://schemas.openxmlformats.org/package/2006/relationships"'
_RELATION = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_ODF = (
    'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" '
    'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" '
    'xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" '
    'xmlns:draw="urn:oasis:names:tc:opendocument:xmlns:drawing:1.0"'
)


def zipped(path: Path, entries: Mapping[str, str | bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return path


def docx(path: Path, *paragraphs: str, table: Sequence[Sequence[str]] = (), more: str = "") -> Path:
    """A Word document with a table after its paragraphs; `more` is XML at the end of its body."""
    body = "".join(f"<w:p><w:r><w:t>{escape(text)}</w:t></w:r></w:p>" for text in paragraphs)
    rows = "".join(
        "<w:tr>" + "".join(f"<w:tc><w:p><w:r><w:t>{cell}</w:t></w:r></w:p></w:tc>" for cell in row) + "</w:tr>"
        for row in table
    )
    body += f"<w:tbl>{rows}</w:tbl>" if table else ""
    return zipped(path, {"word/document.xml": f"<w:document {_W}><w:body>{body}{more}</w:body></w:document>"})


def pptx(path: Path, *slides: str, notes: str = "") -> Path:
    """A presentation whose slides are stored in the opposite order; `notes` are those of the first slide."""
    entries: dict[str, str | bytes] = {}
    relations, ids = "", ""
    for number, text in enumerate(slides, 1):
        file = f"slide{len(slides) + 1 - number}.xml"
        entries[f"ppt/slides/{file}"] = _slide(text)
        relations += f'<Relationship Id="r{number}" Type="{_RELATION}/slide" Target="slides/{file}"/>'
        ids += f'<p:sldId id="{255 + number}" r:id="r{number}"/>'
        if notes and number == 1:
            entries["ppt/notesSlides/notes1.xml"] = _slide(notes)
            note = f'<Relationship Id="r1" Type="{_RELATION}/notesSlide" Target="../notesSlides/notes1.xml"/>'
            entries[f"ppt/slides/_rels/{file}.rels"] = f"<Relationships {_RELATIONS}>{note}</Relationships>"
    entries["ppt/presentation.xml"] = f"<p:presentation {_A}><p:sldIdLst>{ids}</p:sldIdLst></p:presentation>"
    entries["ppt/_rels/presentation.xml.rels"] = f"<Relationships {_RELATIONS}>{relations}</Relationships>"
    return zipped(path, entries)


def _slide(text: str) -> str:
    lines = "".join(f"<a:p><a:r><a:t>{escape(line)}</a:t></a:r></a:p>" for line in text.split("\n"))
    return f"<p:sld {_A}><p:cSld><p:spTree><p:sp><p:txBody>{lines}</p:txBody></p:sp></p:spTree></p:cSld></p:sld>"


def xlsx(path: Path, sheets: dict[str, Sequence[Sequence[str | float]]], first_row: int = 1) -> Path:
    """A workbook with texts and numbers."""
    main = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    names, relations = "", ""
    entries: dict[str, str | bytes] = {}
    for number, (name, rows) in enumerate(sheets.items(), 1):
        names += f'<sheet name="{escape(name)}" sheetId="{number}" r:id="r{number}"/>'
        relations += (
            f'<Relationship Id="r{number}" Type="{_RELATION}/worksheet" Target="worksheets/sheet{number}.xml"/>'
        )
        lines = "".join(
            f'<row r="{y}">' + "".join(_cell(x, y, value) for x, value in enumerate(row)) + "</row>"
            for y, row in enumerate(rows, first_row)
        )
        entries[f"xl/worksheets/sheet{number}.xml"] = f"<worksheet {main}><sheetData>{lines}</sheetData></worksheet>"
    entries["xl/workbook.xml"] = f'<workbook {main} xmlns:r="{_RELATION}"><sheets>{names}</sheets></workbook>'
    root = f'<Relationship Id="r1" Type="{_RELATION}/officeDocument" Target="xl/workbook.xml"/>'
    entries["_rels/.rels"] = f"<Relationships {_RELATIONS}>{root}</Relationships>"
    entries["xl/_rels/workbook.xml.rels"] = f"<Relationships {_RELATIONS}>{relations}</Relationships>"
    return zipped(path, entries)


def _cell(x: int, y: int, value: str | float) -> str:
    place = f"{chr(ord('A') + x)}{y}"
    if isinstance(value, str):
        return f'<c r="{place}" t="inlineStr"><is><t>{escape(value)}</t></is></c>'
    return f'<c r="{place}"><v>{value}</v></c>'


def odt(path: Path, *paragraphs: str, table: Sequence[Sequence[str]] = (), more: str = "") -> Path:
    body = "".join(f"<text:p>{escape(text)}</text:p>" for text in paragraphs)
    rows = "".join(
        "<table:table-row>"
        + "".join(f"<table:table-cell><text:p>{cell}</text:p></table:table-cell>" for cell in row)
        + "</table:table-row>"
        for row in table
    )
    body += f"<table:table>{rows}</table:table>" if table else ""
    return _open_document(path, f"<office:text>{more}{body}</office:text>")


def odp(path: Path, *slides: str) -> Path:
    pages = "".join(f"<draw:page><text:p>{escape(text)}</text:p></draw:page>" for text in slides)
    return _open_document(path, f"<office:presentation>{pages}</office:presentation>")


def ods(path: Path, name: str, rows: Sequence[Sequence[str]]) -> Path:
    lines = "".join(
        "<table:table-row>"
        + "".join(
            f'<table:table-cell office:value-type="string"><text:p>{escape(cell)}</text:p></table:table-cell>'
            for cell in row
        )
        + "</table:table-row>"
        for row in rows
    )
    sheet = f'<office:spreadsheet><table:table table:name="{name}">{lines}</table:table></office:spreadsheet>'
    return _open_document(path, sheet, kind="spreadsheet")


def _open_document(path: Path, body: str, kind: str = "text") -> Path:
    content = f"<office:document-content {_ODF}><office:body>{body}</office:body></office:document-content>"
    manifest = '<manifest xmlns="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"/>'
    mime = f"application/vnd.oasis.opendocument.{kind}"
    return zipped(path, {"mimetype": mime, "META-INF/manifest.xml": manifest, "content.xml": content})


def epub(path: Path, *chapters: str) -> Path:
    """An e-book whose chapters are HTML."""
    items = "".join(f'<item id="c{number}" href="text/chapter%20{number}.xhtml"/>' for number in range(len(chapters)))
    order = "".join(f'<itemref idref="c{number}"/>' for number in range(len(chapters)))
    entries: dict[str, str | bytes] = {
        "META-INF/container.xml": '<container><rootfile full-path="OPS/book.opf"/></container>',
        "OPS/book.opf": f"<package><manifest>{items}</manifest><spine>{order}</spine></package>",
    }
    for number, chapter in enumerate(chapters):
        html = f"<!DOCTYPE html><html><head><title>x</title></head><body>{chapter}</body></html>"
        entries[f"OPS/text/chapter {number}.xhtml"] = html
    return zipped(path, entries)


def entity_bomb(path: Path) -> Path:
    """A Word document whose entities would expand to gigabytes."""
    levels = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 10))
    text = (
        f'<!DOCTYPE x [<!ENTITY e0 "lol">{levels}]><w:document {_W}><w:p><w:r><w:t>&e9;</w:t></w:r></w:p></w:document>'
    )
    return zipped(path, {"word/document.xml": text})


def zip_bomb(path: Path, size_bytes: int) -> Path:
    """A Word document of a few hundred KB that unpacks to `size_bytes` of spaces."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("word/document.xml", "w") as entry:
        block = b" " * (1 << 20)
        for _ in range(size_bytes // len(block)):
            entry.write(block)
    return path


def wide_sheet(path: Path) -> Path:
    """A workbook of two cells, the first and the last one that there can be."""
    xlsx(path, {"Sheet": [["a"]]})
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    name = "xl/worksheets/sheet1.xml"
    far = b'<row r="1048576"><c r="XFD1048576"><v>1</v></c></row></sheetData>'
    entries[name] = entries[name].replace(b"</sheetData>", far)
    return zipped(path, entries)
