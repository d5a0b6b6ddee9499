"""The log file of the window, when it can't be written."""

import errno
import io
import logging
from pathlib import Path

import pytest

from qwendesk.app.error_reporting import LogFile


class FullDisk(io.StringIO):
    def flush(self) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")


def test_line_that_cannot_be_written_is_printed_without_a_traceback(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = LogFile(tmp_path / "window.log", encoding="utf-8", delay=True)
    log.stream = FullDisk()
    log.handle(logging.makeLogRecord({"msg": "speeds.json could not be written"}))
    assert capsys.readouterr().err == "speeds.json could not be written\n"
