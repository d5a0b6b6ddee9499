"""Finds out name, size and SHA-256 of an archive that the app's list of packs couldn't pin.

GitHub's description of a release lists them. Where it can't be had or lists no SHA-256, the one of the first download
is kept, and every later download of that file must have it.
"""

from __future__ import annotations

import fnmatch
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from qwendesk.core.engine_manifest import PackArchive
from qwendesk.core.json_decoding import decode_json
from qwendesk.core.json_file import JsonFile
from qwendesk.core.translation import tr
from qwendesk.hub.network import HubError, Network, hub_errors, status_error
from qwendesk.hub.remote import RemoteFile, size_in

if TYPE_CHECKING:
    import httpx2

_LARGEST_LISTING_BYTES = 4 * 1024**2
_DIGEST = "sha256:"
_SHA256_DIGITS = frozenset("0123456789abcdef")


class ReleaseAsset(msgspec.Struct, frozen=True):
    """A file of a release, as GitHub describes it."""

    name: str
    size: int
    digest: str | None = None
    """Such as "sha256:" and 64 digits. Files from before June 2025 have none."""


class _Release(msgspec.Struct, frozen=True):
    assets: tuple[ReleaseAsset, ...] = ()


class KeptSum(msgspec.Struct, frozen=True):
    """The first download of an archive."""

    n_bytes: int
    sha256: str


class ArchiveSums:
    """The sums of first downloads, in a file in the folder of engines. Its methods block."""

    def __init__(self, folder: Path) -> None:
        self._file = JsonFile(folder / "archive-sums.json", dict[str, KeptSum], dict)

    def keep(self, name: str, path: Path) -> None:
        """Keep the sum of a downloaded archive, from which an engine was unpacked."""
        with path.open("rb") as stream:
            sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
        self._file.write(self._file.read() | {name: KeptSum(path.stat().st_size, sha256)})

    def look_up(
        self, archive: PackArchive, network: Network, client: httpx2.Client
    ) -> tuple[PackArchive, RemoteFile, bool]:
        """Return the archive with its real name and size, the file to download, and if its publisher lists its SHA-256.

        If not, the SHA-256 is that of an earlier download, or "". Raises HubError.
        """
        name = archive.url.rpartition("/")[2]
        if archive.sha256:
            return archive, RemoteFile("", name, "", archive.n_bytes, archive.sha256, archive.sha256, None), True
        asset = _listed(archive, name, network, client)
        name = asset.name if asset is not None else name
        archive = msgspec.structs.replace(archive, url=f"{archive.url.rpartition('/')[0]}/{name}")
        kept = self._file.read().get(name)
        listed = listed_sha256(asset)
        sha256 = listed or (kept.sha256 if kept is not None else "")
        n_bytes, etag = (asset.size, "") if asset is not None else (0, "")
        if not sha256 or not n_bytes:
            n_bytes, etag = _asked(archive, name, network, client)
        archive = msgspec.structs.replace(archive, n_bytes=n_bytes, sha256=sha256)
        return archive, RemoteFile("", name, "", n_bytes, sha256 or None, sha256 or etag, None), bool(listed)


def _listed(archive: PackArchive, name: str, network: Network, client: httpx2.Client) -> ReleaseAsset | None:
    """Return the archive as its publisher lists it; None if the list can't be had and the name is known anyway."""
    is_pattern = "*" in name
    if not archive.listing:
        return None
    try:
        with hub_errors(network, ""):
            answer = client.get(archive.listing, headers={"Accept": "application/vnd.github+json"})
        if answer.status_code >= 400:
            raise status_error(answer, network, "")
        release = decode_json(answer.content[:_LARGEST_LISTING_BYTES], _Release)
    except (HubError, msgspec.DecodeError) as error:
        if is_pattern or (isinstance(error, HubError) and error.kind in ("offline", "stopped")):
            raise error if isinstance(error, HubError) else _unlisted(name) from error
        return None
    found = [asset for asset in release.assets if fnmatch.fnmatch(asset.name, name) and "/" not in asset.name]
    if not found and is_pattern:
        raise _unlisted(name)
    return found[0] if found else None


def _asked(archive: PackArchive, name: str, network: Network, client: httpx2.Client) -> tuple[int, str]:
    """Return the size that the server states, and what tells this content from another. Raises HubError."""
    with hub_errors(network, ""):
        answer = client.head(archive.url, headers={"Accept-Encoding": "identity"})
    if answer.status_code >= 400:
        raise status_error(answer, network, name)
    n_bytes, etag = size_in(answer, "Content-Length"), answer.headers.get("ETag", "")
    if not n_bytes:
        raise HubError("bad_answer", tr("No size"), tr("{0} doesn't say how large {1} is.", network.host, name))
    # Half a hash: a whole one would be taken for the hash of the content.
    return n_bytes, hashlib.sha256(etag.encode()).hexdigest()[:32] if etag else ""


def listed_sha256(asset: ReleaseAsset | None) -> str:
    """Return the SHA-256 that GitHub lists for a file; "" if it lists none."""
    digest = asset.digest or "" if asset is not None else ""
    sha256 = digest.removeprefix(_DIGEST).lower()
    return sha256 if digest.startswith(_DIGEST) and len(sha256) == 64 and _SHA256_DIGITS.issuperset(sha256) else ""


def _unlisted(name: str) -> HubError:
    return HubError("not_found", tr("Not found"), tr("The release no longer lists {0}.", name))
