"""Samplers and grammars really act, seen in what the demo model writes."""

import collections
import json
import re

import msgspec
import pytest

from qwendesk.engine import protocol as p
from tests.core.test_grammar_bounds import VALID_GRAMMARS
from tests.engine.worker.process import WorkerProcess, demo_options, greedy, user

LONG = [user("Write a long text")]


def most_common_word(text: str) -> int:
    return collections.Counter(re.findall(r"\w+", text.lower())).most_common(1)[0][1]


@pytest.mark.parametrize(
    "penalty",
    [
        {"repeat_penalty": 3.0},
        {"frequency_penalty": 4.0},
        {"presence_penalty": 20.0},
        {"dry_multiplier": 8.0, "dry_allowed_length": 1},
    ],
    ids=lambda penalty: next(iter(penalty)),
)
def test_penalties_make_words_come_less_often(worker: WorkerProcess, penalty: dict[str, float]) -> None:
    """The plain answer says "This is line number" twenty times."""
    plain = worker.ask(LONG, greedy(enable_thinking=False, max_tokens=150))
    assert most_common_word(plain.text) >= 15
    penalised = worker.ask(LONG, greedy(enable_thinking=False, max_tokens=150, penalty_last_n=-1, **penalty))
    assert most_common_word(penalised.text) < most_common_word(plain.text) / 2


def test_repetitions_are_penalised_before_the_likeliest_token_is_chosen(worker: WorkerProcess) -> None:
    likeliest = greedy(enable_thinking=False, max_tokens=150, temperature=1.0, top_k=1)
    plain = worker.ask(LONG, likeliest)
    dry = msgspec.structs.replace(likeliest, dry_multiplier=8.0, dry_allowed_length=1)
    assert most_common_word(worker.ask(LONG, dry).text) < most_common_word(plain.text) / 2


def test_presence_counts_the_whole_answer_unless_a_window_is_set(worker: WorkerProcess) -> None:
    """The servers on the model cards count all output."""
    penalty = {"enable_thinking": False, "max_tokens": 150, "presence_penalty": 20.0}
    usual = worker.ask(LONG, greedy(**penalty))
    assert usual.text == worker.ask(LONG, greedy(penalty_last_n=-1, **penalty)).text
    assert usual.text != worker.ask(LONG, greedy(penalty_last_n=16, **penalty)).text


def test_a_window_of_zero_switches_penalties_off(worker: WorkerProcess) -> None:
    plain = worker.ask(LONG, greedy(enable_thinking=False))
    windowless = worker.ask(LONG, greedy(enable_thinking=False, repeat_penalty=3.0, penalty_last_n=0))
    assert windowless.text == plain.text


@pytest.mark.parametrize("narrow", [{"top_k": 1}, {"top_p": 0.0}, {"min_p": 1.0}, {"temperature": 0.0}], ids=str)
def test_narrow_samplers_take_the_likeliest_token(worker: WorkerProcess, narrow: dict[str, float]) -> None:
    wide = {"temperature": 3.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "seed": 5}
    best = worker.ask([user("Tell me a story")], greedy(enable_thinking=False)).text
    assert worker.ask([user("Tell me a story")], greedy(enable_thinking=False, **wide)).text != best
    assert worker.ask([user("Tell me a story")], greedy(enable_thinking=False, **wide | narrow)).text == best


def test_typical_and_xtc_change_what_is_drawn(worker: WorkerProcess) -> None:
    wide = {"temperature": 2.0, "top_k": 0, "top_p": 1.0, "seed": 3, "enable_thinking": False, "max_tokens": 60}
    base = worker.ask(LONG, greedy(**wide)).text
    assert worker.ask(LONG, greedy(**wide, typical_p=0.1)).text != base
    assert worker.ask(LONG, greedy(**wide, xtc_probability=1.0, xtc_threshold=0.01)).text != base


def test_logit_bias_forbids_a_token(worker: WorkerProcess) -> None:
    free = worker.ask([user("Count to ten")], greedy(enable_thinking=False))
    assert free.text == "1, 2, 3, 4, 5, 6, 7, 8, 9, 10."
    report = worker.load(demo_options())
    assert 2018 in report.end_tokens
    endless = worker.ask(
        [user("Count to ten")], greedy(enable_thinking=False, logit_bias=("2018=-inf", "2016=-inf"), max_tokens=60)
    )
    assert endless.stop_reason == "max_tokens"


@pytest.mark.parametrize("bias", ["hello=1", "99999999=1", "5=many"])
def test_a_bad_logit_bias_is_refused(worker: WorkerProcess, bias: str) -> None:
    assert bias in worker.refuse(LONG, greedy(logit_bias=(bias,))).sentence


SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 12},
        "age": {"type": "integer", "minimum": 0, "maximum": 99},
    },
    "required": ["name", "age"],
    "additionalProperties": False,
}


@pytest.mark.parametrize("thinking", [True, False])
def test_schema_applies_to_the_answer_but_not_to_the_reasoning(worker: WorkerProcess, thinking: bool) -> None:
    options = greedy(enable_thinking=thinking, json_schema=json.dumps(SCHEMA), max_tokens=200)
    answer = worker.ask([user("Show me JSON")], options)
    assert answer.stop_reason == "eos"
    value = json.loads(answer.text)
    assert set(value) == {"name", "age"}
    assert isinstance(value["age"], int)
    assert bool(answer.reasoning) == thinking


def test_strings_under_a_schema_have_no_line_break(worker: WorkerProcess) -> None:
    """JSON doesn't allow it there, however much the model wants it."""
    worker.send(p.Tokenize, text="\n")
    (line_break,) = worker.expect(p.Tokenized).tokens
    options = greedy(
        enable_thinking=False, json_schema=json.dumps(SCHEMA), max_tokens=200, logit_bias=(f"{line_break}=100",)
    )
    answer = worker.ask([user("Show me JSON")], options)
    assert answer.stop_reason == "eos"
    assert set(json.loads(answer.text)) == {"name", "age"}


def test_grammar_applies_at_high_temperature(worker: WorkerProcess) -> None:
    for seed in range(5):
        options = greedy(
            enable_thinking=False, temperature=5.0, top_k=0, top_p=1.0, seed=seed, max_tokens=50,
            grammar='root ::= ("yes" | "no") ("!" | "?")',
        )  # fmt: skip
        assert worker.ask([user("Is it private?")], options).text in {"yes!", "yes?", "no!", "no?"}


def test_a_grammar_with_a_budget_starts_at_the_answer(worker: WorkerProcess) -> None:
    options = greedy(thinking_budget=3, thinking_close="\n</think>\n\n", grammar='root ::= "ok"', max_tokens=50)
    answer = worker.ask([user("Hello")], options)
    assert answer.text == "ok"
    assert answer.stats.reasoning_tokens == 3


@pytest.mark.parametrize(
    "bad",
    [
        {"grammar": "root ::= ("},
        {"grammar": 'nothing ::= "a"'},
        {"json_schema": "{not json"},
        {"json_schema": '{"type": "banana"}'},
        {"json_schema": "{}", "grammar": 'root ::= "a"'},
    ],
    ids=str,
)
def test_bad_grammar_is_an_error_and_the_worker_continues(worker: WorkerProcess, bad: dict[str, str]) -> None:
    refused = worker.refuse([user("Hello")], greedy(**bad))
    assert refused.title
    assert worker.ask([user("Hello")]).text.startswith("Hello!")


@pytest.mark.parametrize("grammar", VALID_GRAMMARS)
def test_grammar_that_passes_the_check_is_accepted(worker: WorkerProcess, grammar: str) -> None:
    worker.ask([user("Hello")], greedy(grammar=grammar, max_tokens=3))
