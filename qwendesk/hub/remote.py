"""What the Hub knows of repositories and files, asked through huggingface_hub."""

from collections.abc import Callable, Iterable, Sequence
from typing import Literal

import httpx2
import msgspec

from qwendesk.hub.network import (
    HubTrouble,
    Network,
    bad_answer,
    never,
    new_client,
    offline_trouble,
    translated,
    trouble_of,
    use_in_library,
)

# After network.py, which sets what the library reads when it is imported.
from huggingface_hub import HfApi, ModelInfo, hf_hub_url  # isort: skip
from huggingface_hub.hf_api import RepoFile  # isort: skip

_PATHS_AT_ONCE = 100
Sort = Literal["downloads", "likes", "last_modified", "trending_score"]
_MARKED = ("uncensored", "abliterated", "heretic")


class RemoteFile(msgspec.Struct, frozen=True):
    """One file of a repository at one commit."""

    repo: str
    path: str
    revision: str
    """The commit that pins it."""
    n_bytes: int
    sha256: str | None
    """Of large (LFS) files; small ones have only an etag."""
    etag: str
    """SHA-256 of large files, git's blob SHA-1 of small ones."""
    date: str | None
    """ISO 8601: when this file was last changed."""
    gated: bool = False


class FoundRepo(msgspec.Struct, frozen=True):
    """One repository that a search found."""

    repo: str
    downloads: int
    likes: int
    date: str | None
    gated: bool
    marks: tuple[str, ...]
    """"uncensored", "abliterated": what its name or tags admit about changed behaviour."""


class Location(msgspec.Struct, frozen=True):
    """Where the bytes of a file are right now. A signed address expires."""

    url: str
    etag: str
    n_bytes: int | None
    commit: str | None


class Hub:
    """The Hub at one endpoint. Every method blocks, and raises HubTrouble with a sentence when it fails."""

    def __init__(self, network: Network | None = None, is_cut: Callable[[], bool] = never) -> None:
        """`is_cut` may say at any time that nothing is to be asked any more; what is under way then ends."""
        self.network = network or Network()
        self._is_cut = is_cut
        use_in_library(self.network, is_cut)
        # False, not None: None would send whatever token another program has left on this machine.
        self._api = HfApi(endpoint=self.network.endpoint, token=self.network.token or False, library_name="qwendesk")

    def files(self, repo: str, revision: str = "main") -> tuple[RemoteFile, ...]:
        """Every GGUF file of `repo`, pinned to its newest commit, with size, hash and date."""
        info = self._info(repo, revision)
        names = [each.rfilename for each in info.siblings or () if each.rfilename.lower().endswith(".gguf")]
        return self._paths(info, repo, names)

    def file(self, repo: str, path: str, revision: str = "main") -> RemoteFile:
        """One file of `repo`, whatever its kind."""
        info = self._info(repo, revision)
        with translated(self.network, repo, path):
            found = self._paths(info, repo, [path])
        if not found:
            response = httpx2.Response(404, request=httpx2.Request("GET", f"{self.network.endpoint}/{repo}"))
            raise trouble_of(response, self.network, f"{repo} ({path})")
        return found[0]

    def search(self, query: str, *, sort: Sort = "downloads", limit: int = 30) -> tuple[FoundRepo, ...]:
        """Repositories with GGUF files."""
        self._refuse_offline()
        expand: list[Literal["downloads", "likes", "lastModified", "gated", "tags"]]
        expand = ["downloads", "likes", "lastModified", "gated", "tags"]
        with translated(self.network, query):
            found = self._api.list_models(search=query, filter="gguf", sort=sort, limit=limit, expand=list(expand))
            return tuple(_found(info) for info in found)

    def locate(self, file: RemoteFile, client: httpx2.Client) -> Location:
        """Asks where the bytes of `file` are. Redirects are only followed within the endpoint, which has the token."""
        url = hf_hub_url(file.repo, file.path, revision=file.revision, endpoint=self.network.endpoint)
        for _ in range(5):
            answer = client.head(url, headers=self.headers_for(url), follow_redirects=False)
            if answer.status_code >= 400:
                raise trouble_of(answer, self.network, file.repo)
            target = str(answer.request.url.join(answer.headers["Location"])) if answer.has_redirect_location else url
            etag = answer.headers.get("X-Linked-Etag") or answer.headers.get("ETag") or ""
            if target == url or not self.network.is_endpoint(target):
                size = answer.headers.get("X-Linked-Size") or (
                    "" if target != url else answer.headers["Content-Length"]
                )
                plain = etag.removeprefix("W/").strip('"')
                return Location(target, plain, int(size) if size else None, answer.headers.get("X-Repo-Commit"))
            url = target
        raise bad_answer(self.network.host, "too many redirects")

    def headers_for(self, url: str) -> dict[str, str]:
        """Headers of a request for bytes; with the token only where it belongs."""
        headers = {"Accept-Encoding": "identity", "User-Agent": "qwendesk"}
        if self.network.token and self.network.is_endpoint(url):
            headers["Authorization"] = f"Bearer {self.network.token}"
        return headers

    def account(self) -> str:
        """The name of the account that the token belongs to. Raises HubTrouble "denied" when the Hub refuses it."""
        self._refuse_offline()
        if not self.network.token:
            raise HubTrouble("denied", "No token", "There is no access token to test. Save one first.")
        try:
            with translated(self.network, "your account"):
                return str(self._api.whoami()["name"])
        except HubTrouble as trouble:
            if trouble.kind != "denied":
                raise
            sentence = f"{self.network.host} does not accept this token. Make a new one there and save it here."
            raise HubTrouble("denied", "Token refused", sentence) from trouble

    def client(self) -> httpx2.Client:
        """A client for bytes, to be closed by the caller."""
        return new_client(self.network, self._is_cut)

    def _info(self, repo: str, revision: str) -> ModelInfo:
        self._refuse_offline()
        with translated(self.network, repo):
            return self._api.model_info(repo, revision=revision, timeout=self.network.stall_s)

    def _paths(self, info: ModelInfo, repo: str, paths: Sequence[str]) -> tuple[RemoteFile, ...]:
        if not info.sha:
            raise bad_answer(self.network.host, "it does not say which commit it has")
        found: list[RemoteFile] = []
        with translated(self.network, repo):
            for start in range(0, len(paths), _PATHS_AT_ONCE):
                asked = list(paths[start : start + _PATHS_AT_ONCE])
                answers = self._api.get_paths_info(repo, asked, expand=True, revision=info.sha)
                found += _remote_files(repo, info, answers)
        return tuple(found)

    def _refuse_offline(self) -> None:
        if self.network.offline or self._is_cut():
            raise offline_trouble()


def _remote_files(repo: str, info: ModelInfo, answers: Iterable[object]) -> list[RemoteFile]:
    return [
        RemoteFile(
            repo=repo,
            path=each.path,
            revision=str(info.sha),
            n_bytes=each.lfs.size if each.lfs else each.size,
            sha256=each.lfs.sha256 if each.lfs else None,
            etag=each.lfs.sha256 if each.lfs else each.blob_id,
            date=each.last_commit.date.isoformat() if each.last_commit else None,
            gated=bool(info.gated),
        )
        for each in answers
        if isinstance(each, RepoFile)
    ]


def _found(info: ModelInfo) -> FoundRepo:
    text = " ".join((info.id, *(info.tags or ()))).lower()
    return FoundRepo(
        repo=info.id,
        downloads=info.downloads or 0,
        likes=info.likes or 0,
        date=info.last_modified.isoformat() if info.last_modified else None,
        gated=bool(info.gated),
        marks=tuple(mark for mark in _MARKED if mark in text),
    )
