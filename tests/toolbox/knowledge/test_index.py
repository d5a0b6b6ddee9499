"""The index of a folder has what is in the folder, whatever happens to either."""

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from qwendesk.core.processes import with_source_tree
from qwendesk.toolbox.knowledge import index_update
from qwendesk.toolbox.knowledge.index_file import IndexFile, all_words, any_word, passages, query_words
from qwendesk.toolbox.knowledge.index_update import Cancelled, FolderUnreachable, IndexLimits, update_index
from tests.chat.documents.test_document_reader import pdf
from tests.decoding import office_files
from tests.links import skip_without_links


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    return folder


@pytest.fixture
def index(tmp_path: Path) -> Iterator[IndexFile]:
    index = IndexFile(tmp_path / "index.db")
    yield index
    index.close()


def found(index: IndexFile, query: str) -> set[str]:
    """The files with all words of the query."""
    return {hit.path for hit in index.find(all_words(query_words(query)), 100)}


def test_every_kind_of_file_is_found_at_its_place(folder: Path, index: IndexFile) -> None:
    (folder / "notes.txt").write_text("buy milk\nfix the boat\n")
    (folder / "old.txt").write_bytes("Größe des Bootes".encode("cp1252"))
    (folder / "paper.pdf").write_bytes(pdf("Introduction", "The kayak chapter"))
    office_files.docx(folder / "plan.docx", "Eins", "Zwei", "Das Segel")
    office_files.pptx(folder / "talk.pptx", "Welcome", "Rudder design")
    office_files.xlsx(folder / "list.xlsx", {"Costs": [["x", 1]], "Prices": [["anchor", 250]]})
    (folder / "picture.png").write_bytes(b"\x89PNG\0\0boat")
    assert update_index(index, folder)

    def place(query: str) -> tuple[str, int, int, int]:
        [hit] = index.find(all_words(query_words(query)), 10)
        return hit.path, hit.passage.at, hit.passage.first, hit.passage.last

    assert place("fix boat") == ("notes.txt", 0, 1, 2)
    assert place("größe")[0] == "old.txt"
    assert place("kayak") == ("paper.pdf", 2, 1, 1)
    assert place("segel") == ("plan.docx", 0, 1, 3)
    assert place("rudder") == ("talk.pptx", 2, 1, 1)
    assert place("anchor 250")[:2] == ("list.xlsx", 2)
    assert found(index, "prices") == {"list.xlsx"}, "the name of a sheet finds its rows"
    assert found(index, "talk welcome") == {"talk.pptx"}, "the name of the file counts too"
    assert index.counts()[0] == 6


@pytest.mark.parametrize(
    ("text", "queries", "misses"),
    [
        ("北京大学的入学要求在第三章。", ["北京", "大学", "入学要求", "第三章", "京"], ["上海", "学大"]),
        ("吾輩は猫である。名前はまだ無い。", ["猫", "名前", "吾輩は猫", "無い"], ["犬"]),
        ("データベースの設計", ["データ", "ベース", "設計", "データ 設計"], ["ゲーム"]),
        ("대한민국의 수도는 서울이다", ["수도", "서울", "민국"], ["부산"]),
        ("ประเทศไทยมีทะเลสวย", ["ทะเล", "ไทย"], ["ภูเขา"]),
        ("Straßenbahn und naïve Äpfel", ["straßenbahn naive", "apfel", "naïve"], ["birnen"]),
        ("Кошка сидит на окне", ["кошка", "окн"], ["собака"]),
        ("Ｐｙｔｈｏｎ ３ は ﾃﾞｰﾀ", ["python", "データ"], ["ruby"]),
        ("def load_plan(path): return iPhone手机", ["load_plan", "plan", "手机", "iPhone手机"], ["loadplan"]),
    ],
)
def test_words_are_found_in_many_languages(
    folder: Path, index: IndexFile, text: str, queries: list[str], misses: list[str]
) -> None:
    (folder / "a.txt").write_text(text, encoding="utf-8")
    update_index(index, folder)
    for query in queries:
        assert found(index, query) == {"a.txt"}, query
    for query in misses:
        assert not found(index, query), query


def test_some_words_are_enough_where_no_place_has_all(folder: Path, index: IndexFile) -> None:
    (folder / "a.txt").write_text("公司的年度报告已经完成", encoding="utf-8")
    (folder / "b.txt").write_text("the boat is ready")
    update_index(index, folder)
    words = query_words("年度报告在哪里")
    assert not index.find(all_words(words), 5)
    assert [hit.path for hit in index.find(any_word(words), 5)] == ["a.txt"]
    assert [hit.path for hit in index.find(any_word(query_words("boat kayak")), 5)] == ["b.txt"]


def test_changed_new_and_deleted_files_are_followed(folder: Path, index: IndexFile) -> None:
    (folder / "a.txt").write_text("boat")
    (folder / "b.txt").write_text("kayak")
    update_index(index, folder)
    (folder / "a.txt").write_text("ship")  # as long, and perhaps at the same time
    (folder / "b.txt").unlink()
    (folder / "sub").mkdir()
    (folder / "sub/c.txt").write_text("canoe")
    update_index(index, folder)
    assert (found(index, "boat"), found(index, "kayak")) == (set(), set())
    assert (found(index, "ship"), found(index, "canoe")) == ({"a.txt"}, {"sub/c.txt"})
    assert index.counts()[0] == 2


def test_unchanged_files_are_not_read_again(folder: Path, index: IndexFile, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a.txt", "b.txt", "c.bin"):
        (folder / name).write_bytes(b"boat" if name != "c.bin" else b"\0\1\2")
        os.utime(folder / name, (1_600_000_000, 1_600_000_000))
    update_index(index, folder)
    read: list[str] = []
    plain = index_update.read_parts
    monkeypatch.setattr(index_update, "read_parts", lambda path, *rest: read.append(path.name) or plain(path, *rest))
    update_index(index, folder)
    assert read == []
    (folder / "b.txt").write_text("ships")
    update_index(index, folder)
    assert read == ["b.txt"]


def test_a_folder_that_changes_while_it_is_read(
    folder: Path, index: IndexFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(6):
        (folder / f"{number}.txt").write_text(f"old {number}")
    plain = index_update.read_parts

    def read(path: Path, *rest):
        if path.name == "0.txt":
            (folder / "1.txt").unlink()
            (folder / "2.txt").write_text("changed")
            (folder / "new.txt").write_text("late")
            (folder / "3.txt").unlink()
            (folder / "3.txt").mkdir()
        return plain(path, *rest)

    monkeypatch.setattr(index_update, "read_parts", read)
    update_index(index, folder)
    monkeypatch.setattr(index_update, "read_parts", plain)
    update_index(index, folder)
    assert found(index, "old") == {"0.txt", "4.txt", "5.txt"}
    assert (found(index, "changed"), found(index, "late")) == ({"2.txt"}, {"new.txt"})
    assert index.counts()[2] == 0


def test_a_folder_of_five_thousand_files(folder: Path, index: IndexFile) -> None:
    for number in range(5000):
        place = folder / f"{number % 50}"
        place.mkdir(exist_ok=True)
        (place / f"{number}.txt").write_text(f"note number{number} of many")
    assert update_index(index, folder)
    assert index.counts()[0] == 5000
    assert found(index, "number4321") == {"21/4321.txt"}


def test_limits_are_kept_and_said(folder: Path, index: IndexFile) -> None:
    for number in range(5):
        (folder / f"{number}.txt").write_text(f"word{number} " * 50)
    assert not update_index(index, folder, limits=IndexLimits(files=3))
    assert index.counts()[0] == 3
    (folder / "0.txt").write_text("changed")
    (folder / "1.txt").unlink()
    assert not update_index(index, folder, limits=IndexLimits(files=3))
    assert found(index, "changed") == {"0.txt"}
    assert index.counts()[0] == 3, "there was room for one more"
    assert update_index(index, folder)


def test_cancelling_keeps_what_was_read(folder: Path, index: IndexFile) -> None:
    for number in range(9):
        (folder / f"{number}.txt").write_text(f"word{number}")
    asked = iter(range(1000))
    with pytest.raises(Cancelled):
        update_index(index, folder, is_cancelled=lambda: next(asked) > 4)
    n_read = index.counts()[0]
    assert 0 < n_read < 9
    assert update_index(index, folder)
    assert index.counts()[0] == 9


def test_killed_while_indexing(folder: Path, tmp_path: Path) -> None:
    for number in range(400):
        (folder / f"{number:03}.txt").write_text(f"word{number} boat")
    path = tmp_path / "killed.db"
    script = (
        "import sys, pathlib\n"
        "from qwendesk.toolbox.knowledge import index_update\n"
        "from qwendesk.toolbox.knowledge.index_file import IndexFile\n"
        "index_update._BATCH_CHARACTERS = 20\n"
        "def report(progress):\n"
        "    print(progress.done, flush=True)\n"
        "index_update.update_index(IndexFile(pathlib.Path(sys.argv[1])), pathlib.Path(sys.argv[2]), report=report)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(path), str(folder)],
        stdout=subprocess.PIPE,
        text=True,
        env=with_source_tree(os.environ),
    ) as process:
        assert process.stdout is not None
        for _ in range(60):
            process.stdout.readline()
        process.send_signal(signal.SIGTERM if os.name == "nt" else signal.SIGKILL)
    index = IndexFile(path)
    n_read = index.counts()[0]
    assert 0 < n_read < 400
    assert len(index.find('"boat"', 1000)) == n_read, "a file is in the index as a whole or not at all"
    update_index(index, folder)
    assert len(index.find('"boat"', 1000)) == index.counts()[0] == 400
    index.close()


@pytest.mark.parametrize("damage", ["text", "cut", "version"])
def test_damaged_index_is_made_again(folder: Path, tmp_path: Path, damage: str) -> None:
    (folder / "a.txt").write_text("boat\n" * 5000)
    path = tmp_path / "index.db"
    index = IndexFile(path)
    update_index(index, folder)
    index.close()
    if damage == "text":
        path.write_bytes(b"no database at all" * 100)
    elif damage == "cut":
        path.write_bytes(path.read_bytes()[:6000])
    else:
        with sqlite3.connect(path) as connection:
            connection.execute("PRAGMA user_version = 99")
        connection.close()
    index = IndexFile(path)
    update_index(index, folder)
    assert found(index, "boat") == {"a.txt"}
    index.close()


def test_hidden_secret_and_linked_files_stay_out(folder: Path, index: IndexFile, tmp_path: Path) -> None:
    for name in (".env", "server.pem", "passwords.txt", "a.txt"):
        (folder / name).write_text("boat")
    for name in (".git", "node_modules", "env"):
        (folder / name).mkdir()
        (folder / name / "b.txt").write_text("boat")
    (folder / "env/pyvenv.cfg").write_text("")
    (tmp_path / "outside.txt").write_text("boat")
    skip_without_links(tmp_path)
    (folder / "link.txt").symlink_to(tmp_path / "outside.txt")
    (folder / "up").symlink_to(tmp_path)
    (folder / "inside.txt").symlink_to(folder / "a.txt")
    (folder / "disguised.txt").symlink_to(folder / ".env")
    update_index(index, folder)
    assert found(index, "boat") == {"a.txt", "inside.txt"}


def test_file_that_becomes_a_link_is_not_read(
    folder: Path, index: IndexFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    skip_without_links(tmp_path)
    (folder / "a.txt").write_text("boat")
    (folder / "b.txt").write_text("boat")
    (tmp_path / "outside.txt").write_text("private")
    plain = index_update.read_parts

    def read(path: Path, *rest):
        if path.name == "a.txt":
            (folder / "b.txt").unlink()
            (folder / "b.txt").symlink_to(tmp_path / "outside.txt")
        return plain(path, *rest)

    monkeypatch.setattr(index_update, "read_parts", read)
    update_index(index, folder)
    assert not found(index, "private")


def test_files_that_cannot_be_read_have_a_reason(folder: Path, index: IndexFile) -> None:
    (folder / "empty.pdf").write_bytes(pdf(""))
    (folder / "broken.docx").write_bytes(b"nothing")
    office_files.entity_bomb(folder / "bomb.docx")
    (folder / "a.txt").write_text("boat")
    update_index(index, folder)
    reasons = {problem.path: problem.reason for problem in index.problems(10)}
    assert set(reasons) == {"empty.pdf", "broken.docx", "bomb.docx"}
    assert "scanned" in reasons["empty.pdf"]
    assert index.counts()[2] == 3
    (folder / "broken.docx").unlink()
    update_index(index, folder)
    assert index.counts()[2] == 2


def test_a_folder_that_is_gone_keeps_its_index(folder: Path, index: IndexFile) -> None:
    (folder / "a.txt").write_text("boat")
    update_index(index, folder)
    folder.rename(folder.with_name("away"))
    with pytest.raises(FolderUnreachable):
        update_index(index, folder)
    assert found(index, "boat") == {"a.txt"}, "the drive may come back"


def test_a_file_that_was_picked_by_itself(folder: Path, index: IndexFile) -> None:
    (folder / "a.txt").write_text("boat")
    (folder / "b.txt").write_text("boat")
    update_index(index, folder / "a.txt")
    assert found(index, "boat") == {""}


def test_passages_end_at_blank_lines_and_cover_all_lines() -> None:
    lines = ["x" * 50] * 8 + [""] + ["y" * 50] * 3
    cut = list(passages(lines))
    assert [(each.first, each.last) for each in cut] == [(1, 8), (9, 12)]
    long = "word " * 1000
    cut = list(passages(["short", long, "end"]))
    assert [(cut[0].first, cut[0].last), (cut[-1].first, cut[-1].last)] == [(1, 1), (3, 3)]
    assert {(each.first, each.last) for each in cut[1:-1]} == {(2, 2)}
    assert "".join(each.text for each in cut[1:-1]) == long
    assert list(passages(["", "  "])) == []
