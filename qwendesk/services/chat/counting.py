"""Counts what a question would fill of the context before it is sent. Nothing is read into the engine's memory."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import msgspec

from qwendesk.core.failures import EngineDeath
from qwendesk.core.messages import DocumentPart, Message, TextPart, text_message
from qwendesk.core.options import GenerationOptions
from qwendesk.engine.contract import EngineClient
from qwendesk.engine.protocol import Measured, PictureCost, RequestFailed
from qwendesk.services.chat.held import HeldPictures
from qwendesk.services.chat.pictures import as_sent, image_part, scaled

Uncounted = RequestFailed | EngineDeath
"""Why something could not be counted."""


class Room(msgspec.Struct, frozen=True):
    """Tokens of a request, and how many the context holds."""

    tokens: int
    n_ctx: int

    @property
    def is_too_large(self) -> bool:
        """Not even one token of an answer would fit."""
        return self.tokens >= self.n_ctx > 0


async def count_picture(
    client: EngineClient,
    path: Path,
    longest_side: int,
    options: GenerationOptions,
    held: HeldPictures | None = None,
) -> PictureCost | Uncounted:
    """What a picture would fill in the size that was chosen. Raises BadRequest when its file cannot be read."""
    part = await asyncio.to_thread(lambda: scaled(image_part(path, longest_side, held), held))
    measured = await client.measure((), (part,), options)
    return measured.pictures[0] if isinstance(measured, Measured) else measured


async def count_document(client: EngineClient, document: DocumentPart, options: GenerationOptions) -> Room | Uncounted:
    """What a document adds to a question."""
    asked = TextPart("?")
    with_it = await client.measure((Message("user", (TextPart(document.quoted()), asked)),), (), options)
    without = await client.measure((text_message("user", asked.text),), (), options)
    if not isinstance(with_it, Measured):
        return with_it
    if not isinstance(without, Measured):
        return without
    return Room(max(0, with_it.prompt_tokens - without.prompt_tokens), with_it.n_ctx)


async def count_request(
    client: EngineClient, messages: Sequence[Message], options: GenerationOptions, held: HeldPictures | None = None
) -> Room | Uncounted:
    """What a whole request fills. Raises BadRequest when a picture cannot be read."""
    measured = await client.measure(await as_sent(messages, held), (), options)
    return Room(measured.prompt_tokens, measured.n_ctx) if isinstance(measured, Measured) else measured
