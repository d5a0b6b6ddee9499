"""What the banner says about the engine: a pure story of its states, no widgets."""

from typing import Literal

import msgspec

from qwendesk.core.failures import EngineDeath
from qwendesk.core.options import LoadOptions
from qwendesk.core.paths import is_demo
from qwendesk.engine.state import EngineState, Phase
from qwendesk.services.engine.safer import Safer
from qwendesk.ui.kit.text import tr, tr_n

BannerAction = Literal["safer", "restart", "demo", "choose"]


class BannerContent(msgspec.Struct, frozen=True):
    """One banner. `details` are the engine's own lines; `actions` are offered in this order."""

    tone: Literal["bad", "warn"]
    title: str
    sentence: str
    details: tuple[str, ...] = ()
    actions: tuple[BannerAction, ...] = ()
    safer: str = ""
    """Words of the button "safer"."""


class EngineStory(msgspec.Struct, frozen=True):
    """What has happened so far, as far as people still need to hear of it."""

    content: BannerContent | None = None
    died: EngineDeath | None = None
    died_with: LoadOptions | None = None


def follow(story: EngineStory, state: EngineState, safer: Safer | None = None) -> EngineStory:
    """The story after the engine came to `state`; `safer` is what could be tried after a failed load."""
    if state.failure is not None:
        return EngineStory() if state.failure.kind == "cancelled" else EngineStory(_failed(state, safer))
    if state.death is not None and state.phase is Phase.OFF:
        content = BannerContent(
            "bad", tr("The engine stopped"), state.death.sentence, state.death.engine_lines, ("restart",)
        )
        return EngineStory(content, state.death, state.wanted)
    if story.died is None or state.wanted != story.died_with:
        return EngineStory()
    return msgspec.structs.replace(story, content=_after_death(story.died, state.phase))


def _failed(state: EngineState, safer: Safer | None) -> BannerContent | None:
    failure = state.failure
    if failure is None:
        return None
    demo = state.wanted is not None and is_demo(state.wanted.model)
    actions: tuple[BannerAction, ...] = ("restart",) if demo else ("choose", "demo")
    if safer is None:
        return BannerContent("bad", failure.title, failure.sentence, failure.engine_lines, actions)
    button, cost = safer_words(safer)
    sentence = tr("{0}\n{1}: {2}", failure.sentence, button, cost)
    return BannerContent("bad", failure.title, sentence, failure.engine_lines, ("safer", *actions), button)


def safer_words(step: Safer) -> tuple[str, str]:
    """The button of a safer configuration, and what it costs in a sentence."""
    match step.kind:
        case "pictures_on_cpu":
            return tr("Pictures on the CPU"), tr("a picture takes seconds to read; answers are as fast as before.")
        case "experts_on_cpu":
            layers = tr_n("{0} expert layer on the CPU", "{0} expert layers on the CPU", step.amount)
            return layers, tr("answers come slower, the context stays whole.")
        case "fewer_layers":
            layers = tr_n("{0} layer on the GPU", "{0} layers on the GPU", step.amount)
            return layers, tr("answers come slower, the context stays whole.")
        case "shorter_context":
            return tr("Context of {0} tokens", f"{step.amount:,}"), tr("long chats are full sooner; the speed stays.")
        case "cpu_only":
            return tr("Load on the CPU alone"), tr("many times slower, but without the graphics driver.")


def _after_death(death: EngineDeath, phase: Phase) -> BannerContent:
    if phase in (Phase.READY, Phase.ANSWERING):
        sentence = tr("{0} The model is loaded again; ask again if an answer was cut off.", death.sentence)
        return BannerContent("warn", tr("The engine stopped and was started again"), sentence, death.engine_lines)
    if phase is Phase.OFF:
        return BannerContent("bad", tr("The engine stopped"), death.sentence, death.engine_lines, ("restart",))
    return BannerContent(
        "warn", tr("The engine stopped"), tr("{0} Starting it again…", death.sentence), death.engine_lines
    )
