"""Updates of the catalog: sizes, hashes and dates that the Hub has given since it was built, saved for offline use."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from qwendesk.core import paths
from qwendesk.core.json_file import JsonFile
from qwendesk.hub.catalog import Catalog, load_catalog, part_path
from qwendesk.hub.catalog_schema import CatalogFile, Part, Repository, Superseded, WithdrawnFile

if TYPE_CHECKING:  # importing the Hub's library takes long, and reading saved updates doesn't need it
    from qwendesk.hub.remote import RemoteFile

_FILE = "catalog-updates.json"


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


Updates = dict[str, RepositoryUpdate]
"""By repository."""


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


def read_updates(folder: Path | None = None) -> Updates:
    """Return the saved updates; none if there is no usable file."""
    return _file(folder).read()


def write_updates(updates: Updates, folder: Path | None = None) -> None:
    """Save `updates`. Raises OSError."""
    _file(folder).write(updates)


def _file(folder: Path | None) -> JsonFile[Updates]:
    return JsonFile((folder or paths.data_folder()) / _FILE, Updates, dict, keep_unusable=False)


def load_updated_catalog() -> Catalog:
    """Return the app's catalog with the saved updates. Raises BadCatalog."""
    return updated(load_catalog(), read_updates())


def updated(catalog: Catalog, updates: Updates) -> Catalog:
    """Return the catalog with the sizes, hashes and days of `updates`.

    Changed hashes are added to the replaced ones, missing files to the deletions. Updates from before the catalog was
    built are ignored.
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
            WithdrawnFile(repository.repo, file.path, update.day, file.sha256)
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
