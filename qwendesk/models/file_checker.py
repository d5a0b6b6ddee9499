"""Checks model files by the rules of `hub.verify`, with remembered hashes and the answers of the Hub.

The window and the command line both check files here. Everything in this module blocks, so don't call it on the event
loop's thread.
"""

import datetime
import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from qwendesk.core import paths
from qwendesk.core.errors import QwenDeskError
from qwendesk.core.input_files import OnlineOnlyFile
from qwendesk.core.translation import tr
from qwendesk.hub.catalog import Catalog
from qwendesk.hub.catalog_updates import CatalogStore, update_of
from qwendesk.hub.evidence import Evidence, FileEvidence, Upstream, gather, model_files, shards_of, with_duplicates
from qwendesk.hub.file_hashes import HashMemory, hash_file
from qwendesk.hub.file_origin import origin_of
from qwendesk.hub.findings import Finding
from qwendesk.hub.gguf_source import online_only_text
from qwendesk.hub.header_cache import HeaderCache
from qwendesk.hub.library import LibraryModel

if TYPE_CHECKING:  # importing the Hub's library takes half a second, and offline checks don't need it
    from qwendesk.hub.remote import Hub

_logger = logging.getLogger(__name__)
_HASH_FILE = "hashes.json"
_PAIRING_CODES = ("no-mmproj", "mmproj-mismatch")


class FileSet(msgspec.Struct, frozen=True):
    """A model file, or the shards of a split model that are on disk."""

    paths: tuple[str, ...]
    """The first one names the set."""
    has_mmproj: bool = False
    """True if the library has found its vision projector, which may be in another folder."""

    @property
    def path(self) -> str:
        return self.paths[0]


class ModelCheck(msgspec.Struct, frozen=True, kw_only=True):
    """The result of checking a file set."""

    path: str
    findings: tuple[Finding, ...] = ()
    """Worst first."""
    is_hashed: bool = False
    """True if the SHA-256 of every file was computed since the file last changed."""
    is_confirmed: bool = False
    """True if the hashes are those stated by the Hub, the catalog or the record of the download."""
    problem: str = ""
    """Reason why the file could not be read, in a sentence."""


class FileChecker:
    """Checks file sets, on any thread but one at a time."""

    def __init__(self, headers: HeaderCache, catalog: CatalogStore) -> None:
        self._headers, self._catalog = headers, catalog
        self._lock = threading.Lock()
        self._memory: HashMemory | None = None
        self._upstream: dict[str, tuple[int, Upstream]] = {}
        """By path: the file's modification time when the Hub was asked about it, and the answer."""
        self._hashed: dict[str, tuple[FileSet, Evidence]] = {}
        """File sets whose hashes are known, without their headers, to find others with the same bytes."""

    def check(self, sets: Sequence[FileSet], gone: Iterable[str] = ()) -> list[ModelCheck]:
        """Check `sets` by headers, sizes, records and remembered hashes. Sets at the paths `gone` are forgotten first.

        The result begins with the checks of `sets`, in their order. Checks of further sets follow if their findings
        may have changed because a copy of them among `sets` has appeared, changed or disappeared.
        """
        with self._lock:
            for path in gone:
                self._hashed.pop(path, None)
                self._upstream.pop(path, None)
            before = {path for each in sets for path in self._same_bytes(each.path)}
            for each in sets:
                self._look_up_hashes(each)
            after = {path for each in sets for path in self._same_bytes(each.path)}
            others = (before | after) - {each.path for each in sets}
            again = [self._hashed[path][0] for path in others if path in self._hashed]
            return [self._check(each) for each in (*sets, *again)]

    def recall(self, path: Path) -> str | None:
        """Return the SHA-256 of the file if it hasn't changed since it was hashed. Raises OSError."""
        with self._lock:
            return self._load_memory().recall(path)

    def remember(self, hashes: Iterable[tuple[Path, str]]) -> None:
        """Save the hashes of files that haven't changed since they were computed."""
        with self._lock:
            memory = self._load_memory()
            try:
                for path, sha256 in hashes:
                    memory.remember(path, sha256, before=path.stat())
                memory.save()
            except OSError as error:
                _logger.warning("Hashes of model files could not be saved: %s", error)

    def sha256_of(self, path: Path) -> str:
        """Return the SHA-256 of a file. Reads it if it has changed since it was hashed. Blocks. Raises OSError."""
        known = self.recall(path)
        if known is None:
            known = hash_file(path)
            self.remember([(path, known)])
        return known

    def ask(self, sets: Sequence[FileSet], connect: "Callable[[], Hub]") -> tuple[str, ...]:
        """Ask the Hub about `sets` and remember its answers. Return sentences about what it didn't answer."""
        from qwendesk.hub.hub_comparison import compare_with_hub  # noqa: PLC0415  (imports the Hub's library)

        evidence = [_origins_of(each) for each in sets]
        if not any(each.origin.repo and each.origin.path for each in evidence):
            return ()
        asked = compare_with_hub(evidence, connect(), self._catalog.catalog)
        today = datetime.datetime.now(datetime.UTC).date().isoformat()
        with self._lock:
            for each in asked.everything:
                for file in each.files:
                    if file.upstream is not None:
                        self._upstream[file.path] = (_mtime_ns(file.path), file.upstream)
        self._catalog.add({repo: update_of(found, today) for repo, found in asked.files.items()})
        return asked.problems

    def _check(self, files: FileSet) -> ModelCheck:
        # Imported only now, on a thread of the checks: the rules are long, and the window is open by then.
        from qwendesk.hub.verify import verify  # noqa: PLC0415

        try:
            evidence = self._gather(files)
        except OSError as error:
            return ModelCheck(path=files.path, problem=unreadable(files.path, error).sentence)
        copies = [self._hashed[path][1] for path in self._same_bytes(files.path)]
        if copies:
            evidence = with_duplicates([evidence, *copies])[0]
        catalog = self._catalog.catalog
        is_hashed = all(file.sha256 for file in evidence.files)
        return ModelCheck(
            path=files.path,
            findings=tuple(each for each in verify(evidence, catalog) if not _is_paired_elsewhere(each, files)),
            is_hashed=is_hashed,
            is_confirmed=is_hashed and all(_is_confirmed(file, catalog) for file in evidence.files),
        )

    def _gather(self, files: FileSet) -> Evidence:
        evidence = gather(Path(files.path), self._headers)
        memory = self._load_memory()
        found = tuple(
            msgspec.structs.replace(
                file, sha256=memory.recall(Path(file.path)) or "", upstream=self._upstream_of(file.path)
            )
            for file in evidence.files
        )
        return msgspec.structs.replace(evidence, files=found)

    def _look_up_hashes(self, files: FileSet) -> None:
        """Add the set to the hashed ones if it is complete and its hashes are remembered."""
        self._hashed.pop(files.path, None)
        present, missing = shards_of(Path(files.path))
        memory = self._load_memory()
        try:
            hashes = [memory.recall(path) for path in present]
        except OSError:
            return
        if missing or not all(hashes):
            return
        found = tuple(
            FileEvidence(path=str(path), n_bytes=0, sha256=sha256 or "")
            for path, sha256 in zip(present, hashes, strict=True)
        )
        self._hashed[files.path] = (files, Evidence(files=found))

    def _same_bytes(self, path: str) -> list[str]:
        """Return the paths of the other sets with the same hashes."""
        if path not in self._hashed:
            return []
        hashes = _hashes(self._hashed[path][1])
        return [
            other
            for other, (_, evidence) in self._hashed.items()
            if other != path and _hashes(evidence) == hashes and Path(other).exists()
        ]

    def _upstream_of(self, path: str) -> Upstream | None:
        mtime_ns, upstream = self._upstream.get(path, (0, None))
        return upstream if upstream is not None and mtime_ns == _mtime_ns(path) else None

    def _load_memory(self) -> HashMemory:
        if self._memory is None:
            self._memory = HashMemory(paths.cache_folder() / _HASH_FILE)
        return self._memory


def file_set(model: LibraryModel) -> FileSet:
    return FileSet(tuple(file.path for file in model.files), has_mmproj=model.mmproj is not None)


def file_sets_at(wanted: Iterable[Path]) -> list[FileSet]:
    """Return the model files that `wanted` are or contain, each set once. Raises QwenDeskError for unreadable ones."""
    found: dict[str, FileSet] = {}
    for each in wanted:
        try:
            each.stat()
            for path in model_files(each):
                present, _ = shards_of(path)
                found.setdefault(str(present[0]), FileSet(tuple(str(shard) for shard in present)))
        except OSError as error:
            raise unreadable(str(each), error) from error
    return list(found.values())


def unreadable(path: str, error: OSError) -> QwenDeskError:
    """Return the error to show when the file at `path` can't be read."""
    if isinstance(error, OnlineOnlyFile):
        return QwenDeskError(tr("Only in the cloud"), online_only_text(Path(path)))
    reason = error.strerror or str(error)
    return QwenDeskError(
        tr("Can't read the file"),
        tr("{0} can't be read: {1}. Check the path and its permissions.", Path(path).name, reason),
    )


def _origins_of(files: FileSet) -> Evidence:
    """Return where each file came from, without reading it."""
    return Evidence(
        files=tuple(
            FileEvidence(path=path, n_bytes=_size(path), origin=origin_of(Path(path).absolute()))
            for path in files.paths
        )
    )


def _hashes(evidence: Evidence) -> list[str]:
    return [file.sha256 for file in evidence.files]


def _is_confirmed(file: FileEvidence, catalog: Catalog) -> bool:
    """Return whether the record of the download, the Hub or the catalog states the file's hash."""
    there = file.upstream
    return (
        file.sha256 == file.origin.sha256
        or (there is not None and file.sha256 == there.sha256)
        or bool(catalog.find_by_sha256(file.sha256))
    )


def _is_paired_elsewhere(finding: Finding, files: FileSet) -> bool:
    """Return whether `finding` reports a missing vision projector that the library has found in another folder.

    The rules of `hub.verify` look only in the model's folder.
    """
    return finding.code in _PAIRING_CODES and files.has_mmproj


def _size(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except OSError:
        return 0


def _mtime_ns(path: str) -> int:
    try:
        return Path(path).stat().st_mtime_ns
    except OSError:
        return -1
