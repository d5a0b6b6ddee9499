"""Reads model files and judges them by the rules of `hub.verify`; remembers hashes and what the Hub said.

Everything here blocks, and is called on other threads than the event loop's.
"""

import datetime
import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from qwendesk.core import paths
from qwendesk.hub.catalog import Catalog
from qwendesk.hub.catalog_updates import joined, load_updated_catalog, read_updates, update_of, updated, write_updates
from qwendesk.hub.evidence import Evidence, FileEvidence, gather, with_duplicates
from qwendesk.hub.findings import Finding
from qwendesk.hub.hashing import HashMemory
from qwendesk.hub.library import LibraryModel
from qwendesk.hub.origin import origin_of
from qwendesk.hub.upstream import Upstream
from qwendesk.hub.verify import verify

if TYPE_CHECKING:  # the Hub's library takes half a second to import, and judging offline does not need it
    from qwendesk.hub.asking import AsksHub

_logger = logging.getLogger(__name__)
_HASH_FILE = "hashes.json"
_ABOUT_PAIRING = ("no-mmproj", "mmproj-mismatch")


class ModelCheck(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one model of the library: of a file, or of a whole split set."""

    path: str
    findings: tuple[Finding, ...] = ()
    """The worst first."""
    is_hashed: bool = False
    """The SHA-256 of every file was computed from the bytes that are there now."""
    is_confirmed: bool = False
    """Those are the bytes that the Hub, the catalog or the record of the download names."""
    problem: str = ""
    """Why the file could not be looked at, in a sentence."""


class Judge:
    """Judges models. For any thread; one works at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._catalog: Catalog | None = None
        self._memory: HashMemory | None = None
        self._upstream: dict[str, tuple[int, Upstream]] = {}
        """By a file's path: its modification time when the Hub was asked about it, and the answer."""
        self._hashed: dict[str, Evidence] = {}
        """Models whose hashes are known, without their headers: to find others with the same bytes."""

    @property
    def catalog(self) -> Catalog:
        """With what the Hub said since it was built. Raises BadCatalog."""
        with self._lock:
            return self._load_catalog()

    def judge(self, models: Sequence[LibraryModel]) -> list[ModelCheck]:
        """A check of each of `models`, from headers, sizes, records and remembered hashes."""
        with self._lock:
            return [self._judged(model) for model in models]

    def same_bytes(self, path: str) -> tuple[str, ...]:
        """Paths of the other models that were found to hold the same bytes as the one at `path`."""
        with self._lock:
            own = self._hashed.get(path)
            return () if own is None else tuple(each.path for each in self._copies_of(own))

    def forget(self, gone: Iterable[str]) -> None:
        """These models are not there any more."""
        with self._lock:
            for path in gone:
                self._hashed.pop(path, None)
                self._upstream.pop(path, None)

    def recall(self, path: Path) -> str | None:
        """The SHA-256 of the file at `path` if it was hashed as it is now. Raises OSError."""
        with self._lock:
            return self._load_memory().recall(path)

    def remember(self, hashes: Iterable[tuple[Path, str]]) -> None:
        """Keeps what was computed of files that have not changed since, for the next start too."""
        with self._lock:
            memory = self._load_memory()
            try:
                for path, sha256 in hashes:
                    memory.remember(path, sha256, before=path.stat())
                memory.save()
            except OSError as error:
                _logger.warning("Hashes of model files could not be remembered: %s", error)

    def ask(self, models: Sequence[LibraryModel], connect: "Callable[[], AsksHub]") -> tuple[str, ...]:
        """Asks the Hub about `models` and remembers what it says; returns sentences about what it did not answer."""
        from qwendesk.hub.asking import ask_hub  # noqa: PLC0415  (imports the Hub's library)

        evidence = [_records_of(model) for model in models]
        if not any(each.origin.repo and each.origin.path for each in evidence):
            return ()
        asked = ask_hub(evidence, connect(), self.catalog)
        today = datetime.datetime.now(datetime.UTC).date().isoformat()
        with self._lock:
            for each in asked.everything:
                for file in each.files:
                    if file.upstream is not None:
                        self._upstream[file.path] = (_mtime_ns(file.path), file.upstream)
            catalog = self._load_catalog()
            known = {repo: found for repo, found in asked.files.items() if catalog.repository(repo) is not None}
            updates = joined(read_updates(), {repo: update_of(found, today) for repo, found in known.items()})
            self._catalog = updated(catalog, updates)
            try:
                write_updates(updates)
            except OSError as error:
                _logger.warning("What the Hub says cannot be remembered: %s", error)
        return asked.troubles

    def _judged(self, model: LibraryModel) -> ModelCheck:
        try:
            evidence = self._gathered(model)
        except OSError as error:
            sentence = f"{Path(model.path).name} cannot be read: {error.strerror or error}."
            return ModelCheck(path=model.path, problem=sentence)
        is_hashed = all(file.sha256 for file in evidence.files)
        if is_hashed and not evidence.missing:
            self._hashed[model.path] = msgspec.structs.replace(
                evidence, facts=None, neighbours=(), files=tuple(_without_header(file) for file in evidence.files)
            )
            evidence = with_duplicates([evidence, *self._copies_of(self._hashed[model.path])])[0]
        else:
            self._hashed.pop(model.path, None)
        catalog = self._load_catalog()
        return ModelCheck(
            path=model.path,
            findings=tuple(each for each in verify(evidence, catalog) if not _is_paired_anyway(each, model)),
            is_hashed=is_hashed,
            is_confirmed=is_hashed and all(_is_named(file, catalog) for file in evidence.files),
        )

    def _gathered(self, model: LibraryModel) -> Evidence:
        evidence = gather(Path(model.path))
        memory = self._load_memory()
        files = tuple(
            msgspec.structs.replace(
                file, sha256=memory.recall(Path(file.path)) or "", upstream=self._upstream_of(file.path)
            )
            for file in evidence.files
        )
        return msgspec.structs.replace(evidence, files=files)

    def _upstream_of(self, path: str) -> Upstream | None:
        mtime_ns, upstream = self._upstream.get(path, (0, None))
        return upstream if upstream is not None and mtime_ns == _mtime_ns(path) else None

    def _copies_of(self, evidence: Evidence) -> list[Evidence]:
        hashes = [file.sha256 for file in evidence.files]
        return [
            each
            for each in self._hashed.values()
            if each.path != evidence.path
            and [file.sha256 for file in each.files] == hashes
            and Path(each.path).exists()
        ]

    def _load_catalog(self) -> Catalog:
        if self._catalog is None:
            self._catalog = load_updated_catalog()
        return self._catalog

    def _load_memory(self) -> HashMemory:
        if self._memory is None:
            self._memory = HashMemory(paths.cache_folder() / _HASH_FILE)
        return self._memory


def _records_of(model: LibraryModel) -> Evidence:
    """What can be asked about: where each file came from, without reading it."""
    files = tuple(
        FileEvidence(path=file.path, n_bytes=file.n_bytes, origin=origin_of(Path(file.path).absolute()))
        for file in model.files
    )
    return Evidence(files=files)


def _without_header(file: FileEvidence) -> FileEvidence:
    return msgspec.structs.replace(file, facts=None, head=b"")


def _is_named(file: FileEvidence, catalog: Catalog) -> bool:
    """Someone who knows says that the file has these bytes."""
    there = file.upstream
    return (
        file.sha256 == file.origin.sha256
        or (there is not None and file.sha256 == there.sha256)
        or bool(catalog.find_by_sha256(file.sha256))
    )


def _is_paired_anyway(finding: Finding, model: LibraryModel) -> bool:
    """The rules look for a picture file in the model's folder; the library also finds it elsewhere."""
    return finding.code in _ABOUT_PAIRING and model.mmproj is not None


def _mtime_ns(path: str) -> int:
    try:
        return Path(path).stat().st_mtime_ns
    except OSError:
        return -1
