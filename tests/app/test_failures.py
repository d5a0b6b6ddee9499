"""What the window says when something goes wrong, and how it goes on."""

import asyncio
from collections.abc import Callable

import msgspec
from PySide6.QtWidgets import QApplication, QPlainTextEdit

from qwendesk.core.errors import QwenDeskError
from qwendesk.core.failures import EngineExit, LoadFailure
from qwendesk.core.options import DecidedOptions, LoadOptions
from qwendesk.engine.protocol import Generate, RequestFailed
from qwendesk.engine.state import Phase
from qwendesk.widgets.notice import Notice
from qwendesk.widgets.text_pane import TextPane
from tests.fakes.engine import ScriptedAnswer
from tests.window_desk import Desk

NO_VRAM = LoadFailure("out_of_vram", "Not enough video memory", "It needs 21.4 GB.", ("cudaMalloc failed",))


async def test_failed_load_shows_the_engines_reason(make_desk: Callable[[], Desk]) -> None:
    desk = make_desk()
    desk.client.load_result = NO_VRAM
    desk.parts.window.load_model("/models/large-Q8_0.gguf")
    await desk.until(lambda: desk.is_shown("banner"))
    assert desk.text_of("banner.title") == "Not enough video memory"
    assert desk.text_of("banner.sentence") == "It needs 21.4 GB."
    assert not desk.is_shown("banner.lines")
    desk.click("banner.details")
    assert desk.find("banner.lines", QPlainTextEdit).toPlainText() == "cudaMalloc failed"
    desk.click("banner.copy")
    assert "It needs 21.4 GB." in QApplication.clipboard().text()
    assert "cudaMalloc failed" in QApplication.clipboard().text()
    assert desk.text_of("meter.state") == "Not loaded"
    desk.client.load_result = None
    desk.click("banner.demo")
    await desk.until(lambda: desk.parts.engine.state.phase is Phase.READY)
    assert not desk.is_shown("banner")
    await desk.ask("Hello")
    assert desk.message(1).answer_view.markdown == "You said: Hello"


async def test_failure_of_the_engine_leads_to_the_engine_page(desk: Desk) -> None:
    desk.client.load_result = LoadFailure("missing_library", "A library is missing", "Use another engine.")
    desk.parts.window.load_model("/models/a.gguf")
    await desk.until(lambda: desk.is_shown("banner.engine"))
    desk.click("banner.engine")
    assert desk.window.page == "engine"
    desk.window.go_to("chat")
    assert desk.is_shown("banner.engine"), "the model isn't loaded yet"


async def test_cancelled_load_shows_no_banner(make_desk: Callable[[], Desk]) -> None:
    desk = make_desk()
    desk.client.load_delay_s = 5
    desk.parts.window.load_demo()
    await desk.until(lambda: desk.parts.engine.state.phase is Phase.LOADING)
    desk.parts.tasks.start(desk.parts.engine.cancel_load())
    await desk.until(lambda: desk.parts.engine.state.failure is not None)
    assert not desk.is_shown("banner")
    assert desk.text_of("model.button") == "Choose a model"


async def test_an_answer_that_ends_without_text_says_so_and_can_be_tried_again(desk: Desk) -> None:
    desk.client.answers.append(ScriptedAnswer(reasoning="I think.", text=""))
    await desk.ask("Why?")
    await desk.until(lambda: desk.is_shown("thread.failure.1"))
    assert "without an answer" in desk.find("thread.failure.text.1", TextPane).toPlainText()
    desk.click("thread.again.1")
    await desk.until(lambda: desk.message(1).answer_view.markdown == "You said: Why?")
    await desk.until(lambda: not desk.parts.chat.busy)
    assert not desk.is_shown("thread.failure.1")


async def test_engine_crash_is_reported_and_the_engine_restarts(desk: Desk) -> None:
    desk.client.answers.append(ScriptedAnswer(text="one two three four", crashes_after=2))
    await desk.ask("Count")
    await desk.until(lambda: desk.parts.engine.state.phase is Phase.READY)
    assert desk.is_shown("banner")
    assert "restarted" in desk.text_of("banner.title")
    assert desk.message(1).answer_view.toPlainText().startswith("one two")
    await desk.until(lambda: desk.is_shown("thread.failure.1"))
    desk.click("banner.dismiss")
    assert not desk.is_shown("banner")
    desk.click("thread.again.1")
    await desk.until(lambda: desk.message(1).answer_view.markdown == "You said: Count")
    await desk.until(lambda: not desk.parts.chat.busy)
    assert len(desk.parts.chat.conversation.turns) == 1, "the question is not asked a second time"
    assert not desk.is_shown("thread.again.1")
    assert desk.text_of("thread.version.1") == "2/2", "what came before the failure is kept"


async def test_engine_that_crashes_too_often_can_be_restarted_manually(desk: Desk) -> None:
    for _ in range(3):
        desk.client.kill()
        await desk.until(lambda: desk.parts.engine.state.phase is Phase.READY)
    desk.client.kill()
    await desk.until(lambda: desk.is_shown("banner.restart"))
    assert desk.text_of("banner.title") == "The engine stopped"
    assert "not started again" in desk.text_of("banner.sentence")
    assert desk.text_of("meter.state") == "Engine stopped"
    desk.click("banner.restart")
    await desk.until(lambda: desk.parts.engine.state.phase is Phase.READY)
    await desk.ask("Hello")
    assert desk.message(1).answer_view.markdown == "You said: Hello"


async def test_a_failed_request_can_be_tried_again(desk: Desk) -> None:
    failed = RequestFailed(id=1, title="Too long", sentence="The question does not fit into the context.")
    desk.client.answers.append(ScriptedAnswer(fail=failed))
    await desk.ask("Long")
    await desk.until(lambda: desk.is_shown("thread.failure.1"))
    desk.click("thread.again.1")
    await desk.until(lambda: [type(request) for request in desk.client.requests].count(Generate) == 2)
    await desk.until(lambda: not desk.parts.chat.busy)
    assert [turn.answer.text for turn in desk.parts.chat.conversation.turns] == ["You said: Long"]
    assert not desk.is_shown("thread.again.1")


async def test_an_engine_that_cannot_start_says_so(make_desk: Callable[[], Desk]) -> None:
    desk = make_desk()
    desk.client.start_result = EngineExit(127, "A library of the engine is missing.", ("libgomp.so.1: not found",))
    desk.parts.window.load_demo()
    await desk.until(lambda: desk.is_shown("banner"))
    assert desk.is_shown("banner.restart")
    desk.client.start_result = None
    desk.click("banner.restart")
    await desk.until(lambda: desk.parts.engine.state.phase is Phase.READY)
    assert not desk.is_shown("banner")


async def test_a_failed_load_offers_the_next_step_down_with_its_cost(make_desk: Callable[[], Desk]) -> None:
    desk = make_desk()
    desk.client.load_result = NO_VRAM
    asked = DecidedOptions(model="/models/large-Q8_0.gguf", n_gpu_layers=40, n_ctx=4_096, type_k="q8_0", type_v="q8_0")
    desk.parts.tasks.start(desk.parts.engine.load(asked))
    await desk.until(lambda: desk.is_shown("banner.retry"))
    assert desk.text_of("banner.retry") == "30 layers on the GPU"
    assert desk.text_of("banner.sentence").startswith("It needs 21.4 GB.\n30 layers on the GPU: Answers are slower")
    desk.client.load_result = None
    desk.click("banner.retry")
    await desk.until(lambda: desk.parts.engine.state.phase is Phase.READY)
    assert desk.parts.engine.state.requested == msgspec.structs.replace(asked, n_gpu_layers=30)
    assert not desk.is_shown("banner")


async def test_failure_unrelated_to_memory_offers_no_step_down(make_desk: Callable[[], Desk]) -> None:
    desk = make_desk()
    desk.client.load_result = LoadFailure("truncated", "The file is incomplete", "It ends too early.")
    desk.parts.tasks.start(desk.parts.engine.load(LoadOptions(model="/models/large-Q8_0.gguf", n_gpu_layers=40)))
    await desk.until(lambda: desk.is_shown("banner"))
    assert desk.parts.engine.retry.value is None
    assert not desk.is_shown("banner.retry")


async def refuse(sentence: str) -> None:
    raise QwenDeskError("Refused", sentence)


async def test_refusal_on_another_page_is_shown_there_once(desk: Desk) -> None:
    desk.window.show_page("models")
    for sentence in ("The first.", "The second.", "The second."):
        await asyncio.gather(desk.parts.tasks.start(refuse(sentence)), return_exceptions=True)
    await desk.until(lambda: len(desk.window.findChildren(Notice, "trouble")) == 1)
    assert desk.is_shown("trouble")
    assert desk.text_of("trouble.title") == "That didn't work"
    assert desk.text_of("trouble.sentence") == "The second."
    assert desk.text_of("composer.notice") == ""
    desk.click("trouble.dismiss")
    assert not desk.is_shown("trouble")


async def test_error_on_another_page_is_shown_there(desk: Desk) -> None:
    async def fail() -> None:
        raise OSError("the disk is gone")

    desk.window.show_page("engine")
    desk.parts.tasks.start(fail())
    await desk.until(lambda: desk.is_shown("trouble"))
    assert desk.text_of("trouble.title") == "Something went wrong"
    assert "the disk is gone" in desk.text_of("trouble.sentence")
    assert desk.window.chat_page.banner.content is None


async def test_refusal_in_the_chat_is_shown_at_the_composer(desk: Desk) -> None:
    desk.parts.tasks.start(refuse("Wait."))
    await desk.until(lambda: desk.text_of("composer.notice") == "Wait.")
    assert not desk.has("trouble")


async def test_refusal_is_shown_at_the_first_start(make_desk: Callable[[], Desk]) -> None:
    desk = make_desk()
    desk.parts.begin()
    assert not desk.is_shown("composer.text")
    desk.parts.tasks.start(refuse("Wait."))
    await desk.until(lambda: desk.is_shown("trouble"))
    assert desk.text_of("trouble.sentence") == "Wait."
