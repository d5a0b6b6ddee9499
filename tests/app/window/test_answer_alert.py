"""A long answer that ends in the background asks for attention."""

import pytest

from qwendesk.app.desktop import LONG_S, AnswerAlert
from tests.window_desk import Desk


class Clock:
    """Goes on by `step_s` each time it is read."""

    def __init__(self, step_s: float) -> None:
        self.step_s, self.now_s = step_s, 0.0

    def __call__(self) -> float:
        self.now_s += self.step_s
        return self.now_s


@pytest.mark.parametrize(
    ("step_s", "is_active", "alerts"), [(LONG_S, False, 1), (LONG_S, True, 0), (LONG_S / 2, False, 0)]
)
async def test_only_long_answers_in_the_background_alert(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, step_s: float, is_active: bool, alerts: int
) -> None:
    seen: list[object] = []
    monkeypatch.setattr(desk.window, "isActiveWindow", lambda: is_active)
    AnswerAlert(desk.parts.chat, desk.window, Clock(step_s), seen.append)
    await desk.ask("Well?")
    assert len(seen) == alerts
