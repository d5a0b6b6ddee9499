"""A pipe, a device or a huge file in the place of any file that users hand over is refused at once, with a sentence."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from qwendesk.chat.documents.document_reader import is_document, read_document
from qwendesk.chat.documents.pdf import pdf_text
from qwendesk.chat.image_parts import image_part
from qwendesk.chat.presets import read_export
from qwendesk.core.errors import BadModelFile, BadRequest, QwenDeskError
from qwendesk.hub.file_hashes import hash_file
from qwendesk.hub.file_origin import origin_of
from qwendesk.hub.gguf import read_facts
from qwendesk.hub.library_places import FileLookup
from qwendesk.settings.profiles import ProfilesService
from tests.decoding.hostile_files import sparse_file

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="named pipes and devices of POSIX")


def pipe(path: Path) -> None:
    os.mkfifo(path)


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def huge(path: Path) -> None:
    sparse_file(path, 6 << 30)


READERS: dict[str, tuple[str, Callable[[Path], object], type[Exception]]] = {
    "document": ("notes.txt", read_document, BadRequest),
    "PDF": ("paper.pdf", pdf_text, BadRequest),
    "picture": ("photo.png", image_part, BadRequest),
    "presets": ("presets.json", read_export, QwenDeskError),
}


@pytest.mark.parametrize("make", [pipe, endless, huge])
@pytest.mark.parametrize("kind", READERS)
def test_it_is_refused_with_a_sentence(tmp_path: Path, make: Callable[[Path], None], kind: str) -> None:
    name, read, error = READERS[kind]
    make(tmp_path / name)

    with pytest.raises(error) as refused:
        read(tmp_path / name)

    assert name in str(refused.value)
    assert any(words in str(refused.value) for words in ("a pipe", "a device", "6.0 GB"))


@pytest.mark.parametrize("make", [pipe, endless, huge])
async def test_a_profile_is_refused_with_a_sentence(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "fast.json")
    profiles = ProfilesService(tmp_path / "profiles.json")

    with pytest.raises(QwenDeskError, match=r"fast\.json"):
        await profiles.import_file("/x/a.gguf", tmp_path / "fast.json")


@pytest.mark.parametrize("make", [pipe, endless])
def test_a_model_file_is_refused_with_a_sentence(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "model.gguf")

    with pytest.raises(BadModelFile, match="it is a"):
        read_facts(tmp_path / "model.gguf")
    with pytest.raises(OSError, match="it is a"):
        hash_file(tmp_path / "model.gguf")


@pytest.mark.parametrize("make", [pipe, endless])
def test_a_file_without_a_known_ending_is_not_looked_into(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "NOTES")

    assert not is_document(tmp_path / "NOTES")


@pytest.mark.parametrize("make", [pipe, endless, huge])
def test_what_lies_beside_models_is_passed_over(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "settings.json")
    note = tmp_path / ".cache" / "huggingface" / "download" / "model.gguf.metadata"
    note.parent.mkdir(parents=True)
    make(note)

    assert FileLookup().text(tmp_path / "settings.json") == ""
    assert origin_of(tmp_path / "model.gguf").repo == ""
