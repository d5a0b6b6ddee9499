"""What the banner says while the engine changes."""

import pytest

from qwendesk.chat.view.banner import BannerContent, BannerState, next_banner
from qwendesk.core.failures import EngineExit, LoadFailure, LoadFailureKind
from qwendesk.core.options import LoadOptions
from qwendesk.core.paths import demo_model
from qwendesk.engine.state import EngineState, Phase

OPTIONS = LoadOptions(model="/models/a.gguf")
OTHER = LoadOptions(model="/models/b.gguf")
CRASH = EngineExit(-9, "It was killed.", ("last words",))


def tell(*states: EngineState) -> BannerContent | None:
    banner = BannerState()
    for state in states:
        banner = next_banner(banner, state)
    return banner.content


def test_a_working_engine_needs_no_banner() -> None:
    assert (
        tell(EngineState(), EngineState(phase=Phase.LOADING, requested=OPTIONS), EngineState(phase=Phase.READY)) is None
    )


def test_a_crash_is_shown_until_the_engine_is_back() -> None:
    crashed = EngineState(phase=Phase.OFF, requested=OPTIONS, engine_exit=CRASH)
    starting = EngineState(phase=Phase.STARTING, requested=OPTIONS)
    ready = EngineState(phase=Phase.READY, requested=OPTIONS)
    first = tell(crashed)
    assert first is not None
    assert first.actions == ("restart", "engine")
    assert first.details == ("last words",)
    between = tell(crashed, starting)
    assert between is not None
    assert between.sentence == "It was killed. Restarting…"
    assert between.actions == ()
    back = tell(crashed, starting, ready)
    assert back is not None
    assert back.tone == "warn"
    assert "restarted" in back.title


def test_another_model_removes_the_banner() -> None:
    crashed = EngineState(phase=Phase.OFF, requested=OPTIONS, engine_exit=CRASH)
    assert tell(crashed, EngineState(phase=Phase.LOADING, requested=OTHER)) is None


@pytest.mark.parametrize("kind", ["unsupported_architecture", "missing_library", "illegal_instruction"])
def test_a_failure_of_the_engine_leads_to_its_page(kind: LoadFailureKind) -> None:
    failure = LoadFailure(kind, "Not with this engine", "Use another engine.")
    for requested, expected in (
        (OPTIONS, ("engine", "choose", "demo")),
        (LoadOptions(model=str(demo_model())), ("restart", "engine")),
    ):
        shown = tell(EngineState(phase=Phase.OFF, requested=requested, failure=failure))
        assert shown is not None
        assert shown.actions == expected


def test_a_load_failure_offers_actions() -> None:
    failure = LoadFailure("not_gguf", "Not a GGUF file", "Choose another.")
    mine = tell(EngineState(phase=Phase.OFF, requested=OPTIONS, failure=failure))
    assert mine is not None
    assert mine.actions == ("choose", "demo")
    demo = tell(EngineState(phase=Phase.OFF, requested=LoadOptions(model=str(demo_model())), failure=failure))
    assert demo is not None
    assert demo.actions == ("restart",)
    assert tell(EngineState(failure=LoadFailure("cancelled", "Stopped", "You stopped it."))) is None
