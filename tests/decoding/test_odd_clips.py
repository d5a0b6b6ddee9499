"""Odd and hostile clips give the right frames, or a sentence."""

import os
import shutil
import struct
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from qwendesk.decoding.clips import ClipError, clip_facts, clip_frames
from tests.decoding.made_clips import (
    COLOURS,
    H264,
    NEEDS_FFMPEG,
    animation,
    colour_at,
    colours_of,
    corners,
    ffmpeg,
    picture,
    quarters,
    run_ffmpeg,
    video,
)

FOUR = ("red", "green", "blue", "yellow")
MIDDLES = (0.5, 1.5, 2.5, 3.5)
POSIX = pytest.mark.skipif(sys.platform == "win32", reason="files and permissions of POSIX")


def refused(path: Path, kind: str) -> str:
    """The sentence with which a file is refused, the same for its facts and its frames."""
    with pytest.raises(ClipError) as of_facts:
        clip_facts(path, ffmpeg())
    with pytest.raises(ClipError) as of_frames:
        clip_frames(path, (0.5, 1.5), 32, ffmpeg())
    assert of_facts.value.kind == of_frames.value.kind == kind
    assert of_facts.value.sentence == of_frames.value.sentence
    return of_frames.value.sentence


@NEEDS_FFMPEG
@pytest.mark.parametrize(
    ("degrees", "seen"),
    [
        (0, ["red", "green", "blue", "yellow"]),
        (90, ["blue", "red", "yellow", "green"]),
        (180, ["yellow", "blue", "green", "red"]),
        (270, ["green", "yellow", "red", "blue"]),
    ],
)
def test_a_clip_that_a_phone_held_sideways_is_upright(tmp_path: Path, degrees: int, seen: list[str]) -> None:
    made = tmp_path / "turned.mp4"
    run_ffmpeg("-i", quarters(tmp_path / "clip.mp4"), "-c", "copy", "-metadata:s:v", "rotate=0", made)
    turn(made, degrees)

    facts = clip_facts(made, ffmpeg())
    (frame,) = clip_frames(made, (0.5,), 48, ffmpeg())

    assert (facts.width, facts.height) == ((48, 64) if degrees in (90, 270) else (64, 48))
    assert picture(frame).size == ((36, 48) if degrees in (90, 270) else (48, 36))
    assert corners(picture(frame)) == seen


def turn(path: Path, degrees: int) -> None:
    """Write a rotation, clockwise, into the display matrix of an MP4 file's video track."""
    content = bytearray(path.read_bytes())
    matrix = content.index(b"tkhd") + 4 + 40  # of version 0
    one = 0x1_0000
    a, b = {0: (one, 0), 90: (0, one), 180: (-one, 0), 270: (0, -one)}[degrees]
    struct.pack_into(">9i", content, matrix, a, b, 0, -b, a, 0, 0, 0, 0x4000_0000)
    path.write_bytes(content)


@NEEDS_FFMPEG
def test_pixels_that_are_not_square_are_stretched(tmp_path: Path) -> None:
    made = quarters(tmp_path / "dv.mp4", "-vf", "setsar=2/1")
    facts = clip_facts(made, ffmpeg())
    (frame,) = clip_frames(made, (0.5,), 64, ffmpeg())

    assert (facts.width, facts.height) == (128, 48)
    assert picture(frame).size == (64, 24)
    assert corners(picture(frame)) == list(FOUR)


@NEEDS_FFMPEG
@pytest.mark.parametrize(
    "codec",
    [
        ("-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p10le"),
        ("-c:v", "libx265", "-preset", "ultrafast", "-pix_fmt", "yuv420p10le", "-x265-params", "log-level=error"),
        (*H264, "-vf", "setfield=tff", "-flags", "+ilme+ildct"),
        ("-c:v", "ffv1",),
        ("-c:v", "mjpeg", "-q:v", "2", "-pix_fmt", "yuvj420p"),
    ],
    ids=["10 bits", "HEVC with 10 bits", "interlaced", "lossless", "JPEG"],
)  # fmt: skip
def test_codecs_and_pixel_formats(tmp_path: Path, codec: tuple[str, ...]) -> None:
    made = video(tmp_path / "clip.mkv", FOUR, codec=codec)
    assert colours_of(clip_frames(made, MIDDLES, 32, ffmpeg())) == list(FOUR)


@NEEDS_FFMPEG
def test_a_webm_with_transparency(tmp_path: Path) -> None:
    made = video(
        tmp_path / "clip.webm",
        FOUR,
        codec=("-c:v", "libvpx", "-pix_fmt", "yuva420p", "-auto-alt-ref", "0", "-b:v", "1M"),
    )
    assert colours_of(clip_frames(made, MIDDLES, 32, ffmpeg())) == list(FOUR)


@NEEDS_FFMPEG
def test_a_frame_stays_until_the_next_however_long_that_takes(tmp_path: Path) -> None:
    """A recording of a screen: frames at 0, 0.1, 0.2 ... 0.9 s, then at 20, 20.1 ... and so on."""
    plain = video(tmp_path / "plain.mkv", FOUR)
    made = tmp_path / "gaps.mkv"
    run_ffmpeg("-i", plain, "-vf", "setpts='(T+floor(T)*19)/TB'", "-fps_mode", "vfr", *H264, made)

    close = clip_frames(made, (18.0, 19.0, 20.5, 21.5), 32, ffmpeg())
    even = clip_frames(made, (18.5, 19.5, 20.5, 21.5), 32, ffmpeg())
    apart = clip_frames(made, (5.0, 15.0, 35.0, 55.0, 60.5), 32, ffmpeg())

    assert colours_of(close) == colours_of(even) == ["red", "red", "green", "green"]
    assert colours_of(apart) == ["red", "red", "green", "blue", "yellow"]


@NEEDS_FFMPEG
def test_a_clip_of_one_frame(tmp_path: Path) -> None:
    made = video(tmp_path / "one.mp4", ("green",), "-frames:v", "1")
    facts = clip_facts(made, ffmpeg())

    assert facts.n_frames == 1
    assert facts.duration_s * facts.frames_per_s == pytest.approx(1, abs=0.01)
    assert colours_of(clip_frames(made, (0.0, 0.05, 7.0), 32, ffmpeg())) == ["green"] * 3


@NEEDS_FFMPEG
@pytest.mark.parametrize("options", [(), ("-movflags", "+faststart")], ids=["index at the end", "index at the start"])
def test_a_download_that_was_cut_off(tmp_path: Path, options: tuple[str, ...]) -> None:
    whole = video(tmp_path / "whole.mp4", FOUR * 4, "-g", "10", *options, size=(160, 120), codec=(*H264, "-qp", "1"))
    made = tmp_path / "cut.mp4"
    made.write_bytes(whole.read_bytes()[: whole.stat().st_size * 5 // 8])
    if not options:
        assert refused(made, "damaged") == '"cut.mp4" is damaged: moov atom not found. Choose another clip.'
        return
    frames = colours_of(clip_frames(made, [second + 0.5 for second in range(16)], 32, ffmpeg()))
    assert frames[:8] == list(FOUR * 2)
    assert set(frames[12:]) == {frames[-1]}


@NEEDS_FFMPEG
def test_a_clip_that_is_corrupted_in_the_middle(tmp_path: Path) -> None:
    made = video(tmp_path / "clip.mp4", FOUR * 2, "-g", "10", "-movflags", "+faststart", size=(160, 120))
    content = bytearray(made.read_bytes())
    begin = content.index(b"mdat") + (len(content) - content.index(b"mdat")) * 3 // 8
    content[begin : begin + len(content) // 8] = bytes(len(content) // 8)
    made.write_bytes(content)

    frames = colours_of(clip_frames(made, [second + 0.5 for second in range(8)], 32, ffmpeg()))

    assert len(frames) == 8
    assert (frames[:2], frames[6:]) == (["red", "green"], ["blue", "yellow"])


@NEEDS_FFMPEG
def test_sound_alone_is_no_clip(tmp_path: Path) -> None:
    made = tmp_path / "song.mp4"
    run_ffmpeg("-f", "lavfi", "-i", "sine=duration=1", made)
    cover = tmp_path / "cover.png"
    Image.new("RGB", (64, 64), "red").save(cover)
    with_cover = tmp_path / "with cover.mp4"
    run_ffmpeg(
        "-i", made, "-i", cover, "-map", "0", "-map", "1", "-c", "copy", "-disposition:v", "attached_pic", with_cover
    )

    assert refused(made, "no_video") == '"song.mp4" contains no video. Choose another clip.'
    refused(with_cover, "no_video")


@NEEDS_FFMPEG
def test_8k_is_read_and_more_is_refused(tmp_path: Path) -> None:
    large = video(tmp_path / "8k.mp4", ("green",), "-g", "1", "-frames:v", "2", size=(16, 16), before=("-r", "2"))
    made, wider = tmp_path / "large.mp4", tmp_path / "wider.mp4"
    run_ffmpeg("-i", large, "-vf", "scale=7680:4320", *H264, made)
    run_ffmpeg("-i", large, "-vf", "scale=8194:64", *H264, wider)

    assert clip_facts(made, ffmpeg()).width == 7680
    assert colours_of(clip_frames(made, (0.0,), 32, ffmpeg())) == ["green"]
    assert refused(wider, "too_many_pixels") == (
        '"wider.mp4" has 8194x64 pixels, which is more than 8K. Choose a smaller clip.'
    )


@NEEDS_FFMPEG
def test_a_header_that_claims_a_smaller_frame_does_not_get_more_memory(tmp_path: Path) -> None:
    """The decoder finds the real size in the stream, which is larger than 8K."""
    small = video(tmp_path / "small.mkv", ("green",), size=(16, 16))
    made = tmp_path / "wide.mkv"
    run_ffmpeg("-i", small, "-vf", "scale=16000:16000", "-frames:v", "1", "-c:v", "mjpeg", "-pix_fmt", "yuvj420p", made)
    content = made.read_bytes()
    assert content.count(struct.pack(">H", 16_000)) >= 2
    # The container's numbers alone: the JPEG inside still has 16000x16000.
    head = content[:1024].replace(b"\xb0\x82" + struct.pack(">H", 16_000), b"\xb0\x82" + struct.pack(">H", 640))
    head = head.replace(b"\xba\x82" + struct.pack(">H", 16_000), b"\xba\x82" + struct.pack(">H", 480))
    made.write_bytes(head + content[1024:])

    with pytest.raises(ClipError) as caught:
        clip_frames(made, (0.5,), 32, ffmpeg())

    assert caught.value.kind in ("damaged", "too_many_pixels")


@NEEDS_FFMPEG
@pytest.mark.parametrize("size", [(1, 1), (3, 5), (15, 4000), (4000, 15)])
def test_odd_sizes(tmp_path: Path, size: tuple[int, int]) -> None:
    codec = ("-c:v", "ffv1", "-pix_fmt", "bgr0")
    made = video(tmp_path / "odd.mkv", ("green", "blue"), codec=codec, size=size, rate=2)
    facts = clip_facts(made, ffmpeg())
    frames = clip_frames(made, (0.5, 1.5), (64, 32), ffmpeg())
    kept = clip_frames(made, (0.5, 1.5), 448, ffmpeg())

    assert (facts.width, facts.height) == size
    assert colours_of(frames) == colours_of(kept) == ["green", "blue"]
    assert all(side >= 2 and side % 2 == 0 for png in kept for side in picture(png).size)


@NEEDS_FFMPEG
def test_times_count_from_the_first_frame(tmp_path: Path) -> None:
    """Whether the file's own times begin below zero, or long after it."""
    plain = video(tmp_path / "plain.mp4", FOUR)
    for name, offset in (("early.mkv", "-3"), ("late.ts", "5000"), ("late.mkv", "700")):
        made = tmp_path / name
        run_ffmpeg("-itsoffset", offset, "-i", plain, "-c", "copy", "-copyts", "-avoid_negative_ts", "disabled", made)
        assert colours_of(clip_frames(made, MIDDLES, 32, ffmpeg())) == list(FOUR), name
        assert clip_facts(made, ffmpeg()).duration_s == pytest.approx(4, abs=0.3), name


@NEEDS_FFMPEG
def test_a_recording_without_a_duration(tmp_path: Path) -> None:
    """Browsers write such files."""
    codec = ("-c:v", "libvpx", "-deadline", "realtime", "-b:v", "1M")
    made = video(tmp_path / "live.webm", FOUR, "-live", "1", codec=codec)

    assert clip_facts(made, ffmpeg()).duration_s == pytest.approx(4, abs=0.2)
    assert colours_of(clip_frames(made, MIDDLES, 32, ffmpeg())) == list(FOUR)


@NEEDS_FFMPEG
def test_a_header_that_claims_thirty_years(tmp_path: Path) -> None:
    made = video(tmp_path / "clip.mkv", FOUR)
    content = made.read_bytes()
    at = content.index(b"\x44\x89\x88") + 3  # Duration, a double of 8 bytes, in ms
    made.write_bytes(content[:at] + struct.pack(">d", 1e12) + content[at + 8 :])

    assert clip_facts(made, ffmpeg()).duration_s == pytest.approx(4, abs=0.2)
    assert colours_of(clip_frames(made, (0.5, 5e8, 9e8), 32, ffmpeg())) == ["red", "yellow", "yellow"]


@NEEDS_FFMPEG
def test_frames_that_change_their_size_keep_their_times(tmp_path: Path) -> None:
    """As recordings of a video call do."""
    pieces = b"".join(
        video(tmp_path / f"{colour}.h264", (colour,), size=size).read_bytes()
        for colour, size in zip(FOUR, [(64, 48), (32, 24), (128, 96), (48, 64)], strict=True)
    )
    made = tmp_path / "call.mkv"
    run_ffmpeg("-r", "10", "-f", "h264", "-i", "pipe:0", "-c", "copy", made, given=pieces)

    assert colours_of(clip_frames(made, MIDDLES, (32, 32), ffmpeg())) == list(FOUR)
    assert colours_of(clip_frames(made, (0.5, 0.7, 2.5, 3.7), (32, 32), ffmpeg())) == ["red", "red", "blue", "yellow"]


PLAYLISTS = {
    "m3u8": "#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\nfile:///etc/passwd\n#EXTINF:9,\nhttp://127.0.0.1:9/a.ts\n",
    "ffconcat": "ffconcat version 1.0\nfile /etc/passwd\nfile http://127.0.0.1:9/a.mp4\n",
    "mpd": '<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011"><Period/></MPD>',
    "sdp": "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nm=video 9 RTP/AVP 96\n",
    "text": "This is a text.\n" * 100,
    "GGG": "G" * 4,
    "empty": "",
    "html": "<!DOCTYPE html><title>Not found</title>",
}


@NEEDS_FFMPEG
@pytest.mark.parametrize("name", PLAYLISTS)
def test_playlists_and_texts_are_refused_whatever_their_name(tmp_path: Path, name: str) -> None:
    made = tmp_path / "film.mp4"
    made.write_text(PLAYLISTS[name])
    sentence = refused(made, "not_a_clip")
    assert sentence.startswith("QwenDesk can't open \"film.mp4\": it isn't an MP4, MOV, WebM")


@NEEDS_FFMPEG
def test_a_movie_that_names_another_file_does_not_read_it(tmp_path: Path) -> None:
    """QuickTime's data references: the index is here, and the frames are said to be in another file."""
    made = video(tmp_path / "clip.mov", FOUR)
    other = tmp_path / "clip.bin"
    shutil.copy(made, other)
    content = bytearray(made.read_bytes())
    begin = content.index(b"mdat") + 4
    end = content.index(b"moov") - 4
    content[begin:end] = bytes(end - begin)
    at = content.index(b"url \0\0\0\1")  # "in this file"
    content[at : at + 8] = b"url \0\0\0\0"
    made.write_bytes(content)

    with pytest.raises(ClipError) as caught:
        clip_frames(made, MIDDLES, 32, ffmpeg())
    assert caught.value.kind == "damaged"


@pytest.mark.parametrize("ending", ["gif", "webp", "png"])
def test_transparent_animations_are_shown_on_white(tmp_path: Path, ending: str) -> None:
    frames = []
    for left in (0, 16, 32):
        frame = Image.new("RGBA", (48, 16), (0, 0, 0, 0))
        frame.paste(Image.new("RGBA", (16, 16), (*COLOURS["blue"], 255)), (left, 0))
        frames.append(frame)
    made = tmp_path / f"clip.{ending}"
    disposal = {"png": {"disposal": 1}, "gif": {"disposal": 2}, "webp": {}}[ending]
    frames[0].save(made, save_all=True, append_images=frames[1:], duration=100, loop=0, lossless=True, **disposal)

    shown = [picture(png) for png in clip_frames(made, (0.05, 0.15, 0.25), 48, None)]

    seen = [[colour_at(image, x) for x in (1 / 6, 3 / 6, 5 / 6)] for image in shown]
    assert seen == [["blue" if column == number else "white" for column in range(3)] for number in range(3)]


def test_an_animated_png_has_a_picture_for_other_programs(tmp_path: Path) -> None:
    """The picture is not part of the animation."""
    made = tmp_path / "clip.png"
    frames = [Image.new("RGB", (64, 48), COLOURS[colour]) for colour in ("black", "red", "green")]
    frames[0].save(made, save_all=True, append_images=frames[1:], duration=100, default_image=True)

    assert clip_facts(made, None).n_frames == 2
    assert colours_of(clip_frames(made, (0.05, 0.15), 32, None)) == ["red", "green"]


@pytest.mark.parametrize("delay_ms", [0, 10])
def test_frames_without_a_delay_stay_as_long_as_in_browsers(tmp_path: Path, delay_ms: int) -> None:
    made = animation(tmp_path / "clip.gif", FOUR, delay_ms)
    facts = clip_facts(made, None)
    assert (facts.duration_s, facts.frames_per_s) == (pytest.approx(0.4), pytest.approx(10))
    assert colours_of(clip_frames(made, (0.05, 0.15, 0.25, 0.35), 32, None)) == list(FOUR)


def test_ten_thousand_tiny_frames(tmp_path: Path) -> None:
    first, second = Image.new("L", (2, 2), 240), Image.new("L", (2, 2), 15)
    made = tmp_path / "many.gif"
    first.save(made, save_all=True, append_images=[second, first] * 4_999 + [second], duration=100, loop=0)
    facts = clip_facts(made, None)
    assert (facts.n_frames, facts.duration_s) == (10_000, pytest.approx(1_000))
    assert colours_of(clip_frames(made, (500.05, 500.15, 999.95), 2, None)) == ["white", "black", "black"]


def test_a_still_picture_is_a_clip_of_one_frame(tmp_path: Path) -> None:
    Image.new("RGB", (64, 48), COLOURS["red"]).save(tmp_path / "still.png")
    facts = clip_facts(tmp_path / "still.png", None)
    assert (facts.n_frames, facts.duration_s, facts.frames_per_s) == (1, 0, 0)
    assert colours_of(clip_frames(tmp_path / "still.png", (0.0, 4.0), 32, None)) == ["red", "red"]


@pytest.mark.parametrize("ending", ["gif", "webp", "png"])
def test_an_animation_that_was_cut_off(tmp_path: Path, ending: str) -> None:
    rng = np.random.default_rng(1)
    noise = [Image.fromarray(rng.integers(0, 255, (64, 64, 3), dtype=np.uint8)) for _ in range(8)]
    whole = tmp_path / f"whole.{ending}"
    noise[0].save(whole, save_all=True, append_images=noise[1:], duration=100, loop=0)
    made = tmp_path / f"cut.{ending}"
    made.write_bytes(whole.read_bytes()[: whole.stat().st_size // 2])
    try:
        facts = clip_facts(made, None)
    except ClipError as error:
        assert error.kind == "damaged"
        assert error.sentence.startswith(f'"cut.{ending}" is damaged: ')
        return
    assert 2 <= facts.n_frames <= 5
    assert len(clip_frames(made, (0.05, 0.75), 32, None)) == 2


@pytest.mark.parametrize("head", [b"GIF89a", b"\x89PNG\r\n\x1a\n", b"RIFF\0\0\1\0WEBPVP8X", b"\0\0\0\x1cftypavis"])
def test_an_animation_that_is_only_a_beginning(tmp_path: Path, head: bytes) -> None:
    made = tmp_path / "clip.gif"
    made.write_bytes(head + bytes(40))
    with pytest.raises(ClipError, match='"clip.gif" is damaged'):
        clip_facts(made, None)


@NEEDS_FFMPEG
@pytest.mark.parametrize(
    "head",
    [b"\0\0\0\x20ftypisom", b"\x1a\x45\xdf\xa3", b"RIFF\0\0\1\0AVI LIST", b"\0\0\1\xba", (b"G" + bytes(187)) * 9],
)
def test_a_video_that_is_only_a_beginning(tmp_path: Path, head: bytes) -> None:
    made = tmp_path / "clip.mp4"
    made.write_bytes(head + bytes(4096))
    with pytest.raises(ClipError) as caught:
        clip_facts(made, ffmpeg())
    assert caught.value.kind in ("damaged", "no_video")


NAMES = [
    "with spaces.mp4", "-i.mp4", "100%d.mp4", "%03d.mp4", "a'b\"c.mp4", "über 電影.mp4", "concat:a|b.mp4", "#.mp4",
    os.fsdecode(b"not utf-8 \xff.mp4"),
]  # fmt: skip


@POSIX
@NEEDS_FFMPEG
@pytest.mark.parametrize("name", NAMES)
def test_any_name_will_do(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        shutil.copy(video(tmp_path / "plain.mp4", FOUR), tmp_path / name)
    except OSError:
        pytest.skip("this file system has no such names")
    monkeypatch.chdir(tmp_path)
    assert colours_of(clip_frames(Path(name), MIDDLES, 32, ffmpeg())) == list(FOUR)
    assert colours_of(clip_frames(tmp_path / name, MIDDLES, 32, ffmpeg())) == list(FOUR)


@NEEDS_FFMPEG
def test_what_is_no_file_is_refused_at_once(tmp_path: Path) -> None:
    assert refused(tmp_path, "unreadable").endswith("can't be read: it is a folder. Attach it again.")
    assert refused(tmp_path / "gone.mp4", "missing") == '"gone.mp4" could not be found. Attach it again.'


@POSIX
@NEEDS_FFMPEG
def test_a_pipe_a_device_and_a_forbidden_file_are_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.mp4")
    (tmp_path / "zero.mp4").symlink_to("/dev/zero")
    assert "it is a pipe, not a file" in refused(tmp_path / "pipe.mp4", "unreadable")
    assert "it is a device, not a file" in refused(tmp_path / "zero.mp4", "unreadable")
    if os.geteuid():
        (tmp_path / "secret.mp4").write_bytes(b"\0\0\0\x20ftypisom")
        (tmp_path / "secret.mp4").chmod(0)
        refused(tmp_path / "secret.mp4", "unreadable")


def test_nothing_but_frames_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even where FFREPORT asks ffmpeg for a log."""
    if NEEDS_FFMPEG.args[0]:
        pytest.skip("ffmpeg and ffprobe aren't installed")
    made = video(tmp_path / "clip.mp4", FOUR)
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    monkeypatch.setenv("FFREPORT", f"file={tmp_path / 'empty' / 'report.log'}:level=32")
    monkeypatch.setenv("TMPDIR", str(tmp_path / "empty"))

    clip_facts(made, ffmpeg())
    clip_frames(made, MIDDLES, 32, ffmpeg())

    assert list((tmp_path / "empty").iterdir()) == []


@NEEDS_FFMPEG
def test_a_codec_that_is_seldom_tested_is_not_tried(tmp_path: Path) -> None:
    made = video(tmp_path / "old.avi", FOUR, codec=("-c:v", "zmbv"))
    assert refused(made, "unknown_codec") == (
        'QwenDesk can\'t read the codec of "old.avi", zmbv. Convert the clip to H.264.'
    )
