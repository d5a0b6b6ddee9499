"""Drafts change how an answer is decoded, never what it says: with the real engine, and drafts of any quality."""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec
import pytest

from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.messages import Message, text_message
from qwendesk.engine import protocol as p
from qwendesk.engine.worker import generate
from qwendesk.engine.worker.control import RequestControl
from qwendesk.engine.worker.drafts import OpenGate
from qwendesk.engine.worker.generate import Generation
from qwendesk.engine.worker.loader import Session, load
from qwendesk.engine.worker.log import EngineLog
from qwendesk.engine.worker.mtp_head import MtpHead
from tests.draft_head_model import write_demo_head, write_demo_with_head, write_demo_without_head
from tests.engine.worker.process import Answer, demo_options, draw_circle, finished, greedy, user

LOG = EngineLog()
"""Never freed, because llama.cpp goes on calling it."""
QUESTION = "What is VRAM spill?"
N_MAX = 4


class OracleDrafter:
    """Knows what comes, and says something else with a given probability. A draft head is asked all the same."""

    def __init__(self, session: Session, rng: random.Random, answer: Sequence[int], *, wrong: float) -> None:
        self._session, self._rng, self._answer, self._wrong = session, rng, answer, wrong
        self._n_known = self._last = 0

    def add(self, token: int) -> None:
        self._last = token
        self._n_known += 1

    def propose(self, most: int) -> Sequence[int]:
        if self._session.model.head is not None:
            self._session.model.head.draft(self._last, self._session.cache.position, most)
        known = self._answer[self._n_known : self._n_known + most]
        return [5 if self._rng.random() < self._wrong else token for token in known]


@pytest.fixture(scope="module")
def with_head(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_demo_with_head(tmp_path_factory.mktemp("model") / "demo-mtp.gguf")


@pytest.fixture(scope="module")
def head_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_demo_head(tmp_path_factory.mktemp("head") / "mtp-demo.gguf")


def loaded(**changes: object) -> Session:
    LOG.install()
    made = load(demo_options(draft_n_max=N_MAX, **changes), LOG, lambda _stage, _fraction: None, lambda: False)
    assert made.report.n_draft_max == N_MAX
    return msgspec.structs.replace(made, gate=OpenGate())


@pytest.fixture(scope="module")
def without_head(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_demo_without_head(tmp_path_factory.mktemp("alone") / "demo.gguf")


@pytest.fixture(scope="module", params=["lookup", "mtp", "mtp in a file of its own"])
def session(request: pytest.FixtureRequest, with_head: Path, head_file: Path, without_head: Path) -> Iterator[Session]:
    files = {
        "lookup": {"model": str(without_head)},
        "mtp": {"model": str(with_head)},
        "mtp in a file of its own": {"model": str(without_head), "draft_model": str(head_file)},
    }[request.param]
    made = loaded(speculative=request.param.split()[0], **files)
    assert (made.model.head is None) == (request.param == "lookup")
    yield made
    made.close()


def ask(
    session: Session,
    messages: Sequence[Message],
    options: GenerationOptions,
    *,
    begun: p.Begun | None = None,
    control: RequestControl | None = None,
    chat: str = "",
    state_file: str = "",
    on_event: Callable[[p.Event], None] = lambda _event: None,
) -> Answer:
    events: list[p.Event] = []

    def send(event: p.Event) -> None:
        events.append(event)
        on_event(event)

    request = p.Generate(id=1, messages=tuple(messages), options=options, begun=begun, chat=chat, state_file=state_file)
    control = control or RequestControl()
    control.expect(1)
    with control.running(1, session.model.abort):
        events.append(finished(Generation(session, request, control, send, lambda: None).steps()))
    return Answer(events)


class Tokens:
    """The tokens of the last answer, as the writer got them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.last: list[int] = []
        plain = generate.Writer

        def writer(*arguments: object, **named: object) -> generate.Writer:
            made = plain(*arguments, **named)  # type: ignore[arg-type]
            self.last = made.tokens
            return made

        monkeypatch.setattr(generate, "Writer", writer)


def plain_session(session: Session) -> Session:
    report = msgspec.structs.replace(session.report, n_draft_max=0)
    return msgspec.structs.replace(session, report=report)


def oracle(monkeypatch: pytest.MonkeyPatch, tokens: Sequence[int], *, wrong: float, seed: int = 1) -> None:
    known = list(tokens)
    rng = random.Random(seed)
    monkeypatch.setattr(
        generate, "drafter_of", lambda session, _items, _gate: OracleDrafter(session, rng, known, wrong=wrong)
    )


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    return draw_circle(tmp_path / "red.png", "red")


CASES = {
    "thinking": greedy(),
    "no thinking": greedy(enable_thinking=False),
    "thinking budget": greedy(thinking_budget=5),
    "penalties": greedy(presence_penalty=1.5, repeat_penalty=1.2, frequency_penalty=0.3),
    "grammar": greedy(enable_thinking=False, grammar='root ::= "VRAM" [a-z ]{5,40} "."'),
    "schema": greedy(
        max_tokens=60, json_schema='{"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}'
    ),
    "stop text": greedy(stop=("memory",)),
    "short": greedy(max_tokens=3, enable_thinking=False),
}  # fmt: skip


@pytest.mark.parametrize("wrong", [0.0, 0.3, 1.0], ids=["right", "mixed", "wrong"])
@pytest.mark.parametrize("options", CASES.values(), ids=CASES.keys())
def test_answers_are_those_without_drafts(
    session: Session, monkeypatch: pytest.MonkeyPatch, options: GenerationOptions, wrong: float
) -> None:
    tokens = Tokens(monkeypatch)
    plain = ask(plain_session(session), [user(QUESTION)], options)
    assert plain.stats.drafted_tokens == 0
    known = tuple(tokens.last)
    oracle(monkeypatch, known, wrong=wrong)
    drafted = ask(session, [user(QUESTION)], options)
    assert tuple(tokens.last) == known
    assert (drafted.reasoning, drafted.text, drafted.stop_reason) == (plain.reasoning, plain.text, plain.stop_reason)
    if len(known) > 8 and options.thinking_budget < 0:
        assert drafted.stats.drafted_tokens > 3
        assert bool(drafted.stats.accepted_tokens) == (wrong < 1)
        assert (drafted.stats.acceptance == 1.0) or wrong or drafted.stop_reason != "eos"


def test_the_next_turn_after_rejected_drafts_is_exact(
    session: Session, monkeypatch: pytest.MonkeyPatch, picture: Path
) -> None:
    """The memory of a chat with drafts is that of one without, also after a picture and a continued answer."""
    questions = [user("What is in this picture?", picture), user(QUESTION), user("What is a quant?")]

    def chat(session: Session, before: Callable[[], None]) -> list[tuple[str, str, int]]:
        session.cache.clear()
        messages: list[Message] = []
        said = []
        for question in questions:
            messages.append(question)
            before()
            first = ask(session, messages, greedy(max_tokens=12))
            before()
            rest = ask(session, messages, greedy(), begun=p.Begun(first.reasoning, first.text))
            messages.append(
                text_message("assistant", first.text + rest.text, reasoning=first.reasoning + rest.reasoning)
            )
            said.append((messages[-1].reasoning, messages[-1].text, rest.stats.reread_tokens))
        return said

    rng = random.Random(3)
    plain = chat(plain_session(session), lambda: None)
    drafted = chat(
        session,
        lambda: oracle(monkeypatch, [rng.randrange(300, 400) for _ in range(200)], wrong=0.2, seed=rng.random()),  # type: ignore[arg-type]
    )
    assert drafted == plain


def test_a_cancelled_answer_with_drafts_can_be_continued(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = Tokens(monkeypatch)
    plain = ask(plain_session(session), [user(QUESTION)], greedy())
    known = list(tokens.last)
    oracle(monkeypatch, known, wrong=0.3)
    control = RequestControl()

    def stop(event: p.Event) -> None:
        if isinstance(event, p.Delta) and event.kind == "answer":
            control.cancel(1)

    first = ask(session, [user(QUESTION)], greedy(), control=control, on_event=stop)
    assert first.stop_reason == "cancelled"
    oracle(monkeypatch, known[len(tokens.last) :], wrong=0.3)
    rest = ask(session, [user(QUESTION)], greedy(), begun=p.Begun(first.reasoning, first.text))
    assert first.text + rest.text == plain.text
    assert rest.stats.reread_tokens <= 1


SAMPLED = {
    "usual": GenerationOptions(temperature=1.0, top_k=20, presence_penalty=1.5, max_tokens=20),
    "hot": GenerationOptions(temperature=2.0, top_k=0, top_p=1.0, presence_penalty=0.0, max_tokens=20),
    "schema": GenerationOptions(
        temperature=1.0, max_tokens=20, enable_thinking=False,
        json_schema='{"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}',
    ),
}  # fmt: skip


@pytest.mark.parametrize("options", SAMPLED.values(), ids=SAMPLED.keys())
def test_a_seed_draws_what_it_draws_without_drafts(
    session: Session, monkeypatch: pytest.MonkeyPatch, options: GenerationOptions
) -> None:
    """So the distribution is the same: the sampler draws once for each token, from the same logits.

    A batch of several tokens rounds the logits a little differently, so one of many seeds may draw another token.
    """
    rng = random.Random(5)
    likely: list[int] = []
    n_same = 0
    tokens = Tokens(monkeypatch)
    for seed in range(40):
        seeded = msgspec.structs.replace(options, seed=seed)
        ask(plain_session(session), [user(QUESTION)], seeded)
        plain = list(tokens.last)
        likely = likely or plain
        oracle(monkeypatch, likely, wrong=rng.random() / 2, seed=seed)
        ask(session, [user(QUESTION)], seeded)
        n_same += tokens.last == plain
    assert n_same >= 34


def test_the_distribution_is_that_of_plain_decoding(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """Chi-square of the third token of 300 answers each, drawn by different seeds, among six likely tokens."""

    def third_tokens(session: Session, first_seed: int) -> Counter[int]:
        counts: Counter[int] = Counter()
        for seed in range(first_seed, first_seed + 300):
            oracle(monkeypatch, draft, wrong=0.2, seed=seed)
            options = GenerationOptions(
                temperature=12.0, top_k=6, top_p=1.0, seed=seed, max_tokens=3, presence_penalty=0.0
            )
            ask(session, [user(QUESTION)], options)
            counts[tokens.last[2]] += 1
        return counts

    tokens = Tokens(monkeypatch)
    ask(plain_session(session), [user(QUESTION)], greedy(max_tokens=3))
    draft = list(tokens.last)
    plain, drafted = third_tokens(plain_session(session), 0), third_tokens(session, 1000)
    frequent = [token for token, count in (plain + drafted).items() if count >= 10]
    assert len(frequent) >= 5
    chi_square = sum((plain[each] - drafted[each]) ** 2 / (plain[each] + drafted[each]) for each in frequent)
    assert chi_square < len(frequent) + 6 * (2 * len(frequent)) ** 0.5


def test_lookup_finds_what_the_chat_says_already() -> None:
    session = loaded(speculative="lookup")
    messages = [
        user(QUESTION),
        text_message("assistant", ask(session, [user(QUESTION)], greedy()).text),
        user(QUESTION),
    ]
    plain = ask(plain_session(session), messages, greedy())
    drafted = ask(session, messages, greedy())
    assert drafted.text == plain.text
    assert drafted.stats.accepted_tokens > 5
    session.close()


class SeenDrafts:
    """The drafts that the head made, which show what it has seen."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made: list[list[int]] = []
        plain = MtpHead.draft

        def draft(head: MtpHead, token: int, position: int, most: int) -> list[int]:
            self.made.append(plain(head, token, position, most))
            return self.made[-1]

        monkeypatch.setattr(MtpHead, "draft", draft)

    def take(self) -> list[list[int]]:
        taken, self.made = self.made, []
        return taken


def test_the_head_drafts_the_same_after_a_rollback_and_from_a_kept_state(
    with_head: Path, monkeypatch: pytest.MonkeyPatch, picture: Path, tmp_path: Path
) -> None:
    first, drafts = loaded(speculative="mtp", model=str(with_head)), SeenDrafts(monkeypatch)
    question = [user("What is in this picture?" + " I want to know it well." * 60, picture)]
    answer = ask(first, question, greedy(), chat="one")
    chat = [*question, answer.message, user(QUESTION)]
    drafts.take()
    undisturbed = ask(first, chat, greedy(), chat="one")
    expected = drafts.take()
    assert len(expected) > 10
    for other in (user("What is the KV cache? " + "Tell me all. " * 80), user("Hello " * 300)):
        ask(first, [other], greedy(max_tokens=30), chat="another")
    drafts.take()
    ask(first, chat[:1], greedy(max_tokens=1), chat="one")
    drafts.take()
    again = ask(first, chat, greedy(), chat="one")
    assert (again.text, drafts.take()) == (undisturbed.text, expected), "from RAM, after a rollback"
    saved = first.states.copy("one", 10**9)
    assert saved is not None
    saved.write(tmp_path / "one.state", 10**9)
    first.close()

    later = loaded(speculative="mtp", model=str(with_head))
    resumed = ask(later, chat, greedy(), chat="one", state_file=str(tmp_path / "one.state"))
    assert resumed.stats.reused_tokens > 300
    assert (resumed.text, drafts.take()) == (undisturbed.text, expected), "from a file"
    later.close()


def test_a_state_is_usable_with_and_without_drafts(with_head: Path, tmp_path: Path) -> None:
    """Switching drafts on or off reloads the model, and the chat goes on without being processed again."""
    question = [user(QUESTION + " Tell me all about it." * 60)]
    ways: tuple[dict[str, object], ...] = ({"speculative": "off"}, {"speculative": "lookup"}, {"speculative": "mtp"})
    answers = []
    for number, way in enumerate(ways):
        LOG.install()
        made = load(demo_options(model=str(with_head), **way), LOG, lambda _stage, _fraction: None, lambda: False)
        ask(made, question, greedy(), chat="one")
        saved = made.states.copy("one", 10**9)
        assert saved is not None
        saved.write(tmp_path / f"{number}.state", 10**9)
        made.close()
    for number in range(len(ways)):
        for way in ways:
            made = load(demo_options(model=str(with_head), **way), LOG, lambda _stage, _fraction: None, lambda: False)
            answers.append(ask(made, question, greedy(), chat="one", state_file=str(tmp_path / f"{number}.state")))
            made.close()
    assert len({answer.text for answer in answers}) == 1
    assert min(answer.stats.reused_tokens for answer in answers) > 300


def test_a_file_without_a_head_drafts_nothing(without_head: Path) -> None:
    LOG.install()
    options = demo_options(model=str(without_head), speculative="mtp")
    made = load(options, LOG, lambda _stage, _fraction: None, lambda: False)
    assert made.report.n_draft_max == 0
    assert ask(made, [user(QUESTION)], greedy()).stats.drafted_tokens == 0
    made.close()


def test_at_the_end_of_the_context_nothing_is_drafted_beyond_it(monkeypatch: pytest.MonkeyPatch) -> None:
    full = loaded(speculative="lookup", n_ctx=256, mmproj="")
    try:
        never = greedy(logit_bias=tuple(f"{token}=-1000" for token in full.marker_ids()), enable_thinking=False)
        tokens = Tokens(monkeypatch)
        plain = ask(plain_session(full), [user(QUESTION)], never)
        oracle(monkeypatch, tokens.last, wrong=0.1)
        drafted = ask(full, [user(QUESTION)], never)
        assert (drafted.stop_reason, drafted.text) == (plain.stop_reason, plain.text) == ("context_full", plain.text)
    finally:
        full.close()


@pytest.mark.parametrize(("n_ubatch", "most"), [(2, 0), (4, 2), (8, 6), (17, 15), (64, 16)])
def test_no_more_is_drafted_than_a_small_evaluation_batch_takes(n_ubatch: int, most: int) -> None:
    """llama.cpp aborts the process for one token more."""
    LOG.install()
    options = demo_options(speculative="lookup", n_ubatch=n_ubatch, draft_n_max=16, mmproj="")
    made = load(options, LOG, lambda _stage, _fraction: None, lambda: False)
    assert made.report.n_draft_max == most
    made = msgspec.structs.replace(made, gate=OpenGate())
    question = user(QUESTION)
    first = ask(made, [question], greedy())
    again = ask(made, [question, first.message, question], greedy())
    assert again.text == first.text
    made.close()
