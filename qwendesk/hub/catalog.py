"""The catalog: facts about the Qwen3.5, 3.6 and 3.8 files on the Hub that are available offline.

They are in resources/catalog.json. docs/catalog.md describes the file.
"""

import datetime
import re
from collections import defaultdict
from pathlib import Path

import msgspec

from qwendesk.core import paths
from qwendesk.core.errors import QwenDeskError
from qwendesk.core.file_names import Shard, is_first_shard
from qwendesk.core.json_decoding import decode_json
from qwendesk.core.translation import tr
from qwendesk.hub.catalog_schema import (
    SCHEMA_VERSION,
    CatalogFile,
    CatalogModel,
    Contents,
    CutOff,
    Licence,
    QuantNote,
    Repository,
    Superseded,
    WithdrawnFile,
)

FILE_NAME = "catalog.json"


class BadCatalog(QwenDeskError):
    """The catalog can't be read: it is damaged, or made for another version of this program."""


class CatalogMatch(msgspec.Struct, frozen=True):
    """The catalog's entry of one file on the Hub; of a split model, one shard."""

    repository: Repository
    file: CatalogFile
    part: int = 0
    """Index into `file.parts`; 0 for a file that isn't split."""

    @property
    def n_bytes(self) -> int | None:
        """Exact size of this shard; None if the sources give only a rounded size."""
        if self.file.parts:
            part = self.file.parts[self.part]
            return part.n_bytes if part.is_exact else None
        return self.file.n_bytes if self.file.is_exact else None

    @property
    def sha256(self) -> str:
        """SHA-256 of this shard; "" if unknown."""
        return self.file.parts[self.part].sha256 if self.file.parts else self.file.sha256

    @property
    def path(self) -> str:
        """Path of this shard in the repository."""
        return part_path(self.file, self.part)


class Catalog:
    """The catalog with its indexes. Immutable."""

    def __init__(self, contents: Contents) -> None:
        self.contents = contents
        self._by_path: dict[tuple[str, str], CatalogMatch] = {}
        self._by_sha256: dict[str, list[CatalogMatch]] = defaultdict(list)
        self._by_name: dict[str, list[CatalogMatch]] = defaultdict(list)
        for found in _all_files(contents):
            self._by_path[found.repository.repo, found.path] = found
            self._by_name[found.path.rpartition("/")[2].lower()].append(found)
            if found.sha256:
                self._by_sha256[found.sha256].append(found)
        self._superseded = {each.sha256: each for each in contents.superseded}

    @property
    def models(self) -> tuple[CatalogModel, ...]:
        return self.contents.models

    @property
    def repositories(self) -> tuple[Repository, ...]:
        return self.contents.repositories

    @property
    def date(self) -> str:
        """Date of its newest fact (ISO 8601)."""
        return self.contents.date

    def age_days(self, today: datetime.date) -> int:
        return max((today - datetime.date.fromisoformat(self.date)).days, 0)

    def model(self, identity: str) -> CatalogModel | None:
        return next((model for model in self.models if model.id == identity), None)

    def repository(self, repo: str) -> Repository | None:
        return next((each for each in self.repositories if each.repo == repo), None)

    def licence_of(self, repo: str) -> Licence | None:
        """Return the licence of a repository's model; None if unknown.

        Of a repository that isn't in the catalog, a restriction is known from its name: it holds for copies and
        fine-tuned versions too.
        """
        known = self.repository(repo)
        if known is not None:
            model = self.model(known.model)
            return model.licence if model is not None else None
        named = self.model_of(repo.rpartition("/")[2])
        return named.licence if named is not None and named.licence.restriction else None

    def find_file(self, repo: str, path: str) -> CatalogMatch | None:
        """Return the file at `path` of `repo`, which may be any shard."""
        return self._by_path.get((repo, path))

    def find_by_name(self, name: str) -> tuple[CatalogMatch, ...]:
        """Return every file of this name in any repository. They may be different files."""
        return tuple(self._by_name.get(name.lower(), ()))

    def find_by_sha256(self, sha256: str) -> tuple[CatalogMatch, ...]:
        """Return every current file with these bytes. Several quants may share shard 1."""
        return tuple(self._by_sha256.get(sha256, ()))

    def is_current(self, sha256: str) -> bool:
        """Return True if a repository offers these bytes at the catalog's date. Shard 1 is ignored."""
        return any(not is_first_shard(found.path) for found in self.find_by_sha256(sha256))

    def superseded(self, sha256: str) -> Superseded | None:
        """Return the entry of these bytes if they were replaced, else None.

        Always None for a shard 1, because several quants may share it.
        """
        found = self._superseded.get(sha256)
        return None if found is None or is_first_shard(found.path) or self.is_current(sha256) else found

    def deletion(self, repo: str, path: str, sha256: str = "") -> WithdrawnFile | None:
        """Return the entry of a withdrawn file, found by repository and path, or by its hash.

        The hash counts only if no repository offers these bytes any more.
        """
        sha256 = "" if self.is_current(sha256) else sha256
        for each in self.contents.deletions:
            if (each.repo, each.path) == (repo, path) or (sha256 and each.sha256 == sha256):
                return each
        return None

    def cut_off(self, repo: str) -> CutOff | None:
        return next((each for each in self.contents.cut_offs if each.repo == repo), None)

    def notes(self, model: str, uploader: str, quant: str) -> tuple[QuantNote, ...]:
        """Return the notes on a quant of a model. Notes without an uploader or model apply to all."""
        return tuple(
            note
            for note in self.contents.notes
            if note.quant == quant and note.model in ("", model) and note.uploader in ("", uploader)
        )

    def base_repo_of(self, repo: str, *names: str) -> str:
        """Return the repository of the model that a file is a quant of; "" if the catalog doesn't know it.

        `repo` is where the file is from, "" if unknown; `names` are others that may tell, as in `model_of`.
        """
        repository = self.repository(repo)
        found = self.model(repository.model) if repository is not None else self.model_of(repo, *names)
        return found.base_repo if found is not None else ""

    def model_of(self, *names: str) -> CatalogModel | None:
        """Return the model for the first of `names` that contains a model's id, else None.

        `names` may be names from headers, file names or repositories.
        """
        for name in names:
            spelt = re.sub(r"[\s_]+", "-", name).lower()
            for model in self.models:
                if re.search(rf"(?<![a-z0-9.]){re.escape(model.id.lower())}(?![a-z0-9])(?!-a\d)", spelt):
                    return model
        return None


def load_catalog(path: Path | None = None) -> Catalog:
    """Return the app's catalog, or the one at `path`. Raises BadCatalog."""
    path = path or paths.resources_folder() / FILE_NAME
    try:
        text = path.read_bytes()
    except OSError as error:
        sentence = tr("{0} can't be read ({1}). Install QwenDesk again.", path, error.strerror or error)
        raise BadCatalog(tr("The model catalog is missing"), sentence) from error
    return decode_catalog(text)


def decode_catalog(text: bytes) -> Catalog:
    """Return the catalog in `text` (JSON). Raises BadCatalog."""
    try:
        version = decode_json(text, _Version).schema_version
        if version != SCHEMA_VERSION:
            sentence = tr(
                "It has version {0}, but this QwenDesk needs {1}. Install QwenDesk again.", version, SCHEMA_VERSION
            )
            raise BadCatalog(tr("The model catalog has another version"), sentence)
        return Catalog(decode_json(text, Contents))
    except msgspec.DecodeError as error:
        raise BadCatalog(tr("The model catalog is damaged"), tr("{0}. Install QwenDesk again.", error)) from error


class _Version(msgspec.Struct):
    schema_version: int


def part_path(file: CatalogFile, part: int) -> str:
    """Return the path of a file's shard, counted from 0; the file's own path if it isn't split."""
    if not file.parts:
        return file.path
    shard = Shard.parse(file.path)
    return file.path if shard is None else shard.sibling(part + 1)


def _all_files(contents: Contents) -> list[CatalogMatch]:
    return [
        CatalogMatch(repository, file, part)
        for repository in contents.repositories
        for file in repository.files
        for part in range(len(file.parts) or 1)
    ]
