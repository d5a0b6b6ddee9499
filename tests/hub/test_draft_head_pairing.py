"""A draft head in a file of its own is told by its header, and goes with the model beside it."""

import shutil
from pathlib import Path

import pytest

from qwendesk.hub.companion_pairing import draft_head_mismatch, find_draft_head
from qwendesk.hub.gguf import read_facts
from qwendesk.hub.header_cache import HeaderCache
from qwendesk.hub.library import Library, model_at, scan
from qwendesk.hub.library_places import SearchFolder
from qwendesk.hub.model_deletion import ModelDeletion, deletion_of
from tests.draft_head_model import write_demo_head, write_demo_with_head, write_demo_without_head
from tests.hub.verified import findings


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_demo_without_head(tmp_path / "demo.gguf")


@pytest.fixture
def head(tmp_path: Path) -> Path:
    return write_demo_head(tmp_path / "a-head-by-any-name.gguf")


def library_of(folder: Path) -> Library:
    return scan([SearchFolder("folder", folder)], HeaderCache())


def test_the_header_tells_a_head_alone_from_a_model_with_a_head(tmp_path: Path, head: Path, model: Path) -> None:
    inside = write_demo_with_head(tmp_path / "inside.gguf")
    assert [read_facts(path).kind for path in (head, inside, model)] == ["draft_head", "model", "model"]


def test_the_head_beside_a_model_is_found(model: Path, head: Path) -> None:
    assert find_draft_head(model) == head
    assert find_draft_head(head) is None, "a head has no head"
    head.unlink()
    assert find_draft_head(model) is None


def test_a_model_with_a_head_inside_needs_no_other(tmp_path: Path, head: Path) -> None:
    assert head.exists()
    assert find_draft_head(write_demo_with_head(tmp_path / "inside.gguf")) is None


def test_a_head_of_another_model_does_not_fit(tmp_path: Path, model: Path) -> None:
    other = write_demo_head(tmp_path / "other.gguf", n_layers=12)
    assert find_draft_head(model) is None
    sentence = "The draft head other.gguf is for another model than demo.gguf."
    assert draft_head_mismatch(read_facts(model), read_facts(other)) == sentence
    assert draft_head_mismatch(read_facts(model), read_facts(model)) == "demo.gguf isn't a draft head."


def test_the_library_pairs_head_and_model_and_deletes_both(model: Path, head: Path) -> None:
    library = library_of(model.parent)
    assert [each.path for each in library.models] == [str(model)]
    assert [each.path for each in library.others] == [str(head)]
    paired = library.models[0].draft_head
    assert paired is not None
    assert paired.path == str(head)
    deletion = deletion_of(library.models[0], library)
    assert isinstance(deletion, ModelDeletion)
    assert {file.path for file in deletion.files} == {str(model), str(head)}
    outside = model_at(model, HeaderCache())
    assert outside is not None
    assert outside.draft_head is not None


def test_a_head_that_two_models_use_outlives_one_of_them(model: Path, head: Path) -> None:
    shutil.copy(model, model.with_name("copy.gguf"))
    library = library_of(model.parent)
    deletion = deletion_of(library.models[0], library)
    assert isinstance(deletion, ModelDeletion)
    assert str(head) not in {file.path for file in deletion.files}


def test_a_check_says_what_a_head_is_and_where_it_belongs(model: Path, head: Path) -> None:
    assert "The model beside it is loaded with it" in findings(head)["draft-file"].message
    model.unlink()
    assert "Move it to the folder of its model" in findings(head)["draft-file"].message
