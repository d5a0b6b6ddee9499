"""One file from the Hub to its place: resumed, retried, hashed, and under its final name only when it is right."""

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal, Protocol

import httpx2
import msgspec

from qwendesk.core.file_lock import locked
from qwendesk.core.files import write_whole
from qwendesk.hub.download_control import Control, Patience
from qwendesk.hub.download_part import (
    CHUNK_BYTES,
    PartFile,
    check_space,
    discard_part,
    disk_trouble,
    expected_hash,
    new_hash,
    part_of,
)
from qwendesk.hub.network import HubTrouble, Network, bad_answer, no_connection, trouble_of
from qwendesk.hub.remote import Location, RemoteFile

_SPACE_CHECK_BYTES = 64 * 1024**2
_FRESH_STARTS = 2
"""How often content with the wrong hash is fetched anew before it is reported."""
_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+|\*)")


class Source(Protocol):
    """Where a file comes from: the Hub (hub/remote.py), or fixed addresses (hub/addresses.py)."""

    network: Network

    def client(self) -> httpx2.Client:
        """A client for bytes, to be closed by the caller."""

    def locate(self, file: RemoteFile, client: httpx2.Client) -> Location:
        """Where the bytes of `file` are now. Raises HubTrouble when it is refused."""

    def headers_for(self, url: str) -> dict[str, str]:
        """Headers of a request for bytes."""


class FileProgress(msgspec.Struct, frozen=True):
    """How far one file is."""

    phase: Literal["checking", "downloading", "waiting"]
    """checking: what is on disk is read; waiting: a retry is due, `note` says why."""
    n_bytes: int
    note: str = ""


Report = Callable[[FileProgress], None]


def download_file(
    hub: Source, file: RemoteFile, target: Path, report: Report, control: Control, patience: Patience | None = None
) -> None:
    """Blocks until `target` holds `file`. Raises HubTrouble: what is there then stays in `<target>.part` for later.

    Whatever happens, in whichever moment the process dies, `target` is either as it was before or right.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # A picture file that two models share is checked by both at once, so not under the lock.
        if not _is_there(file, target, report, control):
            with locked(part_of(target)) as is_ours:
                if not is_ours:
                    sentence = f"{target.name} is being downloaded already, perhaps by another window of QwenDesk."
                    raise HubTrouble("locked", "Already downloading", sentence)
                if not _is_there(file, target, report, control):
                    _Download(hub, file, target, report, control, patience or Patience()).run()
        _remember_origin(file, target)
    except OSError as error:
        raise disk_trouble(error, target, file.n_bytes) from error


def _is_there(file: RemoteFile, target: Path, report: Report, control: Control) -> bool:
    """Whether the right content already has its final name."""
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
    """Leaves commit and etag where huggingface_hub leaves them, so that no one needs to hash to know them."""
    depth = file.path.count("/") + 1
    if target.parts[-depth:] != tuple(file.path.split("/")):
        return
    root = target.parents[depth - 1]
    note = root / ".cache" / "huggingface" / "download" / f"{file.path}.metadata"
    write_whole(note, f"{file.revision}\n{file.etag}\n{time.time()}\n".encode())


class _Retry(Exception):
    """This try failed, another one may not."""

    def __init__(self, trouble: HubTrouble, *, at_once: bool = False) -> None:
        super().__init__(trouble.sentence)
        self.trouble = trouble
        self.at_once = at_once


class _Download:
    def __init__(
        self, hub: Source, file: RemoteFile, target: Path, report: Report, control: Control, patience: Patience
    ) -> None:
        self._hub, self._file, self._target = hub, file, target
        self._report, self._control, self._patience = report, control, patience
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
        except HubTrouble as trouble:
            if trouble.kind == "changed":
                part.close()
                discard_part(self._target)
            raise
        finally:
            part.close()
        discard_part(self._target)
        sentence = f"What {self._hub.network.host} sends as {self._target.name} is not what it announces. Try later."
        raise HubTrouble("hash_mismatch", "Wrong content", sentence)

    def _checked(self, n_bytes: int) -> None:
        self._control.check()
        self._report(FileProgress("checking", n_bytes))

    def _fetch_all(self, part: PartFile, client: httpx2.Client) -> None:
        """Until all bytes are there; right or not."""
        while part.n_bytes < self._file.n_bytes:
            before = part.n_bytes
            try:
                self._control.check()
                self._check_space(part)
                self._fetch_some(part, client)
            except _Retry as retry:
                self._wait(retry, part.n_bytes, progressed=part.n_bytes > before)

    def _fetch_some(self, part: PartFile, client: httpx2.Client) -> None:
        """One connection's worth. Returns when the file is complete, raises _Retry when it broke off."""
        try:
            self._stream(part, client, self._locate(client))
        except httpx2.TransportError as error:
            self._control.check()
            raise _Retry(no_connection(self._hub.network, error)) from error
        except httpx2.HTTPError as error:
            raise _Retry(bad_answer(self._hub.network.host, str(error))) from error
        finally:
            self._control.unwatch()
        if part.n_bytes < self._file.n_bytes:
            self._control.check()
            raise _Retry(bad_answer(self._hub.network.host, "the file ended early"))

    def _locate(self, client: httpx2.Client) -> Location:
        """Where the bytes are now. Refusals of the endpoint are final."""
        try:
            location = self._hub.locate(self._file, client)
        except HubTrouble as trouble:
            if trouble.kind in ("busy", "bad_answer"):
                raise _Retry(trouble) from trouble
            raise
        if self._is_other(location):
            sentence = f"{self._target.name} was changed on the Hub. Download it again to get the present version."
            raise HubTrouble("changed", "Changed on the Hub", sentence)
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
        """How much of the body we have already: all that we have, when the server ignores Range."""
        host = answer.request.url.host
        if answer.status_code >= 400:
            trouble = trouble_of(answer, self._hub.network, self._file.repo)
            if trouble.kind == "busy":
                raise _Retry(trouble)
            if answer.status_code == 416:
                part.start_over()
                raise _Retry(trouble, at_once=True)
            if self._hub.network.is_endpoint(location.url):
                raise trouble
            raise _Retry(trouble, at_once=True)  # a signed address that has expired: the endpoint gives a new one
        if answer.headers.get("Content-Encoding", "identity") != "identity":
            raise _Retry(bad_answer(host, "the file comes compressed"))
        if answer.status_code == 200:
            return part.n_bytes
        found = _RANGE.fullmatch(answer.headers.get("Content-Range", ""))
        if answer.status_code != 206 or found is None or int(found[1]) != part.n_bytes:
            raise _Retry(bad_answer(host, "it sends another part than asked for"))
        if found[2] not in ("*", str(self._file.n_bytes)):
            raise _Retry(bad_answer(host, "the file has another size there"))
        return 0

    def _check_space(self, part: PartFile) -> None:
        if part.n_bytes - self._space_checked_at >= _SPACE_CHECK_BYTES or part.n_bytes < self._space_checked_at:
            check_space(self._target, self._file.n_bytes - part.n_bytes)
            self._space_checked_at = part.n_bytes

    def _wait(self, retry: _Retry, n_bytes: int, *, progressed: bool) -> None:
        """Until the next try. Raises the trouble when there were too many."""
        self._failures = 1 if progressed else self._failures + 1
        trouble, asked = retry.trouble, retry.trouble.retry_after_s
        if self._failures >= self._patience.tries or (asked or 0) > self._patience.longest_asked_s:
            raise trouble from retry
        if retry.at_once and self._failures == 1:
            return
        self._report(FileProgress("waiting", n_bytes, trouble.sentence))
        self._control.wait(self._patience.wait_s(self._failures) if asked is None else asked)
