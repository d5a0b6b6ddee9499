import asyncio

import msgspec
import pytest
from PIL import Image

from qwendesk.core.chats import ChatSettings
from qwendesk.core.errors import BadOption, BadRequest
from qwendesk.core.failures import EngineDeath
from qwendesk.core.messages import DocumentPart, ImagePart
from qwendesk.core.options import LoadOptions
from qwendesk.engine.protocol import Generate, PictureCost, RequestFailed
from qwendesk.services.chat.counting import Room
from qwendesk.services.chat.service import ConversationReplaced, PromptRead, TurnEnded, TurnStarted, Wrote
from tests.fakes.engine import DEMO_REPORT, PICTURE_TOKENS, ScriptedAnswer

pytestmark = pytest.mark.asyncio
OPTIONS = LoadOptions(model="/models/qwendesk-demo.gguf")
SLOW = 0.001
"""Tokens per second: the answer never ends by itself within a test."""


def asked(desk) -> list[Generate]:
    return [request for request in desk.client.requests if isinstance(request, Generate)]


async def test_an_answer_streams_and_stays_in_the_conversation(desk):
    await desk.engine.load(OPTIONS)
    desk.client.answers = [ScriptedAnswer(reasoning="Let me see.", text="It is four.")]
    turn = await desk.chat.send("2 + 2?")
    assert (turn.answer.reasoning, turn.answer.text) == ("Let me see.", "It is four.")
    assert (turn.answer.stop_reason, turn.answer.error) == ("eos", "")
    assert (turn.answer.stats.reasoning_tokens, turn.answer.stats.answer_tokens) == (3, 3)
    assert desk.chat.conversation.turns == (turn,)
    written = [news for news in desk.news if isinstance(news, Wrote)]
    assert "".join(news.text for news in written if news.kind == "reasoning") == "Let me see."
    assert "".join(news.text for news in written if news.kind == "answer") == "It is four."
    assert desk.news[0] == TurnStarted(turn.id)
    assert isinstance(desk.news[1], PromptRead)
    assert desk.news[-1] == TurnEnded(turn.id)
    assert not desk.chat.busy


async def test_the_next_question_carries_the_conversation_and_the_system_prompt(desk):
    await desk.engine.load(OPTIONS)
    desk.chat.set_system_prompt("Be brief.")
    desk.client.answers = [ScriptedAnswer(text="Hello."), ScriptedAnswer(text="Fine.")]
    await desk.chat.send("Hi")
    await desk.chat.send("How are you?")
    assert [(each.role, each.text) for each in asked(desk)[1].messages] == [
        ("system", "Be brief."), ("user", "Hi"), ("assistant", "Hello."), ("user", "How are you?"),
    ]  # fmt: skip


async def test_the_conversation_grows_while_the_answer_streams(desk):
    await desk.engine.load(OPTIONS)
    seen = []
    desk.client.answers = [ScriptedAnswer(text="one two three")]
    desk.chat.subscribe(lambda news: seen.append(desk.chat.conversation.turns[-1].answer.text))
    await desk.chat.send("Count")
    assert "one " in seen
    assert "one two " in seen


async def test_stop_keeps_what_was_said(desk):
    await desk.engine.load(OPTIONS)
    desk.client.answers = [ScriptedAnswer(text="word " * 1000)]
    desk.chat.subscribe(lambda news: isinstance(news, Wrote) and asyncio.ensure_future(desk.chat.stop()))
    turn = await desk.chat.send("Talk")
    assert turn.answer.stop_reason == "cancelled"
    assert 0 < len(turn.answer.text) < 5000


async def test_stop_does_not_wait_for_a_slow_engine(desk):
    await desk.engine.load(OPTIONS)
    desk.client.answers = [ScriptedAnswer(text="word " * 10, tokens_per_second=SLOW)]
    turn = asyncio.create_task(desk.chat.send("Talk"))
    await desk.until(lambda: any(isinstance(news, PromptRead) for news in desk.news))
    await desk.chat.stop()
    assert (await turn).answer.stop_reason == "cancelled"


async def test_stop_while_the_model_still_loads_ends_the_turn(desk):
    desk.client.load_delay_s = 30.0
    load = asyncio.create_task(desk.engine.load(OPTIONS))
    await desk.until(lambda: desk.engine.state.load_stage)
    turn = asyncio.create_task(desk.chat.send("Hi"))
    await desk.until(lambda: desk.news)
    await desk.chat.stop()
    assert (await turn).answer.stop_reason == "cancelled"
    assert asked(desk) == []
    assert not desk.chat.busy
    desk.client.kill()
    await load


async def test_a_question_waits_for_a_restarting_engine(desk):
    await desk.engine.load(OPTIONS)
    desk.client.kill()
    turn = await desk.chat.send("Hi")
    assert turn.answer.text == "You said: Hi"


async def test_answer_now_ends_the_thought(desk):
    await desk.engine.load(OPTIONS)
    desk.client.answers = [ScriptedAnswer(reasoning="hm " * 1000, text="Four.")]
    desk.chat.subscribe(lambda news: isinstance(news, Wrote) and asyncio.ensure_future(desk.chat.answer_now()))
    turn = await desk.chat.send("2 + 2?")
    assert turn.answer.text == "Four."
    assert len(turn.answer.reasoning) < 3000


async def test_a_death_ends_the_turn_with_its_sentence_and_keeps_the_words(desk):
    await desk.engine.load(OPTIONS)
    desk.client.answers = [ScriptedAnswer(text="one two three four", dies_after=2)]
    turn = await desk.chat.send("Count")
    assert turn.answer.text == "one two "
    assert "ended from outside" in turn.answer.error
    assert turn.answer.stop_reason is None
    assert not desk.chat.busy


async def test_a_refused_request_is_told_and_the_next_one_works(desk):
    await desk.engine.load(OPTIONS)
    failed = RequestFailed(id=1, title="Bad grammar", sentence="The grammar has an error in line 1.")
    desk.client.answers = [ScriptedAnswer(fail=failed), ScriptedAnswer(text="Fine.")]
    assert (await desk.chat.send("a")).answer.error == "The grammar has an error in line 1."
    assert (await desk.chat.send("b")).answer.text == "Fine."


async def test_without_a_model_the_turn_says_so(desk):
    assert (await desk.chat.send("Hi")).answer.error == "No model is loaded."


async def test_pictures_go_first_and_are_named_by_their_bytes(desk, tmp_path):
    await desk.engine.load(OPTIONS)
    picture = tmp_path / "p.png"
    picture.write_bytes(b"not really a picture")
    turn = await desk.chat.send("What is this?", [picture])
    (part,) = turn.question.images
    assert turn.question.parts[0] == part
    assert part.path == str(picture)
    assert part.sha256 == "fe1a4ab1fb6347036bead73597d5d2958b26ac0b96f68ca2f6dcee53a50f297e"
    assert asked(desk)[0].messages[-1] == turn.question


async def test_a_picture_file_that_is_gone_is_told_and_does_not_spoil_the_chat(desk, tmp_path):
    await desk.engine.load(OPTIONS)
    turn = await desk.chat.send("What is this?", [tmp_path / "gone.png"])
    assert "gone.png" in turn.answer.error
    assert asked(desk) == []
    await desk.chat.send("Hi")
    assert [each.text for each in asked(desk)[0].messages] == ["Hi"]


async def test_picture_cost(desk, tmp_path):
    await desk.engine.load(OPTIONS)
    picture = tmp_path / "p.png"
    picture.write_bytes(b"x")
    cost = await desk.chat.picture_cost(picture)
    assert isinstance(cost, PictureCost)
    assert cost.tokens == PICTURE_TOKENS
    with pytest.raises(BadRequest, match=r"gone\.png"):
        await desk.chat.picture_cost(tmp_path / "gone.png")


async def test_new_chat_drops_the_running_answer(desk):
    await desk.engine.load(OPTIONS)
    desk.client.answers = [ScriptedAnswer(text="word " * 10, tokens_per_second=SLOW)]
    turn = asyncio.create_task(desk.chat.send("Talk"))
    await desk.until(lambda: any(isinstance(news, PromptRead) for news in desk.news))
    desk.chat.new_chat()
    assert desk.chat.conversation.turns == ()
    assert not desk.chat.busy
    assert (await turn).answer.stop_reason == "cancelled"
    assert desk.chat.conversation.turns == ()
    assert desk.news[-1] == ConversationReplaced()
    assert (await desk.chat.send("Hi")).answer.text == "You said: Hi"


async def test_cancelling_the_task_that_asks_ends_the_turn(desk):
    await desk.engine.load(OPTIONS)
    desk.client.answers = [ScriptedAnswer(text="word " * 10, tokens_per_second=SLOW)]
    turn = asyncio.create_task(desk.chat.send("Talk"))
    await desk.until(lambda: any(isinstance(news, PromptRead) for news in desk.news))
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    assert not desk.chat.busy
    assert desk.chat.conversation.turns[-1].answer.stop_reason == "cancelled"


async def test_one_question_at_a_time_and_never_an_empty_one(desk):
    await desk.engine.load(OPTIONS)
    with pytest.raises(BadRequest):
        await desk.chat.send("  \n")
    first = asyncio.create_task(desk.chat.send("a"))
    await desk.until(lambda: desk.chat.busy)
    with pytest.raises(BadRequest):
        await desk.chat.send("b")
    await first


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


async def test_a_death_reported_by_the_script_is_an_error(desk):
    await desk.engine.load(OPTIONS)
    desk.client.answers = [ScriptedAnswer(text="a", fail=EngineDeath(-11, "The engine crashed."))]
    assert (await desk.chat.send("x")).answer.error == "The engine crashed."


async def test_documents_are_quoted_for_the_engine_and_kept_as_they_are(desk):
    await desk.engine.load(OPTIONS)
    document = DocumentPart("a.py", "print(1)\n", language="python")
    turn = await desk.chat.send("What does it do?", documents=[document])
    assert turn.question.documents == (document,)
    assert turn.question.text == "What does it do?"
    assert asked(desk)[0].messages[-1].text == "a.py:\n```python\nprint(1)\n```\n\nWhat does it do?"
    edited = await desk.chat.edit_question(turn.id, "Is it right?")
    assert edited.question.documents == (document,)
    alone = await desk.chat.send("", documents=[document])
    assert alone.answer.error == ""


async def test_a_picture_is_sent_as_small_as_was_chosen_and_its_original_stays(desk, shape_picture):
    await desk.engine.load(OPTIONS)
    original = shape_picture("red", "circle", side=512)
    turn = await desk.chat.send("What is it?", [ImagePart(str(original), "", longest_side=128)])
    (kept,) = turn.question.images
    assert (kept.path, kept.longest_side) == (str(original), 128)
    (sent,) = asked(desk)[0].messages[-1].images
    with Image.open(sent.path) as copy:
        assert copy.size == (128, 128)
    await desk.chat.send("And now?")
    assert asked(desk)[1].messages[0].images == (sent,)


async def test_a_document_and_a_question_are_counted_before_they_are_sent(desk):
    await desk.engine.load(OPTIONS)
    document = DocumentPart("a.txt", "one two three")
    assert await desk.chat.document_cost(document) == Room(6, DEMO_REPORT.n_ctx)
    await desk.chat.send("Hi")
    small = await desk.chat.question_cost("What?", documents=[document])
    assert isinstance(small, Room)
    assert small.tokens > 6
    assert not small.is_too_large
    large = await desk.chat.question_cost("word " * 40_000)
    assert isinstance(large, Room)
    assert large.is_too_large
