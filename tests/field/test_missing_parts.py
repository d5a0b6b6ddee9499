"""Documents of which a part was left out while they were read: it is read now, or a sentence says what is missing."""

from collections.abc import Callable
from pathlib import Path

import pytest

from qwendesk.chat.documents.document_reader import read_document
from qwendesk.core.errors import BadRequest
from qwendesk.decoding.documents import read_pieces
from qwendesk.toolbox.file_tools import read_file
from qwendesk.toolbox.folder_access import FolderAccess
from qwendesk.toolbox.tool import ToolError
from qwendesk.toolbox.web.fetcher import Fetched
from qwendesk.toolbox.web.page_text import read_content
from tests.decoding import office_files
from tests.field.grid import SERVER, Kind, Way, case

MISSING = Kind(
    "A part of a document is left out while it is read, or takes the rest with it, and nobody says so",
    {
        **dict.fromkeys(SERVER, "the server reads texts and pictures, and no documents"),
        Way.MCP: "a server's answers are texts and pictures",
        Way.IMPORT: "an import reads chats, and no documents",
    },
)
DAMAGED = "[This page is damaged and can't be read.]"


def text_or_refusal(read: Callable[[], str]) -> str:
    """libxml2 reads 2,048 levels since release 2.14; the older one in lxml for Windows reads all of them."""
    try:
        return read()
    except (ToolError, BadRequest) as refused:
        return str(refused)


def nested(tag: str, depth: int) -> str:
    """A text that stands in `depth` elements, as in answers to answers of a mail, with one behind it."""
    return f"<html><body><p>First.</p>{f'<{tag}>' * depth}Quoted.{f'</{tag}>' * depth}<p>Last.</p></body></html>"


def pdf_of_pages(*texts: str | None) -> bytes:
    """A PDF of which each page has a line of text. A page that is None is named, but isn't in the file."""
    pages = " ".join(f"{10 + 2 * number} 0 R" for number in range(len(texts)))
    objects = [
        "1 0 obj <</Type/Catalog/Pages 2 0 R>> endobj",
        f"2 0 obj <</Type/Pages/Kids[{pages}]/Count {len(texts)}>> endobj",
        "3 0 obj <</Type/Font/Subtype/Type1/BaseFont/Helvetica>> endobj",
    ]
    for number, text in enumerate(texts):
        content = f"BT /F 12 Tf 50 700 Td ({text}) Tj ET"
        page = f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents {11 + 2 * number} 0 R"
        if text is not None:
            objects += [
                f"{10 + 2 * number} 0 obj {page}/Resources<</Font<</F 3 0 R>>>>>> endobj",
                f"{11 + 2 * number} 0 obj <</Length {len(content)}>>stream\n{content}\nendstream endobj",
            ]
    return "\n".join(["%PDF-1.5", *objects, "trailer<</Root 1 0 R>>\n%%EOF"]).encode()


def page(content: bytes, kind: str) -> str:
    """Return what the tool read_page reads of an answer from the Internet."""
    return read_content(Fetched("https://example.org", kind, content), lambda: False).text


@case(MISSING, Way.WINDOW, report="edgartools#1114, unstructured#4289: 256 elements, then nothing", before="failed")
@pytest.mark.parametrize(("tag", "depth"), [("div", 260), ("font", 600), ("blockquote", 2000)])
def test_a_chapter_is_read_however_deep_it_is_nested(tmp_path: Path, tag: str, depth: int) -> None:
    path = tmp_path / "book.epub"
    office_files.epub(path, nested(tag, depth), nested("p", 1))
    document = read_document(path)
    assert document.text.replace("\n", "").replace(" ", "") == "First.Quoted.Last." * 2


@case(MISSING, Way.WINDOW, report="parsel#110: a text of 10 MB, and nothing behind it", before="failed")
def test_what_stands_behind_a_long_text_is_read(tmp_path: Path) -> None:
    path = tmp_path / "book.epub"
    office_files.epub(path, f"<html><body><p>{'long ' * 2_200_000}</p><p>Last.</p></body></html>")
    assert read_document(path).text.endswith("Last.")


@case(MISSING, Way.WINDOW, Way.CLI, report="edgartools#1114: a page that a tool reads", before="failed")
def test_a_page_is_read_however_deep_it_is_nested() -> None:
    assert "Last." in page(nested("div", 700).encode(), "text/html")


@case(MISSING, Way.WINDOW, Way.CLI, report="turbohtml#722: cut off at another depth", before="failed")
def test_a_page_of_which_only_the_beginning_could_be_read_is_refused() -> None:
    got = text_or_refusal(lambda: page(nested("div", 3000).encode(), "text/html"))
    assert "Last." in got or "too large to be read" in got


@case(MISSING, Way.WINDOW, report="turbohtml#722: cut off at another depth", before="failed")
def test_a_book_of_which_only_the_beginning_could_be_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "book.epub"
    office_files.epub(path, nested("div", 3000))
    got = text_or_refusal(lambda: read_document(path).text)
    assert "Last." in got or "book.epub can't be read: it is nested too deeply." in got


PAGES = {
    "the first": (None, "Two", "Three"),
    "one in the middle": ("One", None, "Three"),
    "all but one": (None, None, "Three"),
}


@case(MISSING, Way.WINDOW, report="amd/gaia#3551, openhermit#253: one page takes all text with it", before="failed")
@pytest.mark.parametrize("name", PAGES)
def test_a_damaged_page_is_named_and_the_others_are_read(tmp_path: Path, name: str) -> None:
    path = tmp_path / "paper.pdf"
    path.write_bytes(pdf_of_pages(*PAGES[name]))
    assert [piece.text for piece in read_pieces(path)] == [text or DAMAGED for text in PAGES[name]]


@case(MISSING, Way.CLI, report="amd/gaia#3551: a damaged page counts as an empty one", before="failed")
def test_the_model_is_told_of_a_damaged_page(tmp_path: Path) -> None:
    (tmp_path / "paper.pdf").write_bytes(pdf_of_pages("One", None, "Three"))
    access = FolderAccess([str(tmp_path)])
    assert DAMAGED in read_file(access, "paper.pdf", page=2)
    assert "Three" in read_file(access, "paper.pdf", page=3)


@case(MISSING, Way.WINDOW, Way.CLI, report="amd/gaia#3551: a PDF from the Internet", before="failed")
def test_a_damaged_page_of_a_pdf_from_the_internet_is_named() -> None:
    assert page(pdf_of_pages("One", None), "application/pdf") == f"One\n\n{DAMAGED}"


@case(MISSING, Way.WINDOW, Way.CLI, report="found by trying: the sentence ended in two full stops", before="failed")
def test_a_pdf_that_has_only_damaged_pages_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "paper.pdf"
    path.write_bytes(pdf_of_pages(None, None))
    with pytest.raises(BadRequest) as refused:
        read_pieces(path)
    assert refused.value.sentence == "paper.pdf is damaged: Failed to load page."
