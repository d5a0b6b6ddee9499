"""Downloads one file from the Hub: resumes, retries, verifies, and gives it its final name only if it is correct."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

import msgspec

from qwendesk.core.files import locked, write_whole
from qwendesk.core.permissions import make_folder
from qwendesk.core.translation import tr
from qwendesk.hub.download_control import DownloadControl, RetryPolicy
from qwendesk.hub.download_part import (
    CHUNK_BYTES,
    PartFile,
    check_space,
    discard_part,
    disk_error,
    expected_hash,
    new_hash,
    part_of,
)
from qwendesk.hub.network import (
    HubError,
    Network,
    bad_answer_error,
    is_lasting,
    no_connection_error,
    page_error,
    status_error,
)
from qwendesk.hub.remote import Location, RemoteFile

if TYPE_CHECKING:
    import httpx2

_SPACE_CHECK_BYTES = 64 * 1024**2
# How often a file is downloaded again after a wrong hash before the error is reported.
_FRESH_STARTS = 2
_RANGE = re.compile(r"bytes ([0-9]{1,18})-[0-9]{1,18}/([0-9]{1,18}|\*)")


class DownloadSource(Protocol):
    """Where files come from: the Hub, or fixed addresses."""

    network: Network

    def client(self) -> httpx2.Client:
        """Return a client to fetch bytes with; the caller closes it."""

    def locate(self, file: RemoteFile, client: httpx2.Client) -> Location:
        """Return where the bytes of `file` are now. Raises HubError if access is denied."""

    def headers_for(self, url: str) -> dict[str, str]:
        """Return the headers of a request for bytes."""


class FileProgress(msgspec.Struct, frozen=True):
    """Progress of one file."""

    phase: Literal["checking", "downloading", "waiting"]
    """checking: the bytes on disk are read and hashed; waiting: the next attempt follows, and `note` says why."""
    n_bytes: int
    note: str = ""


Report = Callable[[FileProgress], None]


def download_file(
    hub: DownloadSource,
    file: RemoteFile,
    target: Path,
    report: Report,
    control: DownloadControl,
    retry_policy: RetryPolicy | None = None,
) -> None:
    """Download `file` to `target`. Block until it is complete.

    Raises HubError; the bytes received so far stay in `<target>.part` for the next time. Even if the process is killed,
    `target` is either unchanged or complete and verified.
    """
    try:
        make_folder(target.parent)
        # Not under the lock, because two models that share an mmproj may check it at the same time.
        if not _is_there(file, target, report, control):
            with locked(part_of(target)) as is_ours:
                if not is_ours:
                    sentence = tr("{0} is already being downloaded, perhaps by another QwenDesk window.", target.name)
                    raise HubError("locked", tr("Already downloading"), sentence)
                if not _is_there(file, target, report, control):
                    _Download(hub, file, target, report, control, retry_policy or RetryPolicy()).run()
        _remember_origin(file, target)
    except OSError as error:
        raise disk_error(error, target, file.n_bytes) from error


def _is_there(file: RemoteFile, target: Path, report: Report, control: DownloadControl) -> bool:
    """Return True if the target already has the right content."""
    wanted = expected_hash(file)
    if not wanted or not target.is_file() or target.stat().st_size != file.n_bytes:
        return False
    found, done = new_hash(file), 0
    with target.open("rb") as stream:
        while piece := stream.read(CHUNK_BYTES):
            found.update(piece)
            done += len(piece)
            control.check()
            report(FileProgress("checking", done))
    return found.hexdigest() == wanted


def _remember_origin(file: RemoteFile, target: Path) -> None:
    """Record commit and etag where huggingface_hub does, so that no program has to hash the file to identify it."""
    depth = file.path.count("/") + 1
    if target.parts[-depth:] != tuple(file.path.split("/")):
        return
    root = target.parents[depth - 1]
    note = root / ".cache" / "huggingface" / "download" / f"{file.path}.metadata"
    write_whole(note, f"{file.revision}\n{file.etag}\n{time.time()}\n".encode())


class _Retry(Exception):
    """This attempt failed; another may succeed."""

    def __init__(self, error: HubError, *, at_once: bool = False) -> None:
        super().__init__(error.sentence)
        self.error = error
        self.at_once = at_once


class _Download:
    def __init__(
        self,
        hub: DownloadSource,
        file: RemoteFile,
        target: Path,
        report: Report,
        control: DownloadControl,
        retry_policy: RetryPolicy,
    ) -> None:
        self._hub, self._file, self._target = hub, file, target
        self._report, self._control, self._retry_policy = report, control, retry_policy
        self._failures = 0
        self._space_checked_at = -_SPACE_CHECK_BYTES

    def run(self) -> None:
        part = PartFile(self._target, self._file, self._checked)
        try:
            with self._hub.client() as client:
                for _ in range(_FRESH_STARTS):
                    self._fetch_all(part, client)
                    if part.is_right:
                        part.finish()
                        return
                    part.start_over()
        except HubError as error:
            if error.kind == "changed":
                part.close()
                discard_part(self._target)
            raise
        finally:
            part.close()
        discard_part(self._target)
        host = self._hub.network.host
        sentence = tr("{0} sent wrong content for {1} several times. Try again later.", host, self._target.name)
        raise HubError("hash_mismatch", tr("Wrong content"), sentence)

    def _checked(self, n_bytes: int) -> None:
        self._control.check()
        self._report(FileProgress("checking", n_bytes))

    def _fetch_all(self, part: PartFile, client: httpx2.Client) -> None:
        """Fetch until all bytes are on disk. Their hash is checked later."""
        while part.n_bytes < self._file.n_bytes:
            before = part.n_bytes
            try:
                self._control.check()
                self._check_space(part)
                self._fetch_some(part, client)
            except _Retry as retry:
                self._wait(retry, part.n_bytes, progressed=part.n_bytes > before)

    def _fetch_some(self, part: PartFile, client: httpx2.Client) -> None:
        """Fetch over one connection. Raises _Retry if it breaks before the file is complete."""
        import httpx2

        try:
            self._stream(part, client, self._locate(client))
        except httpx2.TransportError as error:
            self._control.check()
            failure = no_connection_error(self._hub.network, error)
            raise (failure if is_lasting(error) else _Retry(failure)) from error
        except httpx2.HTTPError as error:
            raise _Retry(bad_answer_error(self._hub.network.host, str(error))) from error
        finally:
            self._control.unwatch()
        if part.n_bytes < self._file.n_bytes:
            self._control.check()
            raise _Retry(bad_answer_error(self._hub.network.host, tr("a file that ends too early")))

    def _locate(self, client: httpx2.Client) -> Location:
        """Return where the bytes are now. Doesn't retry if the endpoint denies access."""
        try:
            location = self._hub.locate(self._file, client)
        except HubError as error:
            if error.kind in ("busy", "bad_answer"):
                raise _Retry(error) from error
            raise
        if self._is_other(location):
            sentence = tr("{0} has changed on Hugging Face. Download it again.", self._target.name)
            raise HubError("changed", tr("Changed on Hugging Face"), sentence)
        return location

    def _is_other(self, location: Location) -> bool:
        file = self._file
        return bool(location.etag and file.etag and location.etag != file.etag) or (
            location.n_bytes is not None and location.n_bytes != file.n_bytes
        )

    def _stream(self, part: PartFile, client: httpx2.Client, location: Location) -> None:
        headers = self._hub.headers_for(location.url)
        if part.n_bytes:
            headers["Range"] = f"bytes={part.n_bytes}-"
        with client.stream("GET", location.url, headers=headers, follow_redirects=False) as answer:
            self._control.watch(answer)
            skip = self._bytes_to_skip(answer, part, location)
            for piece in answer.iter_raw():
                self._control.check()
                fresh, skip = piece[skip:], max(skip - len(piece), 0)
                part.write(fresh)
                self._report(FileProgress("downloading", part.n_bytes))
                if part.n_bytes >= self._file.n_bytes:
                    return
                self._check_space(part)
                if delay := self._control.limit.delay_for(len(piece)):
                    self._control.wait(delay)

    def _bytes_to_skip(self, answer: httpx2.Response, part: PartFile, location: Location) -> int:
        """Return how many bytes of the body to skip: all that are on disk if the server ignores Range."""
        host = answer.request.url.host
        if answer.status_code >= 400:
            error = status_error(answer, self._hub.network, self._file.repo)
            if error.kind == "busy":
                raise _Retry(error)
            if answer.status_code == 416:
                part.start_over()
                raise _Retry(error, at_once=True)
            if self._hub.network.is_endpoint(location.url):
                raise error
            raise _Retry(error, at_once=True)  # the signed address expired; the endpoint gives a new one
        if page := page_error(answer):
            raise _Retry(page)
        if answer.headers.get("Content-Encoding", "identity") != "identity":
            raise _Retry(bad_answer_error(host, tr("a compressed file")))
        if answer.status_code == 200:
            return part.n_bytes
        found = _RANGE.fullmatch(answer.headers.get("Content-Range", ""))
        if answer.status_code != 206 or found is None or int(found[1]) != part.n_bytes:
            raise _Retry(bad_answer_error(host, tr("another range than requested")))
        if found[2] not in ("*", str(self._file.n_bytes)):
            raise _Retry(bad_answer_error(host, tr("another file size than announced")))
        return 0

    def _check_space(self, part: PartFile) -> None:
        if part.n_bytes - self._space_checked_at >= _SPACE_CHECK_BYTES or part.n_bytes < self._space_checked_at:
            check_space(self._target, self._file.n_bytes - part.n_bytes)
            self._space_checked_at = part.n_bytes

    def _wait(self, retry: _Retry, n_bytes: int, *, progressed: bool) -> None:
        """Wait for the next attempt. Raises the error if there were too many attempts."""
        self._failures = 1 if progressed else self._failures + 1
        error, asked = retry.error, retry.error.retry_after_s
        if self._failures >= self._retry_policy.tries or (asked or 0) > self._retry_policy.longest_asked_s:
            raise error from retry
        if retry.at_once and self._failures == 1:
            return
        self._report(FileProgress("waiting", n_bytes, error.sentence))
        self._control.wait(self._retry_policy.wait_s(self._failures) if asked is None else asked)
