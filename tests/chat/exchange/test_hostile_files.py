"""An import of a hostile file neither hangs nor fills the memory."""

import asyncio
import json
import os
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from qwendesk.chat.exchange import foreign_tree, service, values
from qwendesk.chat.exchange.exchange_reader import ExchangeReader
from qwendesk.chat.exchange.pictures import ImportedPictures
from qwendesk.chat.exchange.values import BadExchange, ImportReport
from qwendesk.chat.tree_edits import shown_up_to
from qwendesk.core.conversation import ChatNode, ChatTree
from qwendesk.core.messages import text_message
from tests.chat.exchange.kit import Kit, gpt_chat, gpt_node
from tests.decoding.hostile_files import sparse_file

ROOT = Path(__file__).resolve().parents[3]
POSIX = pytest.mark.skipif(sys.platform == "win32", reason="named pipes and devices of POSIX")
MIB = 1 << 20


def read_whole(path: Path, max_bytes: int) -> list:
    """All chats of a file, read as the service reads them."""
    pictures = path.with_name("pictures")
    pictures.mkdir()
    reader = ExchangeReader(path, ImportedPictures(pictures), max_bytes)
    try:
        list(reader.check())
        return list(reader.chats())
    finally:
        reader.close()


def archive_of(path: Path, pieces: Iterator[bytes], packing: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", packing) as archive, archive.open("conversations.json", "w") as member:
        for piece in pieces:
            member.write(piece)
    return path


@POSIX
@pytest.mark.parametrize(("name", "words"), [("pipe", "it is a pipe"), ("zero", "it is a device"), ("", "a folder")])
async def test_pipes_devices_and_folders_are_refused(kit: Kit, tmp_path: Path, name: str, words: str) -> None:
    await asyncio.to_thread(os.mkfifo, tmp_path / "pipe")
    (tmp_path / "zero").symlink_to("/dev/zero")

    with pytest.raises(BadExchange, match=words):
        await kit.exchange.import_from(tmp_path / name)


async def test_huge_file_is_refused_with_its_size(kit: Kit, tmp_path: Path) -> None:
    sparse_file(tmp_path / "huge.json", 6 << 30, b"[")

    with pytest.raises(BadExchange, match=r"contains 6\.0 GB of chats\. QwenDesk can import up to 1\.0 GB"):
        await kit.exchange.import_from(tmp_path / "huge.json")


def test_zip_bomb_with_its_true_size_is_refused_unread(tmp_path: Path) -> None:
    archive_of(tmp_path / "bomb.zip", iter([b"[" + b" " * 5_000_000]))

    with pytest.raises(BadExchange, match=r"contains 4\.8 MB of chats\. QwenDesk can import up to 977 KB"):
        read_whole(tmp_path / "bomb.zip", 1_000_000)


def test_zip_bomb_with_a_false_size_is_refused(tmp_path: Path) -> None:
    path = archive_of(tmp_path / "bomb.zip", iter([b"[" + b" " * 5_000_000]))
    with zipfile.ZipFile(path) as archive:
        true_size = struct.pack("<L", archive.infolist()[0].file_size)
    path.write_bytes(path.read_bytes().replace(true_size, struct.pack("<L", 1000)))

    with pytest.raises(BadExchange, match=r"more than|can't be read|damaged"):
        read_whole(path, 1_000_000)


@pytest.mark.parametrize("packing", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_compression_method_with_unbounded_memory_is_refused(tmp_path: Path, packing: int) -> None:
    archive_of(tmp_path / "odd.zip", iter([b"[]"]), packing)

    with pytest.raises(BadExchange, match="unsupported compression"):
        read_whole(tmp_path / "odd.zip", MIB)


@pytest.mark.parametrize("is_64", [False, True])
def test_archive_with_a_huge_file_list_is_refused(tmp_path: Path, is_64: bool) -> None:
    """zipfile would read 1 GB, or 3 GB of zeros, before it sees that this is no archive."""
    size = 3 << 30 if is_64 else 1 << 30
    claimed = 0xFFFFFFFF if is_64 else size
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 1, 1, claimed, 0, 0)
    if is_64:
        record = struct.pack("<4sQ2H2L4Q", b"PK\x06\x06", 44, 45, 45, 0, 0, 1, 1, size, 0)
        end = record + struct.pack("<4sLQL", b"PK\x06\x07", 0, size, 1) + end
    path = sparse_file(tmp_path / "list.zip", size, b"")
    with path.open("ab") as file:
        file.write(end)

    with pytest.raises(BadExchange, match=r"The file list in list\.zip has [13]\.0 GB"):
        read_whole(path, MIB)


def padded_chats() -> Iterator[bytes]:
    """120 MB of chats that are real, but for what nobody reads of them."""
    chat = json.dumps(gpt_chat(gpt_node("q", None, text="Why?"))).encode()[:-1]
    yield b"[" + chat + b"}"
    for _ in range(120):
        yield b"," + chat + b', "moderation": "' + b"x" * MIB + b'"}'
    yield b"]"


def one_long_message() -> Iterator[bytes]:
    """A message of 120 MB in the middle of a chat, between two that are fine."""
    chat = json.dumps(gpt_chat(gpt_node("q", None, text="Why?"))).encode()
    yield b"[" + chat + b', {"mapping": {"a": {"message": "'
    for _ in range(120):
        yield b"x" * MIB
    yield b'"}}}, ' + chat + b"]"


def many_values() -> Iterator[bytes]:
    """20 MB of empty lists, which would be 600 MB in memory."""
    chat = json.dumps(gpt_chat(gpt_node("q", None, text="Why?"))).encode()
    yield b"[" + chat + b', {"mapping": {"a": {"message": [[]'
    for _ in range(20):
        yield b",[]" * (MIB // 3)
    yield b"]}}}]"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the peak is read from /proc")
@pytest.mark.parametrize(
    ("pieces", "expected"),
    [(padded_chats, [121, 0]), (one_long_message, [2, 1]), (many_values, [1, 1])],
)
def test_import_needs_bounded_memory(
    tmp_path: Path, pieces: Callable[[], Iterator[bytes]], expected: list[int]
) -> None:
    archive_of(tmp_path / "export.zip", pieces())
    (tmp_path / "pictures").mkdir()
    script = """if True:
        import json, sys
        from pathlib import Path
        from qwendesk.chat.exchange.pictures import ImportedPictures
        from qwendesk.chat.exchange.exchange_reader import ExchangeReader
        reader = ExchangeReader(Path(sys.argv[1]), ImportedPictures(Path(sys.argv[2])))
        for _ in reader.check():
            pass
        chats = too_large = 0
        for read in reader.chats():
            chats, too_large = chats + (read.chat is not None), too_large + (read.problem == "too_large")
        reader.close()
        status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
        print(json.dumps([[chats, too_large], int(status["VmHWM"].split()[0])]))
    """
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "export.zip"), str(tmp_path / "pictures")],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=True,
    )  # fmt: skip

    found, peak_kib = json.loads(done.stdout)
    assert found == expected
    assert peak_kib < 100 * 1024


async def test_too_large_chat_is_skipped_and_reported(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(values, "MAX_MESSAGES", 5)
    long = gpt_chat(*(gpt_node(str(n), str(n - 1), text="x") for n in range(6)))

    report = await kit.import_value([long, gpt_chat(gpt_node("q", None, text="Why?"))])

    assert report == ImportReport(chats=1, messages=1, too_large=1)
    assert "Skipped 1 chat with more than 128 MB or 5 messages." in report.sentence


async def test_file_damaged_at_its_end_adds_nothing(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "_GROUP_BYTES", 1)
    whole = json.dumps([gpt_chat(gpt_node("q", None, text=str(n))) for n in range(20)]).encode()

    with pytest.raises(BadExchange, match="damaged"):
        await kit.import_bytes(whole[:-30])

    assert kit.titles == set()


async def test_chats_in_many_groups_are_all_imported(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "_GROUP_BYTES", 1)
    value = [gpt_chat(gpt_node("q", None, text=str(n)), gpt_node("a", "q", "assistant", "ok")) for n in range(20)]

    assert await kit.import_value(value) == ImportReport(chats=20, messages=40)


def long_chat(n_messages: int) -> dict:
    nodes = (gpt_node(str(n), str(n - 1), ("user", "assistant")[n % 2], str(n)) for n in range(n_messages))
    return gpt_chat(*nodes, current_node=str(n_messages - 1))


def test_chat_of_50_000_messages_is_read(tmp_path: Path) -> None:
    (tmp_path / "long.json").write_text(json.dumps([long_chat(50_000)]))

    (read,) = read_whole(tmp_path / "long.json", 100 * MIB)

    assert len(read.chat.tree.path()) == 50_000


@pytest.mark.soak
async def test_chat_of_50_000_messages_is_imported(kit: Kit) -> None:
    report = await kit.import_value([long_chat(50_000)])

    assert report == ImportReport(chats=1, messages=50_000)
    assert (await kit.tree()).path()[-1].message.text == "49999"


def test_shown_path_of_a_long_chat_is_copied_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tree for each message, with a copy of what is shown at every fork, took 7 s for 50,000 messages."""
    nodes: dict[str, ChatNode] = {}
    for number in range(100):
        parent = str(number - 1) if number else ""
        nodes[str(number)] = ChatNode(id=str(number), parent_id=parent, message=text_message("user", "x"))
    monkeypatch.delattr(ChatTree, "showing")
    monkeypatch.delattr(ChatTree, "with_node")

    assert len(shown_up_to(ChatTree(nodes), "99").shown) == 100


async def test_reasoning_shared_by_branches_is_bounded(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each answer repeats the reasoning before it: 1,000 answers after 1 MB of it were 1 GB."""
    monkeypatch.setattr(foreign_tree, "MAX_REASONING_CHARACTERS", 1000)
    thoughts = {"content_type": "thoughts", "thoughts": [{"content": "x" * 400}]}
    answers = [gpt_node(f"a{n}", "t", "assistant", "Because.") for n in range(5)]

    await kit.import_value([gpt_chat(gpt_node("q", None, text="Why?"), gpt_node("t", "q", content=thoughts), *answers)])

    lengths = [len(node.message.reasoning) for node in (await kit.tree()).nodes.values() if node.is_answer]
    assert lengths == [400, 400, 0, 0, 0]


def test_long_chain_of_reasoning_is_read_and_freed(tmp_path: Path) -> None:
    thought = {"content_type": "thoughts", "thoughts": [{"content": "x"}]}
    nodes = [gpt_node(str(n), str(n - 1), content=thought) for n in range(100_000)]
    (tmp_path / "long.json").write_text(json.dumps([gpt_chat(*nodes, gpt_node("a", "99999", "assistant", "Done."))]))

    (read,) = read_whole(tmp_path / "long.json", 100 * MIB)

    (answer,) = read.chat.tree.nodes.values()
    assert answer.message.reasoning.count("x") == 100_000
