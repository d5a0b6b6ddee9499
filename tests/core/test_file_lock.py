"""A lock that two windows of the app respect."""

import subprocess
import sys

from qwendesk.core.file_lock import locked

HOLD = """
import sys
from pathlib import Path
from qwendesk.core.file_lock import locked
with locked(Path(sys.argv[1])) as is_ours:
    print(is_ours, flush=True)
    sys.stdin.readline()
"""


def test_only_one_holds_it_at_a_time_and_nothing_is_left(tmp_path):
    path = tmp_path / "model.gguf"
    with locked(path) as first, locked(path) as second, locked(tmp_path / "other") as third:
        assert (first, second, third) == (True, False, True)
    with locked(path) as again:
        assert again
    assert list(tmp_path.iterdir()) == []


def test_a_killed_process_gives_it_back(tmp_path):
    path = tmp_path / "model.gguf"
    command = [sys.executable, "-c", HOLD, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "True\n"
        with locked(path) as while_held:
            assert not while_held
        holder.kill()
        holder.communicate()
    with locked(path) as afterwards:
        assert afterwards
