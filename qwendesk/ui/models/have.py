"""Which files are on this PC, and which are on their way: what a card's button offers depends on it."""

from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Final, Literal

import msgspec
from PySide6.QtWidgets import QPushButton

from qwendesk.hub.library import Library, LibraryModel
from qwendesk.hub.queue_state import DownloadItem
from qwendesk.ui.kit.text import mark, tr

Presence = Literal["away", "coming", "paused", "failed", "here", "flagged"]
File = tuple[str, str]
"""Repository, and path in it."""
_WORDS: Final[Mapping[Presence, tuple[str, str]]] = MappingProxyType(
    {
        "away": (mark("Download"), mark("Fetch it from Hugging Face")),
        "coming": (mark("Coming"), mark("It is being downloaded, or waits for its turn: see Downloads")),
        "paused": (mark("Resume"), mark("The download is paused: go on with it")),
        "failed": (mark("Retry"), mark("The download failed: {0}")),
        "here": (mark("Use"), mark("It is on this PC: load it")),
        "flagged": (mark("Fix"), mark("It is on this PC and something is wrong with it: see My models")),
    }
)


class Stopped(msgspec.Struct, frozen=True):
    """A download that does not go on by itself."""

    id: str
    is_failed: bool
    sentence: str = ""


class Have(msgspec.Struct, frozen=True):
    """Files by repository and path within it."""

    here: Mapping[File, str] = MappingProxyType({})
    """Where on disk."""
    coming: frozenset[File] = frozenset()
    stopped: Mapping[File, Stopped] = MappingProxyType({})
    flagged: frozenset[File] = frozenset()
    """On this PC, with wrong bytes, or repaired by their uploader since."""

    def presence(self, repo: str, path: str) -> Presence:
        """A file that is here and wrong may be fetched anew just now: then that is what is said."""
        file = (repo, path)
        if file in self.coming:
            return "coming"
        if file in self.stopped:
            return "failed" if self.stopped[file].is_failed else "paused"
        if file in self.flagged:
            return "flagged"
        return "here" if file in self.here else "away"

    def show_on(self, button: QPushButton, repo: str, path: str) -> None:
        """The next step with this file, in one word, and why in the tooltip."""
        presence = self.presence(repo, path)
        word, tip = _WORDS[presence]
        stopped = self.stopped.get((repo, path))
        button.setText(tr(word))
        button.setToolTip(tr(tip, stopped.sentence if stopped is not None else ""))
        button.setAccessibleName(tr("{0}: {1}", tr(word), PurePosixPath(path).name))
        button.setEnabled(presence != "coming")


def have_of(library: Library, downloads: Iterable[DownloadItem] = (), flagged: Iterable[LibraryModel] = ()) -> Have:
    """Only models that can be loaded count as here. `downloads` are those that are not done."""
    here = {
        (model.repo, model.repo_path): model.path
        for model in library.models
        if model.repo and model.repo_path and not model.problem
    }
    coming: set[File] = set()
    stopped: dict[File, Stopped] = {}
    for item in downloads:
        first = item.kept.files[0].file
        if item.kept.state in ("paused", "failed"):
            stopped[(first.repo, first.path)] = Stopped(item.kept.id, item.kept.state == "failed", item.kept.sentence)
        else:
            coming.add((first.repo, first.path))
    bad = frozenset((model.repo, model.repo_path) for model in flagged)
    return Have(MappingProxyType(here), frozenset(coming), MappingProxyType(stopped), bad)
