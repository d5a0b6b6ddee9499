"""Words that a line break hyphenated in a PDF are whole in its text: attached, read by a tool, found by a search."""

from pathlib import Path

import pytest

from qwendesk.chat.documents.document_reader import read_document
from qwendesk.toolbox.file_tools import read_file
from qwendesk.toolbox.folder_access import FolderAccess
from qwendesk.toolbox.knowledge.folder_indexes import FolderIndexes
from tests.chat.documents.test_document_reader import pdf
from tests.field.grid import SERVER, Kind, Way, case
from tests.toolbox.knowledge.test_search import context, indexes, search_folders  # noqa: F401

SPLIT_WORDS = Kind(
    "Words at a line's end in a PDF are broken by a control character",
    {
        **dict.fromkeys(SERVER, "a PDF is refused: clients send its text or its pages as pictures"),
        Way.MCP: "its servers send text",
        Way.IMPORT: "exports have no PDF",
    },
)


def lines(*texts: str) -> bytes:
    """A PDF with these lines on its one page."""
    return pdf(") Tj 0 -28 Td (".join(texts))


def written(folder: Path, content: bytes) -> Path:
    path = folder / "paper.pdf"
    path.write_bytes(content)
    return path


@case(SPLIT_WORDS, Way.WINDOW, report="pdftext#1", before="failed")
@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (("expenses are permit-", "ted by law"), "expenses are permitted by law"),
        (("the mecha-", "nisms that"), "the mechanisms that"),
        (("against COVID-", "19 and E-", "Mail"), "against COVID-19 and E-Mail"),
        (("a well-known name",), "a well-known name"),
        (("it ends with a cut-",), "it ends with a cut-"),
    ],
)
def test_words_of_an_attached_pdf_are_whole(tmp_path: Path, texts: tuple[str, ...], expected: str) -> None:
    text = read_document(written(tmp_path, lines(*texts))).text

    assert " ".join(text.split()) == expected
    assert text.isprintable() or set(text) - {"\n"} == {each for each in text if each.isprintable()}


@case(SPLIT_WORDS, Way.CLI, report="pdftext#1, sumatrapdf#3922: mecha- nisms", before="failed")
def test_the_model_reads_whole_words(tmp_path: Path) -> None:
    written(tmp_path, lines("the mecha-", "nisms that"))

    assert "mechanisms" in read_file(FolderAccess([str(tmp_path)]), "paper.pdf")


@case(SPLIT_WORDS, Way.CLI, report="pdftext#1: in the index too", before="failed")
async def test_a_search_finds_whole_words(
    tmp_path: Path,
    indexes: FolderIndexes,  # noqa: F811
) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    written(folder, lines("expenses are permit-", "ted by law"))

    assert "permitted by law" in await search_folders(indexes, "permitted", context(folder))


@case(SPLIT_WORDS, Way.WINDOW, report="found by trying: two columns, whose lines are short", before="failed")
def test_hyphens_in_short_lines(tmp_path: Path) -> None:
    text = read_document(written(tmp_path, lines("Do-", "nau-", "dampf-", "schiff"))).text

    assert "".join(text.split()) == "Donaudampfschiff"
