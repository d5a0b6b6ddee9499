"""Real models by every way in: 40 questions to each, against a plain loop and beside llama.cpp's own programs."""

import asyncio
import json
import math
import re
import subprocess
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio

from bench.llama_server import request_of, running_llama_server
from qwendesk.cli import main as cli
from qwendesk.core.benchmarks import TextScore, TextTest
from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.messages import text_message
from qwendesk.core.options import LoadOptions
from qwendesk.engine import protocol as p
from qwendesk.engine.client import WorkerClient
from qwendesk.engine.worker.chat_states import FEWEST_CELLS
from qwendesk.engines.engine_service import EngineService
from qwendesk.server.served_models import ServedModels
from qwendesk.server.service import ServerOptions, ServerService
from tests.app.real_questions import REAL_QUESTIONS
from tests.engine.real_models import CLOSE_CALL, PlainLoop, Token, plain_loop, prompt_of, real_options, real_worker
from tests.engine.worker.process import WorkerProcess, greedy, user, worker_process
from tests.fakes.engine import decide_by_default
from tests.window import app, keeper, make_desk, pytest_pyfunc_call, qt_loop
from tests.window_desk import Desk
from tools.build_peer import peer_perplexity, peer_server
from tools.real_models import GEMMA, REAL_MODELS, RealModel

__all__ = ["app", "keeper", "make_desk", "pytest_pyfunc_call", "qt_loop"]
pytestmark = [pytest.mark.soak, pytest.mark.timeout(3600)]

N_TOKENS, N_CTX = 24, 1024
GEMMA_TURNS = (
    "{{ bos_token }}{% for each in messages %}<start_of_turn>user\n{{ each.content }}<end_of_turn>\n{% endfor %}"
    "<start_of_turn>model{{ '\n' }}"
)
"""What the app is to give a model of this family that has no template."""
GEMMA_END = "<end_of_turn>\n<start_of_turn>model\n"
"""What follows the question. The worker keeps a checkpoint of gemma's sliding windows before it."""
SERVER_CUTS = [1, -4]
"""Where llama-server keeps checkpoints of gemma's sliding windows while it reads a short prompt."""
KEY = "test-key-0123456789"
ANSWERED = GenerationOptions(
    temperature=0, presence_penalty=0, max_tokens=N_TOKENS, cache_prompt=False, break_loops=False
)


@pytest.fixture(scope="module", params=REAL_MODELS, ids=lambda model: model.name)
def model(request: pytest.FixtureRequest) -> RealModel:
    path: Path = request.getfixturevalue(request.param.name)
    assert path.is_file()
    return request.param  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def expected(model: RealModel) -> list[list[Token]]:
    """The answers of a plain loop to all questions."""
    with plain_loop(model.path) as loop:
        cuts = [-len(loop.tokenize(GEMMA_END))] if model is GEMMA else []
        return [loop.answer(prompt, N_TOKENS, cuts=cuts) for prompt in prompts(model, loop, REAL_QUESTIONS)]


def prompts(model: RealModel, loop: PlainLoop, questions: Sequence[str]) -> Iterator[list[int]]:
    template = GEMMA_TURNS if model is GEMMA else loop.chat_template()
    begin = "<bos>" if model is GEMMA else ""
    return (prompt_of(loop, template, question, begin=begin) for question in questions)


def check(
    answers: Sequence[str],
    expected: Sequence[Sequence[Token]],
    way: str,
    questions: Sequence[str] = REAL_QUESTIONS,
) -> None:
    """Fail where an answer parts from the expected one although the likeliest token was clear."""
    gaps = [gap_of(answer, tokens) for answer, tokens in zip(answers, expected, strict=True)]
    parted = sorted(gap for gap in gaps if gap is not None)
    print(f"{way}: {len(answers)} answers, {len(parted)} parted, the two best logits {parted} apart")
    faults = [
        f"{way}: {question!r}: {answer!r}, expected {shown(tokens)!r}, {gap} apart"
        for question, answer, tokens, gap in zip(questions, answers, expected, gaps, strict=True)
        if gap is not None and gap >= CLOSE_CALL
    ]
    assert faults == []


def shown(tokens: Sequence[Token]) -> str:
    return b"".join(token.piece for token in tokens).decode("utf-8", "replace")


def gap_of(answer: str, tokens: Sequence[Token]) -> float | None:
    """How far apart the two best logits were where the texts part; None if they are equal but for outer white space."""
    wanted = shown(tokens)
    if answer.strip().rstrip("\ufffd") == wanted.strip().rstrip("\ufffd"):
        return None
    answer = wanted[: len(wanted) - len(wanted.lstrip())] + answer.lstrip()
    for number, token in enumerate(tokens, 1):
        if not answer.startswith(shown(tokens[:number]).rstrip("\ufffd")):
            return token.lead
    return math.inf


async def test_the_window(
    qt_loop: asyncio.Runner,
    make_desk: Callable[[], Desk],
    client: WorkerClient,
    model: RealModel,
    expected: list[list[Token]],
) -> None:
    desk = make_desk()
    await desk.parts.engine.load(LoadOptions(model=str(model.path), n_ctx=N_CTX, n_threads=1, speculative="off"))
    answers = []
    for question in REAL_QUESTIONS:
        desk.parts.chat.new_chat()
        desk.parts.chat.set_overrides(
            {
                "temperature": "0",
                "presence_penalty": "0",
                "max_tokens": str(N_TOKENS),
                "cache_prompt": "false",
                "break_loops": "false",
            }
        )
        await desk.parts.chat.send(question)
        answers.append(desk.parts.chat.conversation.turns[-1].answer.text)
    check(answers, expected, "window")


@pytest.fixture
def client(qt_loop: asyncio.Runner) -> WorkerClient:
    """The engine of the window: a real one."""

    class Client(WorkerClient):
        closed = False

        async def close(self) -> None:
            await super().close()
            self.closed = True

    async def make() -> WorkerClient:
        return Client()

    return qt_loop.run(make())


def test_the_command(model: RealModel, expected: list[list[Token]], capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--max-tokens", str(N_TOKENS)]
    for option in (f"n_ctx={N_CTX}", "n_threads=1", "temperature=0", "presence_penalty=0", "break_loops=false"):
        options += ["--set", option]
    answers = []
    for question in REAL_QUESTIONS:
        assert cli.main(["ask", "--json", "--model", str(model.path), *options, "--", question]) == 0
        answers.append(json.loads(capsys.readouterr().out)["turns"][0]["answer"])
    check(answers, expected, "ask")


@pytest_asyncio.fixture
async def served(model: RealModel, tmp_path: Path) -> AsyncIterator[tuple[aiohttp.ClientSession, str]]:
    client = WorkerClient()
    engine = EngineService(client, decide=decide_by_default)
    (tmp_path / "keys").write_text(f"{KEY}\n", encoding="utf-8")

    async def default() -> LoadOptions:
        return LoadOptions(model=str(model.path), n_ctx=N_CTX, n_threads=1, speculative="off")

    server = ServerService(client, ServedModels(engine, default), lambda _question, _report: ANSWERED)
    await server.start(ServerOptions(port=0, key_file=tmp_path / "keys"))
    try:
        async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {KEY}"}) as session:
            yield session, server.state.address
    finally:
        await server.stop()
        await engine.close()


@pytest.mark.asyncio
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses", "/v1/messages"])
async def test_the_server(served: tuple[aiohttp.ClientSession, str], expected: list[list[Token]], path: str) -> None:
    session, address = served
    answers = []
    for question in REAL_QUESTIONS:
        messages = [{"role": "user", "content": question}]
        body = {"input": question} if path == "/v1/responses" else {"messages": messages, "max_tokens": N_TOKENS}
        async with session.post(address + path, json=body) as response:
            answers.append(text_of(await response.json()))
    check(answers, expected, path)


def text_of(answer: dict[str, object]) -> str:
    """The text of an answer of any of the three APIs."""
    found: list[str] = re.findall(r'"(?:text|content)": ("(?:[^"\\]|\\.)*")', json.dumps(answer))
    return "".join(map(json.loads, found))


def test_llama_server(model: RealModel, tmp_path: Path) -> None:
    if not peer_server().is_file():
        pytest.skip("llama-server is not built: python -m tools.build_peer")
    template = tmp_path / "template.jinja"
    template.write_text(GEMMA_TURNS, encoding="utf-8")
    chosen = template if model is GEMMA else None
    cuts = SERVER_CUTS if model is GEMMA else []
    # What is spelt like a token is one for llama-server, and stays text with us.
    questions = [question for question in REAL_QUESTIONS if "<" not in question]
    with plain_loop(model.path) as loop:
        expected = [loop.answer(prompt, N_TOKENS, cuts=cuts) for prompt in prompts(model, loop, questions)]
    answers = []
    with running_llama_server(peer_server(), model.path, n_ctx=N_CTX, n_threads=1, template=chosen) as port:
        for question in questions:
            messages = [{"role": "user", "content": question}]
            body = {"messages": messages, "max_tokens": N_TOKENS, "temperature": 0, "cache_prompt": False}
            with urllib.request.urlopen(request_of(port, "/v1/chat/completions", body)) as reply:
                answers.append(json.load(reply)["choices"][0]["message"]["content"])
    check(answers, expected, "llama-server", questions)


@pytest.fixture(scope="module")
def worker(model: RealModel) -> Iterator[WorkerProcess]:
    with worker_process() as worker:
        worker.load(real_options(model.path))
        yield worker


@pytest.fixture
def text(tmp_path: Path) -> Path:
    """Real text: the guide of the project."""
    path = tmp_path / "text.txt"
    pages = sorted(Path(__file__).parents[2].joinpath("docs", "guide").glob("*.md"))
    path.write_text("".join(page.read_text(encoding="utf-8") for page in pages)[:12_000], encoding="utf-8")
    return path


@pytest.mark.parametrize("cache", ["f16", "q8_0"])
def test_perplexity_and_divergence(
    worker: WorkerProcess, model: RealModel, text: Path, tmp_path: Path, cache: str
) -> None:
    worker.load(real_options(model.path, type_k=cache, type_v=cache))
    base = tmp_path / "base"
    own = score(worker, TextTest(path=str(text), n_ctx=512, save_base=str(base)))
    again = score(worker, TextTest(path=str(text), n_ctx=512, base=str(base)))
    assert again.divergence is not None
    assert (again.perplexity, again.divergence.same_top) == (own.perplexity, 1)
    assert again.divergence.mean == pytest.approx(0, abs=1e-6)
    if not peer_perplexity().is_file():
        pytest.skip("llama-perplexity is not built: python -m tools.build_peer")
    options = {"model": model.path, "file": text, "ctx-size": 512, "cache-type-k": cache, "cache-type-v": cache}
    options |= {"threads": 1, "flash-attn": "auto"}
    command = [str(peer_perplexity()), *(str(each) for key, value in options.items() for each in (f"--{key}", value))]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = re.search(r"Final estimate: PPL = ([\d.]+)", done.stdout + done.stderr)
    assert found, done.stderr[-2000:]
    print(f"{model.name}, {cache}: {own.perplexity:.4f}, llama-perplexity {found[1]}")
    assert own.perplexity == pytest.approx(float(found[1]), rel=1e-3)


def score(worker: WorkerProcess, test: TextTest) -> TextScore:
    worker.send(p.Bench, test=test)
    last = worker.until(p.RequestFailed, p.Benched)[-1]
    assert isinstance(last, p.Benched), last
    assert isinstance(last.result, TextScore)
    return last.result


def test_sixty_turns_from_memory_and_from_nothing(worker: WorkerProcess, model: RealModel) -> None:
    worker.load(real_options(model.path, n_ctx=4096))
    messages = []
    for number in range(60):
        messages.append(user(REAL_QUESTIONS[number % len(REAL_QUESTIONS)]))
        answer = worker.ask(messages, greedy(max_tokens=12, break_loops=False), chat="long")
        if number:
            assert answer.stats.reused_tokens > 0
        if number % 20 == 19:
            fresh = worker.ask(messages, greedy(max_tokens=12, break_loops=False, cache_prompt=False))
            assert fresh.stats.prompt_tokens == answer.stats.prompt_tokens
            assert fresh.text.split()[:2] == answer.text.split()[:2]
        messages.append(text_message("assistant", answer.text))


def test_a_chat_goes_on_in_another_process(model: RealModel, tmp_path: Path) -> None:
    file, messages = tmp_path / "chat.state", [user(REAL_QUESTIONS[0] + " Explain." * 200)]
    with real_worker(model.path) as first:
        answer = first.ask(messages, greedy(max_tokens=12), chat="kept")
        first.send(p.SaveState, chat="kept", path=str(file), most_bytes=10**9)
        assert first.expect(p.StateSaved).n_bytes > 0
        messages += [answer.message, user("And why?")]
        expected = first.ask(messages, greedy(max_tokens=12), chat="kept")
    with real_worker(model.path) as second:
        again = second.ask(messages, greedy(max_tokens=12), chat="kept", state_file=str(file))
    assert again.stats.reused_tokens > FEWEST_CELLS
    assert again.text == expected.text
