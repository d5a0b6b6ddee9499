"""The states of several chats, against a memory that knows which tokens it was really fed."""

import random
from collections.abc import Sized
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qwendesk.engine.worker import chat_states
from qwendesk.engine.worker.cache import Checkpoint, ImageItem, Item, MemoryState, PromptCache
from qwendesk.engine.worker.chat_states import FEWEST_CELLS, ChatStates

FINGERPRINT = "a model"


class TokenMemory:
    """Attention part and recurrent part each know which tokens they have seen."""

    def __init__(self) -> None:
        self.attention: list[int] = []
        self.recurrent: list[int] = []

    def save(self) -> Sized:
        return msgspec.json.encode(self.recurrent)

    def restore(self, data: Sized) -> bool:
        assert isinstance(data, bytes)
        self.recurrent = msgspec.json.decode(data)
        return True

    def n_bytes(self) -> int:
        return len(self.save_all())

    def save_all(self) -> Sized:
        return msgspec.json.encode((self.attention, self.recurrent))

    def restore_all(self, data: Sized) -> bool:
        assert not self.attention
        assert not self.recurrent
        self.attention, self.recurrent = msgspec.json.decode(bytes(data))  # type: ignore[call-overload]
        return True

    def cut(self, position: int) -> bool:
        if len(self.recurrent) > position:
            return False
        assert self.recurrent == self.attention[:position], "this KV cache is of other tokens"
        del self.attention[position:]
        return True

    def clear(self) -> None:
        self.attention, self.recurrent = [], []


class Desk:
    """A prompt cache on such a memory, with the states of chats."""

    now_s = 0.0

    def __init__(self, *, budget_bytes: int = 10**9, free_bytes: int = 10**9, fingerprint: str = FINGERPRINT) -> None:
        self.memory = TokenMemory()
        self.free_bytes = free_bytes
        self.cache = PromptCache(self.memory, can_cut_anywhere=False, budget_bytes=10**6)
        self.states = ChatStates(
            self.cache,
            can_cut_anywhere=False,
            fingerprint=fingerprint,
            budget_bytes=budget_bytes,
            free_bytes=lambda: self.free_bytes,
            clock=lambda: self.now_s,
        )

    def ask(self, chat: str, prompt: list[int], file: str = "", saves: tuple[int, ...] = (), client: str = "") -> int:
        """Process a prompt and return how many of its tokens were processed again."""
        self.states.switch_to(chat, prompt, file, client=client)
        start = self.cache.roll_back(prompt).start
        for index, token in enumerate(prompt[start:], start):
            self.memory.attention.append(token)
            self.memory.recurrent.append(token)
            self.cache.append(token)
            if index + 1 in saves:
                self.cache.save(pinned=False)
        assert self.memory.attention == self.memory.recurrent == prompt
        return len(prompt) - start


def prompt(chat: int, length: int = 1000) -> list[int]:
    return [chat * 1_000_000 + index for index in range(length)]


def test_going_back_to_a_chat_processes_only_what_is_new() -> None:
    desk = Desk()
    assert desk.ask("one", prompt(1)) == 1000
    assert desk.ask("two", prompt(2)) == 1000
    assert desk.ask("one", prompt(1, 1010)) == 10
    assert desk.ask("two", prompt(2, 1020)) == 20


def test_checkpoints_come_back_with_their_chat() -> None:
    desk = Desk()
    desk.ask("one", prompt(1), saves=(600,))
    desk.ask("two", prompt(2))
    edited = [*prompt(1, 700), *prompt(3, 10)]
    assert desk.ask("one", edited) == 110


def test_a_branch_uses_the_state_of_the_chat_it_was_made_from() -> None:
    desk = Desk()
    desk.ask("one", prompt(1))
    desk.ask("two", prompt(2))
    assert desk.ask("branch", prompt(1, 1005)) == 5
    desk.ask("branch", [*prompt(1, 1005), *prompt(4)])
    assert desk.ask("one", prompt(1, 1007)) == 7, "the original is still there"


def test_nothing_is_kept_of_a_chat_without_a_name() -> None:
    desk = Desk()
    desk.ask("", prompt(1))
    desk.ask("two", prompt(2))
    assert desk.states.kept == ()
    assert desk.ask("", prompt(1)) == 1000


def test_a_short_chat_is_not_kept() -> None:
    desk = Desk()
    desk.ask("short", prompt(1, FEWEST_CELLS - 1))
    desk.ask("two", prompt(2))
    assert desk.states.kept == ()


def test_the_least_recently_used_states_are_dropped_beyond_the_budget() -> None:
    one = Desk()
    one.ask("one", prompt(1))
    desk = Desk(budget_bytes=2 * one.memory.n_bytes() + 10)
    for number in range(1, 5):
        desk.ask(str(number), prompt(number))
    assert desk.states.kept == ("2", "3")


@pytest.mark.parametrize("limits", [{"budget_bytes": 0}, {"budget_bytes": 1000}, {"free_bytes": 1000}])
def test_no_state_is_kept_without_room(limits: dict[str, int]) -> None:
    desk = Desk(**limits)
    desk.ask("one", prompt(1))
    desk.ask("two", prompt(2))
    assert desk.states.kept == ()
    assert desk.ask("one", prompt(1)) == 1000


def test_after_an_aborted_decode_a_chat_is_kept_up_to_its_last_checkpoint() -> None:
    desk = Desk()
    desk.ask("one", prompt(1), saves=(900,))
    desk.memory.attention.append(7)
    desk.cache.mark_inconsistent()
    desk.ask("two", prompt(2))
    assert desk.ask("one", prompt(1)) == 100


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_whatever_is_asked_the_memory_holds_what_was_fed(seed: int) -> None:
    """`Desk.ask` compares the memory's tokens with the prompt each time."""
    rng = random.Random(seed)
    desk = Desk(budget_bytes=rng.choice([0, 30_000, 10**9]))
    chats = {name: prompt(number, 300) for number, name in enumerate("abc")}
    for _ in range(12):
        name = rng.choice("abc")
        chat = chats[name]
        if rng.random() < 0.3:
            del chat[rng.randrange(1, len(chat)) :]
        chat.extend(rng.randrange(10**6) for _ in range(rng.randrange(1, 200)))
        desk.ask(rng.choice([name, name, ""]), list(chat), saves=tuple(range(50, len(chat), rng.choice([50, 130]))))
        if rng.random() < 0.2:
            desk.memory.attention.append(-1)
            desk.cache.mark_inconsistent()


def saved(folder: Path) -> Path:
    """A file with the state of a chat of 1,000 tokens."""
    desk = Desk()
    desk.ask("one", prompt(1), saves=(600, 900))
    copied = desk.states.copy("one", 10**9)
    assert copied is not None
    file = folder / "states" / "one.state"
    assert copied.write(file, 10**9) == file.stat().st_size
    return file


def test_a_later_engine_continues_from_the_file(tmp_path: Path) -> None:
    later = Desk()
    assert later.ask("one", prompt(1, 1010), str(saved(tmp_path))) == 10
    assert 900 in later.cache.checkpoint_indexes


def test_the_file_of_a_chat_that_is_only_kept_can_be_written(tmp_path: Path) -> None:
    desk = Desk()
    desk.ask("one", prompt(1))
    desk.ask("two", prompt(2))
    copied = desk.states.copy("one", 10**9)
    assert copied is not None
    copied.write(tmp_path / "one.state", 10**9)
    assert Desk().ask("one", prompt(1, 1001), str(tmp_path / "one.state")) == 1


def test_there_is_no_state_of_an_unknown_chat() -> None:
    desk = Desk()
    desk.ask("", prompt(1))
    assert desk.states.copy("", 10**9) is None
    assert desk.states.copy("one", 10**9) is None


@pytest.mark.parametrize(("most", "free"), [(1000, 10**9), (10**9, 1000)])
def test_a_copy_is_made_only_if_there_is_room_and_it_may_be_written(most: int, free: int) -> None:
    desk = Desk(free_bytes=free)
    desk.ask("one", prompt(1))
    assert desk.states.copy("one", most) is None


def test_a_file_is_not_read_into_memory_that_is_not_there(tmp_path: Path) -> None:
    file = str(saved(tmp_path))
    assert Desk(free_bytes=1000).ask("one", prompt(1, 1010), file) == 1010
    assert Desk().ask("one", prompt(1, 1010), file) == 10


def test_without_memory_for_a_copy_the_chat_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk()
    desk.ask("one", prompt(1))

    def out_of_memory() -> Sized:
        raise MemoryError

    monkeypatch.setattr(desk.memory, "save_all", out_of_memory)
    monkeypatch.setattr(desk.memory, "n_bytes", lambda: 100)
    assert desk.states.copy("one", 10**9) is None
    assert desk.ask("one", prompt(1, 1010)) == 10
    desk.ask("two", prompt(2))
    assert desk.states.kept == ()


def test_an_answer_is_set_aside_only_if_there_is_room_for_its_memory() -> None:
    desk = Desk()
    desk.ask("one", prompt(1))
    desk.free_bytes = 1000
    assert desk.states.set_aside() is None
    assert desk.ask("one", prompt(1, 1010)) == 10
    desk.free_bytes = 10**9
    aside = desk.states.set_aside()
    assert aside is not None
    assert desk.ask("two", prompt(2)) == 1000
    assert desk.states.take_back(aside)
    assert desk.ask("one", prompt(1, 1020)) == 10


def test_the_file_is_read_only_if_it_has_more_than_the_memory(tmp_path: Path) -> None:
    file = saved(tmp_path)
    desk = Desk()
    desk.ask("one", prompt(1, 1200))
    assert desk.ask("one", prompt(1, 1201), str(file)) == 1


@pytest.mark.parametrize("manner", ["missing", "empty", "cut", "foreign", "other model", "header", "memory", "folder"])
def test_a_file_that_cannot_be_used_is_ignored(tmp_path: Path, manner: str) -> None:
    file = saved(tmp_path)
    content = bytearray(file.read_bytes())
    match manner:
        case "missing":
            file.unlink()
        case "folder":
            file.unlink()
            file.mkdir()
        case "empty":
            file.write_bytes(b"")
        case "cut":
            file.write_bytes(content[:-100])
        case "foreign":
            file.write_bytes(b"PK\x03\x04" * 1000)
        case "header":
            content[40] ^= 1
            file.write_bytes(content)
        case "memory":
            content[len(content) // 2] ^= 1
            file.write_bytes(content)
    desk = Desk(fingerprint="another model" if manner == "other model" else FINGERPRINT)
    assert desk.ask("one", prompt(1, 1010), str(file)) == 1010


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_a_damaged_byte_is_noticed(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    file = tmp_path_factory.getbasetemp() / "damaged.state"
    state = MemoryState((1, ImageItem("k", 3, 2), 5), (Checkpoint(2, True, b"check"),), b"memory and more")
    chat_states.write_state(file, state, FINGERPRINT, 10**9)
    content = bytearray(file.read_bytes())
    content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    file.write_bytes(content)
    with pytest.raises(chat_states.UnusableState), chat_states.open_state(file, FINGERPRINT) as stored:
        stored.read()


def test_a_state_comes_back_as_it_was(tmp_path: Path) -> None:
    items: tuple[Item, ...] = (1, ImageItem("key", 768, 32), 2)
    state = MemoryState(items, (Checkpoint(1, True, b"abcd"), Checkpoint(3, False, b"efgh")), b"0123456789abcdef")
    n_bytes = chat_states.write_state(tmp_path / "s", state, FINGERPRINT, 10**9)
    assert n_bytes == (tmp_path / "s").stat().st_size
    with chat_states.open_state(tmp_path / "s", FINGERPRINT) as stored:
        again = stored.read()
    assert again.items == items
    assert bytes(again.memory) == state.memory  # type: ignore[call-overload]
    assert [(each.index, each.pinned, bytes(each.data)) for each in again.checkpoints] == [  # type: ignore[call-overload]
        (1, True, b"abcd"),
        (3, False, b"efgh"),
    ]


def test_a_state_over_the_limit_is_not_written(tmp_path: Path) -> None:
    assert chat_states.write_state(tmp_path / "s", MemoryState((1,), (), bytes(1000)), FINGERPRINT, 999) == 0
    assert list(tmp_path.iterdir()) == []


def test_a_full_drive_leaves_the_old_file_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = saved(tmp_path)
    before = file.read_bytes()
    monkeypatch.setattr(chat_states.shutil, "disk_usage", lambda _path: type("Usage", (), {"free": 1024**3})())
    with pytest.raises(OSError, match="too little room"):
        chat_states.write_state(file, MemoryState((1,), (), bytes(1000)), FINGERPRINT, 10**9)
    assert file.read_bytes() == before
    assert [each.name for each in file.parent.iterdir()] == ["one.state"]


class SlowDesk(Desk):
    """A desk on which each copy of the memory takes `copy_s` seconds of a made-up clock."""

    copy_s = 0.6

    def __init__(self) -> None:
        super().__init__()
        save_all = self.memory.save_all

        def slow() -> Sized:
            self.now_s += self.copy_s
            return save_all()

        self.memory.n_bytes = lambda: len(save_all())  # type: ignore[method-assign]
        self.memory.save_all = slow  # type: ignore[method-assign]


def test_a_copy_that_takes_long_is_not_made_while_an_answer_waits(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    desk = SlowDesk()
    desk.ask("one", prompt(1))
    desk.ask("two", prompt(2))
    assert desk.states.kept == ("one",), "before the first copy, nobody knows how long it takes"
    assert "in 0.600 s" in caplog.text
    desk.ask("three", prompt(3))
    assert desk.states.kept == ("one",)
    assert "takes too long now" in caplog.text
    assert desk.states.copy("three", 10**9, is_idle=False) is None
    assert desk.states.copy("three", 10**9, is_idle=True) is not None


def test_a_copy_that_takes_long_is_made_while_the_engine_is_idle() -> None:
    desk = SlowDesk()
    desk.ask("one", prompt(1))
    desk.ask("two", prompt(2))
    desk.states.switch_to("three", prompt(3), is_idle=True)
    assert desk.states.kept == ("one", "two")


def test_a_short_state_is_copied_while_an_answer_waits() -> None:
    desk = SlowDesk()
    desk.ask("one", prompt(1))
    desk.ask("two", prompt(2, 400))
    desk.ask("three", prompt(3))
    assert desk.states.kept == ("one", "two")


def test_the_speed_of_copies_follows_what_is_measured() -> None:
    desk = SlowDesk()
    desk.ask("one", prompt(1))
    desk.ask("two", prompt(2))
    desk.copy_s = 0.01
    for _ in range(3):
        desk.states.copy("two", 10**9)
    desk.ask("three", prompt(3))
    assert "two" in desk.states.kept, "it is fast enough now"
