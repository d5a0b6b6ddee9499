"""Makes the message and the options of a question that isn't part of a chat."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from qwendesk.chat.chat_settings import check_settings
from qwendesk.chat.documents.document_reader import is_document, read_document
from qwendesk.chat.image_parts import image_part
from qwendesk.chat.request import messages_to_send, question_message, request_options
from qwendesk.chat.service import ChatService
from qwendesk.core.chats import ChatSettings
from qwendesk.core.conversation import Answer
from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.messages import Message
from qwendesk.engine.contract import EngineClient
from qwendesk.engine.protocol import LoadReport
from qwendesk.engines.engine_service import EngineService
from qwendesk.engines.self_test import AskQuestion


def ask_in_new_chat(client: EngineClient, engine: EngineService) -> AskQuestion:
    """Return a function that asks each question in a new chat."""

    async def ask(question: str, thinking: bool, pictures: Sequence[Path]) -> Answer:
        chat = ChatService(client, engine)
        chat.set_thinking(thinking)
        return (await chat.send(question, pictures)).answer

    return ask


async def read_question(text: str, files: Sequence[Path]) -> Message:
    """Return the message as it is sent to the engine. Files that aren't documents are pictures. Raises BadRequest."""

    def read() -> Message:
        documents = {path for path in files if is_document(path)}
        return question_message(
            text,
            [image_part(path) for path in files if path not in documents],
            [read_document(path) for path in files if path in documents],
        )

    (message,) = await messages_to_send([await asyncio.to_thread(read)])
    return message


def answer_options(settings: ChatSettings, report: LoadReport) -> GenerationOptions:
    """Return the options of an answer by this model. Raises BadOption or BadRequest for settings that can't be used."""
    check_settings(settings)
    return request_options(settings, report, thinking=settings.thinking is not False)
