"""What is measured on both sides in the same way: a chat goes in, and an answer comes back with its times."""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, Protocol

import msgspec

from qwendesk.core.presets import sampling

Speculation = Literal["", "mtp", "lookup"]
Values = Literal["greedy", "general", "coding"]


def sampling_values(values: Values) -> Mapping[str, float | int]:
    """Return sampling options by name: none at random, or those of Qwen3.5's model card for what people do.

    The names are those of GenerationOptions and of llama-server's requests.
    """
    if values == "greedy":
        return {"temperature": 0.0, "presence_penalty": 0.0}
    return sampling("qwen3.5", "general" if values == "general" else "precise", thinking=True)


class SideFailure(Exception):
    """A side cannot do what a row asks of it. The text says why."""


class Setup(msgspec.Struct, frozen=True):
    """How both sides load their model."""

    model: Path
    n_threads: int
    mmproj: Path | None = None
    speculation: Speculation = ""
    n_ctx: int = 4096
    values: Values = "greedy"
    n_clients: int = 1
    """How many programs ask at the same time."""


class Turn(msgspec.Struct, frozen=True):
    """One message of a chat. The picture comes before the text."""

    role: Literal["user", "assistant"]
    text: str
    picture: Path | None = None


class Answer(msgspec.Struct, frozen=True):
    """An answer as the client received it."""

    text: str
    first_token_s: float
    """Seconds from sending the question to the first piece of text, on the client's clock."""
    decode_tok_s: float
    """Tokens per second between the first and the last piece of text, on the client's clock."""
    processed_tokens: int
    """How many of the prompt's tokens were processed and not reused, as the side itself reports."""


class Side(Protocol):
    """An engine with a loaded model: the app's or the peer's. Its methods wait and raise SideFailure."""

    is_ours: bool

    def ask(self, turns: tuple[Turn, ...], n_tokens: int, chat: str) -> Answer:
        """Return the answer to the last turn, with the setup's values. `chat` is a name that all turns of a chat share.

        After a restart, the first question in a saved chat restores its state. The time for that counts.
        """

    def save(self, chat: str) -> None:
        """Write the state of a chat to a file, which `ask` uses after a restart."""

    def restart(self) -> None:
        """End the process and start a new one with the same model."""

    def prepare(self, turns: tuple[Turn, ...], chat: str) -> None:
        """Tell what the next question begins with, before it is asked: the app knows it while it is being typed."""

    def close(self) -> None:
        """End the process."""


class Pieces:
    """The clock of one answer: when it was sent, and when its first and last pieces of text arrived."""

    def __init__(self, now: float) -> None:
        self._sent = self._first = self._last = now
        self.text = ""
        self._first_tokens = 0
        self._last_tokens = 0

    def add(self, text: str, n_tokens: int, now: float) -> None:
        """Note a piece of text. `n_tokens` counts the answer's tokens so far."""
        if not self.text:
            self._first, self._first_tokens = now, n_tokens
        self.text += text
        self._last, self._last_tokens = now, n_tokens

    @property
    def written_s(self) -> float:
        """Seconds between the first and the last piece of text."""
        return self._last - self._first

    def answer(self, processed_tokens: int, n_tokens: int = 0) -> Answer:
        """Return the whole answer. `n_tokens` is its number of tokens where the pieces did not tell it."""
        if not self.text:
            raise SideFailure("The answer has no text.")
        seconds = self.written_s
        decoded = (n_tokens or self._last_tokens) - self._first_tokens
        return Answer(self.text, self._first - self._sent, decoded / seconds if seconds > 0 else 0.0, processed_tokens)
