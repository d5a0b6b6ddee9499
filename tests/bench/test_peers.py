"""The comparison with llama-server: what needs no llama-server."""

from pathlib import Path

import psutil
import pytest

from bench.peers import __main__ as command
from bench.peers.app_engine import AppEngine
from bench.peers.results import Pair, median_ratio
from bench.peers.rows import Material, Row, chosen_rows
from bench.peers.server import chunk_text, server_arguments
from bench.peers.sides import Answer, Pieces, Setup, SideFailure, Turn
from qwendesk.core import paths

DECODE, FIRST_TURN = chosen_rows("decode,first-turn")


class ScriptedSide:
    """Answers at once, and keeps what it was asked."""

    def __init__(self, *, is_ours: bool = True, first_token_s: float = 1.0) -> None:
        self.is_ours = is_ours
        self.first_token_s = first_token_s
        self.asked: list[tuple[str, tuple[Turn, ...]]] = []
        self.did: list[str] = []

    def ask(self, turns: tuple[Turn, ...], n_tokens: int, chat: str) -> Answer:
        self.asked.append((chat, turns))
        self.did.append(f"ask {chat}")
        return Answer(f"answer {len(self.asked)}", self.first_token_s, 10.0, 5)

    def save(self, chat: str) -> None:
        self.did.append(f"save {chat}")

    def restart(self) -> None:
        self.did.append("restart")

    def drop(self, picture: Path, chat: str) -> None:
        self.did.append(f"drop {chat}")

    def close(self) -> None:
        self.did.append("close")


class ScriptedSides(command.Sides):
    def __init__(self, folder: Path, sides: tuple[ScriptedSide, ScriptedSide] | None) -> None:
        super().__init__(folder / "llama-server", folder)
        self.scripted = sides

    def load(self, setup: Setup) -> tuple[ScriptedSide, ScriptedSide]:
        if self.scripted is None:
            raise SideFailure("The server did not start.")
        return self.scripted


def row(name: str) -> Row:
    return chosen_rows(name)[0]


def measured(name: str, folder: Path, *, is_ours: bool = True) -> ScriptedSide:
    """Return a side on which the row was run once."""
    side = ScriptedSide(is_ours=is_ours)
    row(name).measure(side, Material(folder), "chat")
    return side


def test_ratio_is_the_median_of_the_pairs() -> None:
    pairs = [Pair(1.0, 2.0), Pair(30.0, 10.0), Pair(8.0, 10.0)]

    assert median_ratio(pairs) == 0.8
    assert median_ratio([]) is None
    assert median_ratio([Pair(1.0, 0.0)]) is None


def test_speed_is_counted_from_the_first_piece_of_text() -> None:
    ours, peer = Pieces(100.0), Pieces(100.0)
    for pieces in (ours, peer):
        pieces.add("a", 1, 101.0)
        pieces.add("b", 5 if pieces is ours else 1, 103.0)

    assert ours.answer(7) == Answer("ab", 1.0, 2.0, 7)
    assert peer.answer(7, n_tokens=5) == Answer("ab", 1.0, 2.0, 7)
    with pytest.raises(SideFailure):
        Pieces(0.0).answer(7)


def test_sides_take_turns_and_the_first_alternates(tmp_path: Path) -> None:
    ours, peer = ScriptedSide(first_token_s=1.0), ScriptedSide(is_ours=False, first_token_s=4.0)
    order: list[str] = []
    for side, name in ((ours, "ours"), (peer, "peer")):
        side.did = Log(order, name)

    result = command.measure_row(FIRST_TURN, ScriptedSides(tmp_path, (ours, peer)), Setup(tmp_path, 1), 2)

    assert result.pairs == (Pair(1.0, 4.0, 5, 5),) * 2
    assert result.ratio == 0.25
    assert order == ["ours", "peer", "peer", "ours"]
    assert [chat for chat, _ in ours.asked] == ["first-turn-0", "first-turn-1"]


class Log(list[str]):
    """A list that also notes whose it is in another list."""

    def __init__(self, shared: list[str], name: str) -> None:
        super().__init__()
        self._shared, self._name = shared, name

    def append(self, item: str) -> None:
        self._shared.append(self._name)


def test_follow_up_has_the_sides_own_answer(tmp_path: Path) -> None:
    asked = measured("follow-up", tmp_path).asked

    assert [len(turns) for _, turns in asked] == [1, 3]
    assert asked[1][1][:2] == (*asked[0][1], Turn("assistant", "answer 1"))


def test_state_is_saved_before_a_restart(tmp_path: Path) -> None:
    saved, plain = ["ask chat", "save chat", "restart", "ask chat"], ["ask chat", "restart", "ask chat"]

    assert measured("restart", tmp_path).did == saved
    assert measured("restart", tmp_path, is_ours=False).did == saved
    assert measured("restart-plain", tmp_path).did == saved
    assert measured("restart-plain", tmp_path, is_ours=False).did == plain


def test_server_gets_what_the_app_gets(tmp_path: Path) -> None:
    text = server_arguments(Setup(tmp_path / "m.gguf", 2), 8000, tmp_path)
    picture = server_arguments(Setup(tmp_path / "m.gguf", 2, tmp_path / "v.gguf", "mtp"), 8000, tmp_path)

    assert text[text.index("--ctx-size") + 1] == "4096"
    assert text[text.index("--threads") + 1] == text[text.index("--threads-batch") + 1] == "2"
    assert not {"--mmproj", "--spec-type"} & set(text)
    assert picture[picture.index("--mmproj") + 1] == str(tmp_path / "v.gguf")
    assert picture[-2:] == ["--spec-type", "draft-mtp"]


@pytest.mark.parametrize(
    ("chunk", "text"),
    [
        ({"choices": [{"delta": {"content": "word"}}]}, "word"),
        ({"choices": [{"delta": {"role": "assistant", "content": None}}]}, ""),
        ({"choices": [], "timings": {}}, ""),
    ],
)
def test_text_of_a_streamed_piece(chunk: dict[str, object], text: str) -> None:
    assert chunk_text(chunk) == text


def test_busy_processes_end_with_the_row() -> None:
    before = set(psutil.Process().children())

    with command.busy_processes(2):
        busy = set(psutil.Process().children()) - before
        assert len(busy) == 2

    assert not any(process.is_running() for process in busy)


def test_app_answers_before_and_after_a_restart(tmp_path: Path) -> None:
    side = AppEngine(Setup(paths.demo_model(), 1, n_ctx=1024))
    try:
        question = (Turn("user", "What is a token?"),)
        first = side.ask(question, 4, "chat")
        again = side.ask(question, 4, "chat")
        side.restart()
        restarted = side.ask(question, 4, "other")

        assert side.count("word " * 20) > side.count("word " * 10)
    finally:
        side.close()
    assert first.text == again.text == restarted.text != ""
    assert again.processed_tokens < first.processed_tokens == restarted.processed_tokens
    assert first.first_token_s > 0
    assert first.decode_tok_s > 0
