"""A link that another program puts in place of a file or folder, right between the check of a path and its use."""

import asyncio
import io
import itertools
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from qwendesk.cli.ask_tools import read_tools
from qwendesk.core.chats import ChatSettings
from qwendesk.core.errors import QwenDeskError
from qwendesk.core.tool_context import CallContext
from qwendesk.toolbox.builtin import builtin_tools
from qwendesk.toolbox.edit_history import EditHistory, FileEdit
from qwendesk.toolbox.file_tools import edit_file, list_files, read_file
from qwendesk.toolbox.folder_access import FolderAccess
from qwendesk.toolbox.knowledge.index_file import IndexFile
from qwendesk.toolbox.knowledge.index_update import FolderUnreachable, update_index
from qwendesk.toolbox.tool import Tool, ToolError
from tests.decoding import office_files
from tests.field.grid import SERVER, Kind, Way, case
from tests.links import skip_without_links

SWAPPED = Kind(
    "A link that is swapped in while a file is opened leads out of the picked folder",
    {
        **dict.fromkeys(SERVER, "the server's clients run their tools themselves"),
        Way.MCP: "a server opens its files itself; QwenDesk opens none for it",
        Way.IMPORT: "an import opens the one file that the user picked",
    },
)
FOUND = "found by attack: 5 of 300 tries read outside"
CALLS = ((os, "open"), (os, "scandir"), (os, "listdir"), (os, "rename"), (os, "replace"), (os, "unlink"), (io, "open"))
"""What opens, lists and changes files. A swap before each of them in turn is every moment of a race."""


class Race:
    """A picked folder, and one outside of it in which the same names lead to what is private."""

    def __init__(self, folder: Path, swapped: str, moment: int, monkeypatch: pytest.MonkeyPatch) -> None:
        """`swapped` is the name of what becomes a link, before the call of this number."""
        self.folder, self.outside = folder.resolve() / "picked", folder.resolve() / "outside"
        for place, text in ((self.folder / "sub", "boat"), (self.outside, "private")):
            place.mkdir(parents=True)
            (place / "plan.txt").write_text(text)
            office_files.docx(place / "plan.docx", text)
        (self.outside / "diary-of-others.txt").write_text("private")
        self.access = FolderAccess([str(self.folder)])
        self.settings = ChatSettings(tool_folders=(str(self.folder),))
        self.is_over = False
        """Whether the link is there."""
        self._swapped, self._left, self._monkeypatch = self.folder / swapped, moment, monkeypatch

    def during(self, action: Callable[[], str]) -> str:
        """Return what an action returns, or why it is refused, while the link is swapped in."""
        with self._monkeypatch.context() as patched:
            for module, name in CALLS:
                patched.setattr(module, name, self._swapping(getattr(module, name)))
            try:
                return action()
            except (ToolError, QwenDeskError, FolderUnreachable) as error:
                return f"refused: {error}"

    def is_untouched(self) -> bool:
        """Return whether all that is outside is as it was."""
        texts = [(self.outside / name).read_text() for name in ("plan.txt", "diary-of-others.txt")]
        return texts == ["private"] * 2 and len(list(self.outside.iterdir())) == 3

    def _swapping(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def swap_and_call(*arguments: Any, **options: Any) -> Any:
            if not self.is_over and self._left == 0:
                self.is_over = True
                self._swapped.rename(self.folder.parent / "moved")
                name = self._swapped.name
                self._swapped.symlink_to(self.outside if name == "sub" else self.outside / name)
            self._left -= 1
            return call(*arguments, **options)

        return swap_and_call


@pytest.fixture
def races(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Iterator[Race]]:
    """Races in which something becomes a link before the first call, the second, and so on; in the last one never."""
    skip_without_links(tmp_path)

    def run(swapped: str) -> Iterator[Race]:
        for moment in itertools.count():
            race = Race(tmp_path / str(moment), swapped, moment, monkeypatch)
            yield race
            if not race.is_over:
                assert moment, "nothing was opened at all"
                return

    return run


Races = Callable[[str], Iterator[Race]]


@case(SWAPPED, Way.WINDOW, report=FOUND, before="failed")
@pytest.mark.parametrize("swapped", ["sub", "sub/plan.txt"])
def test_a_text_is_read_in_the_folder_or_not_at_all(races: Races, swapped: str) -> None:
    said = [race.during(partial(read_file, race.access, "sub/plan.txt")) for race in races(swapped)]
    assert said[-1] == "boat"
    assert all(each == "boat" or each.startswith("refused") for each in said), said
    assert any(each.startswith("refused") for each in said)


@case(SWAPPED, Way.WINDOW, report=FOUND, before="failed")
@pytest.mark.parametrize("swapped", ["sub", "sub/plan.docx"])
def test_a_document_is_read_in_the_folder_or_not_at_all(races: Races, swapped: str) -> None:
    said = [race.during(partial(read_file, race.access, "sub/plan.docx")) for race in races(swapped)]
    assert said[-1] == "boat"
    assert all(each == "boat" or each.startswith("refused") for each in said), said


@case(SWAPPED, Way.WINDOW, report=FOUND, before="held")
def test_no_names_of_another_folder_are_listed(races: Races) -> None:
    said = [race.during(partial(list_files, race.access, "sub")) for race in races("sub")]
    assert said[-1] == "plan.docx\nplan.txt"
    assert all("diary" not in each for each in said), said


@case(SWAPPED, Way.WINDOW, report=FOUND, before="failed")
@pytest.mark.parametrize("swapped", ["sub", "sub/plan.txt"])
def test_nothing_outside_gets_into_an_index(races: Races, swapped: str) -> None:
    for race in races(swapped):
        index = IndexFile(None)
        race.during(lambda: str(update_index(index, race.folder)))  # noqa: B023 - it is called at once
        assert not index.find('"private"', 10)
        if not race.is_over:
            assert {hit.path for hit in index.find('"boat"', 10)} == {"sub/plan.txt", "sub/plan.docx"}
        index.close()


@case(SWAPPED, Way.WINDOW, report=FOUND, before="failed")
@pytest.mark.parametrize("swapped", ["sub", "sub/plan.txt"])
@pytest.mark.parametrize(("path", "old"), [("sub/plan.txt", "boat"), ("sub/new.txt", "")])
def test_an_edit_changes_nothing_outside(races: Races, swapped: str, path: str, old: str) -> None:
    for race in races(swapped):
        said = race.during(partial(call, edit_file(), race, path=path, old=old, new="ship"))
        assert race.is_untouched(), said
        if not race.is_over:
            assert (race.folder / path).read_text() == "ship"
        assert not list(race.folder.rglob(".qwendesk*"))


@case(SWAPPED, Way.WINDOW, report=FOUND, before="failed")
@pytest.mark.parametrize("swapped", ["sub", "sub/plan.txt"])
@pytest.mark.parametrize("before", [b"old boat", None])
def test_undoing_changes_nothing_outside(races: Races, swapped: str, before: bytes | None, tmp_path: Path) -> None:
    history, call_id = EditHistory(tmp_path / "history"), "0123456789abcdef" * 2
    for race in races(swapped):
        path = race.folder / "sub/plan.txt"
        history.remember(
            call_id, FileEdit("c", str(path), "plan.txt", before, b"boat", str(race.folder)), on_disk=False
        )
        said = race.during(lambda: str(asyncio.run(history.undo(call_id))))
        assert race.is_untouched(), said
        if not race.is_over:
            assert (path.read_bytes() if path.exists() else None) == before


@case(SWAPPED, Way.CLI, report=FOUND, before="failed")
def test_a_call_of_ask_reads_in_the_folder_or_not_at_all(races: Races) -> None:
    said = []
    for race in races("sub"):
        chosen = read_tools(f"files:{race.folder}", yes=True)
        tool = next(each for each in builtin_tools() if each.name == "read_file" and each.name in chosen.names)
        race.settings = chosen.applied(race.settings)
        said.append(race.during(partial(call, tool, race, path="sub/plan.txt")))
    assert said[-1] == "boat"
    assert all(each == "boat" or each.startswith("refused") for each in said), said


def call(tool: Tool, race: Race, **arguments: str) -> str:
    return str(asyncio.run(tool.run(arguments, CallContext("chat", race.settings))))  # type: ignore[arg-type]
