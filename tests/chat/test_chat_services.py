"""The services of the chat feature have the same chat open."""

import asyncio
from collections.abc import AsyncIterator

import pytest_asyncio

from qwendesk.chat.chat_services import ChatServices
from qwendesk.core.app_options import AppOptions
from qwendesk.core.observed import Observed
from qwendesk.core.options import LoadOptions
from tests.fakes.engine import ScriptedAnswer


@pytest_asyncio.fixture
async def services(desk, tmp_path) -> AsyncIterator[ChatServices]:
    services = ChatServices(desk.client, desk.engine, Observed(AppOptions(chat_states_gb=0, prepare_ahead=False)))
    await services.start(tmp_path)
    await desk.engine.load(LoadOptions(model="/models/Qwen3.5-9B-Q4_K_M.gguf"))
    yield services
    await services.chat.stop()
    await services.close()


async def test_chat_opened_in_the_list_is_opened_in_the_chat_service(desk, services):
    await services.chat.send("One")
    first = services.chat.chat_id
    await desk.until(lambda: first in services.chat_list.chats.summaries)

    services.chat_list.new()
    assert services.chat.chat_id == services.chat_list.current_id != first
    assert services.chat.conversation.turns == ()
    await services.chat_list.open(first)

    assert [turn.question.text for turn in services.chat.conversation.turns] == ["One"]


async def test_before_switch_is_called_before_another_chat_opens(services):
    shown = []
    services.before_switch = lambda: shown.append(services.chat_list.current_id)
    before = services.chat.chat_id

    services.chat.new_chat()

    assert shown == [before]
    assert services.chat_list.current_id == services.chat.chat_id != before


async def test_jumping_to_a_message_of_the_open_chat_keeps_the_running_answer(desk, services):
    await services.chat.send("One")
    chat_id = services.chat.chat_id
    await desk.until(lambda: chat_id in services.chat_list.chats.summaries)
    desk.client.answers.append(ScriptedAnswer(text="slow " * 50, tokens_per_second=0.01))
    asked = asyncio.create_task(services.chat.send("Two"))
    await desk.until(lambda: services.chat.busy)

    await services.chat_list.open(chat_id, services.chat.conversation.turns[0].question_id)

    assert services.chat.busy
    await services.chat.stop()
    await asked
