"""Pictures as clients send them: odd base64, every part of the APIs, system messages, results of tools, formats."""

import base64
import io
import urllib.parse
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from PySide6.QtCore import QMimeData

from qwendesk.engine.protocol import RequestFailed
from qwendesk.engine.worker import vision
from qwendesk.mcp.service import McpService
from tests.fakes.answer_stream import ScriptedAnswer
from tests.field.grid import SERVER, Kind, Way, case
from tests.mcp.conftest import no_keyring, service  # noqa: F401
from tests.mcp.servers import added, call, hostile
from tests.server.http_desk import HttpDesk, http_desk
from tests.window_desk import Desk

_FILES = dict.fromkeys((Way.WINDOW, Way.CLI), "pictures are files there, read from disk")
ODD_BASE64 = Kind(
    "A picture in base64 with line breaks, without padding or for addresses is refused",
    {Way.CLI: _FILES[Way.CLI], Way.IMPORT: "an export has the base64 that QwenDesk wrote, with a hash of it"},
)
LOST_PICTURES = Kind(
    "A picture in an odd part of a request is lost, and nobody says so",
    {**_FILES, Way.MCP: "its results have one kind of part", Way.IMPORT: "what is left out is counted and said"},
)
CHAT, RESPONSES, MESSAGES = "/v1/chat/completions", "/v1/responses", "/v1/messages"


def picture(kind: str = "PNG", side: int = 20, **options: Any) -> bytes:
    image = Image.new("RGB", (30, side), "red")
    image.putpixel((0, 0), (0, 0, 255))
    content = io.BytesIO()
    image.save(content, kind, **options)
    return content.getvalue()


PNG = picture(compress_level=0)  # the same by every zlib
ENCODED = base64.b64encode(PNG).decode()
ADDRESS = f"data:image/png;base64,{ENCODED}"


def odd(content: bytes) -> dict[str, str]:
    """The ways in which a picture is written."""
    encoded = base64.b64encode(content).decode()
    return {
        "line breaks": f"data:image/png;base64,{base64.encodebytes(content).decode()}",
        "CRLF": f"data:image/png;base64,\r\n{encoded[:40]}\r\n{encoded[40:]}\r\n",
        "spaces": f"data:image/png;base64, {encoded[:40]} {encoded[40:]}",
        "no padding": f"data:image/png;base64,{encoded.rstrip('=')}",
        "for addresses": f"data:image/png;base64,{base64.urlsafe_b64encode(content).decode()}",
        "escaped": f"data:image/png;base64,{urllib.parse.quote(encoded, safe='')}",
        "capitals": f"DATA:IMAGE/PNG;BASE64,{encoded}",
        "no type": f"data:;base64,{encoded}",
        "wrong type": f"data:image/jpeg;base64,{encoded}",
        "parameters": f"data:image/png;charset=utf-8;name=a.png; base64,{encoded}",
        "no data": f"image/png;base64,{encoded}",
        "base64 alone": encoded,
    }


ODD = odd(PNG)
assert {"+", "/"} & {*ENCODED}, "or the alphabets are the same"


async def images(desk: HttpDesk, path: str, body: Any) -> list[bytes]:
    """The pictures that reach the engine."""
    async with desk.request("POST", path, body) as response:
        assert response.status == 200, await response.text()
    return [image.data for message in desk.client.asked[-1].messages for image in message.images]


def asked(path: str, part: dict[str, Any], role: str = "user") -> dict[str, Any]:
    sent = [{"role": role, "content": [part, {"type": "text" if path != RESPONSES else "input_text", "text": "?"}]}]
    return {"input": sent} if path == RESPONSES else {"messages": sent, "max_tokens": 5}


def usual(path: str, url: str) -> dict[str, Any]:
    """A part with a picture in that API's own words."""
    if path == MESSAGES:
        return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": url}}
    if path == RESPONSES:
        return {"type": "input_image", "image_url": url, "detail": "auto"}
    return {"type": "image_url", "image_url": {"url": url}}


@case(ODD_BASE64, *SERVER, report="found by trying: 9 of 9 refused", before="failed")
@pytest.mark.parametrize("path", [CHAT, RESPONSES, MESSAGES])
async def test_odd_base64_is_read(tmp_path: Path, path: str) -> None:
    async with http_desk(tmp_path) as desk:
        for name, url in ODD.items():
            assert await images(desk, path, asked(path, usual(path, url))) == [PNG], name


@case(ODD_BASE64, Way.MCP, report="base64 of Python's encodebytes has line breaks", before="failed")
async def test_odd_base64_of_an_mcp_server_is_read(service: McpService) -> None:  # noqa: F811
    await added(service, hostile("half characters"))
    assert (await call(service, "go")).endswith("(picture 1)")


@case(ODD_BASE64, Way.WINDOW, report="mails break the lines of what they embed", before="failed")
async def test_odd_base64_of_a_pasted_page_is_read(desk: Desk) -> None:
    attachments = desk.window.chat_page.composer.attachments
    names = ("line breaks", "no padding", "for addresses", "escaped", "capitals", "parameters")
    files = {name: picture(side=20 + number) for number, name in enumerate(names)}
    for number, (name, content) in enumerate(files.items()):
        page = QMimeData()
        page.setHtml(f'<img alt="a" src="{odd(content)[name]}">')
        desk.paste(page)
        await desk.until(lambda least=number: len(attachments.items) > least)  # type: ignore[misc]
    assert [path.read_bytes() for path in attachments.paths] == [*files.values()]


PARTS: list[dict[str, Any]] = [
    {"type": "image_url", "image_url": {"url": ADDRESS, "detail": "high"}}, {"type": "image_url", "image_url": ADDRESS},
    {"type": "input_image", "image_url": ADDRESS}, {"type": "image", "image": ADDRESS},
    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": ENCODED}},
    {"type": "image", "source": {"type": "url", "url": ADDRESS}},
    {"type": "image", "data": ENCODED, "mimeType": "image/png"},
    {"type": "file", "file": {"filename": "a.png", "file_data": ADDRESS}}, {"type": "input_file", "file_data": ADDRESS},
    {"type": "document", "source": {"type": "base64", "media_type": "image/png", "data": ENCODED}},
    {"type": "document", "source": {"type": "content", "content": [{"type": "image", "source": {"data": ENCODED}}]}},
]  # fmt: skip


@case(LOST_PICTURES, *SERVER, report="found by trying the parts of each API", before="failed")
@pytest.mark.parametrize("path", [CHAT, RESPONSES, MESSAGES])
async def test_a_picture_in_any_part_is_read(tmp_path: Path, path: str) -> None:
    async with http_desk(tmp_path) as desk:
        for part in PARTS:
            assert await images(desk, path, asked(path, part)) == [PNG], part
            assert await images(desk, path, asked(path, part, role="system")) == [PNG], part
        first = desk.client.asked[-1].messages
        assert [(each.role, len(each.images)) for each in first if each.images] == [("user", 1)], "as templates want it"


@case(LOST_PICTURES, *SERVER, report="pictures in results of tools", before="held")
async def test_pictures_in_results_of_tools_are_read(tmp_path: Path) -> None:
    call = {"id": "a", "function": {"name": "look", "arguments": "{}"}}
    bodies = {
        CHAT: {"messages": [{"role": "user", "content": "?"}, {"role": "assistant", "tool_calls": [call]},
                            {"role": "tool", "tool_call_id": "a", "content": [usual(CHAT, ADDRESS)]}]},
        RESPONSES: {"input": [{"role": "user", "content": "?"},
                              {"type": "function_call", "call_id": "a", "name": "look", "arguments": "{}"},
                              {"type": "function_call_output", "call_id": "a", "output": [usual(RESPONSES, ADDRESS)]}]},
        MESSAGES: {"max_tokens": 5, "messages": [
            {"role": "user", "content": "?"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "look", "input": {}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": [usual(MESSAGES, ENCODED)]}]}]},
    }  # fmt: skip
    async with http_desk(tmp_path) as desk:
        for path, body in bodies.items():
            assert await images(desk, path, body) == [PNG]
            assert desk.client.asked[-1].messages[-1].role == "tool"


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}, "fetches no addresses"),
    ({"type": "image", "source": {"type": "url", "url": "file:///etc/passwd"}}, "fetches no addresses"),
    ({"type": "input_image", "file_id": "file-1"}, "keeps no files"),
    ({"type": "image_url", "image_url": "data:image/png;base64,%%%"}, "not valid base64"),
    ({"type": "image_url", "image_url": {"url": ""}}, "empty"), ({"type": "image"}, "missing"),
    ({"type": "document", "source": {"type": "url", "url": "https://example.com/a.pdf"}}, "fetches no addresses"),
    ({"type": "file", "file": {"file_data": base64.b64encode(b"%PDF-1.7 ...").decode()}}, "plain text"),
    ({"type": "input_audio", "input_audio": {"data": "UklG", "format": "wav"}}, "input_audio"),
    ({"type": "video_url", "video_url": {"url": "data:video/mp4;base64,AAAA"}}, "it isn't an MP4"),
]  # fmt: skip


@case(LOST_PICTURES, *SERVER, report="found by trying the parts of each API", before="failed")
@pytest.mark.parametrize("path", [CHAT, RESPONSES, MESSAGES])
async def test_what_cannot_be_read_is_refused_by_name(tmp_path: Path, path: str) -> None:
    async with http_desk(tmp_path) as desk:
        for part, words in REFUSED:
            async with desk.request("POST", path, asked(path, part)) as response:
                assert response.status == 400, part
                error = (await response.json())["error"]
            assert words in error["message"], part
            assert path == MESSAGES or "content[0]" in error["param"], part
        text = base64.b64encode("Grüße".encode()).decode()
        await images(desk, path, asked(path, {"type": "file", "file": {"filename": "a.txt", "file_data": text}}))
        assert desk.client.asked[-1].messages[0].text == "a.txt\nGrüße\n?"


@case(LOST_PICTURES, Way.CHAT, Way.RESPONSES, report="Codex drops its pictures only for this code", before="failed")
async def test_what_the_engine_finds_to_be_no_picture_is_named_too(tmp_path: Path) -> None:
    for path, name in ((CHAT, "messages[0].content[0].image_url"), (RESPONSES, "input[0].content[0].image_url")):
        failed = RequestFailed(id=0, title="Unknown picture format", sentence=f'QwenDesk can\'t open "{name}".')
        async with http_desk(tmp_path, [ScriptedAnswer(fail=failed)]) as desk:
            error = (await desk.json("POST", path, asked(path, usual(path, "AAAA"))))["error"]
            assert (error["param"], error["code"]) == (name, "invalid_value")
            assert desk.client.asked[-1].messages[0].images[0].path == name


@case(LOST_PICTURES, *SERVER, report="odd picture formats, EXIF", before="held")
async def test_odd_formats_arrive_upright(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # turn it right by 90 degrees
    async with http_desk(tmp_path) as desk:
        for kind in ("PNG", "JPEG", "GIF", "WEBP", "BMP"):
            content = picture(kind, 20, **({"exif": exif} if kind == "JPEG" else {}))
            for path in (CHAT, RESPONSES, MESSAGES):
                encoded = base64.b64encode(content).decode()
                url = encoded if path == MESSAGES else f"data:image/{kind.lower()};base64,{encoded}"
                assert await images(desk, path, asked(path, usual(path, url))) == [content]
            (image,) = desk.client.asked[-1].messages[0].images
            height, width, _ = vision.read_picture(image).pixels.shape
            assert (width, height) == ((20, 30) if kind == "JPEG" else (30, 20)), kind
