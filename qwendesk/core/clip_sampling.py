"""Which frames of a clip a model gets, and in which size: as many as wanted, as large as a budget of tokens allows.

Qwen3-VL's processor in Hugging Face's transformers takes 2 frames a second, 4 to 768 of them. That is for datacentres:
half of it costs half the tokens, and 64 frames are what a PC reads in a reasonable time.
"""

import math

import msgspec

# Frames of all clips together take at most this share of the free context, unless the user wants more of them.
CONTEXT_SHARE = 0.25
DEFAULT_FRAMES_PER_S = 1.0
MOST_FRAMES = 64
# Pixels along a side for each token: 16 for a patch, twice that because Qwen's projector merges 2x2 of them.
QWEN_TOKEN_SIDE = 32
# Tokens of a frame or pair. The least are 128x128 pixels, `min_pixels` of that processor, and more than the 8 to which
# llama.cpp (tools/mtmd/clip.cpp) enlarges smaller ones. The most are those of qwen-vl-utils (VIDEO_MAX_TOKEN_NUM).
_LEAST_TOKENS, _MOST_TOKENS = 16, 768
# Around a frame or pair: "<12.5 seconds>" and the markers of the picture's beginning and end.
_TOKENS_AROUND = 10


class FramePlan(msgspec.Struct, frozen=True):
    """The frames to take from a clip."""

    times: tuple[float, ...]
    """In seconds from the clip's beginning, ascending."""
    width: int
    """Of each frame in pixels; so is the next."""
    height: int
    tokens: int
    """Of all frames together, with their times; at most some tokens off."""


class ClipPart(msgspec.Struct, frozen=True):
    """The part of a clip that is sampled. Made by ClipFacts (decoding/protocol.py)."""

    width: int
    height: int
    start_s: float
    end_s: float
    frames_per_s: float = 0.0
    """0 if unknown."""

    @property
    def duration_s(self) -> float:
        return max(0.0, self.end_s - self.start_s)


def plan_frames(
    part: ClipPart,
    budget_tokens: int,
    *,
    n_frames: int = 0,
    frames_per_s: float = DEFAULT_FRAMES_PER_S,
    in_pairs: bool = True,
    token_side: int = QWEN_TOKEN_SIDE,
) -> FramePlan:
    """Return the frames to take: `n_frames`, or if that is 0, so many a second.

    `in_pairs` says that the model merges each two frames, which then cost as one. Frames become smaller before they
    become fewer. Only if two of the smallest don't fit `budget_tokens`, the plan has more tokens than that.
    """
    wanted = n_frames or round(min(part.duration_s * frames_per_s, MOST_FRAMES))
    count = even_count(part, wanted)
    per_picture = 2 if in_pairs else 1
    least = tokens_of(fitted_size(part.width, part.height, _LEAST_TOKENS, token_side), token_side) + _TOKENS_AROUND
    fitting = budget_tokens // least * per_picture
    if count > 2 and fitting < count:
        count = max(2, fitting // 2 * 2)
    n_pictures = math.ceil(count / per_picture)
    size = fitted_size(part.width, part.height, budget_tokens // n_pictures - _TOKENS_AROUND, token_side)
    times = tuple(round(part.start_s + part.duration_s * (number + 0.5) / count, 3) for number in range(count))
    return FramePlan(times, *size, n_pictures * (tokens_of(size, token_side) + _TOKENS_AROUND))


def even_count(part: ClipPart, wanted: int) -> int:
    """Return the even number of frames next to `wanted`, at least 2 and at most 64, or fewer if the part has fewer.

    One if it has only one.
    """
    available = round(part.duration_s * part.frames_per_s) if part.frames_per_s else MOST_FRAMES
    if part.duration_s == 0 or available <= 1:
        return 1
    return max(2, min(MOST_FRAMES, (wanted + 1) // 2 * 2, available // 2 * 2))


def tokens_of(size: tuple[int, int], token_side: int = QWEN_TOKEN_SIDE) -> int:
    """Return the tokens of a frame, or of two that are merged, whose sides are multiples of `token_side`."""
    return (size[0] // token_side) * (size[1] // token_side)


def fitted_size(width: int, height: int, most_tokens: int, token_side: int = QWEN_TOKEN_SIDE) -> tuple[int, int]:
    """Return a frame's size for the model: its own or less, in multiples of `token_side`.

    Rounded as llama.cpp does (calc_size_preserved_ratio in tools/mtmd/mtmd-image.cpp), so that it changes nothing: to
    the nearest multiples, or down to fit at most `most_tokens`, or up to at least 128x128 pixels of area.
    """
    most = min(max(most_tokens, _LEAST_TOKENS), _MOST_TOKENS)
    columns, rows = (max(1, round(side / token_side)) for side in (width, height))
    if columns * rows > most:
        scale = math.sqrt(width * height / most)
        columns, rows = (max(1, int(side / scale)) for side in (width, height))
    elif columns * rows < _LEAST_TOKENS:
        scale = math.sqrt(width * height / _LEAST_TOKENS)
        columns, rows = (math.ceil(side / scale) for side in (width, height))
    # For a frame so long that its short side had to be rounded up to one token, and for a tiny one.
    if columns > rows:
        columns = min(columns, most // rows)
    else:
        rows = min(rows, most // columns)
    return columns * token_side, rows * token_side
