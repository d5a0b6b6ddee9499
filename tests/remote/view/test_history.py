"""Chats over a server are kept, searched and opened like any other, and their model is offered again."""

from tests.remote import made_up_server
from tests.remote.made_up_server import LM_STUDIO_MISSING


async def test_an_opened_chat_offers_the_model_of_its_server(remote_window, tmp_path):
    desk = remote_window.desk
    desk.parts.chats.start(tmp_path)
    service = desk.parts.chats.services.chat_list
    await desk.until(lambda: service.state.value.is_loaded)
    server = remote_window.serve(made_up_server.lm_studio(), missing=LM_STUDIO_MISSING)
    await remote_window.use(server, "qwen/qwen3.5-9b")
    await desk.ask("Hi")
    await desk.until(lambda: bool(service.chats.summaries))
    (summary,) = service.chats.summaries.values()
    desk.window.chat_page.new_chat()
    await remote_window.use_this_pc()
    await service.open(summary.id)
    await desk.until(lambda: desk.is_shown("modeloffer.load"))
    assert "qwen/qwen3.5-9b" in desk.text_of("modeloffer.title")
    assert desk.parts.chat.conversation.turns[0].answer.text == "Hello."
    desk.click("modeloffer.load")
    await desk.until(
        lambda: remote_window.engine.state.report is not None and remote_window.engine.state.local_report is None
    )
    await desk.ask("And now?")
    assert [message["role"] for message in server.chats[-1]["messages"]] == ["user", "assistant", "user"]
