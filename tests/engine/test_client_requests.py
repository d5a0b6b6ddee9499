"""Requests that cannot be sent as they are."""

from qwendesk.core.messages import ImagePart, Message, TextPart, text_message
from qwendesk.core.units import MIB
from qwendesk.engine.protocol import Finished, Generate, Measure, RequestFailed
from tests.engine.clients import OPTIONS, WORDS, answer_text, loaded, whole

MANY_DOCUMENTS = (Message("user", tuple(TextPart("x" * 14 * MIB) for _ in range(5))),)


async def test_a_request_too_large_for_the_protocol_is_refused_with_its_size(make):
    client = await loaded(make())
    items = [item async for item in client.generate(Generate(messages=MANY_DOCUMENTS, options=OPTIONS))]
    assert [type(item) for item in items] == [RequestFailed]
    assert "70 MB of it text" in items[0].sentence
    assert isinstance(await client.ask(Measure(messages=MANY_DOCUMENTS, options=OPTIONS)), RequestFailed)
    assert answer_text(await whole(client)) == WORDS, "the engine still answers"


async def test_pictures_too_large_for_the_protocol_are_named(make):
    client = await loaded(make())
    failure = await client.ask(Measure(pictures=(ImagePart("a.png", "00", data=bytes(50 * MIB)),), options=OPTIONS))
    assert isinstance(failure, RequestFailed)
    assert "67 MB of it pictures" in failure.sentence


async def test_half_a_surrogate_pair_is_sent_as_a_replacement_character(make):
    client = await loaded(make("echoes"))
    messages = (text_message("user", "a\ud83dz \ud83d\ude00"),)
    items = [item async for item in client.generate(Generate(messages=messages, options=OPTIONS))]
    assert isinstance(items[-1], Finished)
    assert answer_text(items) == "a\ufffdz \U0001f600"
