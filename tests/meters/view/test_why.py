"""Why an answer was as fast as it was, in the window: the card of the Engine page, and the details of the answer."""

import shutil
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QLabel

from qwendesk.core import paths
from qwendesk.core.options import LoadOptions
from qwendesk.core.stats import AnswerTiming
from qwendesk.core.translation import tr
from qwendesk.engine.protocol import RequestFailed, Stream
from tests.fakes.engine import ScriptedAnswer
from tests.window_desk import Desk

SENTENCE = "Nothing unusual. Measure this PC to see how much faster it could be."
MEASURED = "As fast as it should be: the CPU computes for 80% of the time. Only a smaller model would be faster."


async def answered(desk: Desk, timing: AnswerTiming, n_words: int = 41) -> None:
    """Have the demo model answer in a second, with this timing."""
    desk.client.answers.append(ScriptedAnswer(text="word " * n_words, timing=timing))
    await desk.ask("Count")
    why = desk.parts.services.meters.why.state
    await desk.until(lambda: (why.value.why is not None) == (n_words > 16 and timing.engine_s > 0))
    desk.window.show_page("engine")


@pytest.fixture(autouse=True)
def quiet_pc(monkeypatch: pytest.MonkeyPatch) -> None:
    """This PC has enough RAM for the measurement, whatever else runs."""
    monkeypatch.setattr("qwendesk.meters.why_service._ROOM_BYTES", 0)


async def test_before_an_answer_the_card_says_what_it_waits_for(desk: Desk) -> None:
    desk.window.show_page("engine")

    assert desk.text_of("why.sentence").startswith("Ask the model something")
    assert not desk.find("why.measure", QAbstractButton).isEnabled()


async def test_the_last_answer_is_explained_and_measured(desk: Desk) -> None:
    await answered(desk, AnswerTiming(engine_s=0.9, sampling_s=0.05))
    assert desk.text_of("why.sentence") == SENTENCE

    desk.click("why.measure")
    await desk.until(lambda: desk.text_of("why.sentence") == MEASURED)

    assert [type(each) for each in desk.client.requests].count(Stream) == 1
    chip = desk.find("thread.stats.1", QAbstractButton)
    assert "% of the time" not in chip.toolTip(), "it was made before"
    chip.click()
    assert chip.toolTip().splitlines()[-1] == MEASURED
    assert chip.accessibleDescription() == chip.toolTip()


async def test_a_click_on_the_speed_leads_to_why_this_speed(desk: Desk) -> None:
    await answered(desk, AnswerTiming(engine_s=0.9, sampling_s=0.05))
    desk.window.show_page("chat")

    desk.click("meter.speed")

    assert desk.window.page == "engine"
    assert desk.find("why.measure", QAbstractButton).hasFocus()
    desk.window.show_page("chat")
    desk.click("thread.stats.1")
    assert desk.text_of("thread.details.figures").startswith("Answer: 41 tokens")
    assert desk.text_of("thread.details.reason") == SENTENCE
    figures = desk.find("thread.details.figures", QLabel)
    assert figures.height() >= figures.heightForWidth(figures.width()), "the last line isn't cut off"
    link = desk.find("thread.details.why", QAbstractButton)
    assert link.hasFocus()
    QTest.keyClick(link, Qt.Key.Key_Space)
    assert desk.window.page == "engine"
    await desk.until(lambda: not desk.has("thread.details"))


async def test_the_speed_of_an_earlier_answer_is_explained_by_that_answer(desk: Desk) -> None:
    await answered(desk, AnswerTiming(engine_s=0.5, sampling_s=0.45))
    sentence = desk.text_of("why.sentence")
    desk.window.show_page("chat")
    await answered(desk, AnswerTiming(engine_s=0.95))
    await desk.until(lambda: desk.text_of("why.sentence") == SENTENCE)
    desk.window.show_page("chat")

    desk.click("thread.stats.1")
    desk.click("thread.details.why")

    assert "choosing the next token" in sentence
    assert desk.text_of("why.sentence") == sentence


async def test_an_answer_of_another_model_is_not_taken_for_one_of_the_loaded_model(desk: Desk, tmp_path: Path) -> None:
    await answered(desk, AnswerTiming(engine_s=0.95))
    desk.window.show_page("chat")
    other = shutil.copyfile(paths.demo_model(), tmp_path / "Other-9B-Q4_K_M.gguf")
    await desk.parts.engine.load(LoadOptions(model=str(other)))

    desk.click("thread.stats.1")
    desk.click("thread.details.why")

    note = "The answer you clicked is from Built-in demo. Load it and ask again to see why it has its speed."
    assert desk.text_of("why.note") == note
    await answered(desk, AnswerTiming(engine_s=0.94))
    assert not desk.is_shown("why.note"), "the answer that came is the explained one"
    desk.window.show_page("chat")
    desk.click("thread.stats.1")
    desk.click("thread.details.why")
    note = "This is the last answer of Other-9B. Load Built-in demo and ask again to see why it has its speed."
    assert desk.text_of("why.note") == note
    assert desk.text_of("why.sentence") == SENTENCE


async def test_an_answer_that_is_too_short_is_not_taken_for_the_explained_one(desk: Desk) -> None:
    await answered(desk, AnswerTiming(engine_s=0.95))
    desk.client.answers.append(ScriptedAnswer(text="Yes. It is.", timing=AnswerTiming(engine_s=0.9)))
    desk.window.show_page("chat")
    await desk.ask("Is it?")

    desk.click("thread.stats.2")
    desk.click("thread.details.why")

    assert "The one you clicked is too short" in desk.text_of("why.note")
    desk.window.show_page("chat")
    desk.click("thread.stats.1")
    desk.click("thread.details.why")
    assert not desk.is_shown("why.note")


async def test_the_option_that_the_sentence_names_is_set_by_a_button(desk: Desk) -> None:
    await answered(desk, AnswerTiming(engine_s=0.95, drafts_lost_s=0.3))
    assert desk.text_of("why.sentence").endswith("Turn Token drafts off for this model.")

    desk.click("why.change")

    pending = desk.parts.services.pending_load.pending
    assert pending.requested is not None
    assert pending.requested.speculative == "off"
    assert pending.needs_reload
    await desk.until(lambda: desk.is_shown("options.drafts.speculative"))
    assert desk.find("options.reload", QAbstractButton).isEnabled(), "this is where it is reloaded"


async def test_an_option_of_sampling_is_shown(desk: Desk) -> None:
    await answered(desk, AnswerTiming(engine_s=0.5, sampling_s=0.45))

    desk.click("why.change")

    assert desk.window.page == "chat"
    assert desk.is_shown("inspector.sampling")


async def test_where_no_option_helps_there_is_no_button(desk: Desk) -> None:
    await answered(desk, AnswerTiming(engine_s=0.95))

    assert not desk.is_shown("why.change")


async def test_the_state_in_the_bar_leads_to_the_engine_page_and_looks_like_it(desk: Desk) -> None:
    await desk.ask("Hi")
    for name in ("meter.state", "meter.speed", "meter.context"):
        part = desk.find(name, QAbstractButton)
        assert part.cursor().shape() is Qt.CursorShape.PointingHandCursor
        assert part.focusPolicy() & Qt.FocusPolicy.TabFocus
        assert part.accessibleName().endswith(part.text())

    QTest.keyClick(desk.find("meter.state", QAbstractButton), Qt.Key.Key_Space)

    assert desk.window.page == "engine"


async def test_an_answer_of_an_engine_without_times_offers_no_explanation(desk: Desk) -> None:
    await answered(desk, AnswerTiming())
    desk.window.show_page("chat")

    desk.click("thread.stats.1")

    assert desk.is_shown("thread.details")
    assert not desk.has("thread.details.why")


async def test_a_second_answer_uses_the_measurement_and_each_keeps_its_reason(desk: Desk) -> None:
    await answered(desk, AnswerTiming(engine_s=0.95))
    desk.click("why.measure")
    await desk.until(lambda: desk.text_of("why.sentence") == MEASURED)
    desk.window.show_page("chat")
    await answered(desk, AnswerTiming(engine_s=0.5, sampling_s=0.45))
    await desk.until(lambda: "choosing the next token" in desk.text_of("why.sentence"))

    first, second = (desk.find(f"thread.stats.{number}", QAbstractButton) for number in (1, 2))
    first.click()
    second.click()
    assert MEASURED in first.toolTip()
    assert "choosing the next token" not in first.toolTip()
    assert "choosing the next token" in second.toolTip()


@pytest.mark.parametrize(("timing", "n_words"), [(AnswerTiming(), 41), (AnswerTiming(engine_s=0.95), 5)])
async def test_what_cannot_be_explained_leaves_the_card_empty(desk: Desk, timing: AnswerTiming, n_words: int) -> None:
    await answered(desk, timing, n_words)

    assert desk.text_of("why.sentence").startswith("Ask the model something")


async def test_an_engine_that_cannot_measure_says_so(desk: Desk) -> None:
    sentence = tr("This engine can't measure the speed of the RAM.")
    desk.client.streamed = RequestFailed(id=0, title="Can't measure", sentence=sentence)
    await answered(desk, AnswerTiming(engine_s=0.95))

    desk.click("why.measure")

    await desk.until(lambda: desk.text_of("why.sentence") == sentence)
    assert desk.find("why.measure", QAbstractButton).isEnabled()


async def test_an_eject_forgets_the_answer(desk: Desk) -> None:
    await answered(desk, AnswerTiming(engine_s=0.95))

    await desk.parts.engine.eject()

    await desk.until(lambda: desk.text_of("why.sentence").startswith("Ask the model something"))
