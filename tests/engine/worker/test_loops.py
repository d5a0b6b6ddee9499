"""Loops are broken: thinking goes on with the answer, an answer stops. With the real engine and the demo model."""

import pytest

from qwendesk.core.generation_options import GenerationOptions
from qwendesk.engine import protocol as p
from qwendesk.engine.worker import repetition
from qwendesk.engine.worker.repetition import FIRST_TOKEN, LoopWatch, Part, Repetition
from tests.engine.worker.conftest import Demo
from tests.engine.worker.process import WorkerProcess, greedy, user
from tests.engine.worker.test_drafts import Tokens, ask, loaded, oracle, plain_session

QUESTION = "What is VRAM spill?"
CLOSE = "\n</think>\n\n"
FOUND = Repetition("period", 4, "again")


@pytest.fixture
def stuck(demo: Demo) -> tuple[str, ...]:
    """A logit bias with which the model says the same word for ever."""
    (token,) = (token for token, piece in demo.pieces.items() if piece == b" memory")
    return (f"{token}=1000",)


def alarm_at(monkeypatch: pytest.MonkeyPatch, n_tokens: int, part: Part) -> None:
    """Have a loop found at the token of that number, and no other."""

    class Detector:
        def __init__(self, for_part: Part) -> None:
            self._n_left = n_tokens if for_part == part else -1

        def feed(self, _token: int, _text: str) -> Repetition | None:
            self._n_left -= 1
            return FOUND if self._n_left == 0 else None

    monkeypatch.setattr(repetition, "LoopDetector", Detector)


def test_thinking_and_an_answer_in_a_loop_are_ended(worker: WorkerProcess, stuck: tuple[str, ...]) -> None:
    answer = worker.ask([user(QUESTION)], greedy(logit_bias=stuck))
    assert answer.stop_reason == "repetition"
    assert answer.stats.reasoning_looped
    assert FIRST_TOKEN <= answer.stats.reasoning_tokens <= FIRST_TOKEN + 8
    assert FIRST_TOKEN <= answer.stats.answer_tokens <= FIRST_TOKEN + 8
    assert set(answer.text.split()) == {"memory"}


def test_a_continued_answer_is_judged_by_its_new_text(worker: WorkerProcess, stuck: tuple[str, ...]) -> None:
    options = greedy(logit_bias=stuck, enable_thinking=False)
    first = worker.ask([user(QUESTION)], options)
    assert (first.stop_reason, first.stats.reasoning_looped) == ("repetition", False)
    rest = worker.ask([user(QUESTION)], options, begun=p.Begun(text=first.text))
    assert rest.stop_reason == "repetition"
    assert rest.stats.answer_tokens >= FIRST_TOKEN
    assert rest.stats.reread_tokens == 1, "its tokens were kept"


def test_text_before_an_interruption_counts(worker: WorkerProcess, stuck: tuple[str, ...]) -> None:
    cut = worker.ask([user(QUESTION)], greedy(logit_bias=stuck, enable_thinking=False, max_tokens=FIRST_TOKEN - 50))
    assert cut.stop_reason == "max_tokens"
    rest = worker.ask([user(QUESTION)], greedy(logit_bias=stuck, enable_thinking=False), begun=p.Begun(text=cut.text))
    assert rest.stop_reason == "repetition"
    assert rest.stats.answer_tokens < 100


@pytest.mark.parametrize(
    "changes", [{"break_loops": False}, {"grammar": 'root ::= " memory"+'}], ids=["switched off", "grammar"]
)
def test_loops_that_are_wanted_go_on(worker: WorkerProcess, stuck: tuple[str, ...], changes: dict[str, object]) -> None:
    options = greedy(logit_bias=stuck, enable_thinking=False, max_tokens=FIRST_TOKEN + 100, **changes)
    assert worker.ask([user(QUESTION)], options).stop_reason == "max_tokens"


@pytest.mark.parametrize("drafts", [False, True], ids=["without drafts", "with drafts"])
def test_the_answer_after_broken_thinking_is_that_of_a_budget(monkeypatch: pytest.MonkeyPatch, *, drafts: bool) -> None:
    session = loaded(speculative="lookup")
    tokens = Tokens(monkeypatch)
    budget = ask(plain_session(session), [user(QUESTION)], greedy(thinking_budget=6, thinking_close=CLOSE))
    known = tuple(tokens.last)
    alarm_at(monkeypatch, 6, "reasoning")
    oracle(monkeypatch, known, wrong=0.3)
    chosen = session if drafts else plain_session(session)
    broken = ask(chosen, [user(QUESTION)], greedy(thinking_close=CLOSE))
    assert (broken.reasoning, broken.text) == (budget.reasoning, budget.text)
    assert tuple(tokens.last) == known
    assert (broken.stop_reason, broken.stats.reasoning_tokens) == ("eos", 6)
    assert broken.stats.reasoning_looped
    assert not budget.stats.reasoning_looped
    session.close()


def test_continued_thinking_gets_the_reasoning_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """As "Continue thinking" asks for it. The model goes on as if it had never been interrupted."""
    session = loaded(speculative="lookup")
    whole = ask(session, [user(QUESTION)], greedy())
    alarm_at(monkeypatch, 6, "reasoning")
    broken = ask(session, [user(QUESTION)], greedy())
    begun = p.Begun(reasoning=broken.reasoning)
    rest = ask(session, [user(QUESTION)], greedy(break_loops=False), begun=begun)
    assert (broken.reasoning + rest.reasoning, rest.text) == (whole.reasoning, whole.text)
    assert not rest.stats.reasoning_looped
    session.close()


def test_thinking_continues_after_a_stop_right_at_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine knows the tokens of that answer, with the end of the thinking. The text goes before them."""
    session = loaded(speculative="lookup")
    whole = ask(session, [user(QUESTION)], greedy())
    alarm_at(monkeypatch, 6, "reasoning")
    # After this closing text, the answer begins with white space, which isn't sent before a word follows.
    stopped = ask(session, [user(QUESTION)], greedy(thinking_close="\n</think>", max_tokens=7))
    assert stopped.stats.reasoning_looped
    assert not stopped.text
    begun = p.Begun(reasoning=stopped.reasoning)
    answered = ask(session, [user(QUESTION)], greedy(break_loops=False), begun=begun)
    assert answered.text
    assert not answered.reasoning, "Continue goes on with the answer"
    begun = p.Begun(reasoning=stopped.reasoning, stage="thinking")
    rest = ask(session, [user(QUESTION)], greedy(break_loops=False), begun=begun)
    assert (stopped.reasoning + rest.reasoning, rest.text) == (whole.reasoning, whole.text)
    session.close()


def test_an_answer_ends_with_the_token_that_completes_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    session = loaded(speculative="lookup")
    whole = ask(session, [user(QUESTION)], greedy())
    alarm_at(monkeypatch, 9, "answer")
    stopped = ask(session, [user(QUESTION)], greedy())
    assert (stopped.stop_reason, stopped.stats.answer_tokens) == ("repetition", 9)
    assert stopped.stats.reasoning_tokens == whole.stats.reasoning_tokens
    assert not stopped.stats.reasoning_looped
    begun = p.Begun(stopped.reasoning, stopped.text)
    rest = ask(session, [user(QUESTION)], greedy(break_loops=False), begun=begun)
    assert (stopped.text + rest.text, rest.stop_reason) == (whole.text, "eos")
    session.close()


def test_a_part_that_was_in_a_loop_starts_again(monkeypatch: pytest.MonkeyPatch) -> None:
    alarm_at(monkeypatch, 2, "answer")
    loops = LoopWatch(GenerationOptions())
    for _ in range(2):
        loops.feed("reasoning", 1, "a")
        loops.feed("answer", 1, "a")
        assert not loops.is_in_loop("reasoning")
    assert loops.is_in_loop("answer")
    loops.forget_loops()
    assert not loops.is_in_loop("answer")
    for found in (False, True):
        loops.feed("answer", 1, "a")
        assert loops.is_in_loop("answer") == found
