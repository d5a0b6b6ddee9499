"""Downloads one file, for tests that kill it: `python -m tests.hub.killable ENDPOINT REPO PATH`.

Imports once, then forks a downloader for each line on standard input (a run's name and the target), and prints its
process number and, when it has ended, its exit status: so a test of many kills pays for one import.
"""

import os
import sys
from pathlib import Path

from qwendesk.hub.download import download_file
from qwendesk.hub.download_control import DownloadControl, RetryPolicy
from qwendesk.hub.network import HubError, Network
from qwendesk.hub.remote import Hub


class Run(Hub):
    """The Hub, told with each request for bytes which run it belongs to."""

    def __init__(self, endpoint: str, name: str) -> None:
        super().__init__(Network(endpoint))
        self._name = name

    def headers_for(self, url: str) -> dict[str, str]:
        return super().headers_for(url) | {"X-Run": self._name}


def main(endpoint: str, repo: str, path: str) -> None:
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            run, target = line.rstrip("\n").split(" ", 1)
            os._exit(_download(Run(endpoint, run), repo, path, Path(target)))
        print(pid, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)


def _download(hub: Hub, repo: str, path: str, target: Path) -> int:
    retry_policy = RetryPolicy(tries=4, first_wait_s=0.001, longest_wait_s=0.001)
    try:
        download_file(hub, hub.file(repo, path), target, lambda _: None, DownloadControl(), retry_policy)
    except HubError:
        return 1
    return 0


if __name__ == "__main__":
    main(*sys.argv[1:])
