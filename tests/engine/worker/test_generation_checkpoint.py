"""A hybrid model whose template opens no thought reads as little again as one that does."""

import itertools
from collections.abc import Iterator

import pytest

from qwendesk.core.messages import Message, text_message
from tests.engine.worker.process import Answer, WorkerProcess, demo_options, greedy, user, worker_process

_CHATML = """\
{%- for m in messages -%}{{- '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' -}}{%- endfor -%}
{{- '<|im_start|>assistant\\n' -}}
"""
LONG = "The model reads this sentence and keeps it. " * 40
QUESTIONS = (LONG + "Hello", "What is the KV cache?", LONG + "Tell me a joke", "What is 2 + 3?")


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkerProcess]:
    template = tmp_path_factory.mktemp("template") / "chatml.jinja"
    template.write_text(_CHATML)
    with worker_process() as process:
        report = process.load(demo_options(chat_template_file=str(template)))
        assert report.is_hybrid
        assert not report.can_think
        yield process


def test_regenerating_processes_only_the_generation_prompt(worker: WorkerProcess) -> None:
    first = worker.ask([user(LONG)])
    again = worker.ask([user(LONG)])
    assert first.stats.prompt_tokens > 200
    assert again.stats.reread_tokens <= 8
    assert again.stats.cache_note == ""
    assert again.text == first.text


def test_editing_an_answer_reuses_the_question_before_it(worker: WorkerProcess) -> None:
    worker.ask([user(LONG)])
    chat = [user(LONG), text_message("assistant", "Something else."), user("Hello")]
    assert worker.ask(chat).stats.reread_tokens < 50


def test_answers_are_the_same_with_and_without_the_cache(worker: WorkerProcess) -> None:
    fast, slow = conversation(worker, cache_prompt=True), conversation(worker, cache_prompt=False)
    assert [answer.text for answer in fast] == [answer.text for answer in slow]
    for before, after in itertools.pairwise(fast):
        new_tokens = after.stats.prompt_tokens - before.stats.prompt_tokens
        assert after.stats.reread_tokens <= new_tokens + 10


def conversation(worker: WorkerProcess, *, cache_prompt: bool) -> list[Answer]:
    chat: list[Message] = []
    answers = []
    for question in QUESTIONS:
        chat.append(user(question))
        answers.append(worker.ask(chat, greedy(cache_prompt=cache_prompt, max_tokens=40)))
        chat.append(answers[-1].message)
    return answers
