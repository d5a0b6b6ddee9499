"""Make it faster, as a user sees it: empty, running, stopped, failed, and with something found."""

import pytest
from PySide6.QtWidgets import QAbstractButton, QLabel, QWidget

from qwendesk.bench.view.tune_section import TuneSection
from qwendesk.core.benchmarks import SpeedTest
from qwendesk.core.options import LoadOptions
from qwendesk.core.paths import demo_model
from qwendesk.engine.protocol import RequestFailed
from qwendesk.settings.profiles import profiles_file
from tests.bench.view.conftest import BenchDesk


@pytest.fixture(autouse=True)
def no_profiles() -> None:
    """The profiles of earlier tests would be the user's own settings."""
    profiles_file().unlink(missing_ok=True)


def by_threads(options: LoadOptions, _test: SpeedTest) -> float:
    """Two threads are faster than the one with which the demo model is planned."""
    return {1: 1000.0, 2: 1500.0}.get(options.n_threads, 900.0)


def faster_answers_only(options: LoadOptions, test: SpeedTest) -> float:
    """With two threads answers are faster and prompts slower, so that a typical turn takes longer."""
    if options.n_threads == 2:
        return 500.0 if test.n_prompt else 1500.0
    return 1000.0 if options.n_threads == 1 else 400.0


async def load_and_open(desk: BenchDesk) -> None:
    await desk.load_demo()
    desk.open_section("tune")
    await desk.until(lambda: desk.find("tune.run", QAbstractButton).isEnabled())


async def tune(desk: BenchDesk) -> None:
    """Press the button, and wait until the run has ended."""
    state = desk.parts.services.bench.tune.state
    desk.click("tune.run")
    await desk.until(lambda: state.value.is_running)
    await desk.until(lambda: not state.value.is_running)
    await desk.parts.engine.wait_until_settled()
    await desk.until(lambda: desk.find("tune", TuneSection).state is state.value)
    await desk.until(lambda: desk.is_shown("tune.run"))


def texts_of(desk: BenchDesk) -> list[str]:
    return [label.text() for label in desk.find("tune.table", QWidget).findChildren(QLabel)]


async def test_without_a_model_nothing_can_be_tuned(desk: BenchDesk) -> None:
    desk.open_section("tune")

    assert "Choose a model" in desk.text_of("tune.words")
    assert not desk.find("tune.run", QAbstractButton).isEnabled()
    assert desk.text_of("tune.run") == "Tune"
    assert not desk.is_shown("tune.table")


async def test_what_is_found_is_shown_saved_and_loaded(desk: BenchDesk) -> None:
    desk.bench_client.speed = by_threads
    await load_and_open(desk)

    await tune(desk)

    assert desk.text_of("tune.result") == (
        "Answers can be 50% faster: 1,125 words a second (1,500 tok/s) instead of 750 words a second (1,000 tok/s)."
    )
    assert "2 CPU threads" in desk.text_of("tune.changes")
    assert "1. Your settings" in texts_of(desk)
    assert "1,500 (+50%)" in texts_of(desk)
    desk.click("tune.use")
    await desk.until(lambda: "Saved" in desk.text_of("tune.changes"))
    profiles = desk.parts.services.profiles
    assert profiles.names(str(demo_model())) == ("Auto-tuned",)
    assert profiles.changes(str(demo_model())) == {"n_threads": 2}
    await desk.until(lambda: desk.parts.engine.state.requested.n_threads == 2)
    await desk.parts.engine.wait_until_settled()
    assert not desk.is_shown("tune.use")
    await desk.until(lambda: desk.text_of("tune.result").startswith("In use now: answers are 50% faster, 1,125 words"))
    assert desk.parts.services.planner.measured.speeds.by_file.value[demo_model().name] == 1500.0


async def test_the_users_settings_can_be_kept(desk: BenchDesk) -> None:
    desk.bench_client.speed = by_threads
    await load_and_open(desk)
    await tune(desk)

    desk.click("tune.keep")

    assert not desk.is_shown("tune.use")
    assert "kept" in desk.text_of("tune.changes")
    assert desk.parts.services.profiles.names(str(demo_model())) == ()


async def test_nothing_faster_offers_nothing(desk: BenchDesk) -> None:
    await load_and_open(desk)

    await tune(desk)

    assert "already the fastest" in desk.text_of("tune.result")
    assert not desk.is_shown("tune.use")


async def test_faster_answers_with_slower_prompts_can_be_used(desk: BenchDesk) -> None:
    """The table had "answers +56%, prompts −12%" under "No other setting is clearly faster", and nothing to take."""
    desk.bench_client.speed = faster_answers_only
    await load_and_open(desk)

    await tune(desk)

    assert desk.text_of("tune.result").startswith("Answers can be 50% faster: ")
    assert desk.text_of("tune.result").endswith("But prompts are read 50% slower.")
    desk.click("tune.use")
    await desk.until(lambda: desk.parts.engine.state.requested.n_threads == 2)
    await desk.until(lambda: desk.text_of("tune.result").startswith("In use now: answers are 50% faster, "))
    assert desk.text_of("tune.result").endswith("But prompts are read 50% slower.")


async def test_the_state_and_the_model_button_say_that_a_measurement_has_the_memory(desk: BenchDesk) -> None:
    """They said "Ejected to free memory", as if something had gone wrong, and "loads with your next message"."""
    await load_and_open(desk)
    desk.bench_client.blocks_at = "pp128"
    desk.click("tune.run")
    await desk.bench_client.is_blocked.wait()

    await desk.until(lambda: desk.text_of("meter.state") == "Measuring…")
    on_button = desk.text_of("model.button")
    await desk.until(lambda: desk.is_shown("tune.stop"))
    desk.click("tune.stop")
    await desk.parts.engine.wait_until_settled()

    await desk.until(lambda: desk.text_of("meter.state") != "Measuring…")
    assert on_button.endswith(" · loads after the measurement")


async def test_the_cache_is_tried_only_after_the_switch(desk: BenchDesk) -> None:
    await load_and_open(desk)
    await tune(desk)
    assert {options.type_k for options in desk.bench_client.loaded} == {"f16"}

    desk.click("tune.cache")
    await tune(desk)

    assert {options.type_k for options in desk.bench_client.loaded} == {"f16", "q8_0"}


async def test_a_smaller_cache_is_not_offered_where_it_is_set(desk: BenchDesk) -> None:
    await load_and_open(desk)
    assert desk.is_shown("tune.cache")

    small = LoadOptions(model=str(demo_model()), type_k="q8_0", type_v="q8_0")
    await desk.parts.engine.load(small)

    await desk.until(lambda: not desk.is_shown("tune.cache"))
    await tune(desk)
    assert {options.type_k for options in desk.bench_client.loaded} == {"q8_0"}
    assert not desk.is_shown("tune.cache")


async def test_stop_ends_a_run_that_takes_long(desk: BenchDesk) -> None:
    await load_and_open(desk)
    desk.bench_client.blocks_at = "pp128"
    desk.click("tune.run")
    await desk.bench_client.is_blocked.wait()
    await desk.until(lambda: "at most" in desk.text_of("tune.doing"))
    desk.click("tune.stop")
    await desk.until(lambda: desk.is_shown("tune.run"))
    await desk.parts.engine.wait_until_settled()

    assert "ended before" in desk.text_of("tune.result")
    assert desk.parts.engine.state.report is not None


async def test_a_failure_is_said(desk: BenchDesk) -> None:
    await load_and_open(desk)
    desk.bench_client.failure = RequestFailed(id=0, title="Bad", sentence="The engine can't measure.")

    await tune(desk)

    await desk.until(lambda: "can't measure" in desk.text_of("tune.trouble"))
    assert not desk.is_shown("tune.result")
