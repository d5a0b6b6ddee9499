"""Log probabilities of the tokens of an answer, and the stop text that ended one."""

import math

from qwendesk.engine import protocol as p
from tests.engine.worker.process import Answer, WorkerProcess, greedy, user


def tokens_of(answer: Answer) -> list[p.AnswerToken]:
    return [token for event in answer.events if isinstance(event, p.Delta) for token in event.logprobs]


def test_each_token_of_an_answer_comes_with_its_log_probability(worker: WorkerProcess) -> None:
    answer = worker.ask([user("Hello")], greedy(), n_logprobs=3)
    tokens = tokens_of(answer)
    assert b"".join(token.token for token in tokens).decode().strip() == answer.text
    for token in tokens:
        assert len(token.likeliest) == 3
        assert token.likeliest[0].token == token.token, "without sampling, the likeliest token is taken"
        assert token.likeliest[0].logprob == token.logprob <= 0
        logs = [each.logprob for each in token.likeliest]
        assert logs == sorted(logs, reverse=True)
        assert sum(map(math.exp, logs)) <= 1.000001


def test_sampling_options_do_not_change_them(worker: WorkerProcess) -> None:
    banned = worker.ask([user("Hello")], greedy(enable_thinking=False, max_tokens=1), n_logprobs=1)
    [first] = tokens_of(banned)
    token = worker_token(worker, first.token)
    other = worker.ask(
        [user("Hello")],
        greedy(enable_thinking=False, max_tokens=1, logit_bias=(f"{token}=-inf",)),
        n_logprobs=1,
    )
    [second] = tokens_of(other)
    assert second.likeliest == first.likeliest
    assert second.token != first.token
    assert second.logprob < first.logprob


def worker_token(worker: WorkerProcess, text: bytes) -> int:
    worker.send(p.Tokenize, text=text.decode())
    return worker.expect(p.Tokenized).tokens[0]


def test_none_are_sent_that_were_not_asked_for(worker: WorkerProcess) -> None:
    assert not tokens_of(worker.ask([user("Hello")], greedy()))
    asked = worker.ask([user("Hello")], greedy(), n_logprobs=0)
    assert tokens_of(asked)
    assert not any(token.likeliest for token in tokens_of(asked))


def test_the_end_of_an_answer_names_the_stop_text(worker: WorkerProcess) -> None:
    whole = worker.ask([user("Hello")], greedy())
    word = whole.text.split()[3]
    stopped = worker.ask([user("Hello")], greedy(stop=("never said", word)))
    last = stopped.events[-1]
    assert isinstance(last, p.Finished)
    assert (last.stop_reason, last.stop_text) == ("stop_string", word)
    assert whole.text.startswith(stopped.text)
