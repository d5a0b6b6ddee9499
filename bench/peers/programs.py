"""Several programs that ask at the same time over HTTP: `qwendesk serve`, and what all servers have in common."""

import concurrent.futures
import contextlib
import json
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from typing import Any

from bench.peers.sides import Answer, Setup, SideFailure, Turn, Values, sampling_values
from bench.served import served

_ANSWER_LIMIT_S = 600.0


def ask_together(url: str, keys: Sequence[str], values: Values, turns: Sequence[Turn], n_tokens: int) -> Answer:
    """Ask once with each key, all at the same time. Raise SideFailure if one gets no answer.

    The speed is that of all answers together, from the question to the end of the last one. No text is streamed, so
    there is no time to the first one: it is the time to the last answer.
    """
    bodies = [_body(values, turns, n_tokens, number) for number in range(len(keys))]
    began = time.perf_counter()
    with concurrent.futures.ThreadPoolExecutor(len(keys)) as pool:
        answers = list(pool.map(lambda key, body: _post(url, key, body), keys, bodies))
    seconds = time.perf_counter() - began
    usages = [answer["usage"] for answer in answers]
    n_written = sum(usage["completion_tokens"] for usage in usages)
    text = str(answers[0]["choices"][0]["message"]["content"])
    return Answer(text, seconds, n_written / seconds, sum(usage["prompt_tokens"] for usage in usages))


def _body(values: Values, turns: Sequence[Turn], n_tokens: int, number: int) -> dict[str, object]:
    """Return a request. The number comes first, so that two programs share no beginning."""
    messages = [{"role": turn.role, "content": f"{number} {turn.text}"} for turn in turns]
    return {
        "messages": messages,
        "max_tokens": n_tokens,
        **sampling_values(values),
        "ignore_eos": True,
        "chat_template_kwargs": {"enable_thinking": False},
    }


def _post(url: str, key: str, body: dict[str, object]) -> Any:
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
    request = urllib.request.Request(f"{url}/v1/chat/completions", json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=_ANSWER_LIMIT_S) as reply:
            return json.load(reply)
    except urllib.error.HTTPError as error:
        raise SideFailure(f"The server refused: {error.read().decode(errors='replace')}") from error
    except OSError as error:
        raise SideFailure(f"The server did not answer: {error}") from error


class AppServer:
    """`qwendesk serve` with a key for each program. It implements what rows with several programs need of Side."""

    is_ours = True

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._open = contextlib.ExitStack()
        load = (f"n_ctx={setup.n_ctx}", f"n_threads={setup.n_threads}", "n_gpu_layers=0")
        try:
            self._served = self._open.enter_context(served(setup.model, n_keys=setup.n_clients, load=load))
        except RuntimeError as error:
            raise SideFailure(str(error)) from error

    def ask(self, turns: tuple[Turn, ...], n_tokens: int, chat: str) -> Answer:
        return ask_together(self._served.url, self._served.keys, self._setup.values, turns, n_tokens)

    def save(self, chat: str) -> None:
        raise SideFailure("A server saves no chat on demand.")

    def restart(self) -> None:
        raise SideFailure("A server isn't restarted.")

    def prepare(self, turns: tuple[Turn, ...], chat: str) -> None:
        raise SideFailure("A server gets nothing ahead.")

    def close(self) -> None:
        self._open.close()
