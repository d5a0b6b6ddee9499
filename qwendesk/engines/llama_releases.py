"""Finds llama.cpp's own releases for this PC, and the headers of the same tag, on GitHub.

GitHub's list has the size and SHA-256 of each archive. The tree of a tag has the size and git's hash of each file of
its source, by which a download of it is checked.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

import msgspec

from qwendesk.core.engine_abi import build_number
from qwendesk.core.engine_manifest import Backend
from qwendesk.core.json_decoding import decode_json
from qwendesk.core.translation import tr
from qwendesk.engines.archive_sums import ReleaseAsset, listed_sha256
from qwendesk.engines.c_headers import HEADER_NAMES
from qwendesk.hub.network import HubError, Network, bad_answer_error, hub_errors, status_error
from qwendesk.hub.remote import RemoteFile

if TYPE_CHECKING:
    import httpx2

# The file of the source that names the architectures.
ARCHITECTURES_NAME = "llama-arch.cpp"
_TYPES_NAME = "ggml.h"
# Releases on a page of GitHub's list. There are several a day, and the newest one's archives may still be uploaded.
_PER_PAGE = 10
_GIT_HASH = re.compile(r"[0-9a-f]{40}")
_ARCHITECTURE = re.compile(r'\{\s*LLM_ARCH_\w+\s*,\s*"([\w.-]{1,60})"\s*\}')
_TYPE_COUNT = re.compile(r"\bGGML_TYPE_COUNT\s*=\s*(\d{1,4})\b")
_MOST_SOURCE_BYTES = 4 * 1024**2
# The archives by system and backend, as .github/workflows/release.yml of ggml-org/llama.cpp names them (read in its
# version of 10 October 2026). {0} is the tag, {1} the major version of CUDA.
_ARCHIVES: Mapping[tuple[str, Backend], tuple[str, ...]] = MappingProxyType(
    {
        ("windows-x64", "cuda"): (
            "llama-{0}-bin-win-cuda-{1}.*-x64.zip", "cudart-llama-bin-win-cuda-{1}.*-x64.zip",
        ),
        ("windows-x64", "vulkan"): ("llama-{0}-bin-win-vulkan-x64.zip",),
        ("windows-x64", "cpu"): ("llama-{0}-bin-win-cpu-x64.zip",),
        ("windows-arm64", "cpu"): ("llama-{0}-bin-win-cpu-arm64.zip",),
        ("linux-x64", "vulkan"): ("llama-{0}-bin-ubuntu-vulkan-x64.tar.gz",),
        ("linux-x64", "cpu"): ("llama-{0}-bin-ubuntu-x64.tar.gz",),
        ("linux-arm64", "vulkan"): ("llama-{0}-bin-ubuntu-vulkan-arm64.tar.gz",),
        ("linux-arm64", "cpu"): ("llama-{0}-bin-ubuntu-arm64.tar.gz",),
        ("macos-arm64", "metal"): ("llama-{0}-bin-macos-arm64.tar.gz",),
        ("macos-x64", "cpu"): ("llama-{0}-bin-macos-x64.tar.gz",),
    }
)  # fmt: skip


class ReleaseServer(msgspec.Struct, frozen=True):
    """Addresses of a repository on GitHub: of its programming interface, its releases' archives and its source."""

    api: str = "https://api.github.com/repos/ggml-org/llama.cpp"
    archives: str = "https://github.com/ggml-org/llama.cpp/releases/download"
    source: str = "https://raw.githubusercontent.com/ggml-org/llama.cpp"


class ReleaseArchive(msgspec.Struct, frozen=True):
    """An archive of a release."""

    name: str
    n_bytes: int
    sha256: str


class EngineRelease(msgspec.Struct, frozen=True, kw_only=True):
    """A release of llama.cpp with the archives of one backend for this PC."""

    tag: str
    """Such as "b11861"."""
    date: str
    """As YYYY-MM-DD; "" if unknown."""
    backend: Backend
    archives: tuple[ReleaseArchive, ...]
    sources: tuple[RemoteFile, ...] = ()
    """The headers, and the file that names the architectures, by names without their folders."""
    places: Mapping[str, str] = {}
    """The path of each of `sources` in the source, by name."""
    architectures: tuple[str, ...] = ()
    """What models it can load: `general.architecture` of their headers."""
    n_types: int = 0
    """The number of tensor types: it knows those with a smaller number."""
    download_bytes: int = 0

    @property
    def name(self) -> str:
        """The name of its engine, such as "b11861-vulkan"."""
        return f"{self.tag}-{self.backend}"


class _Listed(msgspec.Struct, frozen=True):
    tag_name: str
    published_at: str | None = None
    draft: bool = False
    assets: tuple[ReleaseAsset, ...] = ()


class _TreeEntry(msgspec.Struct, frozen=True):
    path: str
    type: str
    sha: str
    size: int = 0


class _Tree(msgspec.Struct, frozen=True):
    tree: tuple[_TreeEntry, ...]
    truncated: bool = False


def backends_on(platform: str) -> tuple[Backend, ...]:
    """Return the backends for which llama.cpp publishes libraries for this platform, such as "windows-x64"."""
    return tuple(backend for system, backend in _ARCHIVES if system == platform)


def newest_release(content: bytes, platform: str, backend: Backend, cuda: int = 12) -> EngineRelease | None:
    """Return the newest release in GitHub's list that has all archives of a backend, with their SHA-256.

    `cuda` is the major version of CUDA that the archives are for. Raises msgspec.DecodeError if `content` is no list.
    """
    found = [_release_of(each, platform, backend, cuda) for each in decode_json(content, tuple[_Listed, ...])]
    return max(filter(None, found), key=lambda release: build_number(release.tag), default=None)


def archive_names(tag: str, platform: str, backend: Backend) -> tuple[str, ...]:
    """Return fnmatch patterns for the names of a release's archives, with any version of CUDA; () if it has none."""
    return tuple(pattern.format(tag, "*") for pattern in _ARCHIVES.get((platform, backend), ()))


def known_architectures(text: str) -> tuple[str, ...]:
    """Return the names of architectures in the text of `llama-arch.cpp`, sorted."""
    return tuple(sorted(set(_ARCHITECTURE.findall(text))))


def number_of_types(text: str) -> int:
    """Return how many tensor types ggml.h counts; 0 if it doesn't say so."""
    found = _TYPE_COUNT.search(text)
    return int(found[1]) if found is not None else 0


def fetch_newest(
    network: Network, server: ReleaseServer, platform: str, backend: Backend, cuda: int, is_cut: Callable[[], bool]
) -> EngineRelease | None:
    """Ask for the newest release for this PC, and for what it can load. Blocks. Raises HubError.

    `is_cut` returns True once no request is allowed any more. Returns None if none of the last releases has archives.
    """
    from qwendesk.hub.http_client import QuestionClient, new_client  # noqa: PLC0415 - starts need no network

    network = msgspec.structs.replace(network, endpoint=server.api, token="")
    with new_client(network, is_cut, QuestionClient) as client, hub_errors(network, "llama.cpp"):
        try:
            content = _get(client, network, f"{server.api}/releases?per_page={_PER_PAGE}")
            release = newest_release(content, platform, backend, cuda)
            if release is None:
                return None
            tree = decode_json(_get(client, network, f"{server.api}/git/trees/{release.tag}?recursive=1"), _Tree)
        except msgspec.DecodeError as error:
            # A captive portal answers with a page of its own.
            raise bad_answer_error(network.host, tr("no list of releases")) from error
        release = with_sources(release, tree.tree)
        texts = {}
        for name in (ARCHITECTURES_NAME, _TYPES_NAME):
            if name in release.places:
                address = source_address(server, release, name)
                texts[name] = _get(client, network, address).decode("utf-8", "replace")
    return msgspec.structs.replace(
        release,
        download_bytes=sum(each.n_bytes for each in release.archives) + sum(each.n_bytes for each in release.sources),
        architectures=known_architectures(texts.get(ARCHITECTURES_NAME, "")),
        n_types=number_of_types(texts.get(_TYPES_NAME, "")),
    )


def with_sources(release: EngineRelease, tree: Sequence[_TreeEntry]) -> EngineRelease:
    """Return the release with the files of its source that the check needs. Those that it lacks are left out."""
    sources, places = [], {}
    for name in (*HEADER_NAMES, ARCHITECTURES_NAME):
        found = [each for each in tree if each.type == "blob" and each.path.rpartition("/")[2] == name]
        # Copies for other languages lie deeper.
        entry = min(found, key=lambda each: (each.path.count("/"), each.path), default=None)
        if entry is not None and _GIT_HASH.fullmatch(entry.sha) and 0 < entry.size <= _MOST_SOURCE_BYTES:
            sources.append(RemoteFile("", name, release.tag, entry.size, None, entry.sha, None))
            places[name] = entry.path
    return msgspec.structs.replace(release, sources=tuple(sources), places=places)


def archive_address(server: ReleaseServer, release: EngineRelease, name: str) -> str:
    return f"{server.archives}/{release.tag}/{name}"


def source_address(server: ReleaseServer, release: EngineRelease, name: str) -> str:
    return f"{server.source}/{release.tag}/{release.places[name]}"


def _release_of(listed: _Listed, platform: str, backend: Backend, cuda: int) -> EngineRelease | None:
    if listed.draft or not build_number(listed.tag_name):
        return None
    archives = []
    for pattern in _ARCHIVES.get((platform, backend), ()):
        name = pattern.format(listed.tag_name, cuda)
        found = sorted(each.name for each in listed.assets if fnmatch.fnmatchcase(each.name, name))
        asset = next((each for each in listed.assets if found and each.name == found[-1]), None)
        sha256 = listed_sha256(asset)
        if asset is None or not sha256 or "/" in asset.name:
            return None
        archives.append(ReleaseArchive(asset.name, asset.size, sha256))
    date = (listed.published_at or "")[:10]
    return (
        EngineRelease(tag=listed.tag_name, date=date, backend=backend, archives=tuple(archives)) if archives else None
    )


def _get(client: httpx2.Client, network: Network, address: str) -> bytes:
    answer = client.get(address)
    if answer.status_code >= 400:
        raise status_error(answer, network, "llama.cpp")
    content: bytes = answer.content
    return content


def not_found(platform: str) -> HubError:
    """Return the error for a platform without archives, or a list in which no release has them."""
    sentence = tr("None of llama.cpp's last releases has libraries for this PC ({0}).", platform)
    return HubError("not_found", tr("No engine found"), sentence)
