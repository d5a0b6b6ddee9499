"""A chat in the window over the real llama-server: with thinking, a picture and a tool."""

import pytest

from qwendesk.chat.view.thread.tools.call_row import CallRow
from tests.remote.llama_server import UrgingProxy, needs_llama_server, running_llama_server

pytestmark = [needs_llama_server, pytest.mark.timeout(300)]


async def test_thinking_a_picture_and_a_tool(remote_window, shape_picture):
    desk = remote_window.desk
    with running_llama_server() as server:
        proxy = UrgingProxy(server.address)
        await proxy.start()
        try:
            assert await desk.parts.services.remote.add(proxy.address)
            desk.window.load_served(f"{proxy.address}#QwenDesk-Demo-Q8_0")
            await desk.until(lambda: remote_window.engine.state.report is not None)
            assert desk.text_of("model.button").startswith("QwenDesk-Demo-Q8_0 · 8K · llama-server")
            desk.parts.chat.set_thinking(True)
            desk.drop(shape_picture("red", "circle"))
            await desk.until(lambda: desk.is_shown("composer.attachment.1.cost"))
            await desk.ask("What is in this picture?")
            seen = desk.parts.chat.conversation.turns[-1].answer
            assert seen.reasoning
            assert "red circle" in seen.text
            desk.choose_tool("current_time")
            await desk.ask("What time is it?")
            told = desk.parts.chat.conversation.turns[-1].answer
            (record,) = told.steps[0].calls
            assert (record.call.name, record.is_done, record.error) == ("current_time", True, "")
            assert "UTC" in record.result
            assert told.text, "the model went on after the result"
            assert desk.message(2).findChildren(CallRow)
        finally:
            await desk.parts.engine.eject()
            await proxy.close()
