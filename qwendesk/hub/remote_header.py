"""Reads the header of a GGUF file on the Hub by range requests, before any download."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING

from qwendesk.core.model_facts import ModelFacts
from qwendesk.core.translation import tr
from qwendesk.hub.gguf import facts_of
from qwendesk.hub.network import HubError, bad_answer_error, no_connection_error, status_error
from qwendesk.hub.remote import Hub, Location, RemoteFile

if TYPE_CHECKING:
    import httpx2

# Limit of all reads together, whatever the header claims: no header is longer than 64 MiB.
_LIMIT_BYTES = 80 * 1024**2
# Limit of the time for them, against a server that sends a byte now and then.
_LIMIT_S = 600.0


def remote_facts(hub: Hub, file: RemoteFile, is_stopped: Callable[[], bool] = lambda: False) -> ModelFacts:
    """Return the facts of `file`, as `gguf.read_facts` does for a file on disk.

    Raises BadModelFile for a broken file and HubError if it can't be read: "stopped" once `is_stopped` returns True,
    which is asked for each range.
    """
    with hub.client() as client:
        source = RangeSource(hub, file, client, is_stopped)
        return facts_of(source, file.path)


class RangeSource:
    """A remote file as a ByteSource."""

    def __init__(self, hub: Hub, file: RemoteFile, client: httpx2.Client, is_stopped: Callable[[], bool]) -> None:
        self._hub, self._file, self._client, self._is_stopped = hub, file, client, is_stopped
        self._location: Location | None = None
        self._left, self._end_s = _LIMIT_BYTES, monotonic() + _LIMIT_S
        self.name = file.path.rsplit("/", 1)[-1]
        self.size = file.n_bytes

    def read(self, offset: int, length: int) -> bytes:
        import httpx2

        length = min(length, self.size - offset)
        if length <= 0:
            return b""
        self._left -= length
        if self._left < 0:
            raise bad_answer_error(self._hub.network.host, tr("a header of {0} without an end", self.name))
        if self._is_stopped():
            raise HubError("stopped", tr("Stopped"), tr("Reading the header of {0} was stopped.", self.name))
        try:
            return self._read(offset, length)
        except httpx2.TransportError as error:
            raise no_connection_error(self._hub.network, error) from error
        except httpx2.HTTPError as error:
            raise bad_answer_error(self._hub.network.host, str(error)) from error

    def _read(self, offset: int, length: int) -> bytes:
        self._location = self._location or self._hub.locate(self._file, self._client)
        url = self._location.url
        headers = self._hub.headers_for(url) | {"Range": f"bytes={offset}-{offset + length - 1}"}
        got = bytearray()
        with self._client.stream("GET", url, headers=headers, follow_redirects=False) as answer:
            if answer.status_code >= 400:
                raise status_error(answer, self._hub.network, self._file.repo)
            if answer.status_code not in (200, 206):
                raise bad_answer_error(answer.request.url.host, tr("status {0}", answer.status_code))
            if answer.status_code != 206 and offset:
                sentence = tr("{0} doesn't send parts of files, so the header can't be read.", answer.request.url.host)
                raise HubError("bad_answer", tr("Can't read the header"), sentence)
            for piece in answer.iter_raw():
                got += piece
                if len(got) >= length:
                    break
                if monotonic() > self._end_s:
                    raise bad_answer_error(answer.request.url.host, tr("the answer doesn't end"))
        return bytes(got[:length])
