"""A lock that two windows of the app respect."""

import subprocess
import sys
import threading

from qwendesk.core.files import locked

HOLD = """
import sys
from pathlib import Path
from qwendesk.core.files import locked
with locked(Path(sys.argv[1])) as is_ours:
    print(is_ours, flush=True)
    sys.stdin.readline()
"""


def test_lock_has_one_holder_at_a_time_and_leaves_no_file(tmp_path):
    path = tmp_path / "model.gguf"
    with locked(path) as first, locked(path) as second, locked(tmp_path / "other") as third:
        assert (first, second, third) == (True, False, True)
    with locked(path) as again:
        assert again
    assert list(tmp_path.iterdir()) == []


def test_lock_of_a_killed_process_is_released(tmp_path):
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


def test_locked_waits_until_the_lock_is_released(tmp_path):
    path = tmp_path / "chats.db"
    taken, waited = threading.Event(), []

    def hold() -> None:
        with locked(path):
            taken.set()
            asked.wait()

    asked = threading.Event()
    holder = threading.Thread(target=hold)
    holder.start()
    taken.wait()
    with locked(path) as at_once:
        waited.append(at_once)
    asked.set()
    with locked(path, timeout_s=120) as later:
        waited.append(later)
    holder.join()
    assert waited == [False, True]
