"""The engine's story as the banner tells it."""

from qwendesk.core.failures import EngineDeath, LoadFailure
from qwendesk.core.options import LoadOptions
from qwendesk.core.paths import demo_model
from qwendesk.engine.state import EngineState, Phase
from qwendesk.ui.chat.banner_content import BannerContent, EngineStory, follow

OPTIONS = LoadOptions(model="/models/a.gguf")
OTHER = LoadOptions(model="/models/b.gguf")
DEATH = EngineDeath(-9, "It was killed.", ("last words",))


def tell(*states: EngineState) -> BannerContent | None:
    story = EngineStory()
    for state in states:
        story = follow(story, state)
    return story.content


def test_a_good_engine_needs_no_banner() -> None:
    assert tell(EngineState(), EngineState(phase=Phase.LOADING, wanted=OPTIONS), EngineState(phase=Phase.READY)) is None


def test_a_death_is_told_until_the_engine_is_back() -> None:
    died = EngineState(phase=Phase.OFF, wanted=OPTIONS, death=DEATH)
    starting = EngineState(phase=Phase.STARTING, wanted=OPTIONS)
    ready = EngineState(phase=Phase.READY, wanted=OPTIONS)
    first = tell(died)
    assert first is not None
    assert first.actions == ("restart",)
    assert first.details == ("last words",)
    between = tell(died, starting)
    assert between is not None
    assert between.sentence == "It was killed. Starting it again…"
    assert between.actions == ()
    back = tell(died, starting, ready)
    assert back is not None
    assert back.tone == "warn"
    assert "started again" in back.title


def test_another_model_ends_the_story() -> None:
    died = EngineState(phase=Phase.OFF, wanted=OPTIONS, death=DEATH)
    assert tell(died, EngineState(phase=Phase.LOADING, wanted=OTHER)) is None


def test_a_load_failure_offers_what_can_be_done() -> None:
    failure = LoadFailure("not_gguf", "Not a GGUF file", "Choose another.")
    mine = tell(EngineState(phase=Phase.OFF, wanted=OPTIONS, failure=failure))
    assert mine is not None
    assert mine.actions == ("choose", "demo")
    demo = tell(EngineState(phase=Phase.OFF, wanted=LoadOptions(model=str(demo_model())), failure=failure))
    assert demo is not None
    assert demo.actions == ("restart",)
    assert tell(EngineState(failure=LoadFailure("cancelled", "Stopped", "You stopped it."))) is None
