"""Office documents, e-books and RTF files are read as text, and hostile ones are refused."""

from pathlib import Path

import pytest

from qwendesk.core.errors import BadRequest
from qwendesk.core.units import MIB
from qwendesk.decoding.documents import document_format, read_pieces
from tests.decoding import office_files


def texts(path: Path) -> list[str]:
    return [piece.text for piece in read_pieces(path)]


def test_word_document_has_a_line_for_each_paragraph_and_row(tmp_path: Path) -> None:
    hidden = "<w:p><w:r><w:delText>gone</w:delText></w:r><w:r><w:t>kept</w:t><w:tab/><w:t>on</w:t></w:r></w:p>"
    path = office_files.docx(
        tmp_path / "a.docx", "Die Größe", "第二段 <&>", table=[["Preis", "12 €"], ["x", "y"]], more=hidden
    )
    assert texts(path) == ["Die Größe\n第二段 <&>\nPreis\t12 €\nx\ty\nkept\ton"]


def test_fallback_of_a_drawing_is_not_read_twice(tmp_path: Path) -> None:
    more = (
        '<mc:AlternateContent xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006">'
        "<mc:Choice><w:p><w:r><w:t>once</w:t></w:r></w:p></mc:Choice>"
        "<mc:Fallback><w:p><w:r><w:t>once</w:t></w:r></w:p></mc:Fallback></mc:AlternateContent>"
    )
    assert texts(office_files.docx(tmp_path / "a.docx", "first", more=more)) == ["first\nonce"]


def test_slides_are_read_in_their_order_with_notes(tmp_path: Path) -> None:
    path = office_files.pptx(tmp_path / "a.pptx", "One\nline", "Two", "三", notes="Say hello")
    assert texts(path) == ["One\nline\nSay hello", "Two", "三"]


def test_sheets_have_names_and_rows_keep_their_numbers(tmp_path: Path) -> None:
    path = office_files.xlsx(tmp_path / "a.xlsx", {"Prices": [["Boat", 1200], ["Kayak", 99.5]], "空": []}, first_row=3)
    first, second = read_pieces(path)
    assert (first.name, first.text.split("\n")) == ("Prices", ["", "", "Boat\t1200", "Kayak\t99.5"])
    assert (second.name, second.text) == ("空", "")
    path = office_files.ods(tmp_path / "b.ods", "Liste", [["Apfel", "Äpfel"]])
    assert [(piece.name, piece.text) for piece in read_pieces(path)] == [("Liste", "Apfel\tÄpfel")]


def test_open_document_text_and_slides(tmp_path: Path) -> None:
    deleted = "<text:tracked-changes><text:p>deleted</text:p></text:tracked-changes>"
    path = office_files.odt(tmp_path / "a.odt", "One", "Two", table=[["x", "y"]], more=deleted)
    assert texts(path) == ["One\nTwo\nx\ty"]
    assert texts(office_files.odp(tmp_path / "b.odp", "First", "Second")) == ["First", "Second"]


def test_chapters_of_an_e_book(tmp_path: Path) -> None:
    chapter = "<h1>One</h1><p>It was <b>dark</b> &amp; wet.<br/>Rain.</p><script>x = 1</script>"
    assert texts(office_files.epub(tmp_path / "a.epub", chapter, "<p>吾輩は猫である</p>")) == [
        "# One\nIt was dark & wet.\nRain.",
        "吾輩は猫である",
    ]


def test_rtf(tmp_path: Path) -> None:
    path = tmp_path / "a.rtf"
    path.write_text(r"{\rtf1\ansi\ansicpg1252 Gr\'f6\'dfe\par \u26085?\u26412?\par \u-10179?\u-8704?}")
    assert texts(path) == ["Größe\n日本\n\N{GRINNING FACE}"]


@pytest.mark.parametrize("name", ["a.docx", "a.pptx", "a.xlsx", "a.odt", "a.odp", "a.ods", "a.epub", "a.rtf", "a.xls"])
@pytest.mark.parametrize(
    "content", [b"", b"hello", b"PK\x03\x04 damaged", b"{\\rt"], ids=["empty", "text", "zip", "rtf"]
)
def test_what_is_no_document_is_refused_with_its_name(tmp_path: Path, name: str, content: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(BadRequest) as refused:
        read_pieces(path)
    assert name in refused.value.sentence


def test_protected_document_says_so(tmp_path: Path) -> None:
    path = tmp_path / "a.docx"
    path.write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(512))
    with pytest.raises(BadRequest, match="password"):
        read_pieces(path)


def test_bombs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match="document type"):
        read_pieces(office_files.entity_bomb(tmp_path / "entities.docx"))
    with pytest.raises(BadRequest, match="unpacks to too much"):
        read_pieces(office_files.zip_bomb(tmp_path / "spaces.docx", 600 * MIB))
    with pytest.raises(BadRequest, match=r"wide\.xlsx"):
        read_pieces(office_files.wide_sheet(tmp_path / "wide.xlsx"))


def test_formats_are_known_by_name() -> None:
    assert document_format("Report.DOCX") == "docx"
    assert document_format("report.doc") == document_format("docx") == ""
