"""Files at fixed addresses with known hashes: engine packs. They are fetched like those of the Hub."""

from collections.abc import Callable, Mapping

import httpx2

from qwendesk.hub.network import Network, never, new_client, offline_trouble, trouble_of
from qwendesk.hub.remote import Location, RemoteFile


class Addresses:
    """Fulfils download.Source: each file has one address, which may redirect. The Hub's token is never sent."""

    def __init__(self, network: Network, address_of: Mapping[str, str], is_cut: Callable[[], bool] = never) -> None:
        """`address_of`: https address by the file's path. `is_cut` as for `remote.Hub`."""
        self.network = network
        self._is_cut = is_cut
        self._address_of = dict(address_of)

    def client(self) -> httpx2.Client:
        return new_client(self.network, self._is_cut)

    def locate(self, file: RemoteFile, client: httpx2.Client) -> Location:
        if self.network.offline or self._is_cut():
            raise offline_trouble()
        answer = client.head(self._address_of[file.path], headers=self.headers_for(""), follow_redirects=True)
        if answer.status_code >= 400:
            raise trouble_of(answer, self.network, file.repo)
        size = answer.headers.get("Content-Length")
        return Location(str(answer.url), "", int(size) if size else None, None)

    def headers_for(self, _url: str) -> dict[str, str]:
        return {"Accept-Encoding": "identity", "User-Agent": "qwendesk"}
