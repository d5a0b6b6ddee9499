"""Threads make room for other programs, and an answer that is to be the same each time keeps its own."""

import subprocess
import sys
import time
from collections import namedtuple
from collections.abc import Iterator
from itertools import pairwise
from types import SimpleNamespace

import llama_cpp.llama_cpp as C  # noqa: N812
import msgspec
import pytest

from qwendesk.core.generation_options import GenerationOptions
from qwendesk.engine.worker import threads as threads_module
from qwendesk.engine.worker.loader import Session
from qwendesk.engine.worker.threads import (
    Threads,
    ThreadsOfAnswer,
    _CoresWanted,
    _delays,
    count_wanted,
    fit_threads,
    wanted_by_others,
)
from tests.engine.worker.process import greedy, user
from tests.engine.worker.test_drafts import ask, loaded

FREE = GenerationOptions()


@pytest.mark.parametrize(
    ("most", "n_cores", "n_wanted", "expected"),
    [
        (2, 2, 0.0, 2),
        (2, 2, 0.4, 2),
        (2, 2, 0.6, 1),
        (2, 2, 7.0, 1),
        (8, 8, 1.0, 7),
        (8, 8, 2.6, 5),
        (8, 8, 20.0, 4),
        (8, 16, 6.0, 8),
        (8, 16, 10.0, 6),
        (4, 16, 3.0, 4),
        (16, 8, 0.0, 16),
        (16, 8, 1.0, 8),
        (3, 4, 9.0, 2),
        (1, 1, 3.0, 1),
    ],
)
def test_threads_that_fit_beside_others(most: int, n_cores: int, n_wanted: float, expected: int) -> None:
    assert fit_threads(most, n_cores, n_wanted) == expected


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    made = loaded(speculative="lookup", n_threads=2)
    yield made
    made.close()


class Others:
    """Other programs, and a clock that only this test moves."""

    def __init__(self, session: Session, n_cores: int = 2) -> None:
        self.want, self.now_s, self.n_looks = 0.0, 1000.0, 0
        self.threads = Threads(session.model, 2, 2, lambda: self.now_s)
        self.threads._n_cores, self.threads._wanted = n_cores, self._wanted  # type: ignore[method-assign]
        self.threads._ready = lambda: round(self.want)  # type: ignore[method-assign]
        self.ctx = session.model.ctx

    def _wanted(self) -> float:
        self.n_looks += 1
        return self.want

    def look(self, times: int) -> None:
        for _ in range(times):
            self.now_s += 0.25
            self.threads.look()

    def pass_s(self, seconds: float, answer: ThreadsOfAnswer) -> None:
        for _ in range(round(seconds / 0.05)):
            self.now_s += 0.05
            answer.follow()

    @property
    def n_threads(self) -> tuple[int, int]:
        return int(C.llama_n_threads(self.ctx)), int(C.llama_n_threads_batch(self.ctx))


def test_threads_follow_other_programs(session: Session) -> None:
    others = Others(session)
    answer = ThreadsOfAnswer(others.threads, FREE)
    others.pass_s(2, answer)
    assert others.n_threads == (2, 2)
    assert others.n_looks <= 21
    others.want = 1.0
    others.pass_s(0.1, answer)
    assert others.n_threads == (2, 2), "one look may have seen anything"
    others.want = 2.0
    others.pass_s(2, answer)
    assert others.n_threads == (1, 1)
    others.want = 0.0
    others.pass_s(2.5, answer)
    assert others.n_threads == (2, 2)
    assert answer.fewest == 1


def test_the_draft_head_has_the_threads_of_its_model() -> None:
    with_head = loaded(speculative="mtp", n_threads=2)
    try:
        others = Others(with_head)
        answer = ThreadsOfAnswer(others.threads, FREE)
        assert with_head.model.head is not None
        for want, expected in ((2.0, 1), (0.0, 2)):
            others.want = want
            others.pass_s(3, answer)
            assert C.llama_n_threads(with_head.model.head.ctx) == others.n_threads[0] == expected
    finally:
        with_head.close()


def test_threads_change_at_most_once_a_second(session: Session) -> None:
    others = Others(session)
    answer = ThreadsOfAnswer(others.threads, FREE)
    changed_at = [others.now_s]
    for number in range(50):
        others.want = 4.0 * (number % 2)
        for _ in range(10):
            before = others.n_threads
            others.pass_s(0.05, answer)
            if others.n_threads != before:
                changed_at.append(others.now_s)
    assert len(changed_at) > 5
    assert all(later - earlier > 0.99 for earlier, later in pairwise(changed_at[1:]))


@pytest.mark.parametrize("options", [greedy(), GenerationOptions(seed=3)], ids=["greedy", "seed"])
def test_an_answer_that_is_to_be_the_same_keeps_its_threads(session: Session, options: GenerationOptions) -> None:
    others = Others(session)
    answer = ThreadsOfAnswer(others.threads, options)
    others.want = 2.0
    others.pass_s(5, answer)
    assert others.n_threads == (2, 2)
    later = ThreadsOfAnswer(others.threads, options)
    assert others.n_threads == (1, 1), "the next one begins with what fits now"
    others.want = 0.0
    others.pass_s(5, later)
    assert others.n_threads == (1, 1)
    answer.resume()
    assert others.n_threads == (2, 2), "also after another answer interrupted it"


@pytest.mark.parametrize("options", [greedy(), FREE], ids=["greedy", "free"])
def test_an_answer_begins_with_all_threads_if_others_have_just_ended(
    session: Session, options: GenerationOptions
) -> None:
    others = Others(session)
    others.want = 2.0
    others.look(6)
    assert others.threads.n_wanted == 2
    others.want = 0.0
    answer = ThreadsOfAnswer(others.threads, options)
    assert others.n_threads == (2, 2)
    others.pass_s(3, answer)
    assert others.n_threads == (2, 2), "what was seen before doesn't count any more"
    assert answer.fewest == 2


def test_what_was_seen_long_ago_does_not_count(session: Session) -> None:
    others = Others(session)
    others.want = 2.0
    others.pass_s(2, ThreadsOfAnswer(others.threads, FREE))
    others.now_s += 60
    others.want = 0.0
    answer = ThreadsOfAnswer(others.threads, FREE)
    others.pass_s(0.05, answer)
    assert others.n_threads == (2, 2)


def test_an_answer_says_with_how_many_threads_it_was_computed(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = msgspec.structs.replace(session, threads=Others(session).threads)
    answer = ask(alone, [user("What is VRAM spill?")], GenerationOptions(max_tokens=8))
    assert (answer.stats.n_threads, answer.stats.most_threads) == (2, 2)
    others = Others(session)
    others.want = 2.0
    others.pass_s(2, ThreadsOfAnswer(others.threads, FREE))
    crowded = msgspec.structs.replace(session, threads=others.threads)
    answer = ask(crowded, [user("What is VRAM spill?")], greedy(max_tokens=8))
    assert (answer.stats.n_threads, answer.stats.most_threads) == (1, 2)


@pytest.mark.parametrize(
    ("n_ready", "used", "taken", "expected"),
    [
        (0, 1.9, 0.9, 0.0),
        (2, 2.0, 0.0, 2.0),
        (2, 1.0, 0.0, 2.0),
        (1, 0.5, 0.0, 1.0),
        (2, 0.0, 0.1, 0.1),
        (2, 0.0, 1.0, 1.0),
        (1, 0.1, 0.5, 0.5),
    ],
    ids=["they have ended", "both cores are theirs", "they share both with us", "one shares one with us",
         "low priority: next to nothing is taken", "low priority in another session: takes half",
         "one in another session"],
)  # fmt: skip
def test_who_waits_for_a_core_counts_by_what_it_takes(n_ready: int, used: float, taken: float, expected: float) -> None:
    assert count_wanted(n_ready, used, taken) == pytest.approx(expected)


def test_what_was_taken_is_believed_for_a_while_once_there_are_fewer_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    now, delays, n_ready = [100.0], {"1": 0.0}, [2]
    monkeypatch.setattr(threads_module.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(threads_module, "_delays", lambda: dict(delays))
    monkeypatch.setattr(threads_module, "_ready", lambda: n_ready[0])
    wanted = _CoresWanted()
    wanted._usage.cores = lambda: 0.0  # type: ignore[method-assign]

    def after(seconds: float, delay: float) -> float:
        now[0] += seconds
        delays["1"] += delay
        return wanted.cores()

    def held(expected: float) -> bool:
        return abs(after(0.1, 0.0) - expected) < 0.01

    assert max(after(0.1, 0.09) for _ in range(3)) < 0.5, "two threads on one core take from each other for a moment"
    for _ in range(60):
        last = after(0.1, 0.1)
    assert last == pytest.approx(1.0, abs=0.01)
    assert all(held(last) for _ in range(99))
    n_ready[0] = 0
    assert after(0.1, 0.0) == 0.0, "they have ended"
    n_ready[0] = 2
    assert after(0.1, 0.0) < 0.1, "all threads try again"


def test_programs_of_low_priority_and_other_machines_use_none_of_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("user", "nice", "system", "idle", "iowait", "irq", "steal", "guest", "guest_nice")
    times = namedtuple("scputimes", names)
    spent, now = [times(*[0.0] * 9)], [100.0]
    monkeypatch.setattr(threads_module.psutil, "cpu_times", lambda: spent[0])
    monkeypatch.setattr(threads_module.time, "monotonic", lambda: now[0])
    usage = threads_module._Usage()
    usage._own = SimpleNamespace(cpu_times=lambda: SimpleNamespace(user=0.0, system=0.0))  # type: ignore[assignment]
    usage._last = usage._now()
    now[0], spent[0] = 102.0, times(1.0, 1.5, 0.4, 0.5, 0.1, 0.1, 0.2, 0.5, 0.2)
    assert usage.cores() == pytest.approx((1.0 + 0.4 + 0.1) / 2)


def test_a_busy_program_is_seen() -> None:
    wanted = wanted_by_others()
    with subprocess.Popen([sys.executable, "-c", "print(flush=True)\nwhile True: pass"],
                          stdout=subprocess.PIPE) as busy:  # fmt: skip
        try:
            assert busy.stdout is not None
            busy.stdout.readline()
            wanted()
            until = time.process_time() + 0.3
            while time.process_time() < until:
                pass
            assert wanted() > 0.3
        finally:
            busy.kill()


def test_an_answer_knows_what_others_wanted_meanwhile(session: Session) -> None:
    others = Others(session)
    others.want = 2.0
    others.look(6)
    answer = ThreadsOfAnswer(others.threads, FREE)
    others.want = 1.0
    others.look(1)
    assert answer.mean_wanted == 0.0, "one look is too little to tell"
    others.look(3)

    assert answer.mean_wanted == 1.0, "what they wanted before doesn't count"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells how long a thread waited for a core")
def test_waits_for_a_core_are_those_of_the_thread_that_waited_most(session: Session, monkeypatch) -> None:
    delays = {"1": 5.0, "2": 7.0}
    monkeypatch.setattr("qwendesk.engine.worker.threads._delays", lambda: dict(delays))
    answer = ThreadsOfAnswer(Others(session).threads, FREE)
    delays |= {"1": 5.5, "2": 7.1, "3": 0.3}

    assert answer.delayed_s == 0.5


def test_no_thread_waits_for_less_than_no_time() -> None:
    assert all(delay >= 0 for delay in _delays().values())
    assert bool(_delays()) == sys.platform.startswith("linux")
