from pathlib import Path

import pytest

from qwendesk.core.errors import BadRequest, QwenDeskError
from qwendesk.services.chat.library import BUILT_IN, PromptLibrary


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "config" / "prompts.json"


def names(library: PromptLibrary) -> list[str]:
    return [prompt.name for prompt in library.prompts if not prompt.built_in]


def test_prompts_are_kept_renamed_and_deleted(file):
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


def test_those_of_the_app_are_there_and_cannot_be_changed(file):
    library = PromptLibrary(file)
    assert library.prompts == BUILT_IN
    with pytest.raises(BadRequest, match="comes with the app"):
        library.delete(BUILT_IN[0].name)
    with pytest.raises(BadRequest, match="comes with the app"):
        library.add(BUILT_IN[0].name, "Mine")


@pytest.mark.parametrize(("name", "text"), [("", "x"), (" \n", "x"), ("n" * 81, "x"), ("fine", "  ")])
def test_what_cannot_be_kept_is_refused_and_nothing_changes(file, name, text):
    library = PromptLibrary(file)
    with pytest.raises(BadRequest):
        library.add(name, text)
    assert names(library) == []


def test_a_name_is_given_once(file):
    library = PromptLibrary(file)
    library.add("A", "a")
    library.add("B", "b")
    with pytest.raises(BadRequest, match="already"):
        library.rename("A", "B")


def test_listeners_hear_of_each_change(file):
    library = PromptLibrary(file)
    heard = []
    library.subscribe(heard.append)
    library.add("A", "a")
    assert heard == [library.prompts]


def test_a_broken_file_is_set_aside(file):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("{not json")
    library = PromptLibrary(file)
    assert (library.prompts, "damaged" in library.problem) == (BUILT_IN, True)
    assert file.with_name("prompts.json.unusable").read_text() == "{not json"


def test_a_folder_that_cannot_be_written_says_so_and_the_change_holds(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    library = PromptLibrary(blocked / "prompts.json")
    with pytest.raises(QwenDeskError, match="could not be saved"):
        library.add("A", "a")
    assert names(library) == ["A"]
