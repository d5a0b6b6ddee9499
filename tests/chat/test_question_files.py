"""Questions with files, outside of a chat."""

from pathlib import Path

import pytest

from qwendesk.chat.question_files import read_question
from qwendesk.core.errors import BadRequest
from tests.pictures import ShapePicture


async def test_documents_are_quoted_and_pictures_are_attached(tmp_path: Path) -> None:
    note, picture = tmp_path / "note.txt", tmp_path / "circle.png"
    ShapePicture("red", "circle").draw().save(picture)
    note.write_text("Buy bread.")

    message = await read_question("What is this?", [note, picture])

    assert [image.path for image in message.images] == [str(picture)]
    assert "Buy bread." in message.text
    assert message.text.endswith("What is this?")


async def test_a_file_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadRequest):
        await read_question("What is this?", [tmp_path / "none.png"])
