"""Settings of a chat apply to its requests: system prompt, JSON schema, and skipped turns and attachments."""

import datetime

import msgspec
import pytest

from qwendesk.chat.chat_settings import check_schema
from qwendesk.chat.image_parts import image_part
from qwendesk.chat.request import PICTURE_LEFT_OUT, fill_variables
from qwendesk.core.chats import ChatSettings
from qwendesk.core.conversation import ChatTree
from qwendesk.core.errors import BadRequest
from qwendesk.core.messages import ClipFrame, DocumentPart
from qwendesk.core.options import LoadOptions
from tests.fakes.engine import PICTURE_TOKENS, ScriptedAnswer

OPTIONS = LoadOptions(model="/models/qwendesk-demo.gguf")
TODAY = datetime.date(2026, 2, 27)


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("Today is {date}, you are {model}.", "Today is 2026-02-27, you are Q{date}."),
        ("{model}{model}", "Q{date}Q{date}"),
        ('{"a": {b}} {Date} {', '{"a": {b}} {Date} {'),
        ("", ""),
    ],
)
def test_variables_of_the_system_prompt_are_replaced(text, filled):
    assert fill_variables(text, today=TODAY, model="Q{date}") == filled


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{", "isn't JSON"),
        ("[1]", "an object in braces"),
        ('{"type": "text"}', '"text"'),
        ('{"properties": {"a": {"type": "strin"}}}', "#/properties/a/type"),
        ('{"$ref": "https://example.org/x.json"}', "#/$ref refers to another document"),
        ('{"$ref": "#/$defs/missing"}', "isn't in the schema"),
        ('{"enum": []}', "at least one"),
        ('{"items": {"anyOf": {}}}', "must be a list"),
        ("{" + '"items": {' * 120 + "}" * 121, "deep"),
    ],
)
def test_invalid_schema_is_refused_with_its_place(text, complaint):
    with pytest.raises(BadRequest, match=r"can't be used|Invalid JSON schema") as refused:
        check_schema(text)
    assert complaint in refused.value.sentence


@pytest.mark.parametrize(
    "text", ["", "  ", "{}", '{"type": ["object", "null"], "$defs": {"a": {"type": "string"}}, "$ref": "#/$defs/a"}']
)
def test_valid_schema_is_accepted(text):
    check_schema(text)


def test_unknown_settings_of_a_newer_version_are_dropped(desk):
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


async def test_oldest_turns_can_be_skipped_and_sent_again(desk):
    await desk.engine.load(OPTIONS)
    for question in ("One", "Two"):
        await desk.chat.send(question)
    desk.gauge.leave_out_turns(1)
    await desk.chat.send("Three")
    assert [each.text for each in desk.client.asked[-1].messages if each.role == "user"] == ["Two", "Three"]
    assert len(desk.chat.conversation.turns) == 3, "nothing is gone from the chat"
    desk.gauge.leave_out_turns(99)
    await desk.chat.send("Four")
    assert [each.text for each in desk.client.asked[-1].messages] == ["Four"], "the question itself is always sent"
    desk.gauge.leave_out_turns(0)
    await desk.chat.send("Five")
    assert len([each for each in desk.client.asked[-1].messages if each.role == "user"]) == 5


async def test_older_pictures_are_replaced_by_a_placeholder(desk, tmp_path):
    await desk.engine.load(OPTIONS)
    picture = tmp_path / "p.png"
    picture.write_bytes(b"x")
    await desk.chat.send("What is this?", [picture])
    desk.gauge.leave_out_old_pictures(leave_out=True)
    await desk.chat.send("And this?", [picture])
    first, _, last = desk.client.asked[-1].messages
    assert not first.images
    assert first.text == PICTURE_LEFT_OUT + "\nWhat is this?"
    assert len(last.images) == 1


async def test_one_placeholder_stands_for_a_clip(desk, tmp_path):
    await desk.engine.load(OPTIONS)
    picture = tmp_path / "p.png"
    picture.write_bytes(b"x")
    frames = [
        msgspec.structs.replace(image_part(picture), frame=ClipFrame("walk.mp4", "sha", float(at), 3.0))
        for at in range(3)
    ]
    await desk.chat.send("What happens?", [*frames, picture])
    desk.gauge.leave_out_old_pictures(leave_out=True)
    await desk.chat.send("And then?")
    first, _, _ = desk.client.asked[-1].messages
    assert first.text == "[The clip walk.mp4 was here.]\n" + PICTURE_LEFT_OUT + "\nWhat happens?"
    assert not first.images


async def test_parts_add_up_and_each_can_be_left_out(desk, tmp_path):
    await desk.engine.load(OPTIONS)
    desk.chat.change_settings(ChatSettings(system_prompt="Be brief.", overrides={"preserve_thinking": "on"}))
    picture = tmp_path / "p.png"
    picture.write_bytes(b"x")
    document = DocumentPart("notes.txt", "one two three four five six seven eight nine ten\n" * 4)
    desk.client.answers = [ScriptedAnswer(reasoning="Let me see it first.", text="A dot.")]
    await desk.chat.send("What is this?", [picture], [document])
    desk.client.requests.clear()
    whole = await desk.gauge.measure()
    assert len(desk.client.requests) == 1
    assert (whole.system, whole.pictures, whole.reasoning) == (2, PICTURE_TOKENS, 5)
    assert whole.documents > 40
    whole_request = await desk.gauge.count_request("?")
    assert whole.total == whole_request.tokens
    assert whole.free == whole.n_ctx - whole.total
    trims = {
        "pictures": desk.gauge.leave_out_old_pictures,
        "documents": desk.gauge.leave_out_old_documents,
        "reasoning": desk.gauge.leave_out_reasoning,
    }
    for part, trim in trims.items():
        trim(leave_out=True)
        less = await desk.gauge.measure()
        assert getattr(less, part) == 0, part
        assert {each: getattr(less, each) for each in trims if each != part} == {
            each: getattr(whole, each) for each in trims if each != part
        }
        assert less.total < whole.total
        trim(leave_out=False)
        assert await desk.gauge.measure() == whole, f"{part} come back whole"
