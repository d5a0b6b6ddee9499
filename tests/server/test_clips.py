"""Clips that programs send reach the engine as frames with their times."""

import base64
import io
from pathlib import Path
from typing import Any

import msgspec
import pytest
from PIL import Image

from qwendesk.core.messages import ImagePart
from qwendesk.server import clips
from tests.decoding.made_clips import COLOURS, NEEDS_FFMPEG, video
from tests.fakes.engine import DEMO_REPORT, FakeEngineClient
from tests.server.http_desk import HttpDesk, http_desk

CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"


def animation(*colours: str) -> bytes:
    """A GIF with a second of each colour."""
    first, *others = (Image.new("RGB", (64, 48), COLOURS[colour]) for colour in colours)
    content = io.BytesIO()
    first.save(content, "GIF", save_all=True, append_images=others, duration=1000)
    return content.getvalue()


def encoded(content: bytes, kind: str = "image/gif") -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def asked(part: dict[str, Any], path: str = CHAT) -> dict[str, Any]:
    text = {"type": "input_text" if path == RESPONSES else "text", "text": "What happens?"}
    sent = [{"role": "user", "content": [part, text]}]
    return {"input": sent} if path == RESPONSES else {"messages": sent, "max_tokens": 5}


async def frames(desk: HttpDesk, part: dict[str, Any], path: str = CHAT) -> list[ImagePart]:
    """The frames that reach the engine."""
    async with desk.request("POST", path, asked(part, path)) as response:
        assert response.status == 200, await response.text()
    return [image for message in desk.client.asked[-1].messages for image in message.images]


def colour_of(image: ImagePart) -> str:
    seen = Image.open(io.BytesIO(image.data)).convert("RGB").resize((1, 1)).getpixel((0, 0))
    assert isinstance(seen, tuple)
    return min(COLOURS, key=lambda name: sum(abs(a - b) for a, b in zip(COLOURS[name], seen, strict=True)))


URL = encoded(animation("red", "green", "blue", "yellow"))


@pytest.mark.parametrize(
    ("path", "part"),
    [
        (CHAT, {"type": "video_url", "video_url": {"url": URL}}),
        (CHAT, {"type": "video_url", "video_url": URL}),
        (CHAT, {"type": "input_video", "input_video": {"data": URL.partition(",")[2], "format": "gif"}}),
        (CHAT, {"type": "input_video", "input_video": {"url": URL}}),
        (CHAT, {"type": "video", "video": URL}),
        (RESPONSES, {"type": "input_video", "video_url": URL}),
    ],
)
async def test_every_form_that_clients_send_is_read(tmp_path: Path, path: str, part: dict[str, Any]) -> None:
    async with http_desk(tmp_path) as desk:
        images = await frames(desk, part, path)

    assert [colour_of(image) for image in images] == ["red", "green", "blue", "yellow"]
    assert [image.frame.time_s for image in images if image.frame] == [0.5, 1.5, 2.5, 3.5]
    assert {image.frame.clip_s for image in images if image.frame} == {4.0}


@NEEDS_FFMPEG
async def test_a_video_file_is_read_and_nothing_of_it_stays_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(clips.tempfile, "tempdir", str(temporary))
    content = video(tmp_path / "a.mp4", ["red", "blue"]).read_bytes()

    async with http_desk(tmp_path) as desk:
        images = await frames(desk, {"type": "video_url", "video_url": {"url": encoded(content, "video/mp4")}})

    assert [colour_of(image) for image in images] == ["red", "blue"]
    assert not list(temporary.iterdir())


async def test_a_clip_that_comes_again_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    read_frames = clips._read_frames

    def noted(clip: ImagePart, *arguments: Any, **values: Any) -> tuple[ImagePart, ...]:
        read.append(clip.sha256)
        return read_frames(clip, *arguments, **values)

    monkeypatch.setattr(clips, "_read_frames", noted)
    async with http_desk(tmp_path) as desk:
        first = await frames(desk, {"type": "video", "video": URL})
        again = await frames(desk, {"type": "video", "video": URL})

    assert first == again
    assert len(read) == 1


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("https://example.com/a.mp4", "fetches no addresses"),
        ("file:///etc/passwd", "fetches no addresses"),
        ("data:video/mp4;base64,", "is empty"),
        ("data:video/mp4;base64,%%%", "is not valid base64"),
        (encoded(b"#EXTM3U\n/etc/passwd\n", "video/mp4"), "it isn't an MP4"),
        (encoded(b"no clip at all"), "it isn't an MP4"),
    ],
)
async def test_what_is_no_clip_is_refused_with_its_field(tmp_path: Path, url: str, sentence: str) -> None:
    part = {"type": "video_url", "video_url": {"url": url}}
    async with http_desk(tmp_path) as desk, desk.request("POST", CHAT, asked(part)) as response:
        error = (await response.json())["error"]

    assert response.status == 400
    assert sentence in error["message"]
    assert "video_url" in error["param"]


async def test_a_model_without_vision_gets_no_clip(tmp_path: Path) -> None:
    blind = FakeEngineClient(msgspec.structs.replace(DEMO_REPORT, can_see=False))
    part = {"type": "video", "video": URL}
    async with http_desk(tmp_path, client=blind) as desk, desk.request("POST", CHAT, asked(part)) as response:
        error = (await response.json())["error"]

    assert "sees no pictures" in error["message"]


async def test_all_clips_of_a_request_take_a_quarter_of_the_context(tmp_path: Path) -> None:
    clip = encoded(animation(*("red", "green", "blue", "yellow") * 3))
    part = {"type": "video", "video": clip}
    small = FakeEngineClient(msgspec.structs.replace(DEMO_REPORT, n_ctx=1024, pairs_frames=False))
    async with http_desk(tmp_path, client=small) as desk:
        assert len(await frames(desk, part)) == 8
        sent = {"messages": [{"role": "user", "content": [part, part]}], "max_tokens": 5}
        async with desk.request("POST", CHAT, sent) as response:
            assert response.status == 200, await response.text()
        assert len(desk.client.asked[-1].messages[-1].images) == 2 * 4
