"""The decoding process by itself."""

import os
import subprocess
import sys

import msgspec

from qwendesk.decoding.protocol import InspectImage

SHORT_LIMIT = """
import sys
import qwendesk.decoding.main as decoder
decoder.time_limit_s = lambda _request: 0.1
sys.exit(decoder.main(sys.argv[1:]))
"""


def test_decoding_process_exits_after_the_time_limit() -> None:
    request = msgspec.json.encode(InspectImage()).decode()
    # A pipe that nobody writes to or closes: the process waits for the picture until its limit.
    read_end, write_end = os.pipe()
    try:
        done = subprocess.run(
            [sys.executable, "-c", SHORT_LIMIT, request], stdin=read_end, capture_output=True, check=False
        )
    finally:
        os.close(read_end)
        os.close(write_end)

    assert done.returncode != 0
    assert b"Timeout" in done.stderr
