"""Log probabilities in the words of OpenAI's APIs."""

from collections.abc import Sequence
from typing import Any

from qwendesk.engine.protocol import AnswerToken, TokenLogprob
from qwendesk.server.question import Question

_LEAST = -9999.0
"""What OpenAI writes for a token that can't come; JSON has no infinity."""


def chat_logprobs(question: Question, tokens: Sequence[AnswerToken]) -> dict[str, Any] | None:
    """Return the value of a choice's logprobs in chat completions; None if the client didn't ask."""
    if question.n_logprobs < 0:
        return None
    content = [_token(each) | {"top_logprobs": [_token(other) for other in each.likeliest]} for each in tokens]
    return {"content": content, "refusal": None}


def completion_logprobs(question: Question, tokens: Sequence[AnswerToken], n_before: int = 0) -> dict[str, Any] | None:
    """Return the same for completions. `n_before` characters of the answer came before these tokens."""
    if question.n_logprobs < 0:
        return None
    texts, offsets = [_text(each) for each in tokens], []
    for text in texts:
        offsets.append(n_before)
        n_before += len(text)
    return {
        "tokens": texts,
        "token_logprobs": [_logprob(each) for each in tokens],
        "top_logprobs": [{_text(other): _logprob(other) for other in each.likeliest} for each in tokens],
        "text_offset": offsets,
    }


def _token(token: TokenLogprob) -> dict[str, Any]:
    return {"token": _text(token), "logprob": _logprob(token), "bytes": list(token.token)}


def _text(token: TokenLogprob) -> str:
    return token.token.decode("utf-8", "replace")


def _logprob(token: TokenLogprob) -> float:
    return max(token.logprob, _LEAST)
