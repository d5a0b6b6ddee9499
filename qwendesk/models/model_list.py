"""The list of models on this PC: each with its state, and with the check, move or download in progress."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Literal

import msgspec

from qwendesk.core.observed import Observed
from qwendesk.hub.download_queue import DownloadItem
from qwendesk.hub.library import Library, LibraryModel
from qwendesk.models.checks import ChecksService
from qwendesk.models.downloads import DownloadsService
from qwendesk.models.library_service import LibraryService
from qwendesk.models.model_state import ModelState, state_of
from qwendesk.models.moves import MovesService
from qwendesk.models.templates import TemplatesService

# Progress is announced this often at most: about two frames of a 60 Hz screen.
_PROGRESS_S = 0.03
_NOT_URGENT = 2


class ModelProgress(msgspec.Struct, frozen=True):
    """Progress of a check, move or download of a model."""

    kind: Literal["check", "move", "download"]
    n_done: int
    n_bytes: int
    """0 while it waits."""


class ModelEntry(msgspec.Struct, frozen=True):
    """One model of the list."""

    model: LibraryModel
    state: ModelState
    progress: ModelProgress | None = None
    is_companion: bool = False
    """A vision projector or another file that can't be loaded alone."""

    @property
    def is_alert(self) -> bool:
        """Whether the file is damaged or outdated, and something can be done about it."""
        return _urgency(self) < _NOT_URGENT


# A repository and a path in it.
HubFile = tuple[str, str]
# absent: not on this PC. flagged: on this PC, but damaged or outdated.
FileStatus = Literal["absent", "downloading", "paused", "failed", "present", "flagged"]


class StoppedDownload(msgspec.Struct, frozen=True):
    """A paused or failed download."""

    id: str
    is_failed: bool
    sentence: str = ""


class FileStatuses(msgspec.Struct, frozen=True):
    """Which files of the Hub are on this PC, or being downloaded."""

    present: Mapping[HubFile, str] = MappingProxyType({})
    """The path on disk."""
    downloading: frozenset[HubFile] = frozenset()
    stopped: Mapping[HubFile, StoppedDownload] = MappingProxyType({})
    flagged: frozenset[HubFile] = frozenset()

    def status(self, repo: str, path: str) -> FileStatus:
        """Return the status of a file. A download has precedence over the file that it replaces."""
        file = (repo, path)
        if file in self.downloading:
            return "downloading"
        if file in self.stopped:
            return "failed" if self.stopped[file].is_failed else "paused"
        if file in self.flagged:
            return "flagged"
        return "present" if file in self.present else "absent"


class ModelListState(msgspec.Struct, frozen=True):
    """Everything that the list shows."""

    entries: tuple[ModelEntry, ...] = ()
    """Alerts first, then the models by name, vision projectors without a model, and other files."""
    statuses: FileStatuses = FileStatuses()

    @property
    def alerts(self) -> tuple[ModelEntry, ...]:
        """The entries that need attention, the worst first."""
        return tuple(entry for entry in self.entries if entry.is_alert)


class ModelList:
    """Joins the library, its checks, and the running moves and downloads. Lives on the event loop's thread."""

    def __init__(
        self,
        library: LibraryService,
        checks: ChecksService,
        moves: MovesService,
        templates: TemplatesService,
        downloads: DownloadsService,
    ) -> None:
        self._library, self._checks, self._moves = library, checks, moves
        self._templates, self._downloads = templates, downloads
        self.state = Observed(ModelListState())
        self._later: asyncio.TimerHandle | None = None
        self._unsubscribes: tuple[Callable[[], None], ...] = (
            library.state.subscribe_field(lambda state: state.library, self._update),
            checks.state.subscribe_field(lambda state: state.checks, self._update),
            checks.state.subscribe_field(lambda state: state.running, self._update_soon),
            moves.running.subscribe(self._update_soon),
            templates.repos.subscribe(self._update),
            downloads.state.subscribe(self._update_soon),
        )
        self._update()

    def close(self) -> None:
        for unsubscribe in self._unsubscribes:
            unsubscribe()
        if self._later is not None:
            self._later.cancel()

    def _update_soon(self, _event: object) -> None:
        if self._later is None:
            self._later = asyncio.get_running_loop().call_later(_PROGRESS_S, self._update)

    def _update(self, _event: object = None) -> None:
        if self._later is not None:
            self._later.cancel()
            self._later = None
        entries = tuple(sorted(self._entries(), key=_urgency))
        unfinished = self._downloads.state.value.unfinished
        self.state.set(ModelListState(entries, file_statuses(self._library.current, unfinished, entries)))

    def _entries(self) -> Iterator[ModelEntry]:
        library, checks = self._library.current, self._checks.state.value.checks
        paired = {model.mmproj.path for model in library.models if model.mmproj is not None}
        lone_projectors = [each for each in library.mmprojs if each.path not in paired]
        downloading = self._downloading()
        companions = {each.path for each in (*lone_projectors, *library.others)}
        for model in (*library.models, *lone_projectors, *library.others):
            state = state_of(model, library, checks, templates=self._templates.repos.value)
            yield ModelEntry(model, state, self._progress(model, state, downloading), model.path in companions)

    def _progress(
        self, model: LibraryModel, state: ModelState, downloading: Mapping[HubFile, ModelProgress]
    ) -> ModelProgress | None:
        move = self._moves.running.value.get(model.path)
        if move is not None:
            return ModelProgress("move", move.n_done, move.n_bytes)
        check = self._checks.state.value.running.get(model.path)
        if check is not None:
            return ModelProgress("check", check.n_done, check.n_bytes)
        fixes = (state.fix, *(note.fix for note in state.notes))
        files = ((fix.repo, fix.path) for fix in fixes if fix is not None)
        return next((downloading[file] for file in files if file in downloading), None)

    def _downloading(self) -> dict[HubFile, ModelProgress]:
        return {
            (each.file.repo, each.file.path): ModelProgress("download", item.n_done, item.saved.n_bytes)
            for item in self._downloads.state.value.unfinished
            if item.saved.state in ("queued", "running")
            for each in item.saved.files
        }


def file_statuses(
    library: Library, unfinished: tuple[DownloadItem, ...], entries: tuple[ModelEntry, ...]
) -> FileStatuses:
    """Return the statuses of the Hub's files known on this PC. Only models that can be loaded count as present."""
    present = {
        (model.repo, model.repo_path): model.path
        for model in library.models
        if model.repo and model.repo_path and not model.problem
    }
    downloading: set[HubFile] = set()
    stopped: dict[HubFile, StoppedDownload] = {}
    for item in unfinished:
        first = item.saved.files[0].file
        if item.saved.state in ("paused", "failed"):
            is_failed = item.saved.state == "failed"
            stopped[first.repo, first.path] = StoppedDownload(item.saved.id, is_failed, item.saved.sentence)
        else:
            downloading.add((first.repo, first.path))
    flagged = frozenset((entry.model.repo, entry.model.repo_path) for entry in entries if entry.is_alert)
    return FileStatuses(MappingProxyType(present), frozenset(downloading), MappingProxyType(stopped), flagged)


def _urgency(entry: ModelEntry) -> int:
    """Return 0 for a damaged file, 1 for an outdated one, and `_NOT_URGENT` for others or if nothing can be done."""
    if not entry.state.is_alert or not entry.state.action:
        return _NOT_URGENT
    return 0 if entry.state.tone == "bad" else 1
