"""The models on this PC for widgets: library, checks, fixes and moves as one list; intents become coroutines."""

from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec
from PySide6.QtCore import QObject, QTimer, Signal

from qwendesk.core.errors import QwenDeskError
from qwendesk.hub.deleting import Deletion, NotDeleted
from qwendesk.hub.findings import Fix
from qwendesk.hub.folders import ModelFolders
from qwendesk.hub.importing import How, NotImported
from qwendesk.hub.library import LibraryModel
from qwendesk.services.models.checks import CheckNews, ChecksService
from qwendesk.services.models.downloads import DownloadsService
from qwendesk.services.models.fixes import FixDone, FixesService, FixStarted, FixToAgree, FixToChoose
from qwendesk.services.models.loading import Loading
from qwendesk.services.models.moves import MovesService
from qwendesk.services.models.service import ModelsService
from qwendesk.services.models.states import ModelState, state_of
from qwendesk.services.models.templates import TemplatesService
from qwendesk.ui.bridges.repaint import REPAINT_EVERY_MS
from qwendesk.ui.kit.tasks import Tasks
from qwendesk.ui.kit.text import tr


class Work(msgspec.Struct, frozen=True):
    """What is being done with a model right now."""

    kind: Literal["check", "move", "download"]
    n_done: int
    n_bytes: int
    """0 while it waits."""


class ModelEntry(msgspec.Struct, frozen=True):
    """One model as the page shows it."""

    model: LibraryModel
    state: ModelState
    work: Work | None = None
    is_companion: bool = False
    """A picture file or a helper, which is not loaded by itself."""


_NOT_URGENT = 2


def _urgency(entry: ModelEntry) -> int:
    """0 for wrong bytes, 1 for what was repaired since, as far as something can be done about it."""
    if not entry.state.is_alert or not entry.state.action:
        return _NOT_URGENT
    return 0 if entry.state.tone == "bad" else 1


class ModelsServices(msgspec.Struct, frozen=True):
    """All that stands behind the list."""

    models: ModelsService
    checks: ChecksService
    fixes: FixesService
    moves: MovesService
    templates: TemplatesService
    downloads: DownloadsService
    loading: Loading


class ModelsBridge(QObject):
    """The models on this PC for widgets."""

    changed = Signal()
    """`entries` or `folders` are others now; announced every 30 ms at most."""
    noticed = Signal(str)
    """A sentence about what was asked for last."""
    deletion_asked = Signal(object)
    """A Deletion to agree to; `delete` does it."""
    trash_failed = Signal(object, str)
    """The same, when the trash did not take it, and why."""
    search_asked = Signal(str)
    """Words to look for on Hugging Face."""
    load_asked = Signal(object)
    """LoadOptions of a model that was chosen."""

    def __init__(self, services: ModelsServices, tasks: Tasks, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._services, self._tasks = services, tasks
        self._entries: tuple[ModelEntry, ...] | None = None
        self._was_scanned = False
        self._timer = QTimer(self, singleShot=True, interval=REPAINT_EVERY_MS)
        self._timer.timeout.connect(self.changed)
        self._endings = (
            services.models.subscribe_library(self._on_news),
            services.models.subscribe_folders(self._on_news),
            services.checks.subscribe(self._on_check),
            services.moves.subscribe(self._on_news),
            services.templates.subscribe(self._on_news),
            services.downloads.subscribe(self._on_news),
        )

    @property
    def entries(self) -> tuple[ModelEntry, ...]:
        """What needs attention first; then the models by name, picture files, and helpers of no model."""
        if self._entries is None:
            self._entries = tuple(sorted(self._made(), key=_urgency))
        return self._entries

    def free_bytes(self, folder: str) -> int | None:
        """Free on the drive of one of our folders; None when nobody knows."""
        return self._services.models.free_bytes(folder)

    @property
    def alerts(self) -> tuple[ModelEntry, ...]:
        """Those with wrong bytes or a repaired upload, the worst first."""
        return tuple(entry for entry in self.entries if _urgency(entry) < _NOT_URGENT)

    @property
    def is_looking(self) -> bool:
        """Nothing is known yet: the first scan is under way."""
        return not self._was_scanned

    @property
    def folders(self) -> ModelFolders:
        return self._services.models.folders

    def refresh(self) -> None:
        """Look at the folders now."""
        self._start(self._refresh())

    def load(self, path: str) -> None:
        self._start(self._load(path))

    def verify(self, path: str) -> None:
        self._start(self._verify(path))

    def cancel(self, path: str) -> None:
        """Stop the check or the move of this model."""
        self._services.checks.cancel(path)
        self._services.moves.cancel(path)

    def compare_all(self) -> None:
        """Ask Hugging Face what it has now."""
        self._start(self._compare_all())

    def fix(self, path: str, fix: Fix) -> None:
        self._start(self._fix(path, fix))

    def ask_to_delete(self, path: str) -> None:
        self._start(self._ask_to_delete(path))

    def delete(self, deletion: Deletion, *, permanently: bool = False) -> None:
        self._start(self._delete(deletion, permanently=permanently))

    def bring(self, path: str, folder: str, how: How) -> None:
        """Move or copy into one of our folders; another folder becomes one of ours first."""
        self._start(self._bring(path, str(Path(folder)), how))

    def add_folder(self, folder: str) -> None:
        """Use the models in this folder where they are."""
        folders = self.folders
        if folder not in (*folders.added, *folders.models):
            self._start(self._set_folders(msgspec.structs.replace(folders, added=(*folders.added, folder))))

    def remove_folder(self, folder: str) -> None:
        """Look at an added folder no more. Its files stay."""
        left = tuple(each for each in self.folders.added if each != folder)
        self._start(self._set_folders(msgspec.structs.replace(self.folders, added=left)))

    def show_other_apps(self, *, wanted: bool) -> None:
        if wanted != self.folders.other_apps:
            self._start(self._set_folders(msgspec.structs.replace(self.folders, other_apps=wanted)))

    def close(self) -> None:
        """No news any more."""
        for end in self._endings:
            end()
        self._timer.stop()

    def _made(self) -> Iterator[ModelEntry]:
        library, checks = self._services.models.library, self._services.checks.checks
        paired = {model.mmproj.path for model in library.models if model.mmproj is not None}
        loose = [each for each in library.mmprojs if each.path not in paired]
        fetching = self._fetching()
        companions = {each.path for each in (*loose, *library.others)}
        for model in (*library.models, *loose, *library.others):
            state = state_of(model, library, checks, templates=self._services.templates.repos)
            yield ModelEntry(model, state, self._work(model, state, fetching), model.path in companions)

    def _work(self, model: LibraryModel, state: ModelState, fetching: dict[tuple[str, str], Work]) -> Work | None:
        check, move = self._services.checks.running(model.path), self._services.moves.running(model.path)
        if move is not None:
            return Work("move", move.n_done, move.n_bytes)
        if check is not None:
            return Work("check", check.n_done, check.n_bytes)
        fixes = (state.fix, *(note.fix for note in state.notes))
        return next((fetching[fix.repo, fix.path] for fix in fixes if fix and (fix.repo, fix.path) in fetching), None)

    def _fetching(self) -> dict[tuple[str, str], Work]:
        return {
            (each.file.repo, each.file.path): Work("download", item.n_done, item.kept.n_bytes)
            for item in self._services.downloads.state.unfinished
            if item.kept.state in ("queued", "running")
            for each in item.kept.files
        }

    async def _refresh(self) -> None:
        await self._services.models.refresh()
        self._was_scanned = True
        self._on_news(None)

    async def _load(self, path: str) -> None:
        self.load_asked.emit(await self._services.loading.options_for(Path(path)))

    async def _verify(self, path: str) -> None:
        self._tell_all(await self._services.checks.verify(path))

    async def _compare_all(self) -> None:
        troubles = await self._services.checks.ask_hub()
        self._tell_all(troubles or (tr("All models were compared with what Hugging Face has now."),))

    async def _fix(self, path: str, fix: Fix) -> None:
        match await self._services.fixes.apply(self._services.models.find(path), fix):
            case FixStarted(sentence=sentence) | FixDone(sentence=sentence):
                self.noticed.emit(sentence)
            case FixToAgree(deletion=deletion):
                self.deletion_asked.emit(deletion)
            case FixToChoose(search=search):
                self.search_asked.emit(search)

    async def _ask_to_delete(self, path: str) -> None:
        outcome = self._services.models.deletion_of(self._services.models.find(path))
        if isinstance(outcome, NotDeleted):
            self.noticed.emit(outcome.sentence)
        else:
            self.deletion_asked.emit(outcome)

    async def _delete(self, deletion: Deletion, *, permanently: bool) -> None:
        outcome = await self._services.models.delete(deletion, permanently=permanently)
        if not isinstance(outcome, NotDeleted):
            name = deletion.name
            self.noticed.emit(tr("{0} is in the trash.", name) if outcome.in_trash else tr("{0} is deleted.", name))
        elif outcome.trash_failed:
            self.trash_failed.emit(deletion, outcome.sentence)
        else:
            self.noticed.emit(outcome.sentence)

    async def _bring(self, path: str, folder: str, how: How) -> None:
        if folder not in self.folders.models:
            added = tuple(each for each in self.folders.added if each != folder)
            folders = msgspec.structs.replace(self.folders, models=(*self.folders.models, folder), added=added)
            await self._services.models.set_folders(folders)
        model = self._services.models.find(path)
        outcome = await self._services.moves.bring(model, Path(folder), how)
        if not isinstance(outcome, NotImported):
            text = tr("{0} is in {1} now.", model.name, folder)
            left = ", ".join(outcome.left_behind)
            self.noticed.emit(f"{text} " + tr("Still here as well: {0}.", left) if left else text)
        elif not outcome.cancelled:
            self.noticed.emit(outcome.sentence)

    async def _set_folders(self, folders: ModelFolders) -> None:
        await self._services.models.set_folders(folders)

    def _tell_all(self, sentences: tuple[str, ...]) -> None:
        if sentences:
            self.noticed.emit(" ".join(dict.fromkeys(sentences)))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        self._tasks.start(self._said(work))

    async def _said(self, work: Coroutine[Any, Any, None]) -> None:
        """What is refused is said where it was asked for."""
        try:
            await work
        except QwenDeskError as error:
            self.noticed.emit(error.sentence)

    def _on_check(self, news: CheckNews) -> None:
        self._on_news(news)

    def _on_news(self, _news: object) -> None:
        self._was_scanned = self._was_scanned or bool(self._services.models.library.everything)
        self._entries = None
        if not self._timer.isActive():
            self._timer.start()
