"""Documents that would keep the decoding process busy for minutes, or take all of its memory, and texts of megabytes.

No time is measured: each of these inputs is refused, or read, for what it is. A test that takes minutes has failed.
"""

import sys
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData
from PySide6.QtWidgets import QApplication, QLabel, QPlainTextEdit

from qwendesk.bench.view.pasted_dialog import PastedDialog
from qwendesk.core.errors import BadRequest
from qwendesk.core.units import MIB
from qwendesk.decoding.documents import read_pieces
from qwendesk.decoding.protocol import (
    MAX_PROCESS_BYTES,
    MAX_TEXT_PROCESS_BYTES,
    ReadOfficeText,
    ReadPdfText,
    RenderPdfPages,
    memory_limit,
)
from qwendesk.mcp.view.server_dialog import PasteDialog
from tests.decoding import office_files
from tests.field.grid import SERVER, Kind, Way, case
from tests.window_desk import Desk

HEAVY = Kind(
    "A small document takes minutes or gigabytes, or ends with the number of a signal",
    {
        **dict.fromkeys(SERVER, "the server reads texts and pictures, and no documents"),
        Way.MCP: "a server's answers are texts and pictures",
        Way.IMPORT: "an import reads chats, and no documents",
    },
)
LONG_FIELD = Kind(
    "A text of megabytes in a field of the window stops it for seconds",
    {
        Way.CLI: "has no fields",
        **dict.fromkeys(SERVER, "has no fields"),
        Way.MCP: "has no fields",
        Way.IMPORT: "what an import brings is checked before any field shows it",
    },
)
FOUND = "found by attack"
NEEDS_LIMIT = pytest.mark.skipif(sys.platform == "win32", reason="Wine enforces no limit of memory")


@case(HEAVY, Way.WINDOW, Way.CLI, report=FOUND, before="failed")
def test_a_long_rtf_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "long.rtf"
    path.write_bytes(b"{\\rtf1 " + b"It is a long story.\\par " * (60 * MIB // 24) + b"}")
    with pytest.raises(BadRequest, match="more text than any model can read"):
        read_pieces(path)


@case(HEAVY, Way.WINDOW, Way.CLI, report=FOUND, before="failed")
def test_pictures_of_an_rtf_cost_nothing(tmp_path: Path) -> None:
    path = tmp_path / "pictures.rtf"
    picture = b"{\\pict\\pngblip\\picw9\\pich9\n" + (b"89504e470d0a1a0a" * 8 + b"\r\n") * (30 * MIB // 130) + b"}"
    path.write_bytes(b"{\\rtf1 Before the cafe.\\par " + picture + b" After \\'e9t\\'e9, deadbeef 0123456789.\\par}")
    [piece] = read_pieces(path)
    assert piece.text.split("\n") == ["Before the cafe.", " After été, deadbeef 0123456789."]


@case(HEAVY, Way.WINDOW, Way.CLI, report=FOUND, before="failed")
def test_a_chapter_that_a_book_names_a_hundred_thousand_times_is_read_once(tmp_path: Path) -> None:
    items = "".join(f'<item id="c{number}" href="{"./" * (number % 9)}one.xhtml"/>' for number in range(100_000))
    order = "".join(f'<itemref idref="c{number}"/>' for number in range(100_000))
    path = office_files.zipped(
        tmp_path / "book.epub",
        {
            "META-INF/container.xml": '<container><rootfile full-path="OPS/book.opf"/></container>',
            "OPS/book.opf": f"<package><manifest>{items}</manifest><spine>{order}</spine></package>",
            "OPS/one.xhtml": "<html><body>" + "<p>It was dark.</p>" * 10 + "</body></html>",
        },
    )
    assert len(read_pieces(path)) == 1


@case(HEAVY, Way.WINDOW, Way.CLI, report=FOUND, before="failed")
def test_a_slide_that_is_shown_a_hundred_thousand_times_is_read_once(tmp_path: Path) -> None:
    path = tmp_path / "slides.pptx"
    office_files.pptx(path, "One", "Two")
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    slide = b'<p:sldId id="256" r:id="r1"/>'
    entries["ppt/presentation.xml"] = entries["ppt/presentation.xml"].replace(slide, slide * 100_000)
    assert [piece.text for piece in read_pieces(office_files.zipped(path, entries))] == ["One", "Two"]


@case(HEAVY, Way.WINDOW, Way.CLI, report=FOUND, before="failed")
def test_what_unpacks_to_hundreds_of_megabytes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match="unpacks to too much"):
        read_pieces(office_files.zip_bomb(tmp_path / "spaces.docx", 300 * MIB))


CORNERS = '<row r="1"><c r="A1"><v>1</v></c></row><row r="1048576"><c r="XFD1048576"><v>2</v></c></row>'
ROW = "<table:table-row><table:table-cell"


@case(HEAVY, Way.WINDOW, Way.CLI, report="found by trying: a sheet of two cells, 17 billion apart", before="held")
def test_a_sheet_whose_cells_are_far_apart_ends_with_a_sentence(tmp_path: Path) -> None:
    path = office_files.xlsx(tmp_path / "far.xlsx", {"S": [["x"]]})
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    sheet = entries["xl/worksheets/sheet1.xml"]
    head, tail = sheet.split(b"<sheetData>")[0], sheet.split(b"</sheetData>")[1]
    entries["xl/worksheets/sheet1.xml"] = b"%s<sheetData>%s</sheetData>%s" % (head, CORNERS.encode(), tail)
    with pytest.raises(BadRequest, match=r"needs more than 1\.0 GB of memory"):
        read_pieces(office_files.zipped(path, entries))


@case(HEAVY, Way.WINDOW, Way.CLI, report="found by trying: it was said to be damaged", before="failed")
def test_a_row_that_a_sheet_repeats_a_million_times_is_no_damage(tmp_path: Path) -> None:
    path = office_files.ods(tmp_path / "long.ods", "S", [["x"]])
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    repeated = ROW.replace("row>", 'row table:number-rows-repeated="1048576">')
    entries["content.xml"] = entries["content.xml"].replace(ROW.encode(), repeated.encode())
    with pytest.raises(BadRequest) as refused:
        read_pieces(office_files.zipped(path, entries))
    assert refused.value.sentence == "long.ods can't be read: a sheet has more than 200,000 rows."


@case(HEAVY, Way.WINDOW, Way.CLI, report="found by trying: groups in groups, as a reader by recursion has them",
      before="held")  # fmt: skip
def test_a_million_groups_in_each_other_are_read(tmp_path: Path) -> None:
    path = tmp_path / "deep.rtf"
    path.write_bytes(b"{\\rtf1 " + b"{" * 1_000_000 + b"It was dark." + b"}" * 1_000_000 + b"}")
    assert [piece.text for piece in read_pieces(path)] == ["It was dark."]


@case(HEAVY, Way.WINDOW, Way.CLI, report="found by trying: tables in tables", before="held")
def test_tables_in_each_other_are_read(tmp_path: Path) -> None:
    path, table = tmp_path / "deep.docx", ("<w:tbl><w:tr><w:tc>", "</w:tc></w:tr></w:tbl>")
    inside = "<w:p><w:r><w:t>It was dark.</w:t></w:r></w:p>"
    office_files.docx(path, "First.", more=table[0] * 50_000 + inside + table[1] * 50_000)
    assert [piece.text.split("\n") for piece in read_pieces(path)] == [["First.", "It was dark."]]


def packed_spaces(n_bytes: int) -> bytes:
    """Spaces as Flate packs them, packed once more: a few KB."""
    packer = zlib.compressobj(1)
    first, block = [packer.compress(b" " * MIB) + packer.flush(zlib.Z_FULL_FLUSH) for _ in range(2)]
    return zlib.compress(first + block * (n_bytes // MIB - 1), 9)


def stream(content: bytes, options: bytes = b"") -> bytes:
    """An object of a PDF that is packed, or has been by a filter of its options."""
    if b"/Filter" not in options:
        content, options = zlib.compress(content, 9), options + b"/Filter/FlateDecode"
    return b"<</Length %d%s>>stream\n%s\nendstream" % (len(content), options, content)


def pdf_of(
    content: bytes, options: bytes = b"", n_times: int = 1, more: Mapping[int, tuple[bytes, bytes]] | None = None
) -> bytes:
    """A PDF of one page that has this stream of drawing commands `n_times`, and more streams by number."""
    resources = b"/Resources<</Font<</F 5 0 R>>/XObject<</X 6 0 R>>>>"
    contents = b"[" + b"4 0 R " * n_times + b"]"
    objects = {
        1: b"<</Type/Catalog/Pages 2 0 R>>",
        2: b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        3: b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents %s%s>>" % (contents, resources),
        4: stream(content, options),
        5: b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        **{number: stream(*each) for number, each in (more or {}).items()},
    }
    written = b"".join(b"%d 0 obj\n%s\nendobj\n" % pair for pair in objects.items())
    return b"%PDF-1.5\n" + written + b"trailer<</Size 99/Root 1 0 R>>\n%%EOF"


@NEEDS_LIMIT
@case(HEAVY, Way.WINDOW, Way.CLI, report=FOUND, before="failed")
def test_a_pdf_that_is_packed_twice_ends_with_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "packed.pdf"
    path.write_bytes(pdf_of(packed_spaces(1500 * MIB), b"/Filter[/FlateDecode/FlateDecode]"))
    with pytest.raises(BadRequest) as refused:
        read_pieces(path)
    assert "needs more than 1.0 GB of memory" in refused.value.sentence
    assert "exit status" not in refused.value.sentence


FORM = b"/Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</Font<</F 5 0 R>>/XObject<</X %d 0 R>>>>"
TEXT = b"BT /F 12 Tf 9 9 Td (It was dark.) Tj ET "
ENDLESS = {
    "a drawing that draws itself": pdf_of(TEXT + b"/X Do", more={6: (TEXT + b"/X Do /X Do", FORM % 6)}),
    "drawings that draw each other ten times": pdf_of(
        TEXT + b"/X Do", more={number: (TEXT + b"/X Do " * 10, FORM % (number + 1)) for number in range(6, 36)}
    ),
    "one page's content ten thousand times": pdf_of(TEXT * 10_000, n_times=10_000),
    "three million texts": pdf_of(b"BT /F 1 Tf " + b"(a) Tj " * 3_000_000 + b"ET"),
}


@case(HEAVY, Way.WINDOW, Way.CLI, report="found by trying: PDF files of some KB", before="held")
@NEEDS_LIMIT
@pytest.mark.parametrize("name", ENDLESS)
def test_a_pdf_of_endless_text_ends_with_a_sentence(tmp_path: Path, name: str) -> None:
    path = tmp_path / "endless.pdf"
    path.write_bytes(ENDLESS[name])
    assert path.stat().st_size < 100_000
    with pytest.raises(BadRequest) as refused:
        read_pieces(path)
    assert "needs more than 1.0 GB of memory" in refused.value.sentence


def test_only_pictures_may_take_all_of_the_memory() -> None:
    assert memory_limit(ReadPdfText()) == memory_limit(ReadOfficeText("docx", 1)) == MAX_TEXT_PROCESS_BYTES
    assert memory_limit(RenderPdfPages((1,), 100)) == MAX_PROCESS_BYTES > MAX_TEXT_PROCESS_BYTES


def paste(desk: Desk, editor: QPlainTextEdit) -> None:
    pasted = QMimeData()
    for text, is_taken in (('{"a": 1}', True), ("x" * 5_000_000, False), ("\n" * 5_000_000, False)):
        before = editor.toPlainText()
        pasted.setText(text)
        editor.insertFromMimeData(pasted)
        assert editor.toPlainText() == (before + text if is_taken else before)
        if not is_taken:
            said = [each.text() for window in QApplication.topLevelWidgets() for each in window.findChildren(QLabel)]
            assert any("takes up to 250,000 characters" in each for each in said)


@case(LONG_FIELD, Way.WINDOW, report="found by attack: 3.4 s", before="failed")
@pytest.mark.parametrize("name", ["system.schema", "sampling.output.grammar"])
async def test_a_pasted_text_of_megabytes_is_refused(desk: Desk, name: str) -> None:
    desk.window.findChild(object, "action.inspector").trigger()
    tab, _, _ = name.partition(".")
    desk.click(f"inspector.tab.{tab}")
    if tab == "sampling":
        desk.click("inspector.sampling.advanced")
    paste(desk, desk.find(f"inspector.{name}", QPlainTextEdit))


@case(LONG_FIELD, Way.WINDOW, report=FOUND, before="failed")
async def test_a_command_of_megabytes_is_refused(desk: Desk) -> None:
    desk.window.findChild(object, "action.inspector").trigger()
    desk.click("inspector.paste")
    paste(desk, desk.find("command.text", QPlainTextEdit))


@case(LONG_FIELD, Way.WINDOW, report=FOUND, before="failed")
async def test_servers_of_megabytes_are_refused(desk: Desk) -> None:
    dialog = PasteDialog(desk.window, ())
    paste(desk, dialog.findChild(QPlainTextEdit, "mcp.paste.field"))


@case(LONG_FIELD, Way.WINDOW, report=FOUND, before="failed")
async def test_reports_of_megabytes_are_refused(desk: Desk) -> None:
    dialog = PastedDialog(desk.window, desk.parts.services.models.catalog, "")
    paste(desk, dialog.findChild(QPlainTextEdit, "pasted.text"))
