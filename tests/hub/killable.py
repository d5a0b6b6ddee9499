"""Downloads one file, for tests that kill it: `python -m tests.hub.killable ENDPOINT REPO PATH`.

Imports once, then forks a downloader for each line (the target) on standard input, and prints its process number
and, when it has ended, its exit status: so a test of many kills pays for one import.
"""

import os
import sys
from pathlib import Path

from qwendesk.hub.download import download_file
from qwendesk.hub.download_control import Control, Patience
from qwendesk.hub.network import HubTrouble, Network
from qwendesk.hub.remote import Hub


def main(endpoint: str, repo: str, path: str) -> None:
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            os._exit(_download(endpoint, repo, path, Path(line.strip())))
        print(pid, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)


def _download(endpoint: str, repo: str, path: str, target: Path) -> int:
    patience = Patience(tries=4, first_wait_s=0.001, longest_wait_s=0.001)
    try:
        hub = Hub(Network(endpoint))
        download_file(hub, hub.file(repo, path), target, lambda _: None, Control(), patience)
    except HubTrouble:
        return 1
    return 0


if __name__ == "__main__":
    main(*sys.argv[1:])
