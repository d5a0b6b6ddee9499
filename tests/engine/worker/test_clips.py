"""Frames of clips: their times in the prompt, two as one picture, and answers as with pictures that stay in memory."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from qwendesk.core import paths
from qwendesk.core.messages import ClipFrame, ImagePart, Message, Part, TextPart
from qwendesk.engine import protocol as p
from tests.engine.worker.process import WorkerProcess, demo_options, draw_circle, greedy, image_part, worker_process

IMAGES = "part.type in ('image', 'image_url')"
VIDEO = "part.type == 'video' -%}{{- '<|vision_start|><|video_pad|><|vision_end|>' -}}{%- elif " + IMAGES


@pytest.fixture
def options(tmp_path: Path) -> Iterator[dict[str, str]]:
    source = Path(paths.__file__).parents[2] / "tools" / "demo_model" / "chat_template.jinja"
    text = source.read_text(encoding="utf-8")
    assert text.count(IMAGES) == 1
    template = tmp_path / "video.jinja"
    template.write_text(text.replace(IMAGES, VIDEO), encoding="utf-8")
    return {"chat_template_file": str(template)}


@pytest.fixture
def worker(options: dict[str, str]) -> Iterator[WorkerProcess]:
    """The demo model with a template for video: its encoder is Qwen3.5's, which takes pairs."""
    with worker_process() as process:
        assert process.load(demo_options(**options)).pairs_frames
        yield process


def drawn_clip(folder: Path, *colours: str) -> tuple[ImagePart, ...]:
    """One frame a second of a circle in these colours."""
    pictures = [image_part(draw_circle(folder / f"{number}.png", colour)) for number, colour in enumerate(colours)]
    return tuple(
        msgspec.structs.replace(picture, frame=ClipFrame("circle.mp4", "circle", float(second), float(len(colours))))
        for second, picture in enumerate(pictures)
    )


def question(*parts: Part, text: str = "What is in this picture?") -> Message:
    return Message("user", (*parts, TextPart(text)))


def measured(worker: WorkerProcess, message: Message) -> p.Measured:
    worker.send(p.Measure, messages=(message,))
    return worker.expect(p.Measured)


def test_without_a_place_in_the_template_there_are_no_pairs() -> None:
    with worker_process() as process:
        assert not process.load(demo_options()).pairs_frames


def test_a_pair_costs_as_much_as_one_picture_and_its_time(worker: WorkerProcess, tmp_path: Path) -> None:
    clip = drawn_clip(tmp_path, "red", "blue")
    picture = msgspec.structs.replace(clip[0], frame=None)

    of_clip, of_picture = measured(worker, question(*clip)), measured(worker, question(picture))

    first, second, _ = of_clip.messages[0].parts
    assert second == 0
    assert 0 < first - of_picture.messages[0].parts[0] < 12, "the tokens of the time"
    assert worker.ask([question(*clip)]).stats.prompt_tokens == of_clip.prompt_tokens


def test_two_equal_frames_are_seen_as_their_picture(worker: WorkerProcess, tmp_path: Path) -> None:
    for colour in ("red", "green", "purple"):
        answer = worker.ask([question(*drawn_clip(tmp_path, colour, colour))], greedy(enable_thinking=False))

        assert colour in answer.text


def test_frames_are_told_by_the_part_of_the_clip_that_is_sent(worker: WorkerProcess, tmp_path: Path) -> None:
    clip = drawn_clip(tmp_path, "red", "red", "blue", "blue", "yellow", "yellow")

    named = [worker.ask([question(*clip[at : at + 2])], greedy(enable_thinking=False)).text for at in (0, 2, 4)]

    assert [colour in text for colour, text in zip(("red", "blue", "yellow"), named, strict=True)] == [True] * 3


def test_pairs_are_not_encoded_again_for_the_next_question(worker: WorkerProcess, tmp_path: Path) -> None:
    clip = drawn_clip(tmp_path, "red", "red", "blue", "blue")
    first = worker.ask([question(*clip)])

    second = worker.ask([question(*clip), first.message, question(text="And its background?")])

    assert second.stats.reused_tokens >= first.stats.prompt_tokens - 8
    assert not any(isinstance(event, p.PromptProgress) and event.encodes_image for event in second.events)
