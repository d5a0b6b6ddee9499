"""Hostile files, and programs that fail, end in a sentence within the limits."""

import itertools
import os
import shutil
import sys
from pathlib import Path

import psutil
import pytest

from qwendesk.decoding import process
from qwendesk.decoding.clips import ClipError, clip_facts, clip_frames
from qwendesk.decoding.protocol import MAX_PROCESS_BYTES
from tests.decoding.made_clips import (
    NEEDS_FFMPEG,
    colours_of,
    ffmpeg,
    refused,
    video,
    wrapped,
)

FOUR = ("red", "green", "blue", "yellow")
MIDDLES = (0.5, 1.5, 2.5, 3.5)
POSIX = pytest.mark.skipif(sys.platform == "win32", reason="files, permissions and scripts of POSIX")

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
    "not utf-8 \udcff.mp4",
]  # fmt: skip


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


@POSIX
@NEEDS_FFMPEG
def test_an_ffmpeg_that_is_killed_gives_a_sentence_and_no_wrong_frames(tmp_path: Path) -> None:
    made = video(tmp_path / "clip.mp4", FOUR)
    programs = wrapped(tmp_path, ffmpeg="head -c 2304 /dev/zero; kill -9 $$")  # after the first frame
    with pytest.raises(ClipError, match=r'ffmpeg stopped while reading "clip\.mp4" \(exit status -9\)\. Try again'):
        clip_frames(made, MIDDLES, (32, 24), programs)


@POSIX
@NEEDS_FFMPEG
def test_an_ffmpeg_without_memory_or_that_cannot_start(tmp_path: Path) -> None:
    made = video(tmp_path / "clip.mp4", FOUR)
    poor = wrapped(tmp_path, ffprobe="echo Cannot allocate memory >&2; exit 1")
    with pytest.raises(ClipError, match=r"needs more than 2\.0 GB of memory\. Choose a smaller clip\."):
        clip_facts(made, poor)
    (tmp_path / "ffprobe").write_bytes(b"MZ")
    with pytest.raises(ClipError, match=r"which couldn't be started: .*\. Install it again\."):
        clip_facts(made, poor)


@POSIX
@NEEDS_FFMPEG
def test_the_limits_hold_for_ffmpeg_too(tmp_path: Path) -> None:
    made = video(tmp_path / "clip.mp4", FOUR)
    limits = tmp_path / "limits"
    clip_facts(made, wrapped(tmp_path, ffprobe=f'ulimit -v >"{limits}"; ulimit -t >>"{limits}"; exec "$REAL" "$@"'))
    memory_kib, cpu_s = limits.read_text().split()
    assert int(cpu_s) <= 2_400
    if sys.platform == "linux":
        assert int(memory_kib) * 1024 <= MAX_PROCESS_BYTES


@POSIX
@NEEDS_FFMPEG
def test_both_programs_may_open_this_file_alone_and_in_its_own_format(tmp_path: Path) -> None:
    """Options for an input stand before it."""
    made = video(tmp_path / "clip.mp4", FOUR)
    record = f'printf "%s\\n" "$@" >"{tmp_path}/$(basename "$0").txt"; exec "$REAL" "$@"'
    clip_frames(made, MIDDLES, 32, wrapped(tmp_path, ffmpeg=record, ffprobe=record))

    for name in ("ffmpeg", "ffprobe"):
        given = (tmp_path / f"{name}.txt").read_text().splitlines()
        before = given[: given.index(f"file:{made}")]
        pairs = list(itertools.pairwise(before))
        assert {("-protocol_whitelist", "file"), ("-format_whitelist", "mov"), ("-f", "mov")} <= set(pairs)


@POSIX
@NEEDS_FFMPEG
def test_a_cancelled_clip_leaves_no_process(tmp_path: Path) -> None:
    made = video(tmp_path / "clip.mp4", FOUR)
    number = tmp_path / "number"
    endless = wrapped(tmp_path, ffmpeg=f'echo $$ >"{number}.new"; mv "{number}.new" "{number}"; exec sleep 1000')
    with pytest.raises(ClipError, match="it was cancelled"):
        clip_frames(made, MIDDLES, 32, endless, number.exists)
    psutil.wait_procs([each for each in psutil.process_iter() if each.pid == int(number.read_text())], timeout=60)
    assert not psutil.pid_exists(int(number.read_text()))


@POSIX
@NEEDS_FFMPEG
def test_an_endless_clip_ends_at_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = video(tmp_path / "clip.mp4", FOUR)
    monkeypatch.setattr(process, "time_limit_s", lambda _request: 0.5)
    with pytest.raises(ClipError, match=r'Reading "clip\.mp4" took longer than 5 min 0 s\. Choose a shorter part'):
        clip_frames(made, MIDDLES, 32, wrapped(tmp_path, ffprobe="exec sleep 1000"))


@POSIX
@NEEDS_FFMPEG
def test_a_report_without_end_is_cut_off(tmp_path: Path) -> None:
    made = video(tmp_path / "clip.mp4", FOUR)
    with pytest.raises(ClipError, match="its header is too large"):
        clip_facts(made, wrapped(tmp_path, ffprobe="exec cat /dev/zero"))


@POSIX
@NEEDS_FFMPEG
def test_a_file_that_changes_while_it_is_read(tmp_path: Path) -> None:
    made = video(tmp_path / "clip.mp4", FOUR)
    programs = wrapped(tmp_path, ffprobe=f'echo more >>"{made}"; exec "$REAL" "$@"')
    with pytest.raises(ClipError, match=r'"clip\.mp4" was changed while it was read\. Attach it again\.'):
        clip_facts(made, programs)
