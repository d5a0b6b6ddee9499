"""Pictures of a chat outlive their originals, and go when nothing refers to them."""

import hashlib
from pathlib import Path

import pytest

from qwendesk.core.chat_tree import ChatNode
from qwendesk.core.messages import ImagePart, Message, TextPart
from qwendesk.store.attachments import AttachmentStore
from qwendesk.store.chats import ChatStore
from qwendesk.store.database import Database, StoreFailure


@pytest.fixture
def attachments(database: Database, tmp_path: Path) -> AttachmentStore:
    return AttachmentStore(database, tmp_path / "attachments")


def picture(path: Path, content: bytes = b"original bytes") -> ImagePart:
    path.write_bytes(content)
    return ImagePart(str(path), hashlib.sha256(content).hexdigest())


def question(image: ImagePart, name: str = "q1") -> ChatNode:
    return ChatNode(id=name, message=Message("user", (image, TextPart("What is this?"))))


def test_a_picture_stays_when_its_original_is_gone(
    attachments: AttachmentStore, store: ChatStore, tmp_path: Path
) -> None:
    image = picture(tmp_path / "Cat.PNG")
    kept = attachments.keep(image).result()
    store.save_node("c", question(image)).result()
    Path(image.path).unlink()

    (again,) = attachments.in_place(store.load("c")).nodes["q1"].message.images

    assert kept == Path(again.path)
    assert kept.suffix == ".png"
    assert kept.read_bytes() == b"original bytes"
    assert again.sha256 == image.sha256


def test_the_same_picture_is_kept_once(attachments: AttachmentStore, tmp_path: Path) -> None:
    places = {attachments.keep(picture(tmp_path / name)).result() for name in ("one.png", "two.png", "one.png")}

    assert len(places) == 1


def test_what_changed_since_it_was_sent_is_not_kept(attachments: AttachmentStore, tmp_path: Path) -> None:
    image = picture(tmp_path / "cat.png")
    Path(image.path).write_bytes(b"something else")

    assert attachments.keep(image).result() is None
    assert attachments.keep(ImagePart(str(tmp_path / "gone.png"), image.sha256)).result() is None
    assert [path for path in attachments.folder.rglob("*") if path.is_file()] == []


def test_a_hash_that_is_a_path_leads_nowhere(attachments: AttachmentStore, tmp_path: Path) -> None:
    image = picture(tmp_path / "cat.png")

    assert attachments.keep(ImagePart(image.path, "../../evil")).result() is None
    assert not (tmp_path.parent / "evil.png").exists()


def test_cleaning_takes_only_what_nothing_refers_to(
    attachments: AttachmentStore, store: ChatStore, tmp_path: Path
) -> None:
    used, shared = picture(tmp_path / "used.png", b"1"), picture(tmp_path / "shared.png", b"2")
    for image, name in ((used, "q1"), (shared, "q2")):
        attachments.keep(image).result()
        store.save_node("c", question(image, name))
    store.save_node("d", question(shared, "q3")).result()
    left_by_a_crash = attachments.folder / "ab" / "half.png.new"
    left_by_a_crash.parent.mkdir(exist_ok=True)
    left_by_a_crash.touch()

    store.set_deleted(["c"], 1.0)
    assert attachments.clean().result() == 1
    store.purge(2.0)
    assert attachments.clean().result() == 1

    left = [path for path in attachments.folder.rglob("*") if path.is_file()]
    assert [path.read_bytes() for path in left] == [b"2"]


def test_a_folder_that_cannot_be_made_is_said(database: Database, tmp_path: Path) -> None:
    (tmp_path / "attachments").write_text("in the way")

    with pytest.raises(StoreFailure, match="cannot be used"):
        AttachmentStore(database, tmp_path / "attachments").keep(picture(tmp_path / "cat.png")).result()
