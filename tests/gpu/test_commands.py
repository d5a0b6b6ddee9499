"""The commands on a device: `qwendesk doctor`."""

import json
import subprocess
import sys

from tests.engine.device import TEST_DEVICE


def test_doctor_passes_on_the_device():
    command = [sys.executable, "-m", "qwendesk", "doctor", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    diagnosis = json.loads(done.stdout)
    assert TEST_DEVICE in [device["name"] for device in diagnosis["devices"]]
    assert [check["name"] for check in diagnosis["self_test"] if not check["passed"]] == []
