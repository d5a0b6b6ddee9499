"""Reading documents: text in the usual encodings, code, PDF and unsupported files."""

import io
from pathlib import Path

import pytest
from PIL import Image

from qwendesk.chat.documents.document_reader import MAX_TEXT_BYTES, is_document, read_document
from qwendesk.chat.documents.pdf import pdf_facts, pdf_pictures
from qwendesk.core.errors import BadRequest
from qwendesk.core.messages import DocumentPart, Message, TextPart
from tests.decoding import office_files


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
def test_usual_encodings_are_read(tmp_path: Path, content: bytes) -> None:
    assert read_document(written(tmp_path, "a.txt", content)).text == "naïve 日本\n"


def test_windows_1252_file_is_read_completely(tmp_path: Path) -> None:
    assert read_document(written(tmp_path, "a.txt", "Größe\r\n".encode("cp1252"))).text == "Größe\n"


def test_code_keeps_its_language(tmp_path: Path) -> None:
    document = read_document(written(tmp_path, "main.py", b"print(1)\n"))
    assert document == DocumentPart("main.py", "print(1)\n", language="python")
    assert document.quoted() == "main.py:\n```python\nprint(1)\n```\n\n"


def test_fence_inside_a_document_does_not_end_the_quote() -> None:
    assert DocumentPart("a.md", "````\nx\n````").quoted() == "a.md:\n`````\n````\nx\n````\n`````\n\n"


def test_documents_are_converted_to_text_only_for_the_engine() -> None:
    message = Message("user", (DocumentPart("a.txt", "one"), TextPart("What is it?")))
    assert message.text == "What is it?"
    assert message.for_engine().text == "a.txt:\n```\none\n```\n\nWhat is it?"
    assert Message("user", (TextPart("x"),)).for_engine().text == "x"


def test_pdf_text_is_read_with_its_number_of_pages(tmp_path: Path) -> None:
    path = written(tmp_path, "paper.pdf", pdf("First page", "Second page"))
    document = read_document(path)
    assert (document.text, document.pages) == ("First page\n\nSecond page", 2)
    (second,) = pdf_pictures(path, tmp_path / "pages", (2,))
    with Image.open(second) as picture:
        assert max(picture.size) == 1400
        assert picture.convert("L").getextrema()[0] < 100, "nothing is drawn"


def test_scanned_pdf_is_recognized(tmp_path: Path) -> None:
    assert pdf_facts(written(tmp_path, "a.pdf", pdf("", ""))).looks_scanned
    assert not pdf_facts(written(tmp_path, "b.pdf", pdf("A whole line of text on this page"))).looks_scanned


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("program.exe", b"MZ\x00\x00\x01", "not a text file"),
        ("broken.pdf", b"%PDF-1.4 nonsense", "damaged, empty or not a PDF"),
        ("big.txt", b"a" * (MAX_TEXT_BYTES + 1), "up to 16 MB"),
    ],
)
def test_unsupported_document_is_refused_with_a_reason(tmp_path: Path, name: str, content: bytes, says: str) -> None:
    with pytest.raises(BadRequest, match=says):
        read_document(written(tmp_path, name, content))


def test_missing_files_folders_and_pages_are_refused_with_a_reason(tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match="can't be read"):
        read_document(tmp_path / "gone.txt")
    with pytest.raises(BadRequest, match="could not be found"):
        read_document(tmp_path / "gone.pdf")
    (tmp_path / "folder").mkdir()
    with pytest.raises(BadRequest, match="folder"):
        read_document(tmp_path / "folder")
    with pytest.raises(BadRequest, match="no page 9"):
        pdf_pictures(written(tmp_path, "a.pdf", pdf("x")), tmp_path, (9,))


def test_file_with_an_unknown_ending_is_judged_by_its_content(tmp_path: Path) -> None:
    assert is_document(written(tmp_path, "NOTES", b"plain words"))
    assert not is_document(written(tmp_path, "data.bin", bytes(range(256))))
    assert not is_document(tmp_path / "gone")


def test_office_documents_are_attached_as_text(tmp_path: Path) -> None:
    word = read_document(office_files.docx(tmp_path / "plan.docx", "Buy a boat", "計画"))
    assert word == DocumentPart("plan.docx", "Buy a boat\n計画")
    sheets = read_document(office_files.xlsx(tmp_path / "list.xlsx", {"Prices": [["Boat", 12]], "Empty": []}))
    assert sheets.text == "Prices\nBoat\t12"
    assert is_document(tmp_path / "list.xlsx")
    (tmp_path / "broken.docx").write_bytes(b"nothing")
    with pytest.raises(BadRequest, match=r"broken\.docx"):
        read_document(tmp_path / "broken.docx")
