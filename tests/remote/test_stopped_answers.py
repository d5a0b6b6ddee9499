"""Answers of servers that are stopped: by the user, by who reads them, and by ejecting."""

import asyncio

from qwendesk.chat.chat_state import TextAdded
from qwendesk.core.messages import text_message
from qwendesk.engine.protocol import Delta, Finished, Generate
from tests.remote import made_up_server
from tests.remote.made_up_server import Stream, piece
from tests.remote.test_answers import MODEL


async def test_stop_closes_the_connection_and_keeps_the_text(remote):
    served = await remote.serve(made_up_server.llama_server(Stream([piece({"content": "On and"})], holds=True)))
    await remote.use(served, MODEL)
    has_text = asyncio.Event()
    remote.chat.subscribe(lambda event: has_text.set() if isinstance(event, TextAdded) else None)
    sending = asyncio.ensure_future(remote.chat.send("Go on"))
    await has_text.wait()
    await remote.chat.stop()
    turn = await sending
    await served.client_left.wait()
    assert (turn.answer.text, turn.answer.stop_reason, turn.answer.error) == ("On and", "cancelled", "")


async def test_an_answer_that_is_stopped_before_it_was_asked_for_ends_as_cancelled(remote):
    await remote.use(await remote.serve(made_up_server.llama_server()), MODEL)
    stream = remote.client.generate(Generate(messages=(text_message("user", "Hi"),)))
    await stream.cancel()
    items = [item async for item in stream]
    assert [item.stop_reason for item in items if isinstance(item, Finished)] == ["cancelled"]


async def test_an_answer_that_nobody_reads_any_more_closes_its_connection(remote):
    served = await remote.serve(made_up_server.llama_server(Stream([piece({"content": "On"})], holds=True)))
    await remote.use(served, MODEL)
    stream = remote.client.generate(Generate(messages=(text_message("user", "Hi"),)))
    assert isinstance(await anext(aiter(stream)), Delta)
    del stream
    await served.client_left.wait()


async def test_ejecting_lets_go_of_the_server_in_the_middle_of_an_answer(remote):
    served = await remote.serve(made_up_server.llama_server(Stream([piece({"content": "On"})], holds=True)))
    await remote.use(served, MODEL)
    sending = asyncio.ensure_future(remote.chat.send("Go on"))
    await served.is_holding.wait()
    await remote.engine.eject()
    await served.client_left.wait()
    assert (await sending).answer.stop_reason == "cancelled"
    assert remote.engine.state.report is None
