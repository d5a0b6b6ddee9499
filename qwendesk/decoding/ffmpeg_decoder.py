"""Reads a video file with the ffmpeg and ffprobe of the system. Runs in the decoding process only.

Both are processes of their own that inherit this one's limit of memory. They get one demuxer, chosen by the file's
first bytes, and only the protocol "file", so that a file can't make them open another one or an address. Frames come
through a pipe.
"""

import math
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import IO

import msgspec
from PIL import Image

from qwendesk.core.json_decoding import decode_json
from qwendesk.decoding.protocol import (
    MAX_CLIP_PIXELS,
    ClipFacts,
    ClipSource,
    DecodeRefusal,
    DecodeRefused,
    check_clip_size,
)

# The decoders that may read a file: those of common formats, which are tested most. Names of `ffmpeg -decoders`.
_DECODERS = (
    "h264", "hevc", "vp8", "vp9", "libvpx", "libvpx-vp9", "av1", "libdav1d", "libaom-av1", "vvc", "mpeg4", "mpeg1video",
    "mpeg2video", "h263", "msmpeg4", "msmpeg4v2", "mjpeg", "png", "prores", "dnxhd", "ffv1", "huffyuv", "ffvhuff",
    "utvideo", "qtrle", "rawvideo", "theora", "dvvideo", "cinepak", "wmv1", "wmv2", "wmv3", "vc1",
)  # fmt: skip
_CODECS = {name for name in _DECODERS if not name.startswith("lib")}
# More threads need more memory: eight read 8K with 10 bits in less than 2 GiB.
MOST_THREADS = 8
# Times further apart than this are sought one by one. Up to there it is faster to decode what is between them: starting
# ffmpeg takes as long as 1 or 2 s of a clip, and keyframes are 2 to 10 s apart.
_LONGEST_STEP_S = 4.0
# A frame's time is rounded by its file, at worst to 1 ms.
_ROUNDING_S = 0.001
# These demuxers seek to any packet, and decoding begins at the next keyframe: ffmpeg's own GOP is at most 250 frames.
_SEEK_MARGIN_S = {"mpegts": 10.0, "mpeg": 10.0}
# Below this, a duration is taken for wrong, and looked up in the packets.
_LEAST_BYTES_PER_S = 128
_MAX_REPORT_BYTES = 4 << 20
_KEPT_ERROR_BYTES = 4096
_LONGEST_DETAIL = 200
# What ffmpeg says of the decoder of a clip's sound, which isn't used.
_OTHER_CODEC = "not on whitelist"
_NO_MEMORY = "Cannot allocate memory"
# Exit codes of Windows for a crash begin so; ffmpeg's own are small negative numbers.
_NTSTATUS_ERROR = 0xC000_0000
# Pixels that are further from a square than this, or 1 through it, are taken for a mistake.
_LEAST_ASPECT = Fraction(1, 8)
_IS_BUNDLE = bool(getattr(sys, "frozen", False))


class _SideData(msgspec.Struct, frozen=True):
    rotation: float = 0.0


class _Stream(msgspec.Struct, frozen=True):
    """A stream as ffprobe reports it. Fields that it doesn't know are missing."""

    codec_type: str = ""
    codec_name: str = ""
    width: int = 0
    height: int = 0
    sample_aspect_ratio: str = ""
    field_order: str = ""
    avg_frame_rate: str = ""
    r_frame_rate: str = ""
    start_time: str = ""
    duration: str = ""
    nb_frames: str = ""
    disposition: dict[str, int] = {}
    side_data_list: tuple[_SideData, ...] = ()


class _Container(msgspec.Struct, frozen=True):
    start_time: str = ""
    duration: str = ""


class _ProbeReport(msgspec.Struct, frozen=True):
    streams: tuple[_Stream, ...] = ()
    container: _Container = msgspec.field(default=_Container(), name="format")


class Video:
    """A video file. Raises DecodeRefused."""

    def __init__(self, source: ClipSource, demuxer: str, format_name: str) -> None:
        if not source.ffmpeg or not source.ffprobe:
            raise DecodeRefused(DecodeRefusal(reason="no_ffmpeg"))
        self._source, self._demuxer, self._format_name = source, demuxer, format_name
        self._n_threads = min(MOST_THREADS, os.cpu_count() or 1)
        self._said = ""
        self._report = self._probed()
        pictures = [
            stream
            for stream in self._report.streams
            if stream.codec_type == "video" and not stream.disposition.get("attached_pic")
        ]
        if not pictures:
            raise DecodeRefused(DecodeRefusal(reason="no_video"))
        self._stream = pictures[0]
        check_clip_size(self._stream.width, self._stream.height)
        if self._stream.codec_name not in _CODECS:
            raise DecodeRefused(DecodeRefusal(reason="unknown_codec", detail=self._stream.codec_name or "unknown"))
        if not self._stream.width * self._stream.height:
            raise _damaged("the size of its frames is unknown")
        self.size = _upright_size(self._stream)

    def facts(self) -> ClipFacts:
        """Return the facts. Reads the whole file if its header has no duration, or one that can't be right."""
        stream = self._stream
        duration_s = self._duration_in_header()
        size_bytes = Path(os.fsdecode(self._source.path)).stat().st_size
        if not duration_s or size_bytes < duration_s * _LEAST_BYTES_PER_S:
            duration_s = self._duration_in_packets()
        rate = float(_ratio(stream.avg_frame_rate) or _ratio(stream.r_frame_rate) or 0)
        n_frames = int(_number(stream.nb_frames))
        has_sound = any(each.codec_type == "audio" for each in self._report.streams)
        return ClipFacts(self._format_name, duration_s, *self.size, rate, n_frames, has_sound)

    def frames(self, times: Sequence[float], size: tuple[int, int]) -> Iterator[Image.Image]:
        """Yield the frame that is shown at each of `times` in this size; after the end, the last one."""
        n_done, good_s = 0, 0.0
        for run in _runs(times):
            for frame in self._run(run, size):
                yield frame
                good_s = times[n_done]
                n_done += 1
            if n_done < len(times) and times[n_done] in run:
                last = self._last_frame((times[n_done], good_s, 0.0), size)
                yield from (last for _ in times[n_done:])
                return

    def _run(self, times: Sequence[float], size: tuple[int, int]) -> Iterator[Image.Image]:
        """Yield the frames at `times`, which are evenly spaced, as far as the clip has them."""
        steps = max(1, len(times) - 1)
        step = Fraction((times[-1] - times[0]) / steps).limit_denominator(10_000) or Fraction(1)
        start_s = times[0] + _ROUNDING_S
        margin_s = min(_SEEK_MARGIN_S.get(self._demuxer, 0.0), start_s)
        # Of each time, the last frame before it: with "up", a frame counts from the next wanted time on. What a clip
        # lacks at its beginning, ffmpeg fills. (Not by the filter's `start_time`: ffmpeg makes new filters where the
        # size of the frames changes, and they would begin there again.)
        filters = [f"setpts=PTS-{margin_s:.6f}/TB", f"fps=fps={1 / step}:round=up", "trim=start=0"]
        if self._stream.field_order in ("tt", "bb", "tb", "bt") and min(self._stream.width, self._stream.height) >= 16:
            filters.insert(0, "yadif=deint=interlaced")
        yield from self._decoded(start_s - margin_s, filters, ("-frames:v", str(len(times))), size)

    def _last_frame(self, starts: Sequence[float], size: tuple[int, int]) -> Image.Image:
        """Return the last frame of the clip, found by decoding from one of `starts`, in seconds, on."""
        for start_s in dict.fromkeys(starts):
            last = None
            # Even times of its own for each frame, or else ffmpeg repeats frames to fill gaps.
            for frame in self._decoded(start_s, ("settb=1/25", "setpts=N"), ("-r", "25"), size):
                last = frame
            if last is not None:
                return last
        raise _damaged(self._said or "it has no frames")

    def _decoded(
        self, start_s: float, filters: Sequence[str], output: Sequence[str], size: tuple[int, int]
    ) -> Iterator[Image.Image]:
        """Yield the frames that ffmpeg makes. Times in the filters are from `start_s` on, and negative before it."""
        width, height = size
        seek = ("-ss", f"{start_s:.6f}") if start_s > _ROUNDING_S else ()
        chain = ",".join((*filters, f"scale={width}:{height}"))
        command = (
            *(os.fsdecode(self._source.ffmpeg), "-nostdin", "-filter_threads", "2", *self._input_options()),
            # Not for ffprobe, which would refuse a clip for its sound.
            *("-codec_whitelist", ",".join(_DECODERS)),
            *(*seek, "-noaccurate_seek", "-i", self._input, "-map", "0:V:0", "-an", "-sn", "-dn", "-vf", chain),
            *(*output, "-pix_fmt", "rgb24", "-f", "rawvideo", "pipe:1"),
        )
        frame_bytes, n_frames = width * height * 3, 0
        with _program(command) as program:
            while len(pixels := program.read(frame_bytes)) == frame_bytes:
                n_frames += 1
                yield Image.frombytes("RGB", size, pixels)
            _, self._said = program.ended()
        if not n_frames and _NO_MEMORY in self._said:
            raise DecodeRefused(DecodeRefusal(reason="out_of_memory"))

    @property
    def _input(self) -> str:
        return f"file:{Path(os.fsdecode(self._source.path)).absolute()}"

    def _input_options(self) -> tuple[str, ...]:
        """Return the options of both programs that limit what they open and decode."""
        return (
            *("-v", "error", "-hide_banner", "-protocol_whitelist", "file"),
            *("-format_whitelist", self._demuxer, "-f", self._demuxer),
            *("-max_pixels", str(MAX_CLIP_PIXELS), "-threads", str(self._n_threads)),
        )

    def _probed(self) -> _ProbeReport:
        options = ("-show_format", "-show_streams", "-of", "json", self._input)
        with _program((os.fsdecode(self._source.ffprobe), *self._input_options(), *options)) as program:
            text = program.read(_MAX_REPORT_BYTES)
            if len(text) == _MAX_REPORT_BYTES:
                raise _damaged("its header is too large")
            succeeded, said = program.ended()
        if not succeeded:
            raise _damaged(said)
        try:
            return decode_json(text, _ProbeReport, strict=False)
        except msgspec.DecodeError as error:
            raise _damaged("its header can't be read") from error

    def _duration_in_header(self) -> float:
        container, stream = self._report.container, self._stream
        offset_s = max(0.0, _number(stream.start_time) - _number(container.start_time))
        ends = (_number(container.duration), _number(stream.duration) and offset_s + _number(stream.duration))
        return min(filter(None, ends), default=0.0)

    def _duration_in_packets(self) -> float:
        """Return where the last packet ends, without decoding any."""
        command = (
            *(os.fsdecode(self._source.ffmpeg), "-nostdin", *self._input_options(), "-i", self._input),
            *("-map", "0:V:0", "-c", "copy", "-f", "null", "-progress", "pipe:1", "-"),
        )
        with _program(command) as program:
            lines = program.read(_MAX_REPORT_BYTES).decode("utf-8", "replace").splitlines()
        found = [_number(line.partition("=")[2]) for line in lines if line.startswith("out_time_us=")]
        return max(found, default=0.0) / 1_000_000


class _Program:
    """A running ffmpeg or ffprobe: its output, and what it says of errors."""

    def __init__(self, process: "subprocess.Popen[bytes]", output: IO[bytes], errors: IO[bytes]) -> None:
        self._process, self._output, self._errors, self._said = process, output, errors, b""
        self._reader = threading.Thread(target=self._read_errors)
        self._reader.start()

    def read(self, n_bytes: int) -> bytes:
        """Return this many bytes of the output, or fewer at its end."""
        return self._output.read(n_bytes)

    def stop(self) -> None:
        """Kill the program if it still runs."""
        self._process.kill()
        self._reader.join()

    def ended(self) -> tuple[bool, str]:
        """Wait for the end, and return whether the program succeeded, and its first error message.

        Raise DecodeRefused if it crashed, was killed, or failed for lack of memory.
        """
        status = self._process.wait()
        self._reader.join()
        said = self._said.decode("utf-8", "replace")
        if status and _NO_MEMORY in said:
            raise DecodeRefused(DecodeRefusal(reason="out_of_memory"))
        if status < 0 or status & 0xF000_0000 == _NTSTATUS_ERROR:
            raise DecodeRefused(DecodeRefusal(reason="crashed", detail=f"exit status {status}"))
        return status == 0, said

    def _read_errors(self) -> None:
        while piece := os.read(self._errors.fileno(), _KEPT_ERROR_BYTES):
            self._said = (self._said + piece)[:_KEPT_ERROR_BYTES]


@contextmanager
def _program(command: Sequence[str]) -> Iterator[_Program]:
    """Run a program, and kill it at the end of the block if it still runs."""
    try:
        started = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=_environment(),
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )  # fmt: skip
    except OSError as error:
        detail = error.strerror or str(error)
        raise DecodeRefused(DecodeRefusal(reason="ffmpeg_failed", detail=detail)) from error
    with started as process:
        assert process.stdout is not None
        assert process.stderr is not None
        program = _Program(process, process.stdout, process.stderr)
        try:
            yield program
        finally:
            program.stop()


def _environment() -> dict[str, str]:
    """Return the environment of both programs.

    Not with FFREPORT, which makes them write a file with the clip's name, nor with the libraries of our bundle. Fewer
    arenas of glibc keep many threads within the limit of memory.
    """
    kept = {name: value for name, value in os.environ.items() if name not in ("FFREPORT", "LD_LIBRARY_PATH")}
    libraries = os.environ.get("LD_LIBRARY_PATH_ORIG", "" if _IS_BUNDLE else os.environ.get("LD_LIBRARY_PATH", ""))
    return {**kept, "MALLOC_ARENA_MAX": "2", **({"LD_LIBRARY_PATH": libraries} if libraries else {})}


def _runs(times: Sequence[float]) -> Iterator[Sequence[float]]:
    """Yield the times in pieces: all those that one pass can take, because they are close and evenly spaced, or one."""
    start = 0
    while start < len(times):
        ends = (len(times), start + 2)
        end = next((end for end in ends if _is_even(times[start:end])), start + 1)
        yield times[start:end]
        start = end


def _is_even(times: Sequence[float]) -> bool:
    """Return whether the times are close and evenly spaced, but for rounding."""
    if len(times) < 2:
        return False
    step = (times[-1] - times[0]) / (len(times) - 1)
    is_close = 0 < step <= _LONGEST_STEP_S
    return is_close and all(abs(time_s - times[0] - i * step) <= 2 * _ROUNDING_S for i, time_s in enumerate(times))


def _upright_size(stream: _Stream) -> tuple[int, int]:
    """Return the size of a frame with square pixels, as it is shown."""
    width, height = stream.width, stream.height
    aspect = _ratio(stream.sample_aspect_ratio.replace(":", "/"))
    if aspect and _LEAST_ASPECT <= aspect <= 1 / _LEAST_ASPECT:
        width = max(1, round(width * aspect))
    rotation = next((each.rotation for each in stream.side_data_list if each.rotation), 0.0)
    return (height, width) if round(rotation / 90) % 2 else (width, height)


def _ratio(text: str) -> Fraction | None:
    """Return the value of "30000/1001"; None if it is 0 or unknown."""
    numerator, _, denominator = text.partition("/")
    try:
        return Fraction(int(numerator), int(denominator)) or None
    except (ValueError, ZeroDivisionError):
        return None


def _number(text: str) -> float:
    """Return a number of ffmpeg's reports; 0 if it is unknown."""
    try:
        value = float(text)
    except ValueError:
        return 0.0
    return value if math.isfinite(value) else 0.0


def _damaged(said: str) -> DecodeRefused:
    """Return the refusal of a file of which ffmpeg says this: "[mov,mp4 @ 0x55d0] moov atom not found"."""
    first = next((line for line in said.splitlines() if line and _OTHER_CODEC not in line), "")
    if first.startswith("["):
        first = first.partition("] ")[2]
    words = "".join(letter if letter.isprintable() else " " for letter in first).strip()
    return DecodeRefused(DecodeRefusal(reason="damaged", detail=words[:_LONGEST_DETAIL] or "ffmpeg can't read it"))
