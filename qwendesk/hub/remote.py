"""The class Hub, which looks up repositories and files on the Hub with huggingface_hub.

The library and its HTTP client are imported when the first Hub is made: that takes a tenth of a second of the start.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from qwendesk.core.number_format import show_count
from qwendesk.core.translation import tr
from qwendesk.hub.network import (
    HubError,
    Network,
    bad_answer_error,
    hub_errors,
    never_cut,
    offline_error,
    page_error,
    status_error,
)

if TYPE_CHECKING:
    import httpx2
    from huggingface_hub import ModelInfo

_PATHS_AT_ONCE = 100
# Limit of GGUF files in one repository; the largest repositories have a few hundred.
_MAX_FILES = 2000
_SIZE = re.compile(r"[0-9]{1,18}")
Sort = Literal["downloads", "likes", "last_modified", "trending_score"]
_MARKED = ("uncensored", "abliterated", "heretic")


class RemoteFile(msgspec.Struct, frozen=True):
    """One file of a repository at one commit."""

    repo: str
    path: str
    revision: str
    """The commit."""
    n_bytes: Annotated[int, msgspec.Meta(ge=0)]
    sha256: str | None
    """None for small files, which have only an etag."""
    etag: str
    """SHA-256 of large (LFS) files, git's blob SHA-1 of small ones."""
    date: str | None
    """Time of this file's last change (ISO 8601)."""
    gated: bool = False


class FoundRepo(msgspec.Struct, frozen=True):
    """One result of a search."""

    repo: str
    downloads: int
    likes: int
    date: str | None
    gated: bool
    marks: tuple[str, ...]
    """Words in its name or tags that indicate changed behaviour: "uncensored", "abliterated"."""
    created: str | None = None
    licence: str = ""
    """As its card names it, such as "apache-2.0"; "" if it doesn't."""
    bases: tuple[str, ...] = ()
    """The repositories of the models that it was made from, as its card names them."""


class Location(msgspec.Struct, frozen=True):
    """Where the bytes of a file are now. A signed address expires."""

    url: str
    etag: str
    n_bytes: int | None
    """Size of the file; None if the server doesn't state it."""


class Hub:
    """The Hub at one endpoint. Every method blocks, and raises HubError if it fails."""

    def __init__(self, network: Network, is_cut: Callable[[], bool] = never_cut) -> None:
        """`is_cut` returns True once no more requests are allowed; answers to running requests are then dropped."""
        from huggingface_hub import HfApi

        from qwendesk.hub.http_client import use_in_library

        self.network = network
        self._is_cut = is_cut
        use_in_library(self.network, is_cut)
        # False, not None: with None the library would send a token that another program has saved on this PC.
        self._api = HfApi(endpoint=self.network.endpoint, token=self.network.token or False, library_name="qwendesk")

    def files(self, repo: str, revision: str = "main") -> tuple[RemoteFile, ...]:
        """Return every GGUF file of `repo` at its newest commit."""
        return self._gguf_files(self._info(repo, revision), repo)

    def files_since(self, repo: str, revision: str) -> tuple[RemoteFile, ...] | None:
        """Return every GGUF file of `repo`, or None if its newest commit is `revision`, which takes one request."""
        info = self._info(repo, "main")
        return None if info.sha and info.sha == revision else self._gguf_files(info, repo)

    def file(self, repo: str, path: str, revision: str = "main") -> RemoteFile:
        """Return one file of `repo`, of any kind."""
        import httpx2

        info = self._info(repo, revision)
        found = self._paths(info, repo, [path])
        if not found:
            response = httpx2.Response(404, request=httpx2.Request("GET", f"{self.network.endpoint}/{repo}"))
            raise status_error(response, self.network, f"{repo} ({path})")
        return found[0]

    def search(self, query: str, *, sort: Sort = "downloads", limit: int = 30) -> tuple[FoundRepo, ...]:
        """Return repositories with GGUF files."""
        return self._listed(query, search=query, sort=sort, limit=limit)

    def newest(self, owner: str, words: str, *, limit: int) -> tuple[FoundRepo, ...]:
        """Return the newest repositories of `owner` with GGUF files, those with `words` in their names."""
        return self._listed(owner, author=owner, search=words or None, sort="created_at", limit=limit)

    def locate(self, file: RemoteFile, client: httpx2.Client) -> Location:
        """Return where the bytes of `file` are. Follows redirects only within the endpoint, which gets the token."""
        from huggingface_hub import hf_hub_url

        url = hf_hub_url(file.repo, file.path, revision=file.revision, endpoint=self.network.endpoint)
        for _ in range(5):
            answer = client.head(url, headers=self.headers_for(url), follow_redirects=False)
            if answer.status_code >= 400:
                raise status_error(answer, self.network, file.repo)
            if not answer.has_redirect_location and (error := page_error(answer)):
                raise error
            target = str(answer.request.url.join(answer.headers["Location"])) if answer.has_redirect_location else url
            etag = answer.headers.get("X-Linked-Etag") or answer.headers.get("ETag") or ""
            if target == url or not self.network.is_endpoint(target):
                names = ("X-Linked-Size", "Content-Length") if target == url else ("X-Linked-Size",)
                plain = etag.removeprefix("W/").strip('"')
                return Location(target, plain, size_in(answer, *names))
            url = target
        raise bad_answer_error(self.network.host, tr("it redirects too often"))

    def headers_for(self, url: str) -> dict[str, str]:
        """Return the headers of a request for bytes, with the token only for the endpoint."""
        headers = {"Accept-Encoding": "identity", "User-Agent": "qwendesk"}
        if self.network.token and self.network.is_endpoint(url):
            headers["Authorization"] = f"Bearer {self.network.token}"
        return headers

    def account(self) -> str:
        """Return the name of the token's account. Raises HubError "denied" if the Hub refuses the token."""
        self._refuse_offline()
        if not self.network.token:
            raise HubError("denied", tr("No token"), tr("There is no access token to test. Save one first."))
        try:
            with hub_errors(self.network, tr("your account")):
                return msgspec.convert(self._api.whoami()["name"], str)
        except HubError as error:
            if error.kind != "denied":
                raise
            sentence = tr("{0} doesn't accept this token. Create a new one there and save it here.", self.network.host)
            raise HubError("denied", tr("Token refused"), sentence) from error

    def client(self) -> httpx2.Client:
        """Return a client to fetch bytes with; the caller closes it."""
        from qwendesk.hub.http_client import new_client

        return new_client(self.network, self._is_cut)

    def _listed(self, asked: str, **how: Any) -> tuple[FoundRepo, ...]:
        self._refuse_offline()
        expand: list[Literal["downloads", "likes", "lastModified", "createdAt", "gated", "tags"]]
        expand = ["downloads", "likes", "lastModified", "createdAt", "gated", "tags"]
        with hub_errors(self.network, asked):
            return tuple(_found(info) for info in self._api.list_models(filter="gguf", expand=list(expand), **how))

    def _info(self, repo: str, revision: str) -> ModelInfo:
        self._refuse_offline()
        with hub_errors(self.network, repo):
            return self._api.model_info(repo, revision=revision, timeout=self.network.stall_s)

    def _gguf_files(self, info: ModelInfo, repo: str) -> tuple[RemoteFile, ...]:
        with hub_errors(self.network, repo):
            names = [each.rfilename for each in info.siblings or () if each.rfilename.lower().endswith(".gguf")]
        return self._paths(info, repo, names)

    def _paths(self, info: ModelInfo, repo: str, paths: Sequence[str]) -> tuple[RemoteFile, ...]:
        if not info.sha:
            raise bad_answer_error(self.network.host, tr("no commit"))
        if len(paths) > _MAX_FILES:
            raise bad_answer_error(self.network.host, tr("{0} model files in one repository", show_count(len(paths))))
        found: list[RemoteFile] = []
        with hub_errors(self.network, repo):
            for start in range(0, len(paths), _PATHS_AT_ONCE):
                asked = list(paths[start : start + _PATHS_AT_ONCE])
                answers = self._api.get_paths_info(repo, asked, expand=True, revision=info.sha)
                found += _remote_files(repo, info, asked, answers)
        return tuple(found)

    def _refuse_offline(self) -> None:
        if self.network.offline or self._is_cut():
            raise offline_error()


class FixedAddresses:
    """A download source for files with fixed addresses and known hashes, such as engine packs.

    Addresses may redirect. The Hub's token is never sent.
    """

    def __init__(self, network: Network, address_of: Mapping[str, str], is_cut: Callable[[], bool] = never_cut) -> None:
        """`address_of` maps each file's path to its https address. `is_cut` is as for `Hub`."""
        self.network = network
        self._is_cut = is_cut
        self._address_of = dict(address_of)

    def client(self) -> httpx2.Client:
        from qwendesk.hub.http_client import new_client

        return new_client(self.network, self._is_cut)

    def locate(self, file: RemoteFile, client: httpx2.Client) -> Location:
        if self.network.offline or self._is_cut():
            raise offline_error()
        answer = client.head(self._address_of[file.path], headers=self.headers_for(""), follow_redirects=True)
        if answer.status_code >= 400:
            raise status_error(answer, self.network, file.repo)
        if error := page_error(answer):
            raise error
        return Location(str(answer.url), "", size_in(answer, "Content-Length"))

    def headers_for(self, _url: str) -> dict[str, str]:
        return {"Accept-Encoding": "identity", "User-Agent": "qwendesk"}


def size_in(answer: httpx2.Response, *names: str) -> int | None:
    """Return the number of bytes in the first of these headers that is present; None if it has none."""
    text = next((answer.headers[name] for name in names if name in answer.headers), "")
    return int(text) if _SIZE.fullmatch(text) else None


def _remote_files(repo: str, info: ModelInfo, asked: Sequence[str], answers: Iterable[object]) -> list[RemoteFile]:
    """Return the answers that are files in `asked`. Raises for values of a wrong type."""
    from huggingface_hub.hf_api import RepoFile

    found = [
        {
            "repo": repo,
            "path": each.path,
            "revision": info.sha,
            "n_bytes": each.lfs.size if each.lfs else each.size,
            "sha256": each.lfs.sha256 if each.lfs else None,
            "etag": each.lfs.sha256 if each.lfs else each.blob_id,
            "date": each.last_commit.date.isoformat() if each.last_commit else None,
            "gated": bool(info.gated),
        }
        for each in answers
        if isinstance(each, RepoFile) and each.path in asked
    ]
    return msgspec.convert(found, list[RemoteFile])


def _found(info: ModelInfo) -> FoundRepo:
    """Return one search result. Raises for values of a wrong type."""
    tags = msgspec.convert(info.tags or [], list[str])
    found = {
        "repo": info.id,
        "downloads": info.downloads or 0,
        "likes": info.likes or 0,
        "date": info.last_modified.isoformat() if info.last_modified else None,
        "gated": bool(info.gated),
        "marks": [mark for mark in _MARKED if mark in " ".join((info.id, *tags)).lower()],
        "created": info.created_at.isoformat() if info.created_at else None,
        "licence": next(iter(_tagged(tags, "license:")), ""),
        # "base_model:owner/name" and "base_model:quantized:owner/name".
        "bases": [each.rpartition(":")[2] for each in _tagged(tags, "base_model:")],
    }
    return msgspec.convert(found, FoundRepo)


def _tagged(tags: Iterable[str], prefix: str) -> list[str]:
    return [tag.removeprefix(prefix) for tag in tags if tag.startswith(prefix)]
