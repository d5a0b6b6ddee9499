"""Files read into questions: text in every usual encoding, code, PDF, and what is neither."""

import io
from pathlib import Path

import pytest
from PIL import Image

from qwendesk.core.errors import BadRequest
from qwendesk.core.messages import DocumentPart, Message, TextPart
from qwendesk.services.documents.pdf import pdf_facts, pdf_pictures
from qwendesk.services.documents.reading import LARGEST_TEXT_BYTES, is_document, read_document


def pdf(*pages: str) -> bytes:
    """A small PDF with one line of text on each page, laid out by hand."""
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", ""]
    kids = []
    for text in pages:
        stream = f"BT /F1 24 Tf 40 100 Td ({text}) Tj ET"
        number = len(objects) + 1
        kids.append(f"{number} 0 R")
        objects.append(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 200] "
            f"/Contents {number + 1} 0 R /Resources << /Font << /F1 << /Type /Font /Subtype /Type1 "
            "/BaseFont /Helvetica >> >> >> >>"
        )
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
    objects[1] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(kids)} >>"
    out = io.BytesIO(b"%PDF-1.4\n")
    out.seek(0, io.SEEK_END)
    offsets = []
    for number, body in enumerate(objects, 1):
        offsets.append(out.tell())
        out.write(f"{number} 0 obj\n{body}\nendobj\n".encode())
    start = out.tell()
    out.write(f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode())
    out.write(b"".join(f"{offset:010} 00000 n \n".encode() for offset in offsets))
    out.write(f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n".encode())
    return out.getvalue()


def written(tmp_path: Path, name: str, content: bytes) -> Path:
    path = tmp_path / name
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    "content",
    ["naïve 日本\n".encode(), "naïve 日本\n".encode("utf-8-sig"), "naïve 日本\n".encode("utf-16")],
    ids=["UTF-8", "UTF-8 with a mark", "UTF-16"],
)
def test_every_usual_encoding_is_read(tmp_path: Path, content: bytes) -> None:
    assert read_document(written(tmp_path, "a.txt", content)).text == "naïve 日本\n"


def test_an_old_windows_file_loses_nothing(tmp_path: Path) -> None:
    assert read_document(written(tmp_path, "a.txt", "Größe\r\n".encode("cp1252"))).text == "Größe\n"


def test_code_keeps_its_language(tmp_path: Path) -> None:
    document = read_document(written(tmp_path, "main.py", b"print(1)\n"))
    assert document == DocumentPart("main.py", "print(1)\n", language="python")
    assert document.quoted() == "main.py:\n```python\nprint(1)\n```\n\n"


def test_a_fence_inside_cannot_end_the_quote() -> None:
    assert DocumentPart("a.md", "````\nx\n````").quoted() == "a.md:\n`````\n````\nx\n````\n`````\n\n"


def test_the_engine_gets_documents_as_text_and_people_do_not() -> None:
    message = Message("user", (DocumentPart("a.txt", "one"), TextPart("What is it?")))
    assert message.text == "What is it?"
    assert message.for_engine().text == "a.txt:\n```\none\n```\n\nWhat is it?"
    assert Message("user", (TextPart("x"),)).for_engine().text == "x"


def test_a_pdf_gives_its_text_and_its_pages(tmp_path: Path) -> None:
    path = written(tmp_path, "paper.pdf", pdf("First page", "Second page"))
    document = read_document(path)
    assert (document.text, document.pages) == ("First page\n\nSecond page", 2)
    (second,) = pdf_pictures(path, tmp_path / "pages", (2,))
    with Image.open(second) as picture:
        assert max(picture.size) == 1400
        assert picture.convert("L").getextrema()[0] < 100, "nothing is drawn"


def test_a_scanned_pdf_is_told_from_one_with_text(tmp_path: Path) -> None:
    assert pdf_facts(written(tmp_path, "a.pdf", pdf("", ""))).looks_scanned
    assert not pdf_facts(written(tmp_path, "b.pdf", pdf("A whole line of text on this page"))).looks_scanned


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("program.exe", b"MZ\x00\x00\x01", "no text file"),
        ("broken.pdf", b"%PDF-1.4 nonsense", "damaged or no PDF"),
        ("big.txt", b"a" * (LARGEST_TEXT_BYTES + 1), "at most"),
    ],
)
def test_what_cannot_be_quoted_says_why(tmp_path: Path, name: str, content: bytes, says: str) -> None:
    with pytest.raises(BadRequest, match=says):
        read_document(written(tmp_path, name, content))


def test_a_missing_file_a_folder_and_a_missing_page_say_why(tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match="cannot be read"):
        read_document(tmp_path / "gone.txt")
    with pytest.raises(BadRequest, match="not there"):
        read_document(tmp_path / "gone.pdf")
    (tmp_path / "folder").mkdir()
    with pytest.raises(BadRequest, match="folder"):
        read_document(tmp_path / "folder")
    with pytest.raises(BadRequest, match="no page 9"):
        pdf_pictures(written(tmp_path, "a.pdf", pdf("x")), tmp_path, (9,))


def test_a_file_without_a_known_ending_is_looked_into(tmp_path: Path) -> None:
    assert is_document(written(tmp_path, "NOTES", b"plain words"))
    assert not is_document(written(tmp_path, "data.bin", bytes(range(256))))
    assert not is_document(tmp_path / "gone")


def test_some_pages_of_a_pdf(tmp_path: Path) -> None:
    path = written(tmp_path, "paper.pdf", pdf("First page", "Second page", "Third page"))
    document = read_document(path, (3, 1))
    assert (document.text, document.pages) == ("Third page\n\nFirst page", 2)
    with pytest.raises(BadRequest, match="3 pages"):
        read_document(path, (4,))
