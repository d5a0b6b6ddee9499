"""Sending, stopping and failing requests of the chat service."""

import asyncio

import msgspec
import pytest

from qwendesk.chat.chat_state import PromptProcessed, TextAdded, TurnEnded, TurnStarted
from qwendesk.chat.request import MAX_CHARACTERS_PER_TOKEN, TokenCount
from qwendesk.core.chats import ChatSettings
from qwendesk.core.errors import BadOption
from qwendesk.core.messages import DocumentPart
from qwendesk.core.options import LoadOptions
from qwendesk.engine.protocol import RequestFailed, TemplateAbilities
from tests.fakes.engine import DEMO_REPORT, ScriptedAnswer

OPTIONS = LoadOptions(model="/models/qwendesk-demo.gguf")
SLOW = 0.001
"""Tokens per second: so slow that the answer never ends within a test."""


async def test_answer_streams_and_is_added_to_the_conversation(desk):
    await desk.engine.load(OPTIONS)
    desk.client.answers = [ScriptedAnswer(reasoning="Let me see.", text="It is four.")]
    turn = await desk.chat.send("2 + 2?")
    assert (turn.answer.reasoning, turn.answer.text) == ("Let me see.", "It is four.")
    assert (turn.answer.stop_reason, turn.answer.error) == ("eos", "")
    assert (turn.answer.stats.reasoning_tokens, turn.answer.stats.answer_tokens) == (3, 3)
    assert desk.chat.conversation.turns == (turn,)
    written = [event for event in desk.events if isinstance(event, TextAdded)]
    assert "".join(event.text for event in written if event.kind == "reasoning") == "Let me see."
    assert "".join(event.text for event in written if event.kind == "answer") == "It is four."
    assert desk.events[0] == TurnStarted(turn.id)
    assert isinstance(desk.events[1], PromptProcessed)
    assert desk.events[-1] == TurnEnded(turn.id)
    assert not desk.chat.busy


async def test_request_contains_system_prompt_and_earlier_turns(desk):
    await desk.engine.load(OPTIONS)
    desk.chat.set_system_prompt("Be brief.")
    desk.client.answers = [ScriptedAnswer(text="Hello."), ScriptedAnswer(text="Fine.")]
    await desk.chat.send("Hi")
    await desk.chat.send("How are you?")
    assert [(each.role, each.text) for each in desk.client.asked[1].messages] == [
        ("system", "Be brief."), ("user", "Hi"), ("assistant", "Hello."), ("user", "How are you?"),
    ]  # fmt: skip


async def test_stop_does_not_wait_for_a_slow_engine(desk):
    await desk.engine.load(OPTIONS)
    desk.client.answers = [ScriptedAnswer(text="word " * 10, tokens_per_second=SLOW)]
    turn = asyncio.create_task(desk.chat.send("Talk"))
    await desk.until(lambda: any(isinstance(event, PromptProcessed) for event in desk.events))
    await desk.chat.stop()
    assert (await turn).answer.stop_reason == "cancelled"


async def test_a_question_waits_for_a_restarting_engine(desk):
    await desk.engine.load(OPTIONS)
    desk.client.kill()
    turn = await desk.chat.send("Hi")
    assert turn.answer.text == "You said: Hi"


async def test_engine_exit_ends_the_turn_with_an_error_and_keeps_the_partial_answer(desk):
    await desk.engine.load(OPTIONS)
    desk.client.answers = [ScriptedAnswer(text="one two three four", crashes_after=2)]
    turn = await desk.chat.send("Count")
    assert turn.answer.text == "one two "
    assert "stopped unexpectedly" in turn.answer.error
    assert turn.answer.stop_reason is None
    assert not desk.chat.busy


async def test_refused_request_is_reported_and_the_next_one_works(desk):
    await desk.engine.load(OPTIONS)
    failed = RequestFailed(id=1, title="Bad grammar", sentence="The grammar has an error in line 1.")
    desk.client.answers = [ScriptedAnswer(fail=failed), ScriptedAnswer(text="Fine.")]
    assert (await desk.chat.send("a")).answer.error == "The grammar has an error in line 1."
    assert (await desk.chat.send("b")).answer.text == "Fine."


async def test_images_precede_the_text_and_are_identified_by_their_hash(desk, tmp_path):
    await desk.engine.load(OPTIONS)
    picture = tmp_path / "p.png"
    picture.write_bytes(b"not really a picture")
    turn = await desk.chat.send("What is this?", [picture])
    (part,) = turn.question.images
    assert turn.question.parts[0] == part
    assert part.path == str(picture)
    assert part.sha256 == "fe1a4ab1fb6347036bead73597d5d2958b26ac0b96f68ca2f6dcee53a50f297e"
    assert desk.client.asked[0].messages[-1] == turn.question


async def test_missing_picture_file_is_reported_and_later_requests_omit_it(desk, tmp_path):
    await desk.engine.load(OPTIONS)
    turn = await desk.chat.send("What is this?", [tmp_path / "gone.png"])
    assert "gone.png" in turn.answer.error
    assert desk.client.asked == []
    await desk.chat.send("Hi")
    assert [each.text for each in desk.client.asked[0].messages] == ["Hi"]


async def test_cancelling_the_sending_task_ends_the_turn(desk):
    await desk.engine.load(OPTIONS)
    desk.client.answers = [ScriptedAnswer(text="word " * 10, tokens_per_second=SLOW)]
    turn = asyncio.create_task(desk.chat.send("Talk"))
    await desk.until(lambda: any(isinstance(event, PromptProcessed) for event in desk.events))
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    assert not desk.chat.busy
    assert desk.chat.conversation.turns[-1].answer.stop_reason == "cancelled"


async def test_options_follow_family_style_thinking_and_overrides(desk):
    await desk.engine.load(OPTIONS)
    assert desk.chat.options().temperature == 0
    desk.client.report = msgspec.structs.replace(DEMO_REPORT, name="Qwen3.5-35B-A3B")
    await desk.engine.load(LoadOptions(model="/models/Qwen3.5-35B-A3B-Q4_K_M.gguf"))
    assert desk.chat.options().presence_penalty == 1.5
    desk.chat.change_settings(ChatSettings(preset="precise"))
    assert desk.chat.options().temperature == 0.6
    desk.chat.set_thinking(False)
    assert (desk.chat.options().temperature, desk.chat.options().enable_thinking) == (1.0, False)
    desk.chat.set_overrides({"temperature": "0.33"})
    assert desk.chat.options().temperature == 0.33
    with pytest.raises(BadOption, match="nonsense"):
        desk.chat.set_overrides({"nonsense": "1"})
    assert desk.chat.options().temperature == 0.33


LIKE_38 = TemplateAbilities(
    source="model",
    enable_thinking=True,
    preserve_thinking=True,
    tools=True,
    call_dialect="xml",
    reasoning_efforts=("low", "medium", "xhigh"),
)


@pytest.mark.parametrize(
    ("changes", "temperature", "presence", "source"),
    [
        ({}, 1.0, 0.0, "alike"),
        ({"recommended_sampling": {"temperature": 0.9}}, 0.9, 0.0, "file"),
        ({"can_think": False}, 0.8, 0.0, "llama.cpp"),
        ({"template": msgspec.structs.replace(LIKE_38, source="builtin")}, 0.8, 0.0, "llama.cpp"),
        ({"template": msgspec.structs.replace(LIKE_38, call_dialect="json")}, 0.8, 0.0, "llama.cpp"),
    ],
    ids=["like Qwen3.8", "recommends its own", "no tokens for thinking", "no template of its own", "calls in JSON"],
)
async def test_new_qwen_is_used_as_the_family_that_it_is_like(desk, changes, temperature, presence, source):
    report = msgspec.structs.replace(DEMO_REPORT, name="Qwen4-27B", architecture="qwen4exp", template=LIKE_38)
    desk.client.report = msgspec.structs.replace(report, **changes)
    await desk.engine.load(LoadOptions(model="/models/Qwen4-27B-Q4_K_M.gguf"))
    options = desk.chat.options()
    assert (options.temperature, options.presence_penalty) == (temperature, presence)
    assert desk.chat.preset_source == source
    assert desk.chat.other_sampling == (), "what others publish is about another model"
    assert ("limited time" in options.thinking_close) == (source in ("alike", "file"))


async def test_documents_are_sent_as_quotes_and_stored_unchanged(desk):
    await desk.engine.load(OPTIONS)
    document = DocumentPart("a.py", "print(1)\n", language="python")
    turn = await desk.chat.send("What does it do?", documents=[document])
    assert turn.question.documents == (document,)
    assert turn.question.text == "What does it do?"
    assert desk.client.asked[0].messages[-1].text == "a.py:\n```python\nprint(1)\n```\n\nWhat does it do?"
    edited = await desk.chat.edit_question(turn.id, "Is it right?")
    assert edited.question.documents == (document,)
    alone = await desk.chat.send("", documents=[document])
    assert alone.answer.error == ""


async def test_documents_and_questions_are_counted_before_they_are_sent(desk):
    await desk.engine.load(OPTIONS)
    document = DocumentPart("a.txt", "one two three")
    assert await desk.gauge.count_document(document) == TokenCount(6, DEMO_REPORT.n_ctx)
    await desk.chat.send("Hi")
    small = await desk.gauge.count_request("What?", documents=[document])
    assert isinstance(small, TokenCount)
    assert small.tokens > 6
    assert not small.is_too_large
    large = await desk.gauge.count_request("word " * 40_000)
    assert isinstance(large, TokenCount)
    assert large.is_too_large


FAR_TOO_LARGE = DocumentPart("log.txt", "word " * (DEMO_REPORT.n_ctx * MAX_CHARACTERS_PER_TOKEN // 5 + 1))


async def test_history_far_larger_than_the_context_is_sent_only_if_old_turns_are_dropped(desk):
    await desk.engine.load(OPTIONS)
    turn = await desk.chat.send("Hi")
    desk.chat.edit_answer(turn.id, text=FAR_TOO_LARGE.text, reasoning="")
    assert "the context holds" in (await desk.chat.send("And?")).answer.error
    fill = await desk.gauge.measure()
    assert isinstance(fill, RequestFailed)
    assert "the context holds" in fill.sentence
    desk.chat.set_overrides({"context_overflow": "drop_oldest"})
    assert not (await desk.chat.send("And?")).answer.error


async def test_counting_without_a_model_reports_that_no_model_is_loaded(desk):
    room = await desk.gauge.count_document(FAR_TOO_LARGE)
    assert isinstance(room, RequestFailed)
    assert "No model" in room.sentence
