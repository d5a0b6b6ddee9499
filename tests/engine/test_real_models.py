"""Models that are not ours: the worker writes what a plain loop writes, and what it keeps in memory changes nothing.

SmolLM2 belongs to `make test`. Gemma, whose sliding windows need checkpoints, belongs to `make soak`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import llama_cpp.llama_cpp as C  # noqa: N812
import pytest

from qwendesk.core.messages import text_message
from qwendesk.core.options import LoadOptions
from qwendesk.core.plan import MachineMemory
from qwendesk.core.units import GIB
from qwendesk.engine import protocol as p
from qwendesk.hardware.planner import best_plan
from qwendesk.hub.gguf import read_facts
from tests.engine.real_models import (
    CLOSE_CALL,
    N_CTX,
    QUESTIONS,
    PlainLoop,
    ask,
    parting_gap,
    plain_loop,
    prompt_of,
    real_options,
    real_worker,
    tokens_of,
)
from tests.engine.worker.process import WorkerProcess, greedy, user
from tools.real_models import SMOLLM2

N_TOKENS = 24
STORY = "Write a short story about a fox."


SMOLLM2_ONLY = pytest.mark.parametrize("model", ["smollm2"], indirect=True)


@pytest.fixture(scope="module", params=["smollm2", pytest.param("gemma", marks=pytest.mark.soak)])
def model(request: pytest.FixtureRequest) -> Path:
    path: Path = request.getfixturevalue(request.param)
    return path


@pytest.fixture(scope="module")
def worker(model: Path) -> Iterator[WorkerProcess]:
    with real_worker(model) as worker:
        yield worker


@pytest.fixture(scope="module")
def loop(model: Path) -> Iterator[PlainLoop]:
    with plain_loop(model) as loop:
        yield loop


@SMOLLM2_ONLY
@pytest.mark.parametrize("question", QUESTIONS)
def test_answers_are_those_of_a_plain_loop(worker: WorkerProcess, loop: PlainLoop, question: str) -> None:
    prompt = prompt_of(loop, loop.chat_template(), question)
    expected = loop.answer(prompt, N_TOKENS)

    answer = ask(worker, question, N_TOKENS)

    written = tokens_of(answer)
    assert answer.stats.prompt_tokens == len(prompt)
    assert [token.piece for token in written] == [token.piece for token in expected]
    assert [token.logprob for token in written] == pytest.approx([token.logprob for token in expected], abs=1e-3)
    assert answer.stop_reason == ("max_tokens" if len(expected) == N_TOKENS else "eos")


SAMPLINGS = {
    "general": {"top_k": 20, "top_p": 0.95, "temperature": 1.0, "presence_penalty": 1.5},
    "coding": {"top_k": 20, "top_p": 0.95, "temperature": 0.6, "presence_penalty": 0.0},
    "all_at_once": {
        "top_k": 100, "top_p": 0.99, "min_p": 0.01, "temperature": 1.4, "repeat_penalty": 1.2,
        "frequency_penalty": 0.3, "presence_penalty": 0.7, "penalty_last_n": 12, "logit_bias": ("28=-2.5", "260=1.25"),
    },
    "greedy": {"temperature": 0.0, "presence_penalty": 1.5, "repeat_penalty": 1.1},
}  # fmt: skip


def llama_cpp_samplers(n_vocab: int, seed: int, values: Mapping[str, Any]) -> list[C.llama_sampler_p]:
    """llama.cpp's own samplers with the values of an answer's options, in its order."""
    biases = (C.llama_logit_bias * len(values.get("logit_bias", ())))()
    for slot, text in zip(biases, values.get("logit_bias", ()), strict=True):
        slot.token, slot.bias = int(text.split("=")[0]), float(text.split("=")[1])
    penalties = (values.get("repeat_penalty", 1.0), values.get("frequency_penalty", 0.0), values["presence_penalty"])
    changes = [
        C.llama_sampler_init_logit_bias(n_vocab, len(biases), biases),
        C.llama_sampler_init_penalties(n_vocab, values.get("penalty_last_n", N_CTX), *penalties),
    ]
    if not values["temperature"]:
        return [*changes, C.llama_sampler_init_greedy()]
    return [
        *changes,
        C.llama_sampler_init_top_k(values["top_k"]),
        C.llama_sampler_init_top_p(values["top_p"], 1),
        C.llama_sampler_init_min_p(values.get("min_p", 0.0), 1),
        C.llama_sampler_init_temp(values["temperature"]),
        C.llama_sampler_init_dist(seed),
    ]


@SMOLLM2_ONLY
@pytest.mark.parametrize("values", SAMPLINGS.values(), ids=SAMPLINGS)
def test_a_seed_draws_what_llama_cpps_own_samplers_draw(
    worker: WorkerProcess, loop: PlainLoop, values: Mapping[str, Any]
) -> None:
    for seed, question in enumerate(QUESTIONS[:4]):
        prompt = prompt_of(loop, loop.chat_template(), question)
        expected = loop.drawn(prompt, N_TOKENS, llama_cpp_samplers(loop.n_vocab, seed, values))
        answer = ask(worker, question, N_TOKENS, seed=seed, **values)
        assert [token.piece for token in tokens_of(answer)] == expected


@SMOLLM2_ONLY
def test_the_template_and_the_end_are_the_models_own(worker: WorkerProcess, model: Path) -> None:
    report = worker.load(real_options(model))
    assert (report.template.source, report.template.notice, report.can_think) == ("model", "", False)
    answer = worker.ask([user("What is the capital of France? Answer with one word.")], greedy(max_tokens=40))
    assert (answer.stop_reason, answer.reasoning) == ("eos", "")
    assert answer.text == "The capital of France is Paris."


def test_the_answer_ends_before_a_stop_text(worker: WorkerProcess) -> None:
    whole = worker.ask([user(QUESTIONS[0])], greedy(max_tokens=N_TOKENS))
    stop = whole.text.split()[3]
    stopped = worker.ask([user(QUESTIONS[0])], greedy(max_tokens=N_TOKENS, stop=(stop,)))
    assert stopped.stop_reason == "stop_string"
    assert stopped.text == whole.text[: whole.text.index(stop)]


def test_an_edited_chat_and_its_branches_from_memory_are_those_of_a_fresh_start(worker: WorkerProcess) -> None:
    first = worker.ask([user(QUESTIONS[1])], greedy(max_tokens=N_TOKENS))
    chat = [user(QUESTIONS[1]), first.message, user("Now with three numbers.")]
    edited = [user(QUESTIONS[2]), text_message("assistant", "Buenos días."), user("And good night?")]
    branch = [*chat[:2], user("Write it in C.")]
    for messages in (chat, edited, chat[:1], branch, chat):
        fresh = worker.ask(messages, greedy(max_tokens=N_TOKENS, cache_prompt=False), n_logprobs=2)
        kept = worker.ask(messages, greedy(max_tokens=N_TOKENS), n_logprobs=2)
        assert kept.stats.reused_tokens > 0
        assert parting_gap(fresh, kept) < CLOSE_CALL


def test_an_interrupted_answer_goes_on_as_it_would_have(worker: WorkerProcess) -> None:
    whole = worker.ask([user(QUESTIONS[1])], greedy(max_tokens=40))
    part = worker.ask([user(QUESTIONS[1])], greedy(max_tokens=15))
    rest = worker.ask([user(QUESTIONS[1])], greedy(max_tokens=25), begun=p.Begun("", part.text))
    assert part.text + rest.text == whole.text


def test_an_answer_that_turns_in_circles_is_stopped(worker: WorkerProcess) -> None:
    answer = worker.ask([user(STORY)], greedy(max_tokens=700))
    assert answer.stop_reason == "repetition"


def test_a_chat_that_is_longer_than_the_context_says_so(worker: WorkerProcess) -> None:
    long = user("A fox is an animal. " * N_CTX)
    assert worker.ask([long], greedy(max_tokens=8)).stop_reason == "context_full"
    dropping = greedy(max_tokens=8, context_overflow="drop_oldest")
    kept = worker.ask([long, text_message("assistant", "Yes."), user("What is it?")], dropping)
    assert (kept.stop_reason, kept.stats.dropped_messages) == ("max_tokens", 2)


CODE = "def add(a, b):\n    return a + b\n\n\ndef mul(a, b):\n    return a * b\n" * 2
PROSE = Path(__file__).parents[2].joinpath("LICENSE").read_text(encoding="utf-8")[500:900]


@pytest.mark.parametrize("text", [CODE, PROSE], ids=["code", "prose"])
def test_drafts_from_the_prompt_change_no_answer(model: Path, text: str) -> None:
    """Sliding windows can't take drafted tokens back, so gemma gets none."""
    question = f"Repeat this:\n{text}"
    with real_worker(model) as plain, real_worker(model, speculative="lookup", draft_n_max=4) as drafting:
        expected = ask(plain, question, 48)
        answer = ask(drafting, question, 48)
    assert answer.text == expected.text
    assert (answer.stats.accepted_tokens > 0) is (model == SMOLLM2.path)


def test_the_planned_memory_is_what_the_engine_takes(worker: WorkerProcess, model: Path) -> None:
    machine = MachineMemory(devices=(), ram_total_bytes=16 * GIB, ram_available_bytes=12 * GIB)
    made = best_plan(read_facts(model), None, machine, LoadOptions(model=str(model), n_ctx=4096))
    chosen = made.options

    report = worker.load(real_options(model, n_ctx=4096, n_batch=chosen.n_batch, n_ubatch=chosen.n_ubatch))

    (cpu,) = report.allocations
    ram = made.memory.ram
    assert ram.kv_bytes == pytest.approx(cpu.kv_bytes, rel=0.001)
    assert ram.total_bytes - ram.other_bytes == pytest.approx(cpu.total_bytes, rel=0.02)
