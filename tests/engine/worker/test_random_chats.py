"""Random sessions: several chats with pictures, edits, files prepared ahead, stops, saved states, kills and reloads.

Every answer must be the one of an engine that processes each prompt as a whole, with nothing kept from before.
"""

import contextlib
import random
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.messages import Message, TextPart
from qwendesk.core.options import DecidedOptions
from qwendesk.engine import protocol as p
from tests.engine.worker.process import (
    Answer,
    WorkerProcess,
    demo_options,
    draw_circle,
    greedy,
    image_part,
    user,
    worker_process,
)

QUESTIONS = (
    "Hello", "What is VRAM spill?", "What is the KV cache?", "What is a quant?", "My name is Anna", "What is my name?",
    "Tell me a joke", "What is 2 + 3?", "Show me a table",
)  # fmt: skip
NOTES = "Experts are stored in RAM, and attention stays on the card. "
_SOAK_S = 1800
_SETTLED_STEPS = 120
"""After so many steps, all caches have reached their budgets."""


def options(speculative: str) -> DecidedOptions:
    """Small budgets, so that checkpoints and states are dropped all the time."""
    return demo_options(
        n_ubatch=128, n_ctx=8192, cache_budget_mib=2, chat_states_mib=6, speculative=speculative, draft_n_max=3
    )


class RandomSession:
    """Chats with one worker, compared with another one."""

    def __init__(self, seed: int, folder: Path, speculative: str) -> None:
        self._rng, self._folder, self._options = random.Random(seed), folder, options(speculative)
        self._chats: dict[str, list[Message]] = {name: [] for name in "abcd"}
        self._pictures = [self._picture(colour) for colour in ("red", "blue", "green")]
        self._open = contextlib.ExitStack()
        self._reference = self._open.enter_context(worker_process())
        self._reference.load(options("off"))
        self._worker_life = contextlib.ExitStack()
        self.worker = self._start()
        self.n_compared = self.n_reused = 0

    def close(self) -> None:
        self._worker_life.close()
        self._open.close()

    def step(self) -> None:
        """Do one thing to a random chat."""
        name = self._rng.choice("abcd")
        doing = self._rng.random()
        if doing < 0.12:
            self._prepare(name)
        elif doing < 0.22:
            self._save(name)
        elif doing < 0.25:
            self._restart(kill=self._rng.random() < 0.5)
        elif doing < 0.33:
            self._stop(name)
        else:
            self._ask(name)

    def _start(self) -> WorkerProcess:
        worker = self._worker_life.enter_context(worker_process())
        worker.load(self._options)
        return worker

    def _restart(self, *, kill: bool) -> None:
        if kill:
            self.worker.process.kill()
            self._worker_life.close()
            self.worker = self._start()
        else:
            self.worker.load(self._options)

    def _ask(self, name: str) -> None:
        chat = self._chats[name]
        if chat and self._rng.random() < 0.25:  # another wording of an old question, or the last one again
            del chat[2 * self._rng.randrange(len(chat) // 2) :]
        if len(chat) > 10:
            chat.clear()
        question = self._question()
        how = greedy(enable_thinking=self._rng.random() < 0.5, max_tokens=self._rng.choice([5, 40]))
        if self._rng.random() < 0.3:
            self._prepare(name, question)
        request = self._send_question(name, question, how)
        answer = Answer(self._until_finished(request))
        whole = self._reference.ask(
            [*chat, question],
            greedy(enable_thinking=how.enable_thinking, max_tokens=how.max_tokens, cache_prompt=False),
        )
        said, expected = _said(answer), _said(whole)
        assert said == expected, (name, len(chat), question.text, answer.stats)
        self.n_compared += 1
        self.n_reused += answer.stats.reused_tokens > 100
        chat += [question, answer.message]

    def _prepare(self, name: str, question: Message | None = None) -> None:
        """Have the chat processed ahead, with the files of a question or without."""
        files = [] if question is None else [Message("user", question.parts[:-1])]
        messages = (*self._chats[name], *files)
        self.worker.send(p.Warm, messages=messages, options=greedy(), chat=name, state_file=str(self._file(name)))
        if self._rng.random() < 0.7:
            self.worker.until(p.Warmed, p.RequestFailed)

    def _save(self, name: str) -> None:
        self.worker.send(p.SaveState, chat=name, path=str(self._file(name)), most_bytes=10**9)
        if self._rng.random() < 0.5:
            self.worker.until(p.StateSaved, p.RequestFailed)

    def _stop(self, name: str) -> None:
        """Stop an answer at once, or after its first words. The chat stays as it was."""
        question = self._question()
        request = self._send_question(name, question, greedy())
        events = self.worker.until(p.Delta, p.Finished) if self._rng.random() < 0.5 else []
        self.worker.send(p.Cancel, target=request)
        if not any(isinstance(event, p.Finished) and event.id == request for event in events):
            self._until_finished(request)

    def _send_question(self, name: str, question: Message, how: GenerationOptions) -> int:
        return self.worker.send(
            p.Generate,
            messages=(*self._chats[name], question),
            options=how,
            chat=name,
            state_file=str(self._file(name)),
        )

    def _until_finished(self, request: int) -> list[p.Event]:
        """The events of a question; those of other requests in between are passed over."""
        events = []
        while not events or not isinstance(events[-1], p.Finished):
            event = self.worker.next_event()
            assert not isinstance(event, p.RequestFailed), event
            if event.id == request:
                events.append(event)
        return events

    def _question(self) -> Message:
        text = self._rng.choice(QUESTIONS)
        notes = NOTES * self._rng.choice([0, 0, 3, 40])
        if self._rng.random() < 0.25:
            picture = image_part(self._rng.choice(self._pictures))
            return Message("user", (picture, TextPart(notes), TextPart("What is in this picture?")))
        return Message("user", (TextPart(notes), TextPart(text))) if notes else user(text)

    def _file(self, name: str) -> Path:
        return self._folder / f"{name}.state"

    def _picture(self, colour: str) -> Path:
        return draw_circle(self._folder / f"{colour}.png", colour)


def _said(answer: Answer) -> tuple[str, str, str]:
    return answer.reasoning, answer.text, answer.stop_reason


@pytest.fixture
def sessions(tmp_path: Path) -> Iterator[list[RandomSession]]:
    made: list[RandomSession] = []
    yield made
    for session in made:
        session.close()


@pytest.mark.parametrize("seed", [1, 2])
def test_random_chats_are_answered_as_by_an_engine_without_a_memory(
    tmp_path: Path, sessions: list[RandomSession], seed: int
) -> None:
    session = RandomSession(seed, tmp_path, "off")
    sessions.append(session)
    for _ in range(40):
        session.step()
    assert session.n_compared > 15
    assert session.n_reused > 3


@pytest.mark.soak
@pytest.mark.parametrize("speculative", ["off", "lookup"])
def test_random_chats_for_half_an_hour(tmp_path: Path, sessions: list[RandomSession], speculative: str) -> None:
    """Memory stays flat within 5%, measured between kills, when all caches have reached their budgets."""
    session = RandomSession(random.randrange(10**6), tmp_path, speculative)
    sessions.append(session)
    end = time.monotonic() + _SOAK_S / 2
    settled: dict[int, list[int]] = {}
    steps = 0
    pid = 0
    while time.monotonic() < end:
        session.step()
        steps = steps + 1 if session.worker.process.pid == pid else 0
        pid = session.worker.process.pid
        if steps > _SETTLED_STEPS:
            settled.setdefault(pid, []).append(psutil.Process(pid).memory_info().rss)
    for sizes in settled.values():
        quarter = max(1, len(sizes) // 4)
        assert max(sizes[-quarter:]) < 1.05 * max(sizes[:quarter]) + 8 * 1024**2
    print(f"{session.n_compared} answers compared, {session.n_reused} of them with more than 100 tokens reused")
