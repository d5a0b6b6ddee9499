"""Frames of clips show what the clip shows at that time, whatever kind of file it is."""

import shutil
import sys
from pathlib import Path

import pytest

from qwendesk.core.clip_sampling import ClipPart, plan_frames
from qwendesk.decoding.clips import ClipError, clip_facts, clip_frames, hash_clip
from tests.decoding.made_clips import NEEDS_FFMPEG, animation, colours_of, ffmpeg, picture, run_ffmpeg, video, wrapped

FOUR = ("red", "green", "blue", "yellow")
MPEG4, VP9 = ("-c:v", "mpeg4", "-q:v", "2"), ("-c:v", "libvpx-vp9", "-deadline", "realtime", "-cpu-used", "8")


@NEEDS_FFMPEG
@pytest.mark.parametrize(
    ("ending", "codec", "name"),
    [
        ("mp4", None, "MP4"),
        ("m4v", None, "MP4"),
        ("mov", None, "MOV"),
        ("mkv", None, "MKV"),
        ("webm", VP9, "WebM"),
        ("avi", MPEG4, "AVI"),
        ("ts", None, "MPEG-TS"),
        ("m2ts", None, "MPEG-TS"),
        ("mpg", ("-c:v", "mpeg2video", "-q:v", "2"), "MPEG"),
    ],
)
def test_every_kind_of_video_file_gives_its_frames_by_time(tmp_path: Path, ending: str, codec, name: str) -> None:
    rate = 25 if ending == "mpg" else 10
    made = video(tmp_path / f"clip.{ending}", FOUR, rate=rate, **({"codec": codec} if codec else {}))

    facts = clip_facts(made, ffmpeg())
    close = clip_frames(made, (0.5, 1.5, 2.5, 3.5), (32, 24), ffmpeg())
    apart = clip_frames(made, (0.2, 0.9, 3.1, 3.7), 32, ffmpeg())

    assert (facts.format, facts.width, facts.height, facts.has_sound) == (name, 64, 48, False)
    # MPEG says when some of its frames are shown, and of the last ones here nothing.
    assert facts.duration_s == pytest.approx(4, abs=0.7 if ending == "mpg" else 0.2)
    assert facts.frames_per_s == pytest.approx(rate, rel=0.02)
    assert colours_of(close) == list(FOUR)
    assert colours_of(apart) == ["red", "red", "yellow", "yellow"]
    assert {picture(png).size for png in (*close, *apart)} == {(32, 24)}


@pytest.mark.parametrize(("ending", "name"), [("gif", "GIF"), ("webp", "WEBP"), ("png", "PNG"), ("avif", "AVIF")])
def test_animated_pictures_need_no_ffmpeg(tmp_path: Path, ending: str, name: str) -> None:
    made = animation(tmp_path / f"clip.{ending}", FOUR, [1000, 500, 2000, 500])

    facts = clip_facts(made, None)
    frames = clip_frames(made, (0.5, 1.2, 1.6, 3.2, 3.9), 32, None)

    assert (facts.format, facts.width, facts.height, facts.n_frames) == (name, 64, 48, 4)
    assert facts.duration_s == pytest.approx(4.0)
    assert facts.frames_per_s == pytest.approx(1.0)
    assert colours_of(frames) == ["red", "green", "blue", "blue", "yellow"]


@NEEDS_FFMPEG
def test_a_frame_is_shown_from_its_own_time_on(tmp_path: Path) -> None:
    made = video(tmp_path / "clip.mp4", FOUR)
    assert colours_of(clip_frames(made, (0.99, 1.0, 1.99, 2.0), 32, ffmpeg())) == ["red", "green", "green", "blue"]
    assert colours_of(clip_frames(made, (0.0, 1.0, 2.0, 3.0), 32, ffmpeg())) == list(FOUR)


@NEEDS_FFMPEG
def test_a_time_after_the_end_gives_the_last_frame(tmp_path: Path) -> None:
    made = video(tmp_path / "clip.mp4", FOUR)
    assert colours_of(clip_frames(made, (2.5, 9.0, 3_000.0), 32, ffmpeg())) == ["blue", "yellow", "yellow"]
    assert colours_of(clip_frames(made, (60.0, 61.0), 32, ffmpeg())) == ["yellow", "yellow"]


def test_a_time_after_the_end_of_an_animation_gives_its_last_frame(tmp_path: Path) -> None:
    made = animation(tmp_path / "clip.gif", FOUR, 100)
    assert colours_of(clip_frames(made, (0.15, 9.0, 3_000.0), 32, None)) == ["green", "yellow", "yellow"]


@NEEDS_FFMPEG
def test_frames_that_are_far_apart_are_sought(tmp_path: Path) -> None:
    """Three hours in which a colour stays for a minute."""
    minutes = ("red", "green", "blue", "yellow", "purple", "white") * 30
    made = video(tmp_path / "film.mp4", minutes, "-g", "10", rate=1, size=(16, 16), before=("-r", "1/60"))

    facts = clip_facts(made, ffmpeg())
    times = [60 * minute + 30.0 for minute in range(0, 180, 7)]

    assert facts.duration_s == pytest.approx(3 * 3600, abs=61)
    assert colours_of(clip_frames(made, times, 16, ffmpeg())) == [minutes[minute] for minute in range(0, 180, 7)]


@pytest.mark.skipif(sys.platform == "win32", reason="a script of the shell")
@NEEDS_FFMPEG
def test_a_plan_of_close_frames_takes_one_pass(tmp_path: Path) -> None:
    """Though its times are rounded. The search for each would start ffmpeg 64 times."""
    made = video(tmp_path / "clip.mp4", FOUR * 5)
    programs = wrapped(tmp_path, ffmpeg=f'echo "$@" >>"{tmp_path}/started"; exec "$REAL" "$@"')
    times = plan_frames(ClipPart(64, 48, 0.0, 20.123, 10.0), 10_000, n_frames=64).times

    frames = clip_frames(made, times, 32, programs)

    assert len((tmp_path / "started").read_text().splitlines()) == 1
    assert colours_of(frames) == [(FOUR * 6)[min(19, int(time_s))] for time_s in times]


@NEEDS_FFMPEG
def test_sound_is_noticed_and_left_out(tmp_path: Path) -> None:
    silent = video(tmp_path / "silent.mp4", FOUR)
    made = tmp_path / "sound.mp4"
    run_ffmpeg("-i", silent, "-f", "lavfi", "-i", "sine=duration=4", "-c:v", "copy", made)

    assert clip_facts(made, ffmpeg()).has_sound
    assert colours_of(clip_frames(made, (0.5, 1.5, 2.5, 3.5), 32, ffmpeg())) == list(FOUR)


@NEEDS_FFMPEG
def test_the_bytes_say_what_a_file_is(tmp_path: Path) -> None:
    animation(tmp_path / "clip.gif", FOUR, 100)
    shutil.copy(tmp_path / "clip.gif", tmp_path / "gif.mp4")
    video(tmp_path / "clip.mp4", FOUR)
    shutil.copy(tmp_path / "clip.mp4", tmp_path / "video.gif")

    assert clip_facts(tmp_path / "gif.mp4", None).format == "GIF"
    assert clip_facts(tmp_path / "video.gif", ffmpeg()).format == "MP4"


def test_without_ffmpeg_a_video_is_refused_with_the_way_to_install_it(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "clip.mp4").write_bytes(b"\0\0\0\x20ftypisom" + bytes(64))
    monkeypatch.setattr("qwendesk.decoding.clips.install_line", lambda: "sudo apt install ffmpeg")

    with pytest.raises(
        ClipError, match=r"Install it with sudo apt install ffmpeg and attach the clip again\."
    ) as caught:
        clip_facts(tmp_path / "clip.mp4", None)

    assert caught.value.kind == "no_ffmpeg"


def test_a_clip_is_hashed_as_any_file(tmp_path: Path) -> None:
    (tmp_path / "clip.mp4").write_bytes(b"abc")
    assert hash_clip(tmp_path / "clip.mp4").startswith("ba7816bf")
    assert hash_clip(tmp_path / "clip.mp4", lambda: True) == ""
    with pytest.raises(ClipError, match="could not be found"):
        hash_clip(tmp_path / "nowhere.mp4")
