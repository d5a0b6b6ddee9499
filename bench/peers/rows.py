"""The rows of the comparison: what each one does on one side in one round, and what it aims at."""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Literal

import msgspec
from PIL import Image, ImageDraw

from bench.peers.sides import Answer, Side, Speculation, Turn, Values

Measure = Callable[[Side, "Material", str], Answer]
"""Runs a row once: on this side, with this material, in a chat whose name is new in every round."""

_SENTENCE = (
    "a home computer reads the long question and keeps its state so that the next turn starts at once while memory "
    "bandwidth decides how fast every word of the answer is written and a copy of the recurrent layers lets it go back"
)
_DECODED = 64
_ANSWER, _LONG_ANSWER = 32, 200
_FIRST_TOKENS = 4
"""An answer of which only the first token counts."""
_LATER = "And what follows from that?"
_TYPING_S = 3.0
# How long a chat is looked at before something is asked. The app waits 0.3 s of it before it processes ahead.
_OPENED_S = 2.0
_WARMER_WAITS_S = 0.3


class Material(msgspec.Struct, frozen=True):
    """What the questions are made of."""

    folder: Path
    """For pictures."""
    words_per_token: float = 1.0

    def text(self, name: str, n_tokens: int) -> str:
        """Return about `n_tokens` tokens. `name` comes first, so that two texts share no beginning."""
        words = _SENTENCE.split()
        n_words = round(n_tokens * self.words_per_token)
        return " ".join([name, *(words[(i * i + 7 * i) % len(words)] for i in range(n_words))])

    def picture(self, name: str) -> Path:
        """Return a picture of 1024x768 pixels that is different for each name but the same for each side."""
        path = self.folder / f"{name}.png"
        if not path.exists():
            left = 100 + sum(name.encode()) % 200
            image = Image.new("RGB", (1024, 768), "white")
            ImageDraw.Draw(image).ellipse((left, 100, left + 500, 600), fill="red")
            image.save(path)
        return path


class Target(msgspec.Struct, frozen=True):
    """The ratio of ours to the peer's that a row aims at."""

    bound: float
    is_least: bool = False
    """The ratio must be at least the bound (speed); otherwise at most (waiting)."""

    def is_met(self, ratio: float) -> bool:
        return ratio >= self.bound if self.is_least else ratio <= self.bound

    def __str__(self) -> str:
        return f"at {'least' if self.is_least else 'most'} {self.bound:.2f}"


FASTER, NO_SLOWER, TENTH = Target(1.0, is_least=True), Target(1.0), Target(0.1)
CLOSE_BEHIND = Target(0.97, is_least=True)
"""With all threads, the app's own process shares the cores with them."""
AHEAD = Target(1.05, is_least=True)
HOLDS = Target(0.95, is_least=True)
UNNOTICED = Target(0.99, is_least=True)

PeerName = Literal["llama-server", "ours with one thread", "ours that looks at nobody"]
Model = Literal["generated", "words", "smollm2", "demo"]
"""The benchmark model with 150,000 tokens of vocabulary, one with 248,320, SmolLM2, and the built-in demo."""


class Row(msgspec.Struct, frozen=True):
    name: str
    """The name for `--rows`."""
    what: str
    unit: Literal["tok/s", "s"]
    target: Target
    measure: Measure
    model: Model = "generated"
    """The demo model knows pictures, and its draft head is trained."""
    values: Values = "greedy"
    on_one_thread: bool = False
    speculation: Speculation = ""
    peers: tuple[PeerName, ...] = ("llama-server",)
    """The best of them counts."""
    n_busy: int = 0
    """How many other processes keep a core busy each."""
    is_busy_low: bool = False
    """They have the lowest priority; the normal one otherwise."""
    n_clients: int = 1
    pairs_per_round: int = 1
    """Short answers take several turns: the finer all alternate, the less the machine's load of the moment decides."""
    is_limit: bool = False
    """A limit that the documentation names with its price: the target is what would be without it."""

    def value(self, answer: Answer) -> float:
        return answer.decode_tok_s if self.unit == "tok/s" else answer.first_token_s


def decode(side: Side, material: Material, chat: str) -> Answer:
    return side.ask((Turn("user", f"{chat}: write."),), _DECODED, chat)


def decode_long(side: Side, material: Material, chat: str) -> Answer:
    """Decode an answer that is long enough for a worker that follows other programs."""
    return side.ask((Turn("user", f"{chat}: write."),), 4 * _DECODED, chat)


def decode_known(side: Side, material: Material, chat: str) -> Answer:
    """Decode a text that the demo model has learnt, so that its draft head guesses as well as it can."""
    return side.ask((Turn("user", "Write a long text"),), 2 * _DECODED, chat)


def decode_repetitive(side: Side, material: Material, chat: str) -> Answer:
    """Decode after a text that the answer may repeat."""
    return side.ask((Turn("user", f"Repeat this: {material.text(chat, 500)}"),), 2 * _DECODED, chat)


def first_turn(side: Side, material: Material, chat: str) -> Answer:
    return side.ask((Turn("user", material.text(chat, 2000)),), _FIRST_TOKENS, chat)


def follow_up(side: Side, material: Material, chat: str) -> Answer:
    return side.ask(_two_turns(side, material, chat), _FIRST_TOKENS, chat)


def same_picture(side: Side, material: Material, chat: str) -> Answer:
    """Ask something else about a picture, in place of the first question."""
    picture = material.picture(chat)
    side.ask((Turn("user", "What is in this picture?", picture),), 8, chat)
    return side.ask((Turn("user", "What colour is the shape?", picture),), _FIRST_TOKENS, chat)


def edited_turn(side: Side, material: Material, chat: str) -> Answer:
    """Replace the second of five questions, which ends the chat there."""
    turns: tuple[Turn, ...] = ()
    for number in range(5):
        asked = (*turns, Turn("user", material.text(f"{chat} {number}", 300)))
        turns = (*asked, Turn("assistant", side.ask(asked, _ANSWER, chat).text))
    return side.ask((*turns[:2], Turn("user", material.text(f"{chat} edited", 300))), _FIRST_TOKENS, chat)


def changed_chats(side: Side, material: Material, chat: str) -> Answer:
    """Ask the next question of a chat after another chat was answered."""
    turns = _two_turns(side, material, chat)
    other = f"{chat}-other"
    side.ask((Turn("user", material.text(other, 500)),), _ANSWER, other)
    return side.ask(turns, _FIRST_TOKENS, chat)


def opened_chat(side: Side, material: Material, chat: str) -> Answer:
    """Ask the next question of a chat that was opened a moment ago, after another chat was answered.

    Its answer is long enough for a checkpoint after it (`NEAR_ITEMS` in worker/layout.py), as most answers are.
    """
    turns = _two_turns(side, material, chat, _LONG_ANSWER)
    other = f"{chat}-other"
    side.ask((Turn("user", material.text(other, 500)),), _ANSWER, other)
    opened_at = time.monotonic()
    time.sleep(_WARMER_WAITS_S)
    side.prepare(turns[:-1], chat)
    time.sleep(max(0.0, opened_at + _OPENED_S - time.monotonic()))
    return side.ask(turns, _FIRST_TOKENS, chat)


def restarted(side: Side, material: Material, chat: str, *, peer_saves: bool) -> Answer:
    """Ask the next question of a chat after the process was replaced by a new one. Loading the model isn't counted."""
    turns = _two_turns(side, material, chat)
    if side.is_ours or peer_saves:
        side.save(chat)
    side.restart()
    return side.ask(turns, _FIRST_TOKENS, chat)


def dropped_picture(side: Side, material: Material, chat: str) -> Answer:
    """Ask about a picture that was added while the question was typed."""
    picture = material.picture(chat)
    side.prepare((Turn("user", "", picture),), chat)
    time.sleep(_TYPING_S)
    return side.ask((Turn("user", "What is in this picture?", picture),), _FIRST_TOKENS, chat)


def _two_turns(side: Side, material: Material, chat: str, n_answer: int = _ANSWER) -> tuple[Turn, ...]:
    """Answer a question of 2,000 tokens, and return the chat with a second question."""
    first = Turn("user", material.text(chat, 2000))
    answer = side.ask((first,), n_answer, chat)
    return (first, Turn("assistant", answer.text), Turn("user", _LATER))


def _decode_rows(name: str, what: str, model: Model, values: Values, one: Target, every: Target) -> tuple[Row, Row]:
    """Return the rows of one model's decoding with one thread and with all."""
    return (
        Row(
            f"{name}-1", f"{what}, one thread", "tok/s", one, decode, model, values, on_one_thread=True,
            pairs_per_round=4,
        ),
        Row(name, f"{what}, all threads", "tok/s", every, decode, model, values, pairs_per_round=4),
    )  # fmt: skip


_OWN: tuple[PeerName, ...] = ("llama-server", "ours with one thread")
_WORDS = "vocabulary of 248,320"

ROWS = (
    *_decode_rows("decode", f"decode, {_DECODED} tokens, temperature 0", "generated", "greedy", FASTER, CLOSE_BEHIND),
    Row("first-turn", "first turn: a question of 2,000 tokens", "s", Target(1.02), first_turn),
    Row("follow-up", "second turn of that chat", "s", NO_SLOWER, follow_up),
    Row("edited-turn", "new text for question 2 of 5 (each 300 tokens)", "s", Target(1.02), edited_turn),
    Row("change-chats", "second turn after another chat of 500 tokens", "s", Target(0.73), changed_chats),
    Row(
        "opened-chat", f"the same with an answer of {_LONG_ANSWER} tokens, {_OPENED_S:g} s after it was opened", "s",
        Target(0.3), opened_chat,
    ),
    Row(
        "restart", "second turn after a restart; the peer restores its saved slot", "s", TENTH,
        partial(restarted, peer_saves=True),
    ),
    Row("restart-plain", "the same; the peer saves nothing", "s", TENTH, partial(restarted, peer_saves=False)),
    *_decode_rows("general", "decode, values for general use", "generated", "general", AHEAD, AHEAD),
    *_decode_rows("coding", "decode, values for coding", "generated", "coding", FASTER, CLOSE_BEHIND),
    Row(
        "busy-low", "decode, general use, beside two busy processes of low priority", "tok/s", HOLDS, decode_long,
        values="general", peers=_OWN, n_busy=2, is_busy_low=True,
    ),
    Row(
        "busy-low-follow-up", "second turn, beside two busy processes of low priority", "s", Target(1 / 0.95),
        follow_up, values="general", peers=_OWN, n_busy=2, is_busy_low=True,
    ),
    Row(
        "busy-normal", "decode, general use, beside a busy process of normal priority", "tok/s", HOLDS, decode_long,
        values="general", peers=_OWN, n_busy=1,
    ),
    Row(
        "busy-normal-follow-up", "second turn, beside a busy process of normal priority", "s", Target(1 / 0.95),
        follow_up, values="general", peers=_OWN, n_busy=1,
    ),
    Row(
        "quiet", "decode, general use, beside nobody: what looking for others costs", "tok/s", UNNOTICED, decode,
        values="general", peers=("ours that looks at nobody",), pairs_per_round=4,
    ),
    *_decode_rows("words", f"decode, {_WORDS}, temperature 0", "words", "greedy", FASTER, CLOSE_BEHIND),
    *_decode_rows("words-general", f"decode, {_WORDS}, general use", "words", "general", AHEAD, AHEAD),
    *_decode_rows("smollm2", "decode, SmolLM2, temperature 0", "smollm2", "greedy", FASTER, CLOSE_BEHIND),
    *_decode_rows("smollm2-general", "decode, SmolLM2, general use", "smollm2", "general", AHEAD, AHEAD),
    Row(
        "lookup", "decode with lookup; the peer with ngram-simple", "tok/s", FASTER, decode_repetitive,
        speculation="lookup", pairs_per_round=2,
    ),
    Row(
        "mtp", "decode with MTP, a text that the demo model knows; the peer with draft-mtp", "tok/s", FASTER,
        decode_known, model="demo", speculation="mtp", pairs_per_round=4,
    ),
    Row(
        "same-picture", "another question about one 1024x768 picture (demo)", "s", TENTH, same_picture,
        model="demo",
    ),
    Row(
        "after-drop", f"question about a picture that was dropped {_TYPING_S:g} s before (demo)", "s", TENTH,
        dropped_picture, model="demo",
    ),
    Row(
        "four-programs", f"four programs at once, {_DECODED} tokens each, all together; the peer with --parallel 4",
        "tok/s", FASTER, decode, values="general", n_clients=4, is_limit=True,
    ),
)  # fmt: skip
"""In an order that loads each model as rarely as possible."""


def chosen_rows(names: str) -> tuple[Row, ...]:
    """Return the rows with these names, separated by commas, in the order of ROWS. Raise ValueError for others."""
    wanted = {name.strip() for name in names.split(",") if name.strip()}
    known = {row.name for row in ROWS}
    if wanted - known:
        unknown = ", ".join(sorted(wanted - known))
        raise ValueError(f"There is no row {unknown}. The rows are: {', '.join(row.name for row in ROWS)}.")
    return tuple(row for row in ROWS if row.name in wanted)
