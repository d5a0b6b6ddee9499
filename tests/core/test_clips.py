"""Frames of clips: their times as a model reads them, and which pictures are one clip."""

from collections.abc import Sequence

from qwendesk.core.clips import parse_time, parts_with_times, pictures_and_clips, show_time
from qwendesk.core.messages import ClipFrame, ImagePart, Part, TextPart


def frame(name: str, time_s: float, clip: str = "one") -> ImagePart:
    return ImagePart(name, name, frame=ClipFrame(f"{clip}.mp4", clip, time_s, 10.0))


def written(parts: Sequence[Part], *, in_pairs: bool) -> list[str]:
    return [
        part.text if isinstance(part, TextPart) else part.key
        for each in parts_with_times(parts, in_pairs=in_pairs)
        for part in each
        if isinstance(part, TextPart | ImagePart)
    ]


def test_pairs_have_the_mean_of_their_times() -> None:
    clip = [frame("a", 0.0), frame("b", 1.0), frame("c", 2.0), frame("d", 3.5)]

    assert written([*clip, TextPart("What?")], in_pairs=True) == [
        "<0.5 seconds>",
        "a+b",
        "<2.8 seconds>",
        "c+d",
        "What?",
    ]


def test_a_frame_without_another_of_its_clip_stays_alone() -> None:
    other = [frame("x", 5.0, "two"), frame("y", 6.0, "two")]

    assert written([frame("a", 1.0), *other], in_pairs=True) == ["<1.0 seconds>", "a", "<5.5 seconds>", "x+y"]
    assert written([ImagePart("p", "p"), frame("a", 0.0)], in_pairs=True) == ["p", "<0.0 seconds>", "a"]


def test_a_clip_that_is_attached_twice_begins_again() -> None:
    assert written([frame("a", 0.0), frame("a", 0.0)], in_pairs=True) == ["<0.0 seconds>", "a", "<0.0 seconds>", "a"]


def test_a_model_without_video_gets_pictures_with_their_times() -> None:
    assert written([frame("a", 3.9), frame("b", 65.0)], in_pairs=False) == ["0:03 ", "a", "1:05 ", "b"]


def test_each_part_of_a_message_has_its_own_place() -> None:
    clip = [TextPart("Look:"), frame("a", 0.0), frame("b", 1.0), frame("c", 2.0)]

    assert [len(parts) for parts in parts_with_times(clip, in_pairs=True)] == [1, 2, 0, 2]


def test_pictures_stay_alone_and_frames_of_a_clip_are_together() -> None:
    picture, first, second = ImagePart("p", "p"), frame("a", 0.0), frame("b", 1.0)
    other, again = frame("x", 5.0, "two"), frame("a", 0.0)

    found = pictures_and_clips([picture, first, second, other, again, second, picture])

    assert found == [(picture,), (first, second), (other,), (again, second), (picture,)]


def test_times_have_hours_only_if_the_clip_is_that_long() -> None:
    assert [show_time(seconds) for seconds in (0, 3.9, 65, 3599, 3600, 7325)] == [
        "0:00", "0:03", "1:05", "59:59", "1:00:00", "2:02:05",
    ]  # fmt: skip


def test_times_are_read_as_people_write_them() -> None:
    texts = ("0:03", "1:05", "1:02:05", "90", "12.5", "12,5", " 0:07 ", "", "1:", "x", "-3", "1:2:3:4")
    assert [parse_time(text) for text in texts] == [3, 65, 3725, 90, 12.5, 12.5, 7, None, None, None, None, None]
