"""Makes the message of a question that isn't part of a chat, with its files."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from qwendesk.chat.documents.document_reader import is_document, read_document
from qwendesk.chat.image_parts import image_part, messages_to_send
from qwendesk.chat.request import question_message
from qwendesk.core.messages import Message


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
