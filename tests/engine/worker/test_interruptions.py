"""Answers for programs give way in mid-sentence, and say afterwards what they would have said."""

import itertools
import random
from collections.abc import Iterator, Sequence
from io import BytesIO
from types import SimpleNamespace

import pytest

from qwendesk.core.generation_options import GenerationOptions
from qwendesk.engine import protocol as p
from qwendesk.engine.worker import generate
from qwendesk.engine.worker import service as worker_service
from qwendesk.engine.worker.channel import Channel
from qwendesk.engine.worker.loader import Session
from qwendesk.engine.worker.service import Service
from tests.draft_head_model import write_demo_with_head, write_demo_without_head
from tests.engine.worker.process import Answer, greedy, user
from tests.engine.worker.test_drafts import loaded

QUESTION = "What is VRAM spill?"
LONG = "The app shows how many tokens of the context are in use. " * 60


class Kept(Channel):
    """Keeps the events."""

    def __init__(self) -> None:
        super().__init__(-1)
        self.events: list[p.Event] = []

    def send(self, event: p.Event) -> None:
        self.events.append(event)

    def of(self, request_id: int) -> list[p.Event]:
        return [event for event in self.events if event.id == request_id]


class Desk:
    """The service in this process, without its threads."""

    def __init__(self, session: Session) -> None:
        self.channel = Kept()
        self.service = Service(self.channel, BytesIO())
        self.service._session = session
        self._n_asked = 0

    def put(
        self, question: str, options: GenerationOptions, *, is_program: bool, chat: str = "", n_logprobs: int = -1
    ) -> int:
        self._n_asked += 1
        self.service._dispatch(
            p.Generate(
                id=self._n_asked, messages=(user(question),), options=options, gives_way=is_program,
                client="program" if is_program else "", program="Claude Code" if is_program else "",
                chat=chat or f"chat {self._n_asked}", n_logprobs=n_logprobs,
            )
        )  # fmt: skip
        return self._n_asked

    def serve(self) -> None:
        while not self.service._inbox.is_empty:
            self.service._serve(self.service._inbox.take(self.service._interrupted))

    def answer(self, request_id: int) -> Answer:
        return Answer(self.channel.of(request_id))


@pytest.fixture(scope="module", params=["lookup", "mtp"])
def session(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder = tmp_path_factory.mktemp("model")
    write = write_demo_with_head if request.param == "mtp" else write_demo_without_head
    made = loaded(speculative=request.param, model=str(write(folder / "demo.gguf")), n_ubatch=64, n_batch=64)
    yield made
    made.close()


def interrupt_at_random(desk: Desk, monkeypatch: pytest.MonkeyPatch, rng: random.Random, chance: float) -> list[int]:
    """Ask a short question of the window before some steps of a program's answer. Returns their ids."""
    asked: list[int] = []
    next_turn = Service._has_to_wait

    def has_to_wait(service: Service, request: p.Generate, ran_s: float) -> bool:
        if request.gives_way and rng.random() < chance:
            asked.append(desk.put(f"Hello {len(asked)}", greedy(max_tokens=2), is_program=False))
        return next_turn(service, request, ran_s)

    monkeypatch.setattr(Service, "_has_to_wait", has_to_wait)
    return asked


CASES = {
    "thinking": greedy(),
    "penalties and a seed": GenerationOptions(seed=7, temperature=1.0, presence_penalty=1.5, repeat_penalty=1.1),
    "grammar": greedy(enable_thinking=False, grammar='root ::= "VRAM" [a-z ]{60,80} "."'),
    "thinking budget": greedy(thinking_budget=12),
}


def ids(events: Sequence[p.Event]) -> list[bytes]:
    return [each.token for event in events if isinstance(event, p.Delta) for each in event.logprobs]


@pytest.mark.parametrize("options", CASES.values(), ids=CASES)
def test_an_answer_is_the_same_however_often_it_is_interrupted(
    session: Session, monkeypatch: pytest.MonkeyPatch, options: GenerationOptions
) -> None:
    """Over all cases, about 200 interruptions."""
    plain = Desk(session)
    first = plain.put(QUESTION, options, is_program=True, n_logprobs=0)
    plain.serve()
    expected = plain.answer(first)

    desk = Desk(session)
    session.cache.clear()
    asked = interrupt_at_random(desk, monkeypatch, random.Random(5), 0.9)
    second = desk.put(QUESTION, options, is_program=True, n_logprobs=0)
    desk.serve()
    interrupted = desk.answer(second)

    assert len(asked) > 5
    assert ids(interrupted.events) == ids(expected.events)
    assert (interrupted.reasoning, interrupted.text) == (expected.reasoning, expected.text)
    assert interrupted.stop_reason == expected.stop_reason
    assert all(desk.answer(each).text or desk.answer(each).reasoning for each in asked)
    ended = [event.id for event in desk.channel.events if isinstance(event, p.Finished)]
    assert ended[-1] == second or ended[-2:] == [second, asked[-1]], "each question of the window came first"
    done = [event.done for event in interrupted.events if isinstance(event, p.PromptProgress)]
    assert done == sorted(done), "nothing of the prompt was processed twice"


def test_a_long_prompt_is_interrupted_between_its_batches(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(session)
    asked = interrupt_at_random(desk, monkeypatch, random.Random(2), 1.0)
    long = desk.put(LONG, greedy(max_tokens=4), is_program=True)
    desk.serve()
    progress = [event.done for event in desk.channel.of(long) if isinstance(event, p.PromptProgress)]
    assert len(progress) > 8
    assert progress == sorted(set(progress))
    assert len(asked) >= len(progress)


def test_programs_take_turns(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """With turns of no time, each has one token after the other."""
    options = greedy(max_tokens=24)
    alone = Desk(session)
    expected = []
    for question in (QUESTION, "What is a quant?", "Tell me a story"):
        number = alone.put(question, options, is_program=True, n_logprobs=0)
        alone.serve()
        expected.append(ids(alone.channel.of(number)))

    monkeypatch.setattr(worker_service, "_TURN_S", 0.0)
    monkeypatch.setattr(worker_service, "_TURN_IN_EXCHANGES", 0)
    desk = Desk(session)
    numbers = [
        desk.put(question, options, is_program=True, n_logprobs=0)
        for question in (QUESTION, "What is a quant?", "Tell me a story")
    ]
    desk.serve()
    assert [ids(desk.channel.of(number)) for number in numbers] == expected
    deltas = [event.id for event in desk.channel.events if isinstance(event, p.Delta)]
    changes = sum(one != other for one, other in itertools.pairwise(deltas))
    assert changes > 10


def test_a_turn_lasts_longer_where_exchanging_memories_takes_long(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = Desk(session).service
    request = p.Generate(id=1, messages=(user("Hi"),), gives_way=True)
    service._dispatch(p.Generate(id=2, messages=(user("Hi"),), gives_way=True))
    assert not service._has_to_wait(request, 1.9)
    assert service._has_to_wait(request, 2.1)
    service._exchange_s = 1.0
    assert not service._has_to_wait(request, 9.9)
    assert service._has_to_wait(request, 10.1)
    service._dispatch(p.Generate(id=3, messages=(user("Hi"),)))
    assert service._has_to_wait(request, 0.0), "the window waits for no turn"


def test_the_window_gives_way_to_nobody(session: Session) -> None:
    desk = Desk(session)
    window = desk.put(QUESTION, greedy(max_tokens=12), is_program=False)
    desk.put("Hi", greedy(max_tokens=2), is_program=True)
    second = desk.put("Hello", greedy(max_tokens=2), is_program=False)
    desk.serve()
    ended = [event.id for event in desk.channel.events if isinstance(event, p.Finished)]
    assert ended[:2] == [window, second]


def test_counts_pass_answers_that_wait_but_nothing_else(session: Session) -> None:
    inbox = Desk(session).service._inbox
    answer, count = p.Generate(id=1, messages=(user("Hi"),)), p.Measure(id=2, messages=(user("Hi"),))
    inbox.put(answer)
    inbox.put(count)
    assert inbox.take_if(p.Measure) == count
    assert inbox.take_if(p.Measure) is None
    inbox.put(p.Unload(id=3))
    inbox.put(count)
    assert inbox.take_if(p.Measure) is None, "it belongs to the next model"
    assert inbox.take() == answer


def test_without_room_for_a_copy_nothing_is_interrupted(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(session)
    monkeypatch.setattr(session.states, "set_aside", lambda: None)
    program = desk.put(QUESTION, greedy(max_tokens=12), is_program=True)
    window = desk.put("Hello", greedy(max_tokens=2), is_program=False)
    desk.service._serve(desk.service._inbox.remove(program))  # type: ignore[arg-type]
    desk.serve()
    ended = [event.id for event in desk.channel.events if isinstance(event, p.Finished)]
    assert ended == [program, window]
    assert desk.answer(program).stop_reason == "max_tokens"


def test_a_question_that_has_to_wait_is_told_for_what(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(session)
    session.cache.clear()
    monkeypatch.setattr(session.states, "set_aside", lambda: None)
    monkeypatch.setattr(worker_service, "_NEXT_TRY_S", 0.0)
    program = desk.put(LONG, greedy(max_tokens=12), is_program=True)
    waiting = desk.put("Hi", greedy(max_tokens=2), is_program=True)
    window = desk.put("Hello", greedy(max_tokens=2), is_program=False)
    desk.service._serve(desk.service._inbox.remove(program))  # type: ignore[arg-type]
    told = [event for event in desk.channel.of(window) if isinstance(event, p.WaitsFor)]
    assert {(event.program, event.max_tokens) for event in told} == {("Claude Code", 12)}
    done = [event.done - event.prompt_tokens for event in told]
    assert done == sorted(done)
    assert done[0] < 0, "it waits for the prompt"
    # The last of twelve tokens isn't decoded, so the memory has at most ten before it.
    assert 0 < done[-1] <= 10, "and for the answer"
    assert not desk.channel.of(waiting), "programs are told nothing"
    desk.serve()
    assert not any(isinstance(event, p.WaitsFor) for event in desk.channel.of(window)[len(told) :])


class Interrupted:
    """A program's answer that was interrupted after a few tokens, while a question of the window is answered."""

    def __init__(self, session: Session, monkeypatch: pytest.MonkeyPatch, during: p.Request) -> None:
        """`during` arrives in the middle of the window's answer."""
        self.desk = desk = Desk(session)
        self.program = self.window = 0
        steps = 0
        next_turn = Service._has_to_wait

        def has_to_wait(service: Service, request: p.Generate, ran_s: float) -> bool:
            nonlocal steps
            steps += 1
            if request.gives_way and not self.window and any(isinstance(e, p.Delta) for e in desk.channel.events):
                self.window = desk.put("Tell me a story", greedy(max_tokens=12), is_program=False)
                steps = 0
            elif self.window and request.id == self.window and steps == 6:
                service._dispatch(during)  # type: ignore[arg-type]
            return next_turn(service, request, ran_s)

        monkeypatch.setattr(Service, "_has_to_wait", has_to_wait)
        self.program = desk.put(QUESTION, greedy(), is_program=True)
        desk.serve()


def test_an_interrupted_answer_is_cancelled_at_once(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    case = Interrupted(session, monkeypatch, p.Cancel(id=90, target=1))
    ended = [event for event in case.desk.channel.events if isinstance(event, p.Finished)]
    assert [(event.id, event.stop_reason) for event in ended] == [
        (case.program, "cancelled"), (case.window, "max_tokens"),
    ]  # fmt: skip
    assert p.Acknowledged(id=90, target=1, known=True) in case.desk.channel.events
    assert ended[0].stats.reasoning_tokens > 0, "what it has so far is counted"
    assert not case.desk.service._interrupted


def test_waiting_is_no_time_of_an_answer_that_is_then_cancelled(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, interrupt = [5.0], Service._interrupt

    def interrupt_for_long(service: Service, request: p.Generate, turn: worker_service._Turn) -> bool:
        is_interrupted = interrupt(service, request, turn)
        clock[0] += 1_000
        return is_interrupted

    monkeypatch.setattr(Service, "_interrupt", interrupt_for_long)
    monkeypatch.setattr(generate, "time", SimpleNamespace(monotonic=lambda: clock[0], perf_counter=lambda: clock[0]))
    case = Interrupted(session, monkeypatch, p.Cancel(id=90, target=1))
    (ended,) = (each for each in case.desk.channel.of(case.program) if isinstance(each, p.Finished))
    assert ended.stop_reason == "cancelled"
    assert ended.stats.decode_s == 0


def test_answer_now_reaches_an_interrupted_answer(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Desk(session)
    number = whole.put(QUESTION, greedy(), is_program=True)
    whole.serve()
    case = Interrupted(session, monkeypatch, p.AnswerNow(id=90, target=1))
    assert p.Acknowledged(id=90, target=1, known=True) in case.desk.channel.events
    answer = case.desk.answer(case.program)
    assert answer.stop_reason == "eos"
    assert answer.text
    assert len(answer.reasoning) < len(whole.answer(number).reasoning)


def test_unloading_ends_an_interrupted_answer_with_a_sentence(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Session, "close", lambda _session: None)
    case = Interrupted(session, monkeypatch, p.Unload(id=90))
    events = case.desk.channel.events
    failed = [event for event in events if isinstance(event, p.RequestFailed)]
    assert [(event.id, event.title) for event in failed] == [(case.program, "Interrupted")]
    assert "unloaded" in failed[0].sentence
    assert p.Unloaded(id=90) in events
