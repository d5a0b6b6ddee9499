"""The comparison with llama-server: what needs no llama-server."""

from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from bench.peers import __main__ as command
from bench.peers.app_engine import AppEngine
from bench.peers.programs import AppServer
from bench.peers.results import Pair, Result, worse_quartile
from bench.peers.rows import ROWS, Material, PeerName, Row, Target, chosen_rows
from bench.peers.server import chunk_text, server_arguments
from bench.peers.sides import Answer, Pieces, Setup, SideFailure, Turn, sampling_values
from qwendesk.core import paths

FIRST_TURN, GENERAL = chosen_rows("general,first-turn")


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

    def prepare(self, turns: tuple[Turn, ...], chat: str) -> None:
        self.did.append(f"prepare {chat}")

    def close(self) -> None:
        self.did.append("close")


class ScriptedSides(command.Sides):
    def __init__(self, folder: Path, *sides: ScriptedSide) -> None:
        super().__init__(folder / "llama-server", folder)
        self.scripted = sides

    def load(self, setup: Setup, peers: tuple[PeerName, ...]) -> tuple[ScriptedSide, dict[PeerName, ScriptedSide]]:
        if not self.scripted:
            raise SideFailure("The server did not start.")
        ours, *others = self.scripted
        return ours, dict(zip(peers, others, strict=True))


def row(name: str) -> Row:
    return chosen_rows(name)[0]


def setup_with_file(folder: Path) -> Setup:
    (folder / "model.gguf").touch()
    return Setup(folder / "model.gguf", 1)


def measured(name: str, folder: Path, *, is_ours: bool = True) -> ScriptedSide:
    """Return a side on which the row was run once."""
    side = ScriptedSide(is_ours=is_ours)
    row(name).measure(side, Material(folder), "chat")
    return side


def result_of(row: Row, *rounds: tuple[float, ...]) -> Result:
    """Return a result with one pair in each round: our value, then those of the row's peers."""
    return Result(row, tuple((Pair(ours, dict(zip(row.peers, peers, strict=True))),) for ours, *peers in rounds))


def test_three_of_four_rounds_have_to_meet_the_target() -> None:
    least, most = Target(1.0, is_least=True), Target(1.0)
    assert worse_quartile([1.3, 0.9, 1.2, 1.1, 1.0], least) == 1.0
    assert worse_quartile([1.3, 0.9, 1.2, 1.1, 1.0], most) == 1.2
    assert worse_quartile([0.8], least) == 0.8

    result = result_of(GENERAL, (106, 100), (107, 100), (104, 100), (120, 100), (104, 100))
    assert sorted(result.ratios) == [1.04, 1.04, 1.06, 1.07, 1.2]
    assert not result.is_met, "although its median is above 1.05"
    assert "| 1.040 | 1.060 | at least 1.05 | MISSED |" in str(result)
    assert result_of(GENERAL, *[(106, 100)] * 3, (90, 100), (120, 100)).is_met


def test_waiting_is_judged_by_its_longer_quartile() -> None:
    result = result_of(FIRST_TURN, (1.0, 1.0), (1.0, 1.0), (1.05, 1.0), (1.05, 1.0), (0.9, 1.0))
    assert not result.is_met
    assert "| 1.050 | 1.000 | at most 1.02 | MISSED |" in str(result)


def test_beside_others_the_best_peer_counts() -> None:
    (low,) = chosen_rows("busy-low")
    (low_wait,) = chosen_rows("busy-low-follow-up")
    assert result_of(low, (60, 50, 80)).ratios == [0.75]
    assert result_of(low, (60, 80, 50)).ratios == [0.75]
    assert result_of(low_wait, (3.0, 2.0, 4.0)).ratios == [1.5], "the one that waits least"
    assert "llama-server 50.0, ours with one thread 80.0" in str(result_of(low, (60, 50, 80)))


def test_a_round_is_the_median_of_its_pairs() -> None:
    pairs = tuple(Pair(ours, {"llama-server": peer}) for ours, peer in ((10.0, 10.0), (30.0, 10.0), (20.0, 40.0)))
    assert Result(GENERAL, (pairs,)).ratios == [2.0]


def test_a_named_limit_is_no_miss() -> None:
    (four,) = chosen_rows("four-programs")
    assert "| limit |" in str(result_of(four, (50, 100)))
    assert "| met |" in str(result_of(four, (110, 100)))


def test_rows_have_the_values_that_people_use() -> None:
    assert sampling_values("general")["presence_penalty"] == 1.5
    assert sampling_values("coding")["presence_penalty"] == 0
    assert sampling_values("greedy")["temperature"] == 0
    targets = {row.name: (row.values, str(row.target)) for row in ROWS}
    for name in ("general", "words-general", "smollm2-general"):
        assert targets[name] == targets[f"{name}-1"] == ("general", "at least 1.05")
    for name in ("decode", "words", "smollm2"):
        assert (targets[f"{name}-1"], targets[name]) == (("greedy", "at least 1.00"), ("greedy", "at least 0.97"))
    assert len({row.name for row in ROWS}) == len(ROWS)


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

    result = command.measure_row(FIRST_TURN, ScriptedSides(tmp_path, ours, peer), setup_with_file(tmp_path), 2)

    assert result.rounds == ((Pair(1.0, {"llama-server": 4.0}, 5, 5),),) * 2
    assert result.ratios == [0.25, 0.25]
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


def test_an_opened_chat_is_prepared_before_it_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr("bench.peers.rows.time", SimpleNamespace(sleep=waited.append, monotonic=lambda: 0.0))
    side = ScriptedSide()
    row("opened-chat").measure(side, Material(tmp_path), "chat")
    assert side.did == ["ask chat", "ask chat-other", "prepare chat", "ask chat"]
    assert waited == [0.3, 2.0]
    assert len(side.asked[-1][1]) == 3


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


@pytest.mark.parametrize("is_low", [False, True])
def test_busy_processes_end_with_the_row(*, is_low: bool) -> None:
    before = set(psutil.Process().children())

    with command.busy_processes(2, is_low=is_low):
        busy = set(psutil.Process().children()) - before
        assert len(busy) == 2
        assert {process.nice() == psutil.Process().nice() for process in busy} == {not is_low}

    assert not any(process.is_running() for process in busy)


def test_a_row_without_its_model_or_its_peer_says_so(tmp_path: Path) -> None:
    missing = command.measure_row(GENERAL, ScriptedSides(tmp_path), Setup(tmp_path / "gone.gguf", 1), 1)
    refused = command.measure_row(GENERAL, ScriptedSides(tmp_path), setup_with_file(tmp_path), 1)

    assert "skipped: gone.gguf is missing" in str(missing)
    assert "skipped: The server did not start." in str(refused)
    assert not missing.is_met


def test_four_programs_are_answered_at_once() -> None:
    side = AppServer(Setup(paths.demo_model(), 1, n_ctx=1024, n_clients=4))
    try:
        answer = side.ask((Turn("user", "What is a token?"),), 4, "chat")
    finally:
        side.close()
    assert answer.text
    assert answer.decode_tok_s > 0
    assert answer.processed_tokens > 40, "those of four prompts"


def test_the_peer_has_a_slot_for_each_program(tmp_path: Path) -> None:
    arguments = server_arguments(Setup(tmp_path / "m.gguf", 2, n_clients=4), 8000, tmp_path)
    assert arguments[arguments.index("--parallel") + 1] == "4"


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
