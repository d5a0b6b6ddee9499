"""Texts are decoded as they were meant, and what is no text is not one."""

import random

import pytest

from qwendesk.core.text_decoding import ENCODINGS, decode_text, is_text

RUSSIAN = "Вчера шёл дождь, поэтому я читал в библиотеке."


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_unicode_with_a_mark_or_without_a_fault_is_certain(encoding: str) -> None:
    decoded = decode_text("naïve 日本\r\nx\ry".encode(encoding))

    assert decoded is not None
    assert (decoded.text, decoded.encoding) == ("naïve 日本\nx\ny", "")


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("text", ["Plain ASCII, no line break", f"{RUSSIAN}\n", "二次会议\n下周 😀\n", "a"])
def test_utf16_without_a_mark(encoding: str, text: str) -> None:
    decoded = decode_text(text.encode(encoding))

    assert decoded is not None
    assert (decoded.text, decoded.encoding) == (text, encoding)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_chosen_encoding_is_obeyed_whatever_the_bytes_are(encoding: str) -> None:
    decoded = decode_text(bytes(range(256)), encoding)

    assert decoded is not None
    assert decoded.encoding == encoding
    assert "A" in decoded.text or encoding.startswith("utf-16")


def test_binaries_are_no_text() -> None:
    chance = random.Random(7)
    noise = [chance.randbytes(4096) for _ in range(20)]
    samples = b"".join(value.to_bytes(2, "little", signed=True) for value in range(-900, 900))
    for raw in (*noise, samples, b"MZ\x00\x00\x01", b"MZ\x00\x01\x02", b"\x7fELF" + bytes(300), bytes(range(256)) * 4):
        assert not is_text(raw)
        assert decode_text(raw) is None


def test_terminal_colours_are_no_japanese() -> None:
    decoded = decode_text(b"\x1b[31mfailed\x1b[0m $Bx\n")

    assert decoded is not None
    assert decoded.encoding == ""


@pytest.mark.parametrize(
    ("raw", "expected", "encoding"),
    [
        ("Größe\n".encode() + b"\xfc\n", "Größe\n\ufffd\n", "utf-8"),
        ("Größe über alles\n".encode("cp1252"), "Größe über alles\n", "cp1252"),
        (b"It\x92s here\n", "It’s here\n", "cp1252"),
    ],
)
def test_damage_and_another_encoding_are_told_apart(raw: bytes, expected: str, encoding: str) -> None:
    decoded = decode_text(raw)

    assert decoded is not None
    assert (decoded.text, decoded.encoding) == (expected, encoding)


def test_a_large_file_of_one_line_is_read() -> None:
    raw = (RUSSIAN * 20_000).encode("cp1251")

    decoded = decode_text(raw)

    assert decoded is not None
    assert decoded.encoding == "cp1251"


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("вы пок", "koi8_r"),
        ("купил", "cp866"),
        ("е в ла", "koi8_r"),
        ("риалы к совещанию готовы пока только нап", "cp1251"),
        ("咖啡。 下周", "gb18030"),
        ("我在图书馆看了一下午的书。回家的路上，我在车站旁边的小店买了", "gb18030"),
        ("와서 도서관에서 책을 읽었습니다. 돌아오는 길에 역 앞 가게에서 커피를", "cp949"),
        ("“quoted” – it’s a name", "cp1252"),
        ("Größe", "cp1252"),
        ("Wczoraj padało, więc czytałem książkę w bibliotece. Żółta łódź płynie źle.", "cp1250"),
        ("x = 1  # 計算する\n", "cp932"),
        ("เมื่อวานฝนตก ฉันจึงอ่านหนังสือที่ห้องสมุด การประชุมคือวันศุกร์", "cp874"),
    ],
)
def test_short_texts_in_which_another_encoding_is_as_neat(text: str, encoding: str) -> None:
    decoded = decode_text(text.encode(encoding))

    assert decoded is not None
    assert (decoded.text, decoded.encoding) == (text, encoding)
