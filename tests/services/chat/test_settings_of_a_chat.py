"""What a chat has of its own reaches the engine: system prompt with variables, schema, what is left out."""

import datetime

import pytest

from qwendesk.core.chat_tree import ChatTree
from qwendesk.core.chats import ChatSettings
from qwendesk.core.errors import BadOption, BadRequest
from qwendesk.core.messages import DocumentPart
from qwendesk.core.options import LoadOptions
from qwendesk.engine.protocol import Generate, RequestFailed
from qwendesk.services.chat.context_fill import ContextFill, ContextGauge
from qwendesk.services.chat.schema_check import check_schema
from qwendesk.services.chat.sending import PICTURE_LEFT_OUT
from qwendesk.services.chat.variables import fill
from tests.fakes.engine import PICTURE_TOKENS, ScriptedAnswer

OPTIONS = LoadOptions(model="/models/qwendesk-demo.gguf")
TODAY = datetime.date(2026, 2, 27)


def last_request(desk) -> Generate:
    return [request for request in desk.client.requests if isinstance(request, Generate)][-1]


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("Today is {date}, you are {model}.", "Today is 2026-02-27, you are Q{date}."),
        ("{model}{model}", "Q{date}Q{date}"),
        ('{"a": {b}} {Date} {', '{"a": {b}} {Date} {'),
        ("", ""),
    ],
)
def test_variables(text, filled):
    assert fill(text, today=TODAY, model="Q{date}") == filled


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{", "not JSON"),
        ("[1]", "an object in braces"),
        ('{"type": "text"}', '"text"'),
        ('{"properties": {"a": {"type": "strin"}}}', '"a"'),
        ('{"$ref": "https://example.org/x.json"}', "nothing is fetched"),
        ('{"$ref": "#/$defs/missing"}', "not in the schema"),
        ('{"enum": []}', "at least one"),
        ('{"items": {"anyOf": {}}}', "must be a list"),
        ("{" + '"items": {' * 80 + "}" * 81, "deep"),
    ],
)
def test_a_schema_that_cannot_be_used_is_refused_with_its_place(text, complaint):
    with pytest.raises(BadRequest, match="cannot be used") as refused:
        check_schema(text)
    assert complaint in refused.value.sentence


@pytest.mark.parametrize(
    "text", ["", "  ", "{}", '{"type": ["object", "null"], "$defs": {"a": {"type": "string"}}, "$ref": "#/$defs/a"}']
)
def test_a_good_schema_passes(text):
    check_schema(text)


@pytest.mark.asyncio
async def test_the_system_prompt_is_sent_filled_and_kept_as_written(desk):
    await desk.engine.load(OPTIONS)
    desk.chat.set_system_prompt("You are {model}.")
    await desk.chat.send("Hi")
    assert last_request(desk).messages[0].text == "You are QwenDesk Demo."
    assert desk.chat.settings.system_prompt == "You are {model}."


@pytest.mark.asyncio
async def test_a_schema_goes_to_the_engine_and_a_bad_one_is_never_set(desk):
    await desk.engine.load(OPTIONS)
    with pytest.raises(BadRequest):
        desk.chat.change_settings(ChatSettings(json_schema="{"))
    with pytest.raises(BadOption):
        desk.chat.change_settings(ChatSettings(overrides={"nonsense": "1"}))
    assert desk.chat.settings == ChatSettings()
    desk.chat.change_settings(ChatSettings(json_schema='{"type": "object"}'))
    await desk.chat.send("Hi")
    assert last_request(desk).options.json_schema == '{"type": "object"}'
    with pytest.raises(BadRequest, match="either a JSON schema or a grammar"):
        desk.chat.set_overrides({"grammar": 'root ::= "a"'})
    assert desk.chat.settings.overrides == {}


def test_what_a_newer_version_wrote_is_left_out_and_the_rest_holds(desk):
    written = ChatSettings(
        overrides={"temperature": "0.3", "warp_speed": "9"}, preset="custom", preset_values={"top_k": "many"},
        json_schema="{", system_prompt="Be kind.",
    )  # fmt: skip
    desk.chat.open("0" * 32, ChatTree(), written)
    assert desk.chat.settings == ChatSettings(
        overrides={"temperature": "0.3"}, preset="custom", system_prompt="Be kind."
    )
    both = ChatSettings(overrides={"grammar": 'root ::= "a"', "top_k": "7"}, json_schema='{"type": "object"}')
    desk.chat.open("1" * 32, ChatTree(), both)
    assert (desk.chat.options().json_schema, desk.chat.options().grammar) == (both.json_schema, "")
    assert desk.chat.options().top_k == 7


@pytest.mark.asyncio
async def test_oldest_turns_are_left_out_and_come_back(desk):
    await desk.engine.load(OPTIONS)
    for question in ("One", "Two"):
        await desk.chat.send(question)
    gauge = ContextGauge(desk.client, desk.engine, desk.chat)
    gauge.leave_out_turns(1)
    await desk.chat.send("Three")
    assert [each.text for each in last_request(desk).messages if each.role == "user"] == ["Two", "Three"]
    assert len(desk.chat.conversation.turns) == 3, "nothing is gone from the chat"
    gauge.leave_out_turns(99)
    await desk.chat.send("Four")
    assert [each.text for each in last_request(desk).messages] == ["Four"], "the question itself is always sent"
    gauge.leave_out_turns(0)
    await desk.chat.send("Five")
    assert len([each for each in last_request(desk).messages if each.role == "user"]) == 5


@pytest.mark.asyncio
async def test_pictures_of_older_turns_are_left_out_by_name(desk, tmp_path):
    await desk.engine.load(OPTIONS)
    picture = tmp_path / "p.png"
    picture.write_bytes(b"x")
    await desk.chat.send("What is this?", [picture])
    ContextGauge(desk.client, desk.engine, desk.chat).leave_out_old_pictures(leave_out=True)
    await desk.chat.send("And this?", [picture])
    first, _, last = last_request(desk).messages
    assert not first.images
    assert first.text == PICTURE_LEFT_OUT + "\nWhat is this?"
    assert len(last.images) == 1


@pytest.mark.asyncio
async def test_the_gauge_tells_what_fills_the_context(desk, tmp_path):
    gauge = ContextGauge(desk.client, desk.engine, desk.chat)
    assert isinstance(await gauge.measure(), RequestFailed)
    await desk.engine.load(OPTIONS)
    desk.chat.set_system_prompt("Be very brief.")
    picture = tmp_path / "p.png"
    picture.write_bytes(b"x")
    desk.client.answers = [ScriptedAnswer(text="A dot.")]
    await desk.chat.send("What is this?", [picture])
    fill = await gauge.measure()
    assert isinstance(fill, ContextFill)
    assert (fill.system, fill.pictures, fill.thoughts) == (3 + 4, PICTURE_TOKENS, 0)
    assert fill.history == (3 + 4) + (2 + 4) + (1 + 4)
    assert (fill.turns, fill.left_out_turns, fill.n_ctx) == (1, 0, 32_768)
    gauge.leave_out_turns(1)
    less = await gauge.measure()
    assert isinstance(less, ContextFill)
    assert (less.turns, less.left_out_turns) == (0, 1)
    assert less.total == fill.total - PICTURE_TOKENS - (3 + 4) - (2 + 4)


@pytest.mark.asyncio
async def test_the_parts_add_up_and_each_trim_takes_its_own(desk, tmp_path):
    await desk.engine.load(OPTIONS)
    desk.chat.change_settings(ChatSettings(system_prompt="Be brief.", overrides={"preserve_thinking": "on"}))
    picture = tmp_path / "p.png"
    picture.write_bytes(b"x")
    document = DocumentPart("notes.txt", "one two three four five six seven eight nine ten\n" * 4)
    desk.client.answers = [ScriptedAnswer(reasoning="Let me see it first.", text="A dot.")]
    await desk.chat.send("What is this?", [picture], [document])
    gauge = ContextGauge(desk.client, desk.engine, desk.chat)
    whole = await gauge.measure()
    assert (whole.system, whole.pictures, whole.thoughts) == (2 + 4, PICTURE_TOKENS, 5)
    assert whole.documents > 40
    whole_request = await desk.chat.question_cost("?")
    assert whole.total == whole_request.tokens
    assert whole.free == whole.n_ctx - whole.total
    trims = {
        "pictures": gauge.leave_out_old_pictures,
        "documents": gauge.leave_out_old_documents,
        "thoughts": gauge.leave_out_thoughts,
    }
    for part, trim in trims.items():
        trim(leave_out=True)
        less = await gauge.measure()
        assert getattr(less, part) == 0, part
        assert {each: getattr(less, each) for each in trims if each != part} == {
            each: getattr(whole, each) for each in trims if each != part
        }
        assert less.total < whole.total
        trim(leave_out=False)
        assert await gauge.measure() == whole, f"{part} come back whole"
