"""The content of the banner, derived from the states of the engine. No widgets here."""

from typing import Literal

import msgspec

from qwendesk.core.failures import EngineExit
from qwendesk.core.options import LoadOptions
from qwendesk.core.paths import is_demo
from qwendesk.core.served_model import is_served
from qwendesk.core.translation import tr
from qwendesk.engine.state import EngineState, Phase
from qwendesk.hardware.ladder import StepDown

BannerAction = Literal["retry", "restart", "again", "demo", "choose"]


class BannerContent(msgspec.Struct, frozen=True):
    """Content of the banner. `details` are lines of engine output. banner.py decides the order of the buttons."""

    tone: Literal["bad", "warn"]
    title: str
    sentence: str
    details: tuple[str, ...] = ()
    actions: tuple[BannerAction, ...] = ()
    retry: str = ""
    """Text of the button "retry"."""


class BannerState(msgspec.Struct, frozen=True):
    content: BannerContent | None = None
    crash: EngineExit | None = None
    """How the engine exited last, as long as the user should know it."""
    crashed_with: LoadOptions | None = None
    """The load options that were requested then."""


def next_banner(banner: BannerState, state: EngineState, retry: StepDown | None = None) -> BannerState:
    """Return the banner for the engine's new `state`; `retry` is the step to offer after a failed load."""
    if state.failure is not None:
        return BannerState() if state.failure.kind == "cancelled" else BannerState(_failed(state, retry))
    if state.engine_exit is not None and state.phase is Phase.OFF:
        content = BannerContent(
            "bad", tr("The engine stopped"), state.engine_exit.sentence, state.engine_exit.engine_lines, ("restart",)
        )
        return BannerState(content, state.engine_exit, state.requested)
    if banner.crash is None or state.requested != banner.crashed_with:
        return BannerState()
    return msgspec.structs.replace(banner, content=_after_crash(banner.crash, state.phase))


def _failed(state: EngineState, retry: StepDown | None) -> BannerContent | None:
    failure = state.failure
    if failure is None:
        return None
    model = state.requested.model if state.requested is not None else ""
    actions: tuple[BannerAction, ...] = ("restart",) if is_demo(model) else ("choose", "demo")
    if state.report is not None:  # the file was refused before the loaded model was unloaded for it
        sentence = tr("{0}\nThe loaded model stays.", failure.sentence)
        return BannerContent("bad", failure.title, sentence, actions=("choose",))
    if is_served(model):
        actions = ("again", "demo")
    if retry is None:
        return BannerContent("bad", failure.title, failure.sentence, failure.engine_lines, actions)
    sentence = tr("{0}\n{1}: {2}", failure.sentence, retry.label, retry.cost)
    return BannerContent("bad", failure.title, sentence, failure.engine_lines, ("retry", *actions), retry.label)


def _after_crash(crash: EngineExit, phase: Phase) -> BannerContent:
    if phase in (Phase.READY, Phase.ANSWERING):
        sentence = tr(
            "{0} It has been restarted. The model has been reloaded. Ask again if an answer was cut off.",
            crash.sentence,
        )
        return BannerContent("warn", tr("The engine stopped and was restarted"), sentence, crash.engine_lines)
    if phase is Phase.OFF:
        return BannerContent("bad", tr("The engine stopped"), crash.sentence, crash.engine_lines, ("restart",))
    return BannerContent("warn", tr("The engine stopped"), tr("{0} Restarting…", crash.sentence), crash.engine_lines)
