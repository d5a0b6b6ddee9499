"""Odd video files give the frames that they show at a time."""

import struct
import sys
from pathlib import Path

import pytest
from PIL import Image

from qwendesk.decoding.clips import ClipError, clip_facts, clip_frames
from tests.decoding.made_clips import (
    H264,
    NEEDS_FFMPEG,
    colours_of,
    corners,
    ffmpeg,
    picture,
    quarters,
    refused,
    run_ffmpeg,
    video,
)

FOUR = ("red", "green", "blue", "yellow")
# Makes all seconds of a file about equally long.
NOISE = ("-vf", "noise=alls=24:allf=t", "-qp", "20")
MIDDLES = (0.5, 1.5, 2.5, 3.5)


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
        pytest.param(
            ("-c:v", "libx265", "-preset", "ultrafast", "-pix_fmt", "yuv420p10le", "-x265-params", "log-level=error"),
            marks=pytest.mark.skipif(sys.platform == "win32", reason="x265 divides by zero under Wine"),
        ),
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
    codec = ("-c:v", "libvpx", "-pix_fmt", "yuva420p", "-auto-alt-ref", "0", "-b:v", "1M")
    made = video(tmp_path / "clip.webm", FOUR, codec=codec)
    assert colours_of(clip_frames(made, MIDDLES, 32, ffmpeg())) == list(FOUR)


@NEEDS_FFMPEG
def test_a_frame_stays_until_the_next_however_long_that_takes(tmp_path: Path) -> None:
    """A recording of a screen: frames at 0, 0.1, 0.2 ... 0.9 s, then at 20, 20.1 ... and so on."""
    plain = video(tmp_path / "plain.mkv", FOUR)
    made = tmp_path / "gaps.mkv"
    run_ffmpeg("-i", plain, "-vf", "setpts='(T+floor(T)*19)/TB'", *H264, made)

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
    whole = video(tmp_path / "whole.mp4", FOUR * 4, "-g", "10", *NOISE, *options, size=(160, 120))
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
    made = video(tmp_path / "clip.mp4", FOUR * 2, "-g", "10", *NOISE, "-movflags", "+faststart", size=(160, 120))
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
    both = ("-map", "0", "-map", "1", "-c", "copy", "-disposition:v", "attached_pic")
    run_ffmpeg("-i", made, "-i", cover, *both, with_cover)

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
    for name in ("late.ts", "late.mkv"):
        made = tmp_path / name
        run_ffmpeg("-itsoffset", "5000", "-i", plain, "-c", "copy", "-copyts", made)
        assert colours_of(clip_frames(made, MIDDLES, 32, ffmpeg())) == list(FOUR), name
        assert clip_facts(made, ffmpeg()).duration_s == pytest.approx(4, abs=0.3), name
    cut = tmp_path / "cut.mp4"  # from 1.55 s on: what is before it has times below zero
    run_ffmpeg("-ss", "1.55", "-i", plain, "-c", "copy", cut)
    assert colours_of(clip_frames(cut, (0.2, 1.2, 2.2), 32, ffmpeg())) == list(FOUR[1:])


@NEEDS_FFMPEG
def test_the_first_frame_is_shown_while_the_sound_is_already_there(tmp_path: Path) -> None:
    plain, made = video(tmp_path / "plain.mp4", FOUR), tmp_path / "late.mp4"
    late = ("-itsoffset", "2", "-i", plain, "-map", "0", "-map", "1", "-c:v", "copy")
    run_ffmpeg("-f", "lavfi", "-i", "sine=duration=6", *late, made)

    assert clip_facts(made, ffmpeg()).duration_s == pytest.approx(6, abs=0.1)
    assert colours_of(clip_frames(made, (0.5, 1.5, 2.5, 3.5), 32, ffmpeg())) == ["red", "red", "red", "green"]
    assert colours_of(clip_frames(made, (0.0, 5.5), 32, ffmpeg())) == ["red", "yellow"]


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
