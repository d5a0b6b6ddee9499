"""The library of saved system prompts."""

from pathlib import Path

import pytest

from qwendesk.chat.prompt_library import BUILT_IN, PromptLibrary
from qwendesk.core.errors import BadRequest


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "config" / "prompts.json"


def names(library: PromptLibrary) -> list[str]:
    return [prompt.name for prompt in library.prompts if not prompt.built_in]


def test_prompts_are_saved_renamed_and_deleted(file):
    library = PromptLibrary(file)
    library.add("  My   prompt ", "Be kind.\n", "precise")
    library.add("Another", "Be brief.")
    assert names(PromptLibrary(file)) == ["Another", "My prompt"], "from the file, by name"
    library.rename("My prompt", "Kind")
    library.add("Kind", "Be very kind.")
    kept = {prompt.name: prompt.text for prompt in PromptLibrary(file).prompts}
    assert kept["Kind"] == "Be very kind."
    library.delete("Another")
    assert names(PromptLibrary(file)) == ["Kind"]


def test_built_in_prompts_cannot_be_changed(file):
    library = PromptLibrary(file)
    assert library.prompts == BUILT_IN
    with pytest.raises(BadRequest, match="built in"):
        library.delete(BUILT_IN[0].name)
    with pytest.raises(BadRequest, match="built in"):
        library.add(BUILT_IN[0].name, "Mine")


@pytest.mark.parametrize(("name", "text"), [("", "x"), (" \n", "x"), ("n" * 81, "x"), ("fine", "  ")])
def test_invalid_prompt_is_refused(file, name, text):
    library = PromptLibrary(file)
    with pytest.raises(BadRequest):
        library.add(name, text)
    assert names(library) == []


def test_unwritable_folder_is_reported_and_the_change_stays_in_memory(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    library = PromptLibrary(blocked / "prompts.json")
    library.add("A", "a")
    assert "couldn't be saved" in library.state.value.problem
    assert names(library) == ["A"]
