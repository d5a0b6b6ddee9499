"""The header of a GGUF file on the Hub, read by ranges before any download."""

import httpx2

from qwendesk.core.model_facts import ModelFacts
from qwendesk.hub.gguf import facts_of
from qwendesk.hub.network import HubTrouble, bad_answer, no_connection, trouble_of
from qwendesk.hub.remote import Hub, Location, RemoteFile

_LIMIT_BYTES = 80 * 1024**2
"""Read at most, whatever the header claims: no header is longer than 64 MiB."""


def remote_facts(hub: Hub, file: RemoteFile) -> ModelFacts:
    """The facts of `file`, as `read_facts` gives them for one on disk.

    Raises BadModelFile for what is no sound GGUF file, HubTrouble when it cannot be read.
    """
    with hub.client() as client:
        source = RangeSource(hub, file, client)
        return facts_of(source, file.path)


class RangeSource:
    """A remote file as a ByteSource."""

    def __init__(self, hub: Hub, file: RemoteFile, client: httpx2.Client) -> None:
        self._hub, self._file, self._client = hub, file, client
        self._location: Location | None = None
        self._left = _LIMIT_BYTES
        self.name = file.path.rsplit("/", 1)[-1]
        self.size = file.n_bytes

    def read(self, offset: int, length: int) -> bytes:
        length = min(length, self.size - offset)
        if length <= 0:
            return b""
        self._left -= length
        if self._left < 0:
            raise bad_answer(self._hub.network.host, f"the header of {self.name} does not end")
        try:
            return self._read(offset, length)
        except httpx2.HTTPError as error:
            raise no_connection(self._hub.network, error) from error

    def _read(self, offset: int, length: int) -> bytes:
        self._location = self._location or self._hub.locate(self._file, self._client)
        url = self._location.url
        headers = self._hub.headers_for(url) | {"Range": f"bytes={offset}-{offset + length - 1}"}
        got = bytearray()
        with self._client.stream("GET", url, headers=headers, follow_redirects=False) as answer:
            if answer.status_code >= 400:
                raise trouble_of(answer, self._hub.network, self._file.repo)
            if answer.status_code != 206 and offset:
                sentence = f"{answer.request.url.host} does not serve parts of files."
                raise HubTrouble("bad_answer", "Cannot read the header", sentence)
            for piece in answer.iter_raw():
                got += piece
                if len(got) >= length:
                    break
        return bytes(got[:length])
