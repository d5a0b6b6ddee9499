"""The comparison with llama-server: what needs no llama-server."""

from pathlib import Path

import msgspec
import psutil
import pytest

from bench.peers import __main__ as command
from bench.peers.app_engine import AppEngine
from bench.peers.results import HEADER, Pair, Result, median_ratio, table
from bench.peers.rows import FASTER, NO_SLOWER, ROWS, TENTH, Material, Row, chosen_rows
from bench.peers.server import chunk_text, server_arguments
from bench.peers.sides import Answer, Pieces, Setup, SideFailure, Turn
from qwendesk.core import paths
from tests.draft_head_model import write_demo_without_head

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


def test_table_has_a_line_for_each_row() -> None:
    results = [
        Result(DECODE, (Pair(52.0, 50.0, 9, 9), Pair(51.0, 50.0, 9, 9))),
        Result(FIRST_TURN, (Pair(2.5, 2.0, 2000, 2004),)),
        Result(row("mtp"), skipped="the model has no head"),
    ]

    lines = table(results).removeprefix(HEADER).strip().splitlines()

    assert lines == [
        "| decode, 64 tokens, all threads, tok/s | 51.5 | 50.0 | 1.030 | at least 1.00 | met | 9, 9 |",
        "| first turn: a question of 2,000 tokens, s | 2.500 | 2.000 | 1.250 | at most 1.00 | MISSED | 2000, 2004 |",
        "| decode with MTP, a text that the demo model knows; the peer with draft-mtp, tok/s | - | - | - | "
        "at least 1.00 | skipped: the model has no head | |",
    ]


@pytest.mark.parametrize(
    ("target", "ratio", "is_met"),
    [(FASTER, 1.0, True), (FASTER, 0.99, False), (NO_SLOWER, 1.0, True), (NO_SLOWER, 1.01, False), (TENTH, 0.1, True)],
)
def test_targets_of_speed_and_of_waiting(target: msgspec.Struct, ratio: float, is_met: bool) -> None:
    assert target.is_met(ratio) is is_met  # type: ignore[attr-defined]


def test_rows_are_chosen_by_name_in_the_usual_order() -> None:
    assert [each.name for each in chosen_rows("follow-up, decode")] == ["decode", "follow-up"]
    assert len({each.name for each in ROWS}) == len(ROWS)
    with pytest.raises(ValueError, match="no row decoding"):
        chosen_rows("decode,decoding")


def test_options_of_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    usual = command.parse_options([])
    chosen = command.parse_options(["--rounds", "5", "--threads", "1", "--rows", "decode"])

    assert usual == command.Options(ROWS, 3, psutil.cpu_count(logical=False) or 1)
    assert chosen == command.Options((DECODE,), 5, 1)
    for wrong in (["--rows", "nothing"], ["--rounds", "0"]):
        with pytest.raises(SystemExit):
            command.parse_options(wrong)
    assert "There is no row nothing" in capsys.readouterr().err


def test_missing_server_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LLAMA_SERVER", raising=False)
    monkeypatch.setattr(command, "peer_server", lambda: tmp_path / "llama-server")
    with pytest.raises(SystemExit, match=r"tools\.build_peer"):
        command.find_server()

    monkeypatch.setenv("LLAMA_SERVER", str(tmp_path / "other"))
    with pytest.raises(SystemExit, match="is no file"):
        command.find_server()


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


def test_row_that_cannot_be_measured_says_why(tmp_path: Path) -> None:
    setup = Setup(tmp_path, 1)
    assert command.measure_row(row("mtp"), ScriptedSides(tmp_path, None), setup, 1).skipped == (
        "The server did not start."
    )
    plain = Setup(write_demo_without_head(tmp_path / "plain.gguf"), 1, speculation="mtp")
    assert "has no MTP layers" in command.measure_row(row("mtp"), ScriptedSides(tmp_path, None), plain, 1).skipped


def test_follow_up_has_the_sides_own_answer(tmp_path: Path) -> None:
    asked = measured("follow-up", tmp_path).asked

    assert [len(turns) for _, turns in asked] == [1, 3]
    assert asked[1][1][:2] == (*asked[0][1], Turn("assistant", "answer 1"))


def test_edited_turn_ends_the_chat_there(tmp_path: Path) -> None:
    asked = measured("edited-turn", tmp_path).asked

    assert [len(turns) for _, turns in asked] == [1, 3, 5, 7, 9, 3]
    assert asked[-1][1][:2] == asked[1][1][:2]
    assert asked[-1][1][2] != asked[1][1][2]


def test_another_chat_comes_between_the_turns(tmp_path: Path) -> None:
    assert measured("change-chats", tmp_path).did == ["ask chat", "ask chat-other", "ask chat"]


def test_state_is_saved_before_a_restart(tmp_path: Path) -> None:
    saved, plain = ["ask chat", "save chat", "restart", "ask chat"], ["ask chat", "restart", "ask chat"]

    assert measured("restart", tmp_path).did == saved
    assert measured("restart", tmp_path, is_ours=False).did == saved
    assert measured("restart-plain", tmp_path).did == saved
    assert measured("restart-plain", tmp_path, is_ours=False).did == plain


def test_picture_is_dropped_before_the_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr("bench.peers.rows.time.sleep", waits.append)

    side = measured("after-drop", tmp_path)

    assert side.did == ["drop chat", "ask chat"]
    assert waits == [3.0]
    assert side.asked[0][1][0].picture == tmp_path / "chat.png"


def test_both_questions_are_about_one_picture(tmp_path: Path) -> None:
    (_, (first,)), (_, (second,)) = measured("same-picture", tmp_path).asked

    assert first.picture == second.picture
    assert first.text != second.text


def test_texts_of_two_chats_share_no_beginning(tmp_path: Path) -> None:
    material = Material(tmp_path, 0.5)

    assert material.text("one", 100).split()[0] != material.text("two", 100).split()[0]
    assert len(material.text("one", 100).split()) == 51


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


def test_one_thread_and_pictures_are_setups_of_their_own(tmp_path: Path) -> None:
    assert command.row_setup(row("decode-1"), tmp_path, 8) == Setup(tmp_path, 1)
    assert command.row_setup(DECODE, tmp_path, 8) == Setup(tmp_path, 8)
    assert command.row_setup(row("same-picture"), tmp_path, 8).model == paths.demo_model()


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
