"""Text files in the encodings that people still have: what is read is right, or the window says how it was read."""

import base64
from pathlib import Path

import pytest
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QPushButton

from qwendesk.chat.documents.document_reader import is_document, read_document
from qwendesk.core.messages import DocumentPart
from qwendesk.toolbox.file_tools import read_file
from qwendesk.toolbox.folder_access import FolderAccess
from qwendesk.toolbox.knowledge.folder_indexes import FolderIndexes
from tests.field.grid import SERVER, Kind, Way, case
from tests.field.test_sent_pictures import CHAT, MESSAGES, RESPONSES, asked
from tests.server.http_desk import http_desk
from tests.toolbox.knowledge.test_search import context, indexes, search_folders  # noqa: F401
from tests.window_desk import Desk

RUBBISH = Kind(
    "A text file that is not UTF-8 turns into rubbish, and nobody says so",
    {Way.MCP: "its servers send JSON, which is UTF-8", Way.IMPORT: "exports are JSON, which is UTF-8"},
)

JAPANESE = (
    "昨日は雨が降っていたので、図書館で本を読みました。帰り道に駅前の店でコーヒーを買いました。\n"
    "来週の会議の資料は、まだ半分しかできていません。\n"
)
SIMPLIFIED = (
    "昨天下雨，所以我在图书馆看了一下午的书。回家的路上，我在车站旁边的小店买了咖啡。\n"
    "下周开会要用的资料，我才写了一半。\n"
)
TRADITIONAL = (
    "昨天下雨，所以我在圖書館看了一下午的書。回家的路上，我在車站旁邊的小店買了咖啡。\n"
    "下週開會要用的資料，我才寫了一半。\n"
)
KOREAN = (
    "어제는 비가 와서 도서관에서 책을 읽었습니다. 돌아오는 길에 역 앞 가게에서 커피를 샀습니다.\n"
    "다음 주 회의 자료는 아직 절반밖에 만들지 못했습니다.\n"
)
RUSSIAN = (
    "Вчера шёл дождь, поэтому я читал в библиотеке. По дороге домой купил кофе в лавке у вокзала.\n"
    "Материалы к совещанию готовы пока только наполовину.\n"
)
GERMAN = "Gestern hat es geregnet, also saß ich in der Bücherei. Die Größe der Datei ist ungewöhnlich.\n"

OLD = {
    "Shift JIS": (JAPANESE, "cp932", "generative-ai-use-cases#1399"),
    "EUC-JP": (JAPANESE, "euc_jp", "files of Japanese Unix systems"),
    "ISO-2022-JP": (JAPANESE, "iso2022_jp", "saved Japanese mails"),
    "GB 18030": (SIMPLIFIED, "gb18030", "nextcloud/files_texteditor#69"),
    "Big5": (TRADITIONAL, "big5", "LiveAgent#232"),
    "EUC-KR": (KOREAN, "cp949", "Windows' own in Korea"),
    "Windows-1251": (RUSSIAN, "cp1251", "ShareX#137"),
    "CP866": (RUSSIAN, "cp866", "ShareX#137"),
    "KOI8-R": (RUSSIAN, "koi8_r", "docling#4202"),
    "Windows-1252": (GERMAN, "cp1252", "CudaText#2928"),
    "UTF-16 LE": (SIMPLIFIED, "utf-16-le", "LiveAgent#232"),
    "UTF-16 BE": (RUSSIAN, "utf-16-be", "PowerShell's files, moved by programs that drop the mark"),
}


def written(folder: Path, text: str, encoding: str, name: str = "notes.txt") -> Path:
    path = folder / name
    path.write_bytes(text.encode(encoding))
    return path


async def attached(desk: Desk, path: Path) -> DocumentPart:
    row = desk.window.chat_page.composer.attachments
    desk.drop(path)
    await desk.until(lambda: bool(row.documents))
    return row.documents[0]


@case(RUBBISH, Way.WINDOW, report="generative-ai-use-cases#1399, LiveAgent#232, ShareX#137", before="failed")
@pytest.mark.parametrize("name", OLD)
async def test_old_encodings_are_read_and_shown_at_the_attachment(desk: Desk, tmp_path: Path, name: str) -> None:
    text, encoding, _report = OLD[name]

    document = await attached(desk, written(tmp_path, text, encoding))

    assert document.text == text
    assert desk.text_of("composer.attachment.1.encoding") == name


def damaged(text: str) -> bytes:
    """UTF-8 in which a transfer broke one character, and another program put a byte of its own."""
    raw = text.encode()
    at = raw.index("。".encode(), len(raw) // 2)
    return raw[:at] + raw[at + 1 :] + b"\x92\n"


@case(RUBBISH, Way.WINDOW, report="CudaText#6445, docling#4202: one bad byte", before="failed")
async def test_utf8_with_a_few_bad_bytes_stays_utf8(desk: Desk, tmp_path: Path) -> None:
    path = tmp_path / "mail.log"
    path.write_bytes(damaged(JAPANESE * 40))

    document = await attached(desk, path)

    assert document.text.startswith(JAPANESE)
    assert document.text.count("\ufffd") == 3
    assert desk.text_of("composer.attachment.1.encoding") == "UTF-8, 3 unreadable characters"


@case(RUBBISH, Way.WINDOW, report="claude-code#87636: UTF-8 read as Windows-1252", before="held")
@pytest.mark.parametrize("text", [JAPANESE, GERMAN, "plain\n", "\ufeffmarked"])
async def test_faultless_utf8_is_beyond_doubt(desk: Desk, tmp_path: Path, text: str) -> None:
    document = await attached(desk, written(tmp_path, text, "utf-8"))

    assert document.text == text.removeprefix("\ufeff")
    assert not desk.has("composer.attachment.1.encoding")


@case(RUBBISH, Way.WINDOW, report="docling#4202: no detector is always right", before="failed")
async def test_a_wrong_guess_can_be_changed_and_stays_changed(desk: Desk, tmp_path: Path) -> None:
    polish = "Zażółć gęślą jaźń.\n"
    await attached(desk, written(tmp_path, polish, "cp1250"))
    row = desk.window.chat_page.composer.attachments
    assert desk.text_of("composer.attachment.1.encoding")

    action = desk.window.findChild(QAction, "composer.attachment.1.encoding.cp1250")
    assert action is not None
    action.trigger()

    await desk.until(lambda: row.documents[0].text == polish)
    assert desk.text_of("composer.attachment.1.encoding") == "Windows-1250"
    assert desk.find("composer.attachment.1.encoding", QPushButton).accessibleName().endswith("Windows-1250")
    assert [getattr(draft, "encoding", "") for draft in row.drafts] == ["cp1250"]


@case(RUBBISH, Way.WINDOW, report="LiveAgent#232: a character cut in two", before="held")
def test_a_character_across_the_end_of_the_look_is_no_damage(tmp_path: Path) -> None:
    path = tmp_path / "no ending"
    path.write_bytes(b"x" * (64 * 1024 - 1) + "漢字\n".encode() * 10)

    assert is_document(path)
    assert read_document(path).encoding == ""


@case(RUBBISH, Way.CLI, report="docling#4202; read by a tool of `qwendesk ask`", before="failed")
@pytest.mark.parametrize("name", OLD)
def test_the_model_reads_old_encodings_and_learns_which_it_was(tmp_path: Path, name: str) -> None:
    text, encoding, _report = OLD[name]
    written(tmp_path, text, encoding)

    found = read_file(FolderAccess([str(tmp_path)]), "notes.txt")

    assert found == f"{text.removesuffix(chr(10))}\n(read as {name}, which is a guess)"


@case(RUBBISH, Way.CLI, report="found by trying: words of a GBK file were not found", before="failed")
async def test_a_search_finds_words_of_old_encodings(
    tmp_path: Path,
    indexes: FolderIndexes,  # noqa: F811
) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    written(folder, RUSSIAN, "cp1251")

    assert "Вчера шёл дождь" in await search_folders(indexes, "библиотеке", context(folder))


@case(RUBBISH, *SERVER, report="LiveAgent#232, over the APIs", before="failed")
@pytest.mark.parametrize("path", [CHAT, RESPONSES, MESSAGES])
@pytest.mark.parametrize("name", ["Shift JIS", "GB 18030", "Windows-1251"])
async def test_sent_files_are_read(tmp_path: Path, path: str, name: str) -> None:
    text, encoding, _report = OLD[name]
    data = base64.b64encode(text.encode(encoding)).decode()
    part = {"type": "file", "file": {"filename": "a.txt", "file_data": data}}
    if path == MESSAGES:
        part = {"type": "document", "source": {"type": "base64", "media_type": "text/plain", "data": data}}

    async with http_desk(tmp_path) as desk:
        async with desk.request("POST", path, asked(path, part)) as response:
            assert response.status == 200, await response.text()
        assert text.strip() in desk.client.asked[-1].messages[-1].text


@case(RUBBISH, Way.WINDOW, report="found by trying: tables, code and single words", before="failed")
@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("品番,品名,数量\n" + "A-12,ねじ（小）,40\n" * 30, "cp932"),
        ("名称,数量,备注\n" + "螺丝,40,库存充足\n" * 30, "gb18030"),
        ("int main() { // точка входа\n  return 0; /* всё хорошо */\n}\n", "cp1251"),
        ("エラー: ファイルが見つかりません\n", "cp932"),
        ("Совещание в пятницу.\n", "cp1251"),
        ("회의는 금요일입니다.\n", "cp949"),
        ("It\x92s only a \x93quote\x94.\n".encode("latin-1").decode("cp1252"), "cp1252"),
        ("Größe\n", "cp1252"),
    ],
)
def test_short_and_sparse_texts(tmp_path: Path, text: str, encoding: str) -> None:
    assert read_document(written(tmp_path, text, encoding)).text == text


@case(RUBBISH, Way.WINDOW, report="found by trying: Shift JIS with a byte that a copy broke", before="failed")
@pytest.mark.parametrize(("text", "encoding"), [(JAPANESE, "cp932"), (SIMPLIFIED, "gb18030"), (KOREAN, "cp949")])
def test_old_encodings_with_a_bad_byte_keep_the_rest(tmp_path: Path, text: str, encoding: str) -> None:
    raw = (text * 20).encode(encoding)
    (tmp_path / "a.txt").write_bytes(raw + b"\xff\n" + raw)

    document = read_document(tmp_path / "a.txt")

    assert document.text.startswith(text * 20)
    assert document.text.endswith(text)
    assert "\ufffd" in document.text or "\uf8f3" in document.text
