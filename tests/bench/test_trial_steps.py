"""The steps of a trial: their limits, and that the whole ends after ten minutes."""

import asyncio

import pytest

from qwendesk.bench.model_trial import StepFailed, TrialSteps


class Clock:
    """Says the time that the test sets."""

    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


async def done() -> str:
    return "done"


async def forever() -> None:
    await asyncio.Event().wait()


async def test_a_step_is_said_and_returns_its_result():
    lines: list[str] = []
    clock = Clock()
    steps = TrialSteps(lines.append, 600, clock)
    clock.now_s = 75

    assert await steps.run("load", 30, done, pytest.fail) == "done"

    assert lines == ["1:15  load (at most 30 s)"]


async def test_failure_is_a_sentence():
    problems: list[str] = []

    async def fail() -> None:
        raise StepFailed("Not enough memory.")

    assert await TrialSteps(lambda _line: None).run("load", 30, fail, problems.append) is None

    assert problems == ["load: Not enough memory."]


async def test_a_step_that_hangs_ends_at_its_limit():
    problems: list[str] = []

    assert await TrialSteps(lambda _line: None).run("load", 0.001, forever, problems.append) is None

    assert problems == ["load: not finished after 0 s."]


async def test_after_ten_minutes_nothing_more_is_started():
    problems: list[str] = []
    clock = Clock()
    steps = TrialSteps(lambda _line: None, 600, clock)
    clock.now_s = 600

    assert await steps.run("load", 30, done, problems.append) is None

    assert problems == ["load: left out, because the time for the whole trial is over."]
