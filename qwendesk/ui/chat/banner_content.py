"""What the banner says about the engine: a pure story of its states, no widgets."""

from typing import Literal

import msgspec

from qwendesk.core.failures import EngineDeath
from qwendesk.core.options import LoadOptions
from qwendesk.engine.state import EngineState, Phase
from qwendesk.ui.kit.labels import is_demo
from qwendesk.ui.kit.text import tr

BannerAction = Literal["restart", "demo", "choose"]


class BannerContent(msgspec.Struct, frozen=True):
    """One banner. `details` are the engine's own lines; `actions` are offered in this order."""

    tone: Literal["bad", "warn"]
    title: str
    sentence: str
    details: tuple[str, ...] = ()
    actions: tuple[BannerAction, ...] = ()


class EngineStory(msgspec.Struct, frozen=True):
    """What has happened so far, as far as people still need to hear of it."""

    content: BannerContent | None = None
    died: EngineDeath | None = None
    died_with: LoadOptions | None = None


def follow(story: EngineStory, state: EngineState) -> EngineStory:
    """The story after the engine came to `state`."""
    if state.failure is not None:
        return EngineStory() if state.failure.kind == "cancelled" else EngineStory(_failed(state))
    if state.death is not None and state.phase is Phase.OFF:
        content = BannerContent(
            "bad", tr("The engine stopped"), state.death.sentence, state.death.engine_lines, ("restart",)
        )
        return EngineStory(content, state.death, state.wanted)
    if story.died is None or state.wanted != story.died_with:
        return EngineStory()
    return msgspec.structs.replace(story, content=_after_death(story.died, state.phase))


def _failed(state: EngineState) -> BannerContent | None:
    failure = state.failure
    if failure is None:
        return None
    demo = state.wanted is not None and is_demo(state.wanted.model)
    actions: tuple[BannerAction, ...] = ("restart",) if demo else ("choose", "demo")
    return BannerContent("bad", failure.title, failure.sentence, failure.engine_lines, actions)


def _after_death(death: EngineDeath, phase: Phase) -> BannerContent:
    if phase in (Phase.READY, Phase.ANSWERING):
        sentence = tr("{0} The model is loaded again; ask again if an answer was cut off.", death.sentence)
        return BannerContent("warn", tr("The engine stopped and was started again"), sentence, death.engine_lines)
    if phase is Phase.OFF:
        return BannerContent("bad", tr("The engine stopped"), death.sentence, death.engine_lines, ("restart",))
    return BannerContent(
        "warn", tr("The engine stopped"), tr("{0} Starting it again…", death.sentence), death.engine_lines
    )
