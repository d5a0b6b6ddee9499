"""What the decoder times, on a model that takes as long as a test says."""

from collections.abc import Sequence

import pytest

from qwendesk.engine.worker import decoder as decoder_module
from qwendesk.engine.worker.decoder import Decoder
from qwendesk.engine.worker.drafts import DraftGate, OpenGate

RIGHT, WRONG = 7, 8


class Slow:
    """A model, its memory and its drafter. Only they move the clock."""

    position = 0

    def __init__(self, *, decode_s: float, row_s: float, draft_s: float, drafts: Sequence[int]) -> None:
        self.now_s = 100.0
        self._decode_s, self._row_s, self._draft_s, self._drafts = decode_s, row_s, draft_s, drafts

    def decode(self, tokens: Sequence[int], _position: int, *, rows: int = 1) -> None:
        self.now_s += self._decode_s + self._row_s * (len(tokens) - 1)

    def append(self, *_tokens: int) -> None: ...

    def cut_unrecorded(self) -> bool:
        return True

    def add(self, _token: int) -> None: ...

    def propose(self, most: int) -> Sequence[int]:
        self.now_s += self._draft_s
        return self._drafts[:most]


def decoded(slow: Slow, gate: DraftGate, monkeypatch: pytest.MonkeyPatch, n_tokens: int = 120) -> Decoder:
    monkeypatch.setattr(decoder_module.time, "perf_counter", lambda: slow.now_s)
    made = Decoder(slow, slow, gate)  # type: ignore[arg-type]
    made.draft_with(slow, 3)
    for _ in range(n_tokens):
        made.advance(RIGHT, 100)
    return made


def test_drafts_whose_making_takes_longer_than_they_save_are_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Slow(decode_s=1.0, row_s=0.1, draft_s=3.5, drafts=(RIGHT, RIGHT, RIGHT))
    gate = DraftGate()

    made = decoded(slow, gate, monkeypatch)

    assert not gate.is_open, "four tokens took 1.3 s and 3.5 s before, and 4 s without"
    assert made.drafts_lost_s == pytest.approx(6 * 0.8)
    assert made.engine_s == pytest.approx(slow.now_s - 100.0)


def test_drafts_that_are_right_gain_time(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Slow(decode_s=1.0, row_s=0.1, draft_s=0.0, drafts=(RIGHT, RIGHT, RIGHT))

    made = decoded(slow, DraftGate(), monkeypatch)

    assert made.drafts_lost_s < -50


def test_drafts_that_are_wrong_lose_time(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Slow(decode_s=1.0, row_s=0.5, draft_s=0.0, drafts=(WRONG, WRONG))
    gate = DraftGate()

    made = decoded(slow, gate, monkeypatch, n_tokens=20)

    assert made.drafted == 12, "six steps of two"
    assert made.drafts_lost_s == pytest.approx(6.0)


def test_what_drafts_cost_is_not_known_without_steps_to_compare_with(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Slow(decode_s=1.0, row_s=0.5, draft_s=0.0, drafts=(WRONG,))

    assert decoded(slow, OpenGate(), monkeypatch, n_tokens=20).drafts_lost_s == 0
