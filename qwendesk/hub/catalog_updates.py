"""What the Hub has said about the catalog's repositories since the catalog was built: asked, merged and saved."""

import datetime
import logging
import threading
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec

from qwendesk.core import paths
from qwendesk.core.file_names import Shard, is_helper_name, is_imatrix_name, is_mmproj_name, quant_in_name
from qwendesk.core.json_file import JsonFile
from qwendesk.hub.catalog import Catalog, load_catalog, part_path
from qwendesk.hub.catalog_schema import (
    CatalogFile,
    FileKind,
    Part,
    Repository,
    SpeedReport,
    Superseded,
    WithdrawnFile,
)
from qwendesk.hub.companion_pairing import QUANT_ORDER

if TYPE_CHECKING:  # importing the Hub's library takes long, and reading saved updates doesn't need it
    from qwendesk.hub.remote import Hub, RemoteFile


# Kinds of files whose changes are counted: those that people download.
_COUNTED = ("model", "mmproj")


class FileUpdate(msgspec.Struct, frozen=True, array_like=True):
    """One file on the Hub at the time it was asked."""

    n_bytes: int
    sha256: str
    """SHA-256; "" if the Hub gave none."""
    date: str
    """ISO 8601: when it was last changed there; "" if unknown."""


class RepositoryUpdate(msgspec.Struct, frozen=True):
    """All files of one repository on one day."""

    day: str
    revision: str
    files: dict[str, FileUpdate]
    replaced: dict[str, str] = {}
    """Hashes of earlier answers, with the paths of their files."""


# By repository.
Updates = dict[str, RepositoryUpdate]


def update_of(files: "Sequence[RemoteFile]", day: str) -> RepositoryUpdate:
    """Return the update to save for an answer of `Hub.files`; `day` is the ISO date of the answer."""
    return RepositoryUpdate(
        day=day,
        revision=files[0].revision if files else "",
        files={file.path: FileUpdate(file.n_bytes, file.sha256 or "", file.date or "") for file in files},
    )


def joined(before: Updates, fresh: Updates) -> Updates:
    """Return both combined. Hashes of `before` that `fresh` no longer has become replaced ones."""
    return before | {repo: _joined(before.get(repo), update) for repo, update in fresh.items()}


def _joined(before: RepositoryUpdate | None, fresh: RepositoryUpdate) -> RepositoryUpdate:
    if before is None:
        return fresh
    now = {file.sha256 for file in fresh.files.values()}
    earlier = before.replaced | {file.sha256: path for path, file in before.files.items() if file.sha256}
    replaced = {sha256: path for sha256, path in earlier.items() if path in fresh.files and sha256 not in now}
    return msgspec.structs.replace(fresh, replaced=replaced)


def updated(catalog: Catalog, updates: Updates) -> Catalog:
    """Return the catalog with the files of `updates`: their sizes, hashes and days, and files that are new.

    Changed hashes are added to the replaced ones, missing files to the deletions. Updates from before the catalog was
    built are ignored.
    """
    newer = updates_in_use(catalog, updates)
    if not newer:
        return catalog
    repositories = []
    # The bytes of a withdrawn file stay known as old ones if the Hub lists other bytes in its place.
    superseded = [
        _replaced_since(each.repo, each.noticed, each.sha256, each.path, newer[each.repo])
        for each in catalog.contents.deletions
        if each.sha256 and _is_back(each, newer)
    ]
    deletions = [each for each in catalog.contents.deletions if not _is_back(each, newer)]
    for repository in catalog.repositories:
        update = newer.get(repository.repo)
        if update is None:
            repositories.append(repository)
            continue
        kept = [file for file in repository.files if file.path in update.files]
        new = find_new_files(catalog, repository, kept, update.files)
        repositories.append(_updated_repository(repository, kept, new, update))
        superseded += [each for file in kept for each in _replaced(repository, file, update)]
        superseded += [
            _replaced_since(repository.repo, repository.seen, *each, update) for each in update.replaced.items()
        ]
        instead = {(file.kind, file.quant): file.path for file in new if file.kind in _COUNTED}
        deletions += [
            WithdrawnFile(repository.repo, file.path, update.day, file.sha256, instead.get((file.kind, file.quant), ""))
            for file in repository.files
            if file not in kept
        ]
    contents = catalog.contents
    return Catalog(
        msgspec.structs.replace(
            contents,
            repositories=_with_mmproj(repositories),
            superseded=(*contents.superseded, *superseded),
            deletions=tuple(deletions),
        )
    )


def with_reports(catalog: Catalog, reports: Sequence[SpeedReport]) -> Catalog:
    """Return the catalog with the user's reports beside its own: every rule about speeds takes both from there."""
    if not reports:
        return catalog
    speeds = (*catalog.contents.speeds, *reports)
    return Catalog(msgspec.structs.replace(catalog.contents, speeds=speeds))


def updates_in_use(catalog: Catalog, updates: Updates) -> Updates:
    """Return the updates that change the catalog: those that are not older than it, and list files."""
    return {repo: update for repo, update in updates.items() if update.day >= catalog.date and update.files}


class CatalogChanges(msgspec.Struct, frozen=True):
    """How many models and vision projectors differ between two states of the catalog. A split model counts as one."""

    n_new: int = 0
    n_replaced: int = 0
    """With other bytes at the same path."""
    n_removed: int = 0


def changes_between(before: Catalog, after: Catalog) -> CatalogChanges:
    """Return what changed from `before` to `after`. A size or hash that was not known before is no change."""
    old, new = _files_by_place(before), _files_by_place(after)
    return CatalogChanges(
        n_new=len(new.keys() - old.keys()),
        n_replaced=sum(_differ(old[place], new[place]) for place in old.keys() & new.keys()),
        n_removed=len(old.keys() - new.keys()),
    )


def _files_by_place(catalog: Catalog) -> dict[tuple[str, str], CatalogFile]:
    return {
        (each.repo, file.path): file for each in catalog.repositories for file in each.files if file.kind in _COUNTED
    }


def _differ(before: CatalogFile, after: CatalogFile) -> bool:
    """Return whether the bytes certainly differ."""
    pairs = zip(before.parts or (_as_part(before),), after.parts or (_as_part(after),), strict=False)
    return any(
        one.sha256 != other.sha256
        if one.sha256 and other.sha256
        else one.is_exact and other.is_exact and one.n_bytes != other.n_bytes
        for one, other in pairs
    )


def _as_part(file: CatalogFile) -> Part:
    return Part(file.n_bytes, file.sha256, file.is_exact)


def _is_back(withdrawn: WithdrawnFile, updates: Updates) -> bool:
    """Return whether the Hub lists a withdrawn file again."""
    update = updates.get(withdrawn.repo)
    return update is not None and withdrawn.path in update.files


def _with_mmproj(repositories: Sequence[Repository]) -> tuple[Repository, ...]:
    """Return the repositories, each with another vision projector of the same lender if its own is gone."""
    files = {each.repo: [file for file in each.files if file.kind == "mmproj"] for each in repositories}

    def paired(repository: Repository) -> Repository:
        there = files.get(repository.mmproj_repo, [])
        if not repository.mmproj_path or any(file.path == repository.mmproj_path for file in there):
            return repository
        known = [file for file in there if file.quant in QUANT_ORDER]
        best = min(known, key=lambda file: QUANT_ORDER.index(file.quant), default=None)
        return msgspec.structs.replace(repository, mmproj_path=best.path if best is not None else "")

    return tuple(map(paired, repositories))


def _updated_repository(
    repository: Repository, kept: Sequence[CatalogFile], new: Sequence[CatalogFile], update: RepositoryUpdate
) -> Repository:
    return msgspec.structs.replace(
        repository,
        seen=update.day,
        revision=update.revision or repository.revision,
        files=tuple(_updated_file(file, update) for file in (*kept, *new)),
    )


def _updated_file(file: CatalogFile, update: RepositoryUpdate) -> CatalogFile:
    now = [update.files.get(part_path(file, index)) for index in range(len(file.parts) or 1)]
    known = [each for each in now if each is not None]
    if len(known) != len(now):
        return file
    return msgspec.structs.replace(
        file,
        n_bytes=sum(each.n_bytes for each in known),
        is_exact=True,
        sha256="" if file.parts else known[0].sha256,
        seen=known[0].date[:10],
        parts=tuple(Part(each.n_bytes, each.sha256, is_exact=True) for each in known) if file.parts else (),
    )


def _replaced(repository: Repository, file: CatalogFile, update: RepositoryUpdate) -> list[Superseded]:
    hashes = [part.sha256 for part in file.parts] or [file.sha256]
    found = []
    for index, before in enumerate(hashes):
        path = part_path(file, index)
        now = update.files.get(path)
        if now is not None and before and now.sha256 and now.sha256 != before:
            seen = file.seen or repository.seen
            found.append(Superseded(before, repository.repo, path, seen, now.sha256, now.date[:10]))
    return found


def _replaced_since(repo: str, seen: str, sha256: str, path: str, update: RepositoryUpdate) -> Superseded:
    now = update.files.get(path)
    by, day = (now.sha256, now.date[:10]) if now is not None else ("", "")
    return Superseded(sha256, repo, path, seen, by, day)


def find_new_files(
    catalog: Catalog, repository: Repository, known: Sequence[CatalogFile], paths: Collection[str]
) -> list[CatalogFile]:
    """Return the files at `paths` of a repository that are not `known`, without sizes and hashes.

    A model is only taken if its name says that it is the repository's model, in a quant that no known file has: another
    file is another variant, of which the catalog has no facts. A split model is taken once all its shards are there.
    """
    listed = {part_path(file, part) for file in known for part in range(len(file.parts) or 1)}
    quants = {file.quant.upper() for file in known if file.kind == "model"}
    found = []
    for path in sorted(paths):
        shard = Shard.parse(path)
        if path in listed or (shard is not None and not (shard.is_first and set(shard.siblings) <= set(paths))):
            continue
        kind, quant = _kind(path), quant_in_name(path)
        if kind == "model" and (not quant or quant in quants or not _is_of(catalog, repository, path)):
            continue
        quants.update({quant} if kind == "model" else ())
        parts = tuple(Part(0) for _ in shard.siblings) if shard is not None else ()
        found.append(CatalogFile(path=path, n_bytes=0, kind=kind, quant=quant, parts=parts))
    return found


def _kind(path: str) -> FileKind:
    if not is_helper_name(path):
        return "model"
    if is_mmproj_name(path):
        return "mmproj"
    return "imatrix" if is_imatrix_name(path) else "draft"


def _is_of(catalog: Catalog, repository: Repository, path: str) -> bool:
    """Return whether the file's name says that it is the repository's model."""
    model = catalog.model_of(path.rpartition("/")[2])
    return model is not None and model.id == repository.model


_logger = logging.getLogger(__name__)
# So many mean that something else answers in place of the Hub, such as the login page of a Wi-Fi.
_BAD_ANSWERS_IN_A_ROW = 2


class LookUp(msgspec.Struct, frozen=True):
    """What the Hub answered."""

    answers: Updates
    problem: str = ""
    """Reason why the rest of the repositories wasn't asked, or why there is no answer at all, in a sentence."""


def look_up(
    repos: Sequence[str],
    known: Updates,
    hub: "Hub",
    day: str,
    stop: threading.Event,
    *,
    gap_s: float,
    on_progress: Callable[[int], None],
) -> LookUp:
    """Ask for the files of each repository; of one whose commit is `known`, only whether it is still the newest.

    Blocks until the last answer or until `stop` is set. Waits `gap_s` between two repositories, and stops at the first
    sign that the Hub can't be reached. A repository with an unexpected answer is skipped; the second one in a row is
    such a sign. `day` is the ISO date of the answers. `on_progress` is called with the number of repositories that were
    asked. Network errors are not raised.
    """
    from qwendesk.hub.network import UNREACHABLE, HubError  # noqa: PLC0415  (imports the Hub's library)

    answers: Updates = {}
    refused, n_bad = "", 0
    for number, repo in enumerate(repos):
        if stop.is_set() or (number and stop.wait(gap_s)):
            break
        before = known.get(repo)
        try:
            files = hub.files_since(repo, before.revision if before is not None else "")
        except HubError as error:
            n_bad = n_bad + 1 if error.kind == "bad_answer" else 0
            if n_bad == _BAD_ANSWERS_IN_A_ROW or (error.kind in UNREACHABLE and not n_bad):
                return LookUp(answers, error.sentence)
            _logger.info("%s was not looked up: %s", repo, error.sentence)
            refused = refused or error.sentence
        else:
            n_bad = 0
            if files is not None:
                answers[repo] = update_of(files, day)
            elif before is not None:
                answers[repo] = msgspec.structs.replace(before, day=day)
        on_progress(number + 1)
    return LookUp(answers, "" if answers else refused)


_UPDATES_FILE, _LAST_FILE, _REPORTS_FILE = "catalog-updates.json", "catalog-look-up.json", "speed-reports.json"
_Time = Annotated[datetime.datetime, msgspec.Meta(tz=True)]


class LastLookUp(msgspec.Struct, frozen=True):
    """When the files of all repositories were last looked up on the Hub."""

    done: _Time | None = None
    """The last time that it succeeded."""
    tried: _Time | None = None
    """The last time, whether it succeeded or not."""
    problem: str = ""
    """Reason why it failed that time, in a sentence; "" if it succeeded."""


class CatalogStore:
    """Owns the catalog and what is saved of it. Its methods read and write files, and may be called on any thread."""

    def __init__(self, load: Callable[[], Catalog] = load_catalog, folder: Path | None = None) -> None:
        """`load` reads the catalog that the app came with. Updates are saved in `folder`, by default the app's."""
        self.folder = folder or paths.data_folder()
        self._load = load
        self._updates_file = JsonFile(self.folder / _UPDATES_FILE, Updates, dict, keep_unusable=False)
        self._last_file = JsonFile(self.folder / _LAST_FILE, LastLookUp, LastLookUp, keep_unusable=False)
        self._reports_file = JsonFile(self.folder / _REPORTS_FILE, tuple[SpeedReport, ...], tuple)
        self._lock = threading.Lock()
        self._original: Catalog | None = None
        self._catalog: Catalog | None = None

    @property
    def catalog(self) -> Catalog:
        """The catalog with all updates and the user's reports. Never blocks once it was read. Raises BadCatalog."""
        if self._catalog is not None:
            return self._catalog
        with self._lock:
            if self._catalog is None:
                self._catalog = self._put_together(self._updates_file.read(), self.read_reports())
            return self._catalog

    @property
    def updates(self) -> Updates:
        """The saved updates that change the catalog. Raises BadCatalog."""
        with self._lock:
            return updates_in_use(self._read_original(), self._updates_file.read())

    def add(self, answers: Updates) -> None:
        """Update the catalog with the Hub's answers about its repositories, and save them. Raises BadCatalog.

        Answers about other repositories are ignored. Without a change, `catalog` stays the same object.
        """
        with self._lock:
            original = self._read_original()
            known = {repo: each for repo, each in answers.items() if original.repository(repo) is not None}
            if not known:
                return
            updates = joined(self._updates_file.read(), known)
            fresh = self._put_together(updates, self.read_reports())
            if self._catalog is None or fresh.contents != self._catalog.contents:
                self._catalog = fresh
            self._updates_file.try_write(updates)

    def read_reports(self) -> tuple[SpeedReport, ...]:
        """Return the speeds that the user has pasted, the latest last."""
        return tuple(report for report in self._reports_file.read() if report.is_pasted and report.tok_s > 0)

    def save_reports(self, reports: tuple[SpeedReport, ...]) -> None:
        """Replace the speeds that the user has pasted, and count them from now on. Raises OSError and BadCatalog."""
        with self._lock:
            self._reports_file.write(reports)
            self._catalog = self._put_together(self._updates_file.read(), reports)

    def read_last(self) -> LastLookUp:
        """Return when the Hub was last asked about all repositories."""
        return self._last_file.read()

    def save_last(self, last: LastLookUp) -> None:
        self._last_file.try_write(last)

    def _put_together(self, updates: Updates, reports: tuple[SpeedReport, ...]) -> Catalog:
        return with_reports(updated(self._read_original(), updates), reports)

    def _read_original(self) -> Catalog:
        if self._original is None:
            self._original = self._load()
        return self._original
