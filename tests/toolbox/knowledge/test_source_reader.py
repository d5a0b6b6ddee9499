"""What a citation stands for is read from the file as it is now."""

from pathlib import Path

import pytest

from qwendesk.core.citations import Citation, citations_in
from qwendesk.toolbox.folder_access import FolderAccess
from qwendesk.toolbox.knowledge.folder_indexes import FolderIndexes
from qwendesk.toolbox.knowledge.index_file import query_words
from qwendesk.toolbox.knowledge.search import found_places, read_source


async def cited(folder: Path, query: str) -> Citation:
    """Return the best place that a search in `folder` gives."""
    indexes = FolderIndexes(in_folder(folder), wait_s=None)
    try:
        searched = await indexes.updated([str(folder)])
        result = found_places(FolderAccess([str(folder)]), searched, query_words(query), 1, 24_000)
    finally:
        await indexes.close()
    return citations_in(result)[0]


def in_folder(folder: Path) -> Path:
    return folder.parent / "indexes"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "books").mkdir()
    return tmp_path / "books"


async def test_lines_are_found_where_they_are(folder: Path) -> None:
    lines = [f"Line {number} says nothing." for number in range(1, 2001)]
    lines[1499] = "Here is the kayak."
    (folder / "long.txt").write_text("\n".join(lines))
    citation = await cited(folder, "kayak")
    assert "Here is the kayak." in citation.found
    source = await read_source(citation, [str(folder)])
    assert source.cited == citation.first
    start = source.cited - source.first
    assert source.lines[start : start + len(citation.found)] == citation.found
    assert (source.first, len(source.lines) < 700) == (citation.first - 300, True)


async def test_piece_of_a_long_line_is_found(folder: Path) -> None:
    (folder / "one.txt").write_text("word " * 500 + "kayak " + "word " * 500)
    citation = await cited(folder, "kayak")
    assert (citation.first, citation.last) == (1, 1)
    source = await read_source(citation, [str(folder)])
    assert source.cited == 1


async def test_other_text_in_the_place_is_not_taken_for_it(folder: Path) -> None:
    (folder / "a.txt").write_text("The kayak is red.\n")
    citation = await cited(folder, "kayak")
    (folder / "a.txt").write_text("The canoe is blue.\n")
    source = await read_source(citation, [str(folder)])
    assert (source.cited, source.lines, source.obstacle) == (0, ("The canoe is blue.",), "")


@pytest.mark.parametrize("path", ["/etc/hostname", "../secret.txt", ".env", "gone.txt"])
async def test_what_tools_may_not_read_is_not_shown_either(folder: Path, path: str) -> None:
    (folder / ".env").write_text("key")
    (folder.parent / "secret.txt").write_text("key")
    made_up = Citation(1, path, 1, 1, found=("as it was",))
    source = await read_source(made_up, [str(folder)])
    assert (source.file, source.lines) == ("", ("as it was",))
    assert source.obstacle == "The file is no longer in a folder of this chat."


async def test_page_that_is_gone_is_said(folder: Path) -> None:
    (folder / "a.txt").write_text("text")
    source = await read_source(Citation(1, "a.txt", 1, 1, unit="page", at=9, found=("x",)), [str(folder)])
    assert (source.lines, source.obstacle) == (("x",), "The file has changed: this part is no longer in it.")
