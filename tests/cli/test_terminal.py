"""What reaches a terminal, and commands without one: a program of Windows without a console has no streams at all."""

import io
import json
import sys

import pytest

from qwendesk.cli import main as cli
from qwendesk.cli.terminal import Terminal, open_missing_streams
from qwendesk.core.paths import demo_model

STREAMS = ("stdin", "stdout", "stderr")


@pytest.mark.parametrize(
    ("file", "statuses"), [("no-such-file.gguf", (2,)), (str(demo_model()), (0, 1))], ids=["no file", "demo"]
)
def test_command_with_a_closed_pipe_keeps_its_exit_status(file: str, statuses: tuple[int, ...]) -> None:
    # Here and not in a fixture: pytest puts its own streams back before each test.
    with pytest.MonkeyPatch.context() as patch:
        for name in STREAMS:
            patch.setattr(sys, name, None)
        status = cli.main(["plan", file])
        opened = {getattr(sys, name) for name in STREAMS}
    for stream in opened:
        stream.close()
    assert status in statuses


def test_existing_streams_are_kept() -> None:
    before = [getattr(sys, name) for name in STREAMS]
    open_missing_streams()
    assert [getattr(sys, name) for name in STREAMS] == before


def test_json_controls_no_terminal() -> None:
    out = io.StringIO()
    Terminal(out, io.StringIO()).write_json({"answer": "\x1b[2J\x9b2J\x7f ü"})
    assert not set(out.getvalue()) & {"\x1b", "\x9b", "\x7f"}
    assert json.loads(out.getvalue()) == {"answer": "\x1b[2J\x9b2J\x7f ü"}
    assert "ü" in out.getvalue()
