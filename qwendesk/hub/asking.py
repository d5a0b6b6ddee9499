"""Asks the Hub about files on disk, so that the rules can compare them with what it has now."""

from collections.abc import Iterable, Sequence
from typing import Protocol

import msgspec

from qwendesk.hub.catalog import Catalog
from qwendesk.hub.evidence import Evidence, FileEvidence
from qwendesk.hub.network import HubTrouble
from qwendesk.hub.remote import RemoteFile
from qwendesk.hub.upstream import Upstream

_NO_ANSWER_AT_ALL = ("offline", "no_connection", "bad_answer", "busy")


class AsksHub(Protocol):
    """The part of `remote.Hub` that is needed here. Both raise HubTrouble."""

    def files(self, repo: str, revision: str = "main") -> tuple[RemoteFile, ...]:
        """Every GGUF file of a repository."""

    def file(self, repo: str, path: str, revision: str = "main") -> RemoteFile:
        """One file at a commit."""


class Asked(msgspec.Struct, frozen=True):
    """Evidence with what the Hub said."""

    everything: tuple[Evidence, ...]
    files: dict[str, tuple[RemoteFile, ...]] = {}
    """What each repository that answered has now."""
    troubles: tuple[str, ...] = ()
    """Why some were not answered for, as sentences."""


def ask_hub(everything: Sequence[Evidence], hub: AsksHub, catalog: Catalog) -> Asked:
    """Adds what the Hub says to each file whose repository is known; blocks, and never raises for the network.

    After the first sign that the Hub cannot be reached nothing more is asked.
    """
    files: dict[str, tuple[RemoteFile, ...]] = {}
    troubles: list[str] = []
    for repo in _repositories(everything):
        try:
            files[repo] = hub.files(repo)
        except HubTrouble as trouble:
            # A repository that is not there may be a folder that only looks like one.
            if trouble.kind != "not_found":
                troubles.append(trouble.sentence)
            if trouble.kind in _NO_ANSWER_AT_ALL:
                break
    answered = tuple(
        msgspec.structs.replace(
            evidence, files=tuple(_with_upstream(file, files, hub, catalog) for file in evidence.files)
        )
        for evidence in everything
    )
    return Asked(answered, files, tuple(troubles))


def _repositories(everything: Iterable[Evidence]) -> list[str]:
    origins = (evidence.origin for evidence in everything)
    return list(dict.fromkeys(origin.repo for origin in origins if origin.repo and origin.path))


def _with_upstream(
    file: FileEvidence, files: dict[str, tuple[RemoteFile, ...]], hub: AsksHub, catalog: Catalog
) -> FileEvidence:
    origin = file.origin
    if origin.repo not in files or not origin.path:
        return file
    now = next((each for each in files[origin.repo] if each.path == origin.path), None)
    if now is None:
        return msgspec.structs.replace(file, upstream=Upstream(is_gone=True))
    upstream = Upstream(
        n_bytes=now.n_bytes,
        sha256=now.sha256 or "",
        commit=now.revision,
        date=now.date or "",
        local_date=_local_date(file, now, hub, catalog),
    )
    return msgspec.structs.replace(file, upstream=upstream)


def _local_date(file: FileEvidence, now: RemoteFile, hub: AsksHub, catalog: Catalog) -> str:
    """When the version on disk was uploaded; asked only where that date can prove something."""
    origin = file.origin
    is_current = bool(file.known_sha256) and file.known_sha256 == now.sha256
    if not origin.commit or is_current or catalog.cut_off(origin.repo) is None:
        return ""
    try:
        return hub.file(origin.repo, origin.path, origin.commit).date or ""
    except HubTrouble:
        return ""
