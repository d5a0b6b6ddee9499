"""Two starts of the app at the same time on the same folder."""

import sys
from pathlib import Path
from subprocess import PIPE, Popen

_START = """
import sys
from pathlib import Path
from qwendesk.store.opening import open_store
print("ready", flush=True)
sys.stdin.readline()
store, report = open_store(Path(sys.argv[1]))
print(report, flush=True)
if store is not None:
    store.close()
"""


def test_two_simultaneous_first_starts_open_the_same_store(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _START]
    for attempt in range(4):
        starts = [Popen([*command, str(tmp_path / str(attempt))], stdin=PIPE, stdout=PIPE, text=True) for _ in range(2)]
        for start in starts:
            assert start.stdout is not None
            assert start.stdout.readline() == "ready\n"
        for start in starts:
            assert start.stdin is not None
            start.stdin.write("go\n")
            start.stdin.flush()
        assert [start.communicate()[0] for start in starts] == ["None\n", "None\n"]
