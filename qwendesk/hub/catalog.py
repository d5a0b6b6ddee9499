"""What is known of the Qwen3.5 and 3.6 files on the Hub, offline: resources/catalog.json, checked when it is read.

docs/catalog.md describes the file; tools/build_catalog.py writes it.
"""

import datetime
import re
from collections import defaultdict
from pathlib import Path

import msgspec

from qwendesk.core import paths
from qwendesk.core.errors import QwenDeskError
from qwendesk.core.files import decode_json
from qwendesk.hub.catalog_schema import (
    SCHEMA_VERSION,
    CatalogFile,
    Contents,
    CutOff,
    Deletion,
    Model,
    Note,
    Repository,
    Superseded,
)

FILE_NAME = "catalog.json"
_PART = re.compile(r"-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf$", re.IGNORECASE)


class BadCatalog(QwenDeskError):
    """The catalog cannot be read: damaged, or of another version than this program."""


class Found(msgspec.Struct, frozen=True):
    """One file on the Hub as the catalog knows it; of a split set one part."""

    repository: Repository
    file: CatalogFile
    part: int = 0
    """Index into `file.parts`; 0 for a file in one piece."""

    @property
    def n_bytes(self) -> int | None:
        """Exact size of this part; None where the sources only have it rounded."""
        if self.file.parts:
            part = self.file.parts[self.part]
            return part.n_bytes if part.is_exact else None
        return self.file.n_bytes if self.file.is_exact else None

    @property
    def sha256(self) -> str:
        """ "" when the catalog does not know it."""
        return self.file.parts[self.part].sha256 if self.file.parts else self.file.sha256

    @property
    def path(self) -> str:
        """Within the repository."""
        return part_path(self.file, self.part)


class Catalog:
    """The catalog with its indexes. Never changes."""

    def __init__(self, contents: Contents) -> None:
        self.contents = contents
        self._by_path: dict[tuple[str, str], Found] = {}
        self._by_sha256: dict[str, list[Found]] = defaultdict(list)
        self._by_name: dict[str, list[Found]] = defaultdict(list)
        for found in _all_files(contents):
            self._by_path[found.repository.repo, found.path] = found
            self._by_name[found.path.rpartition("/")[2].lower()].append(found)
            if found.sha256:
                self._by_sha256[found.sha256].append(found)
        self._superseded = {each.sha256: each for each in contents.superseded}

    @property
    def models(self) -> tuple[Model, ...]:
        return self.contents.models

    @property
    def repositories(self) -> tuple[Repository, ...]:
        return self.contents.repositories

    @property
    def date(self) -> str:
        """ISO day of the newest fact in it: how old the catalog is."""
        return self.contents.date

    def age_days(self, today: datetime.date) -> int:
        return max((today - datetime.date.fromisoformat(self.date)).days, 0)

    def model(self, identity: str) -> Model | None:
        return next((model for model in self.models if model.id == identity), None)

    def repository(self, repo: str) -> Repository | None:
        return next((each for each in self.repositories if each.repo == repo), None)

    def find_file(self, repo: str, path: str) -> Found | None:
        """The file at `path` of `repo`; any part of a split set."""
        return self._by_path.get((repo, path))

    def find_by_name(self, name: str) -> tuple[Found, ...]:
        """Every file of this name, in any repository. The same name does not mean the same file."""
        return tuple(self._by_name.get(name.lower(), ()))

    def find_by_sha256(self, sha256: str) -> tuple[Found, ...]:
        """Every current file with these bytes. Shard 1 of a split set may be shared between quants."""
        return tuple(self._by_sha256.get(sha256, ()))

    def is_current(self, sha256: str) -> bool:
        """These bytes are what a repository offers now, by the catalog's date; a shared shard 1 says nothing."""
        return any(not is_first_part(found.path) for found in self.find_by_sha256(sha256))

    def superseded(self, sha256: str) -> Superseded | None:
        """What replaced these bytes. Never by shard 1 of a split set: it is metadata, and quants share it."""
        found = self._superseded.get(sha256)
        return None if found is None or is_first_part(found.path) or self.is_current(sha256) else found

    def deletion(self, repo: str, path: str, sha256: str = "") -> Deletion | None:
        """The note on a file that its uploader took back, by place or by bytes that are offered nowhere else."""
        sha256 = "" if self.is_current(sha256) else sha256
        for each in self.contents.deletions:
            if (each.repo, each.path) == (repo, path) or (sha256 and each.sha256 == sha256):
                return each
        return None

    def cut_off(self, repo: str) -> CutOff | None:
        return next((each for each in self.contents.cut_offs if each.repo == repo), None)

    def notes(self, model: str, uploader: str, quant: str) -> tuple[Note, ...]:
        """What is known of a quant of a model; notes without an uploader, or without a model, hold for all."""
        return tuple(
            note
            for note in self.contents.notes
            if note.quant == quant and note.model in ("", model) and note.uploader in ("", uploader)
        )

    def model_of(self, *names: str) -> Model | None:
        """The model that one of `names` (header name, file name, repository) spells out; the first that does."""
        for name in names:
            spelt = re.sub(r"[\s_]+", "-", name).lower()
            for model in self.models:
                if re.search(rf"(?<![a-z0-9.]){re.escape(model.id.lower())}(?![a-z0-9])(?!-a\d)", spelt):
                    return model
        return None


def load_catalog(path: Path | None = None) -> Catalog:
    """The catalog the app ships, or the one at `path`. Raises BadCatalog with what to do."""
    path = path or paths.resources_folder() / FILE_NAME
    try:
        text = path.read_bytes()
    except OSError as error:
        sentence = f"{path} cannot be read ({error.strerror or error}): install QwenDesk again."
        raise BadCatalog("The model catalog is missing", sentence) from error
    return decode_catalog(text)


def decode_catalog(text: bytes) -> Catalog:
    """The catalog in `text` (JSON). Raises BadCatalog."""
    try:
        version = decode_json(text, _Version).schema_version
        if version != SCHEMA_VERSION:
            sentence = f"It has version {version}, and this QwenDesk reads {SCHEMA_VERSION}: install QwenDesk again."
            raise BadCatalog("The model catalog is of another version", sentence)
        return Catalog(decode_json(text, Contents))
    except msgspec.DecodeError as error:
        raise BadCatalog("The model catalog is damaged", f"{error}. Install QwenDesk again.") from error


class _Version(msgspec.Struct):
    schema_version: int


def part_path(file: CatalogFile, part: int) -> str:
    """Path of part number `part` (from 0) of a split set; the file's own path when it is in one piece."""
    if not file.parts:
        return file.path
    found = _PART.search(file.path)
    return f"{file.path[: found.start()]}-{part + 1:05}-of-{len(file.parts):05}.gguf" if found else file.path


def is_first_part(path: str) -> bool:
    """Shard 1 of a set of several."""
    found = _PART.search(path)
    return found is not None and int(found["number"]) == 1 and int(found["count"]) > 1


def _all_files(contents: Contents) -> list[Found]:
    return [
        Found(repository, file, part)
        for repository in contents.repositories
        for file in repository.files
        for part in range(len(file.parts) or 1)
    ]
