"""What the Hub said since the catalog was built: sizes, hashes and dates, remembered for when it cannot be asked."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from qwendesk.core import paths
from qwendesk.core.files import decode_json, write_whole
from qwendesk.hub.catalog import Catalog, load_catalog, part_path
from qwendesk.hub.catalog_schema import CatalogFile, Deletion, Part, Repository, Superseded

if TYPE_CHECKING:  # the Hub's library takes long to import, and reading what it once said does not need it
    from qwendesk.hub.remote import RemoteFile

_logger = logging.getLogger(__name__)
_FILE = "catalog-updates.json"


class FileUpdate(msgspec.Struct, frozen=True, array_like=True):
    """One file as the Hub had it."""

    n_bytes: int
    sha256: str
    """ "" when the Hub did not say."""
    date: str
    """ISO 8601: when it was last changed there; "" when unknown."""


class RepositoryUpdate(msgspec.Struct, frozen=True):
    """All files of one repository on the day it was asked."""

    day: str
    revision: str
    files: dict[str, FileUpdate]
    replaced: dict[str, str] = {}
    """Hashes that earlier answers had, and the paths they were offered at."""


Updates = dict[str, RepositoryUpdate]
"""By repository."""


def update_of(files: "Sequence[RemoteFile]", day: str) -> RepositoryUpdate:
    """What is kept of an answer of `Hub.files`; `day` is the ISO day it came."""
    return RepositoryUpdate(
        day=day,
        revision=files[0].revision if files else "",
        files={file.path: FileUpdate(file.n_bytes, file.sha256 or "", file.date or "") for file in files},
    )


def joined(before: Updates, fresh: Updates) -> Updates:
    """Both, with the hashes that `fresh` has no more among the replaced ones."""
    return before | {repo: _joined(before.get(repo), update) for repo, update in fresh.items()}


def _joined(before: RepositoryUpdate | None, fresh: RepositoryUpdate) -> RepositoryUpdate:
    if before is None:
        return fresh
    now = {file.sha256 for file in fresh.files.values()}
    earlier = before.replaced | {file.sha256: path for path, file in before.files.items() if file.sha256}
    replaced = {sha256: path for sha256, path in earlier.items() if path in fresh.files and sha256 not in now}
    return msgspec.structs.replace(fresh, replaced=replaced)


def read_updates(folder: Path | None = None) -> Updates:
    """What was remembered; nothing when there is nothing, or it cannot be read (that is logged)."""
    file = (folder or paths.data_folder()) / _FILE
    try:
        return decode_json(file.read_bytes(), Updates)
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.DecodeError) as error:
        _logger.warning("%s cannot be used, the catalog is as it was built: %s", file, error)
        return {}


def write_updates(updates: Updates, folder: Path | None = None) -> None:
    """Remembers `updates`. Raises OSError."""
    write_whole((folder or paths.data_folder()) / _FILE, msgspec.json.encode(updates))


def load_updated_catalog() -> Catalog:
    """The catalog the app ships, with what the Hub has said since. Raises BadCatalog."""
    return updated(load_catalog(), read_updates())


def updated(catalog: Catalog, updates: Updates) -> Catalog:
    """The catalog with the sizes, hashes and days of `updates`.

    A hash that changed goes to the replaced ones, a file that is gone to the deletions. Answers from before the
    catalog was built are passed over.
    """
    newer = {repo: update for repo, update in updates.items() if update.day >= catalog.date and update.files}
    if not newer:
        return catalog
    repositories, superseded, deletions = [], [], []
    for repository in catalog.repositories:
        update = newer.get(repository.repo)
        if update is None:
            repositories.append(repository)
            continue
        kept = [file for file in repository.files if file.path in update.files]
        repositories.append(_updated_repository(repository, kept, update))
        superseded += [each for file in kept for each in _replaced(repository, file, update)]
        superseded += [_replaced_since(repository, *each, update) for each in update.replaced.items()]
        deletions += [
            Deletion(repository.repo, file.path, update.day, file.sha256)
            for file in repository.files
            if file not in kept
        ]
    contents = catalog.contents
    return Catalog(
        msgspec.structs.replace(
            contents,
            repositories=tuple(repositories),
            superseded=(*contents.superseded, *superseded),
            deletions=(*contents.deletions, *deletions),
        )
    )


def _updated_repository(repository: Repository, kept: Sequence[CatalogFile], update: RepositoryUpdate) -> Repository:
    return msgspec.structs.replace(
        repository,
        seen=update.day,
        revision=update.revision or repository.revision,
        files=tuple(_updated_file(file, update) for file in kept),
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


def _replaced_since(repository: Repository, sha256: str, path: str, update: RepositoryUpdate) -> Superseded:
    now = update.files.get(path)
    by, day = (now.sha256, now.date[:10]) if now is not None else ("", "")
    return Superseded(sha256, repository.repo, path, repository.seen, by, day)
