"""The decoding process: it gets all of its input, and ends when nobody wants the answer any more."""

from collections.abc import Iterator
from itertools import chain, repeat

import pytest

from qwendesk.core.units import MIB
from qwendesk.decoding import process
from qwendesk.decoding.process import run_decoder
from qwendesk.decoding.protocol import DecodeRefusal, PageText, ReadPage

REQUEST = ReadPage(max_characters=1000)


def test_input_larger_than_a_pipe_arrives_while_the_process_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_LOOK_EVERY_S", 0.001)  # many looks before it has read anything
    page = b"<title>Boats</title><p>" + b" " * 8 * MIB + b"They float."
    reply, text = run_decoder(page, REQUEST)
    assert reply == PageText("Boats")
    assert text == b"They float."


def test_process_whose_work_was_cancelled_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_LOOK_EVERY_S", 0.01)
    looks: Iterator[bool] = chain([False, False], repeat(True))
    attributes = b" ".join(b"a%d=1" % number for number in range(1_000_000))
    page = b"<p " + attributes + b">x"  # each is compared with all others, which takes minutes
    reply, _ = run_decoder(page, REQUEST, lambda: next(looks))
    assert isinstance(reply, DecodeRefusal)
    assert (reply.reason, reply.detail) == ("failed", "it was cancelled")
