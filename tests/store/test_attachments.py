"""Pictures of a chat outlive their originals, and go when nothing refers to them."""

import errno
import io
from pathlib import Path

import pytest

from qwendesk.core.errors import StoreFailure
from qwendesk.core.messages import ImagePart
from qwendesk.store import attachments as attachments_module
from qwendesk.store.attachments import AttachmentStore, Cleaning
from qwendesk.store.chats import ChatStore
from qwendesk.store.database import Database
from tests.store.attachment_files import make_old, picture, question


@pytest.fixture
def attachments(database: Database, tmp_path: Path) -> AttachmentStore:
    return AttachmentStore(database, tmp_path / "attachments")


def test_copy_stays_when_the_original_is_deleted(
    attachments: AttachmentStore, store: ChatStore, tmp_path: Path
) -> None:
    image = picture(tmp_path / "Cat.PNG")
    kept = attachments.save_copy(image).result()
    store.save_node("c", question(image)).result()
    Path(image.path).unlink()

    (again,) = attachments.with_copies(store.load("c")).nodes["q1"].message.images

    assert kept == Path(again.path)
    assert kept.suffix == ".png"
    assert kept.read_bytes() == b"original bytes"
    assert again.sha256 == image.sha256


def test_the_same_picture_is_kept_once(attachments: AttachmentStore, tmp_path: Path) -> None:
    places = {attachments.save_copy(picture(tmp_path / name)).result() for name in ("one.png", "two.png", "one.png")}

    assert len(places) == 1


def test_picture_changed_since_it_was_sent_is_not_copied(attachments: AttachmentStore, tmp_path: Path) -> None:
    image = picture(tmp_path / "cat.png")
    Path(image.path).write_bytes(b"something else")

    assert attachments.save_copy(image).result() is None
    assert attachments.save_copy(ImagePart(str(tmp_path / "gone.png"), image.sha256)).result() is None
    assert [path for path in attachments.folder.rglob("*") if path.is_file()] == []


def test_hash_that_is_a_path_is_refused(attachments: AttachmentStore, tmp_path: Path) -> None:
    image = picture(tmp_path / "cat.png")

    assert attachments.save_copy(ImagePart(image.path, "../../evil")).result() is None
    assert not (tmp_path.parent / "evil.png").exists()


def test_cleaning_deletes_only_unreferenced_files(
    attachments: AttachmentStore, store: ChatStore, tmp_path: Path
) -> None:
    used, shared = picture(tmp_path / "used.png", b"1"), picture(tmp_path / "shared.png", b"2")
    for image, name in ((used, "q1"), (shared, "q2")):
        attachments.save_copy(image).result()
        store.save_node("c", question(image, name))
    store.save_node("d", question(shared, "q3")).result()
    left_by_a_crash = attachments.folder / "ab" / f"{'ab' * 32}.png.new"
    left_by_a_crash.parent.mkdir(exist_ok=True)
    left_by_a_crash.touch()
    make_old(left_by_a_crash)

    store.set_deleted(["c"], 1.0)
    assert attachments.clean().result() == Cleaning(deleted=1)
    store.purge()
    assert attachments.clean().result() == Cleaning(deleted=1)

    left = [path for path in attachments.folder.rglob("*") if path.is_file()]
    assert [path.read_bytes() for path in left] == [b"2"]


def test_uncreatable_folder_raises_store_failure(database: Database, tmp_path: Path) -> None:
    (tmp_path / "attachments").write_text("in the way")

    with pytest.raises(StoreFailure, match="can't be used"):
        AttachmentStore(database, tmp_path / "attachments").save_copy(picture(tmp_path / "cat.png")).result()


def test_unreadable_original_raises_no_store_failure(
    attachments: AttachmentStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = picture(tmp_path / "cat.png")

    def gone(_path: Path) -> io.FileIO:
        raise OSError(errno.ESTALE, "Stale file handle")

    monkeypatch.setattr(attachments_module, "open_regular", gone)
    assert attachments.save_copy(image).result() is None


def test_a_damaged_file_name_loses_no_picture(attachments: AttachmentStore, store: ChatStore, tmp_path: Path) -> None:
    image = picture(tmp_path / "cat.png")
    kept = attachments.save_copy(image).result()
    make_old(kept)
    store.save_node("c", question(image)).result()
    attachments._database.write(lambda connection: connection.execute("UPDATE attachments SET file = 'bA/x.pnf'"))

    attachments.clean().result()

    (shown,) = attachments.with_copies(store.load("c")).nodes["q1"].message.images
    assert Path(shown.path) == kept
