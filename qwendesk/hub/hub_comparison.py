"""Adds the current state of the files on the Hub to the evidence."""

from collections.abc import Iterable, Sequence

import msgspec

from qwendesk.hub.catalog import Catalog
from qwendesk.hub.evidence import Evidence, FileEvidence, Upstream
from qwendesk.hub.network import UNREACHABLE, HubError
from qwendesk.hub.remote import Hub, RemoteFile


class HubComparison(msgspec.Struct, frozen=True):
    """Evidence with the Hub's answers."""

    everything: tuple[Evidence, ...]
    files: dict[str, tuple[RemoteFile, ...]] = {}
    """The files of each repository that answered."""
    problems: tuple[str, ...] = ()
    """Sentences about the repositories for which there was no answer."""


def compare_with_hub(everything: Sequence[Evidence], hub: Hub, catalog: Catalog) -> HubComparison:
    """Add the Hub's answers to each file whose repository is known. Blocks; network errors are never raised.

    Stops at the first sign that the Hub can't be reached.
    """
    files: dict[str, tuple[RemoteFile, ...]] = {}
    problems: list[str] = []
    for repo in _repositories(everything):
        try:
            files[repo] = hub.files(repo)
        except HubError as error:
            # No problem to report: the folder may only look like one of a repository.
            if error.kind != "not_found":
                problems.append(error.sentence)
            if error.kind in UNREACHABLE:
                break
    answered = tuple(
        msgspec.structs.replace(
            evidence, files=tuple(_with_upstream(file, files, hub, catalog) for file in evidence.files)
        )
        for evidence in everything
    )
    return HubComparison(answered, files, tuple(problems))


def _repositories(everything: Iterable[Evidence]) -> list[str]:
    origins = (evidence.origin for evidence in everything)
    return list(dict.fromkeys(origin.repo for origin in origins if origin.repo and origin.path))


def _with_upstream(
    file: FileEvidence, files: dict[str, tuple[RemoteFile, ...]], hub: Hub, catalog: Catalog
) -> FileEvidence:
    origin = file.origin
    if origin.repo not in files or not origin.path:
        return file
    current = next((each for each in files[origin.repo] if each.path == origin.path), None)
    if current is None:
        return msgspec.structs.replace(file, upstream=Upstream(is_gone=True))
    upstream = Upstream(
        n_bytes=current.n_bytes,
        sha256=current.sha256 or "",
        commit=current.revision,
        date=current.date or "",
        local_date=_local_date(file, current, hub, catalog),
    )
    return msgspec.structs.replace(file, upstream=upstream)


def _local_date(file: FileEvidence, current: RemoteFile, hub: Hub, catalog: Catalog) -> str:
    """Return when the version on disk was uploaded. The Hub is asked only if that date could decide a finding."""
    origin = file.origin
    is_current = bool(file.known_sha256) and file.known_sha256 == current.sha256
    if not origin.commit or is_current or catalog.cut_off(origin.repo) is None:
        return ""
    try:
        return hub.file(origin.repo, origin.path, origin.commit).date or ""
    except HubError:
        return ""
