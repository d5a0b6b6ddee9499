"""The tour without hands, on the scripted engine."""

import sys
from pathlib import Path

import pytest
from PIL import Image

from qwendesk.app.window.demo_tour import DemoTour
from qwendesk.core.failures import LoadFailure
from qwendesk.engine.protocol import RequestFailed
from tests.fakes.engine import ScriptedAnswer
from tests.window_desk import Desk


def tour_of(desk: Desk) -> tuple[DemoTour, list[str]]:
    written: list[str] = []
    return DemoTour(desk.window.chat_page, desk.parts.engine, desk.parts.chat, written.append), written


async def test_tour_prints_the_answers_to_a_question_and_a_picture(desk: Desk, tmp_path: Path) -> None:
    desk.client.answers += [
        ScriptedAnswer(reasoning="Let me think.", text="Slow memory."),
        ScriptedAnswer(text="5888"),
        ScriptedAnswer(text="A circle."),
    ]
    tour, written = tour_of(desk)
    assert await tour.run()
    text = "".join(written)
    assert text.index("> What is VRAM spill?") < text.index("Thought: Let me think.") < text.index("Slow memory.")
    assert text.index("Slow memory.") < text.index("> What is 128 * 46?") < text.index("5888")
    assert text.index("(with a picture)") < text.index("Answer: A circle.")
    path = tmp_path / "shots" / "tour.png"
    tour.save_screenshot(desk.window, path)
    with Image.open(path) as image:
        assert image.size == (1280, 800)


async def test_tour_fails_if_a_question_is_not_answered(desk: Desk) -> None:
    failed = RequestFailed(id=1, title="No", sentence="It does not work.")
    desk.client.answers += [ScriptedAnswer(text="Fine."), ScriptedAnswer(fail=failed), ScriptedAnswer(text="Fine.")]
    tour, written = tour_of(desk)
    assert not await tour.run()
    assert "It does not work." in "".join(written)


async def test_tour_fails_if_the_demo_does_not_load(desk: Desk) -> None:
    desk.client.load_result = LoadFailure("other", "It failed", "For a test.", ("the engine's line",))
    desk.parts.window.load_demo()
    tour, written = tour_of(desk)
    await desk.until(lambda: desk.parts.engine.state.failure is not None)
    assert not await tour.run()
    assert "the engine's line" in "".join(written)


async def test_tour_runs_without_standard_output(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the program without a console on Windows."""
    monkeypatch.setattr(sys, "stdout", None)
    desk.client.answers += [ScriptedAnswer(text="Fine.")] * 3
    assert await DemoTour(desk.window.chat_page, desk.parts.engine, desk.parts.chat).run()
