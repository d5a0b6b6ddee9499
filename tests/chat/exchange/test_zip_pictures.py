"""Pictures of a ChatGPT export are imported as attachments, within limits."""

import json
import zipfile
from pathlib import Path

from qwendesk.chat.exchange.pictures import ImportedPictures
from qwendesk.chat.exchange.zip_pictures import NO_PICTURE, NOT_THERE, TOO_LARGE, ZipPictures
from qwendesk.core.messages import ImagePart
from tests.chat.exchange.kit import PICTURE, SHA, Kit, gpt_chat, gpt_node


def beside_the_attachments(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if "attachments" not in path.parts}


def read(image: ImagePart) -> bytes:
    return Path(image.path).read_bytes()


def asking(*pointers: str, text: str = "What is it?") -> dict:
    parts = [{"content_type": "image_asset_pointer", "asset_pointer": pointer} for pointer in pointers]
    return {"content_type": "multimodal_text", "parts": [*parts, text]}


async def test_pictures_of_a_chatgpt_zip_are_imported(kit: Kit, tmp_path: Path) -> None:
    made = asking("sediment://file_made", text="")
    chat = gpt_chat(
        gpt_node("q", None, content=asking("file-service://file-Ab1", "sediment://file_00c#md5")),
        gpt_node("made", "q", "tool", content=made),
        gpt_node("a", "made", "assistant", "Two pictures."),
        gpt_node("q2", "a", content=asking("file-service://file-Ab1", "file-service://file-A", text="")),
        gpt_node("q3", "q2", content=asking("file-service://../../evil", "file-service://file-text", text="Odd")),
        current_node="q3",
    )
    with zipfile.ZipFile(tmp_path / "export.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("conversations.json", json.dumps([chat]))
        archive.writestr("../../../file-Ab1-out of here.png", PICTURE)
        archive.writestr("user-1/file_00c.jpeg", b"\xff\xd8\xff other")
        archive.writestr("file_made.png", PICTURE + b"2")
        archive.writestr("file-text-notes.png", b"no picture")
    before = beside_the_attachments(tmp_path)

    report = await kit.exchange.import_from(tmp_path / "export.zip")

    question, answer, second, third = (await kit.tree()).path()
    first, other = question.message.images
    assert read(first) == PICTURE
    assert read(other) == b"\xff\xd8\xff other"
    assert Path(first.path).is_relative_to(kit.folder / "attachments")
    assert (question.message.text, answer.message.text) == ("What is it?", "Two pictures.")
    assert [image.sha256 for image in second.message.images] == [SHA]
    assert second.message.text == NOT_THERE
    assert third.message.text == f"{NOT_THERE}\n{NO_PICTURE}\nOdd"
    assert report.left_out.pictures == 4
    assert "4 pictures" in report.sentence
    assert beside_the_attachments(tmp_path) == before


async def test_picture_limits_apply_to_what_is_read(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(4):
            archive.writestr(f"file-{number}.png", PICTURE + bytes([number]) + bytes(300))
        archive.writestr("file-bomb.png", PICTURE + bytes(100_000))
    with zipfile.ZipFile(tmp_path / "bomb.zip") as archive:
        (tmp_path / "pictures").mkdir()
        pictures = ZipPictures(
            archive, ImportedPictures(tmp_path / "pictures"), max_bytes_each=1_000, max_bytes_in_all=800
        )
        found = [pictures.find(f"file-service://file-{name}") for name in ("bomb", "0", "1", "2", "0")]
    assert [isinstance(each, ImagePart) for each in found] == [False, True, True, False, True]
    assert found[0] == TOO_LARGE
    assert sum(path.stat().st_size for path in (tmp_path / "pictures").iterdir()) <= 800
