"""AVIF and TIFF pictures come in by every way, upright and in their colours."""

import base64
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, features
from PySide6.QtCore import QMimeData

from qwendesk.chat.question_files import read_question
from qwendesk.core.chats import ChatSettings
from qwendesk.core.tool_context import CallContext
from qwendesk.decoding.images import decode_image, inspect_image
from qwendesk.engine.worker import vision
from qwendesk.mcp.host_protocol import IMAGE_TYPES
from qwendesk.toolbox.service import keep_images
from qwendesk.toolbox.tool import ToolImage, ToolResult
from tests.chat.exchange.kit import Kit, gpt_chat, gpt_node
from tests.chat.view.composer.test_documents import row
from tests.field.grid import SERVER, Kind, Way, case
from tests.field.test_sent_pictures import CHAT, MESSAGES, RESPONSES, asked, images, usual
from tests.server.http_desk import http_desk
from tests.window_desk import Desk

FORMATS = Kind("A picture in a newer or older format is refused, or dropped without a word")
pytestmark = pytest.mark.skipif(not features.check("avif"), reason="this Pillow has no AVIF")


def picture(kind: str, mode: str = "RGB", **options: Any) -> bytes:
    """A red picture of 48 by 32 pixels, its left half blue."""
    image = Image.new("RGB", (48, 32), "red")
    image.paste("blue", (0, 0, 24, 32))
    content = io.BytesIO()
    image.convert(mode).save(content, kind, **options)
    return content.getvalue()


PICTURES = {
    "photo.avif": picture("AVIF", quality=95),
    "scan.tif": picture("TIFF"),
    "fax.tiff": picture("TIFF", "1", compression="group4"),
    "print.tiff": picture("TIFF", "CMYK", compression="tiff_lzw"),
}


@case(FORMATS, Way.WINDOW, report="open-webui#9600, opencode#41722", before="failed")
@pytest.mark.parametrize("name", PICTURES)
async def test_they_can_be_dropped(desk: Desk, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(PICTURES[name])

    desk.drop(tmp_path / name)

    await desk.until(lambda: len(row(desk).pictures) == 1)
    await desk.until(lambda: desk.text_of("composer.attachment.1.cost") != "")
    facts = inspect_image(tmp_path / name)
    assert (facts.width, facts.height) == (48, 32)


@case(FORMATS, Way.WINDOW, report="opencode#17772: pictures of web pages", before="failed")
async def test_they_can_be_pasted(desk: Desk) -> None:
    page = QMimeData()
    page.setHtml(f"<img src='data:image/avif;base64,{base64.b64encode(PICTURES['photo.avif']).decode()}'>")

    desk.paste(page)

    await desk.until(lambda: [path.suffix for path in row(desk).paths] == [".avif"])


@case(FORMATS, Way.CLI, report="open-webui#9600, as a file of a question", before="failed")
async def test_they_are_pictures_of_a_question(tmp_path: Path) -> None:
    for name, content in PICTURES.items():
        (tmp_path / name).write_bytes(content)
        message = await read_question("What is it?", [tmp_path / name])
        (image,) = message.images
        assert vision.read_picture(image).pixels.shape[:2] == (32, 48)


@case(FORMATS, *SERVER, report="opencode#17772: an endless loop of refusals", before="failed")
@pytest.mark.parametrize("path", [CHAT, RESPONSES, MESSAGES])
async def test_they_can_be_sent(tmp_path: Path, path: str) -> None:
    async with http_desk(tmp_path) as desk:
        for name, content in PICTURES.items():
            encoded = base64.b64encode(content).decode()
            url = encoded if path == MESSAGES else f"data:image/{Path(name).suffix[1:]};base64,{encoded}"
            assert await images(desk, path, asked(path, usual(path, url))) == [content]
            document = {"type": "document", "source": {"type": "base64", "media_type": "image/tiff", "data": encoded}}
            if path == MESSAGES:
                assert await images(desk, path, asked(path, document)) == [content]


@case(FORMATS, Way.MCP, report="opencode#41722, from a tool", before="failed")
async def test_a_tool_may_return_them(tmp_path: Path) -> None:
    assert {"image/avif", "image/tiff"} <= set(IMAGE_TYPES)
    result = ToolResult("", tuple(ToolImage("image/tiff", content) for content in PICTURES.values()))

    _, kept = await keep_images(result, CallContext("a", ChatSettings()))

    assert len(kept) == len(PICTURES)


@case(FORMATS, Way.IMPORT, report="opencode#41722, from ChatGPT's export", before="failed")
async def test_they_are_taken_from_an_export(tmp_path: Path) -> None:
    pointers = [
        {"content_type": "image_asset_pointer", "asset_pointer": f"file-service://file-{n}"}
        for n in range(len(PICTURES))
    ]
    content = {"content_type": "multimodal_text", "parts": pointers}
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as archive:
        archive.writestr("conversations.json", json.dumps([gpt_chat(gpt_node("q", None, content=content))]))
        for number, each in enumerate(PICTURES.values()):
            archive.writestr(f"file-{number}.dat", each)
    kit = Kit(tmp_path / "pc")
    await kit.start()

    await kit.exchange.import_from(tmp_path / "export.zip")

    (question,) = (await kit.tree()).path()
    assert [Path(image.path).suffix for image in question.message.images] == [".avif", ".tiff", ".tiff", ".tiff"]
    await kit.chat_list.close()


@case(FORMATS, Way.WINDOW, report="found by trying: a scan that its orientation turns", before="failed")
@pytest.mark.parametrize("kind", ["AVIF", "TIFF"])
def test_turned_pictures_stand_upright(tmp_path: Path, kind: str) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # turn it right by 90 degrees
    path = tmp_path / f"turned.{kind.lower()}"
    path.write_bytes(picture(kind, exif=exif))

    decoded = decode_image(path)

    assert (inspect_image(path).width, inspect_image(path).height) == (32, 48)
    pixels = np.frombuffer(decoded.pixels, np.uint8).reshape(decoded.facts.pixel_height, decoded.facts.pixel_width, 3)
    assert pixels.shape == (48, 32, 3)
    assert pixels[5, 16, 2] > 200, "what was at the left is at the top"
    assert pixels[40, 16, 0] > 200


@case(FORMATS, Way.WINDOW, report="found by trying: measurements of microscopes are black", before="failed")
@pytest.mark.parametrize("numbers", [np.float32, np.int32, np.uint16])
def test_measurements_are_shades(tmp_path: Path, numbers: type) -> None:
    ramp = np.linspace(0, 1 if numbers is np.float32 else 60_000, 64).reshape(8, 8).astype(numbers)
    Image.fromarray(ramp).save(tmp_path / "ramp.tif")

    pixels = np.frombuffer(decode_image(tmp_path / "ramp.tif").pixels, np.uint8)

    assert pixels.min() < 8
    assert pixels.max() > 220


@case(FORMATS, Way.WINDOW, report="found by trying: a document of several pages", before="failed")
def test_of_several_pages_the_first_is_taken(tmp_path: Path) -> None:
    first, second = Image.new("RGB", (20, 10), "lime"), Image.new("RGB", (10, 20), "red")
    first.save(tmp_path / "pages.tif", save_all=True, append_images=[second])

    decoded = decode_image(tmp_path / "pages.tif")

    assert (decoded.facts.width, decoded.facts.height) == (20, 10)
    assert decoded.pixels[:3] == b"\x00\xff\x00"
