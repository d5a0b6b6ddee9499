"""The same clip through the engine's own video helper and through our frames: the same pixels and embeddings."""

import ctypes
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
import pytest
from llama_cpp import mtmd_cpp as M  # noqa: N812

from qwendesk.core.messages import ClipFrame, ImagePart
from qwendesk.engine.worker.loader import Session, load
from qwendesk.engine.worker.log import EngineLog
from qwendesk.engine.worker.vision import Embeddings, ImageChunk, read_picture
from tests.engine.worker.process import demo_options, draw_circle, image_part

LOG = EngineLog()
SIDE = 128
COLOURS = ("red", "blue", "green", "yellow")

needs_ffmpeg = pytest.mark.skipif(
    not (shutil.which("ffmpeg") and shutil.which("ffprobe")), reason="the engine's helper runs ffmpeg and ffprobe"
)


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    LOG.install()
    made = load(demo_options(), LOG, lambda _stage, _fraction: None, lambda: False)
    yield made
    made.close()


def drawn_frames(folder: Path) -> list[ImagePart]:
    """One frame a second."""
    frames = []
    for second, colour in enumerate(COLOURS):
        picture = image_part(draw_circle(folder / f"{second}.png", colour))
        frame = ClipFrame("circle.mkv", "circle", float(second), float(len(COLOURS)))
        frames.append(msgspec.structs.replace(picture, frame=frame))
    return frames


def lossless_clip(frames: list[ImagePart], path: Path) -> Path:
    raw = b"".join(read_picture(frame).pixels.tobytes() for frame in frames)
    made = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{SIDE}x{SIDE}", "-r", "1", "-i", "pipe:0"]
    subprocess.run(
        ["ffmpeg", "-loglevel", "error", *made, "-c:v", "ffv1", "-pix_fmt", "bgr0", path], input=raw, check=True
    )
    return path


def helper_bitmaps(handle: M.mtmd_context_p, clip: Path) -> list[int]:
    options = M.mtmd_helper_video_init_params_default()
    options.fps_target, options.timestamp_interval_ms = 1.0, 0
    video = M.mtmd_helper_video_init(handle, str(clip).encode(), options)
    assert video is not None
    found: list[int] = []
    bitmap, text = M.mtmd_bitmap_p_ctypes(), ctypes.c_char_p()
    while M.mtmd_helper_video_read_next(video, ctypes.byref(bitmap), ctypes.byref(text)) == 0:
        if bitmap.value is not None:  # and no text around the frames
            found.append(bitmap.value)
    M.mtmd_helper_video_free(video)
    return found


def helper_embeddings(session: Session, bitmaps: list[int]) -> list[Embeddings]:
    """Encode the bitmaps as the helper gave them, in one text."""
    vision = session.vision
    assert vision is not None
    chunks = M.mtmd_input_chunks_init()
    marker = M.mtmd_default_marker() * len(bitmaps)
    text = M.mtmd_input_text(marker, len(marker), False, True)
    array = (M.mtmd_bitmap_p_ctypes * len(bitmaps))(*bitmaps)
    assert M.mtmd_tokenize(vision._handle, chunks, ctypes.byref(text), array, len(bitmaps)) == 0
    found = []
    for index in range(M.mtmd_input_chunks_size(chunks)):
        chunk = M.mtmd_input_chunks_get(chunks, index)
        if M.mtmd_input_chunk_get_type(chunk) == M.MTMD_INPUT_CHUNK_TYPE_TEXT:
            continue
        assert M.mtmd_encode_chunk(vision._handle, chunk) == 0
        n_values = M.mtmd_input_chunk_get_n_tokens(chunk) * vision._width
        found.append(np.ctypeslib.as_array(M.mtmd_get_output_embd(vision._handle), (n_values,)).copy())
    M.mtmd_input_chunks_free(chunks)
    for bitmap in bitmaps:
        M.mtmd_bitmap_free(bitmap)
    return found


def own_embeddings(session: Session, parts: list[ImagePart]) -> list[Embeddings]:
    vision = session.vision
    assert vision is not None
    prepared = vision.prepare(parts, "")
    return [
        vision._encode(chunk) for part in parts for chunk in prepared[part.key].chunks if isinstance(chunk, ImageChunk)
    ]


@needs_ffmpeg
def test_pairs_are_those_of_the_engine_s_helper(session: Session, tmp_path: Path) -> None:
    frames = drawn_frames(tmp_path)
    assert session.vision is not None
    bitmaps = helper_bitmaps(session.vision._handle, lossless_clip(frames, tmp_path / "circle.mkv"))
    size = SIDE * SIDE * 3
    pixels = [ctypes.string_at(M.mtmd_bitmap_get_data(bitmap), size) for bitmap in bitmaps]
    assert pixels == [read_picture(frame).pixels.tobytes() for frame in frames]

    theirs = helper_embeddings(session, bitmaps)

    pairs = [msgspec.structs.replace(frames[at], pair=frames[at + 1]) for at in (0, 2)]
    ours = own_embeddings(session, pairs)
    assert len(theirs) == len(ours) == 2
    for mine, other in zip(ours, theirs, strict=True):
        assert np.array_equal(mine, other)


def test_a_pair_of_equal_frames_is_their_picture(session: Session, tmp_path: Path) -> None:
    frame = drawn_frames(tmp_path)[0]

    [alone, paired] = own_embeddings(session, [frame, msgspec.structs.replace(frame, pair=frame)])

    assert np.allclose(alone, paired, atol=1e-3)
