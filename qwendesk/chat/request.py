"""Messages and options of a request, from a conversation and the chat's settings, and whether it is certainly too
long.
"""

import asyncio
import datetime
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from qwendesk.chat.chat_settings import style_of
from qwendesk.chat.chat_state import IncognitoImages
from qwendesk.core import presets
from qwendesk.core.architectures import ChatTraits, OtherSampling, family_of, is_new_qwen
from qwendesk.core.chats import ChatSettings
from qwendesk.core.clips import pictures_and_clips
from qwendesk.core.conversation import Answer, Conversation, Turn
from qwendesk.core.errors import BadRequest
from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.messages import DocumentPart, ImagePart, Message, Part, TextPart, without_images
from qwendesk.core.number_format import show_count
from qwendesk.core.settings import apply_assignments
from qwendesk.core.translation import join_sentences, tr
from qwendesk.core.units import MIB, show_bytes
from qwendesk.engine.protocol import LoadReport

# Sent in place of an older picture that is left out, so that the answers about it still make sense to the model.
PICTURE_LEFT_OUT = "[A picture was here.]"
CLIP_LEFT_OUT = "[The clip {0} was here.]"
DOCUMENT_LEFT_OUT = "[The document {0} was here.]"
# Model cards advise no lower temperature for ordinary questions, and no higher penalty.
_VARIED_TEMPERATURE, _MOST_PRESENCE_PENALTY = 0.7, 2.0
_VARIABLE = re.compile(r"\{date\}|\{model\}")


def fill_variables(text: str, *, today: datetime.date, model: str) -> str:
    """Return a system prompt with its variables replaced.

    `{date}` is today, such as 2026-02-27; `{model}` is the name of the loaded model. Other braces are plain text. There
    is only one pass, because a model's name may contain braces too.
    """
    values = {"{date}": today.isoformat(), "{model}": model}
    return _VARIABLE.sub(lambda found: values[found[0]], text)


def request_options(settings: ChatSettings, report: LoadReport | None, *, thinking: bool) -> GenerationOptions:
    """Return the style's options for the model's family, overridden by the chat's own preset and overrides.

    The settings must have passed `check_settings`.
    """
    thinks = thinking and (report is None or report.can_think)
    family, is_new = ("other", False) if report is None else (_family(report), _is_new(report))
    recommended = {} if report is None else report.recommended_sampling
    base = GenerationOptions(preserve_thinking=report is not None and report.template.preserves_by_default)
    options = presets.preset(base, family, style_of(settings), thinking=thinks, recommended=recommended, is_new=is_new)
    options = apply_assignments(options, {**settings.preset_values, **settings.overrides})
    if settings.json_schema.strip():
        options = msgspec.structs.replace(options, json_schema=settings.json_schema)
    if settings.leave_out_reasoning:
        options = msgspec.structs.replace(options, preserve_thinking=False)
    return options


def varied(options: GenerationOptions) -> GenerationOptions:
    """Return `options` for another try after an answer that repeated itself: more random, and with another seed."""
    return msgspec.structs.replace(
        options,
        temperature=max(options.temperature, _VARIED_TEMPERATURE),
        presence_penalty=max(options.presence_penalty, min(options.presence_penalty + 0.5, _MOST_PRESENCE_PENALTY)),
        seed=-1,
    )


def without_breaking_loops(options: GenerationOptions) -> GenerationOptions:
    return msgspec.structs.replace(options, break_loops=False)


def request_messages(
    conversation: Conversation, settings: ChatSettings, *, today: datetime.date, model: str
) -> tuple[Message, ...]:
    """Return the messages of a request for an answer to the conversation's last question.

    Documents and images are unchanged; `messages_to_send` converts them.
    """
    turns = conversation.turns[_n_left_out(conversation, settings) :]
    turns = (*(_trimmed(turn, settings) for turn in turns[:-1]), *turns[-1:])
    system = fill_variables(conversation.system_prompt, today=today, model=model)
    return Conversation(turns, system).messages()


def without_last_answer(conversation: Conversation) -> Conversation:
    """Return `conversation` without its partial last answer, which is sent separately from the messages."""
    return conversation.with_turn(msgspec.structs.replace(conversation.turns[-1], answer=Answer()))


def question_message(text: str, images: Iterable[ImagePart], documents: Iterable[DocumentPart]) -> Message:
    """Return a question: images first, then documents, then the text if there is any."""
    return Message(role="user", parts=(*images, *documents, *((TextPart(text),) if text else ())))


def _n_left_out(conversation: Conversation, settings: ChatSettings) -> int:
    return max(0, min(settings.left_out_turns, len(conversation.turns) - 1))


def _trimmed(turn: Turn, settings: ChatSettings) -> Turn:
    """Return an older turn in which a placeholder text replaces each file that is left out.

    Of pictures in results of tools, the result's text tells.
    """
    if settings.leave_out_old_pictures:
        answer = msgspec.structs.replace(turn.answer, steps=tuple(map(without_images, turn.answer.steps)))
        turn = msgspec.structs.replace(turn, answer=answer)
    kinds: tuple[type, ...] = (
        *((ImagePart,) if settings.leave_out_old_pictures else ()),
        *((DocumentPart,) if settings.leave_out_old_documents else ()),
    )
    if not kinds or not any(isinstance(part, kinds) for part in turn.question.parts):
        return turn
    # Of a clip, a text stands in place of the first frame alone.
    later_frames = [frame for each in pictures_and_clips(turn.question.images) for frame in each[1:]]
    parts = tuple(
        TextPart(_placeholder(part)) if isinstance(part, kinds) else part
        for part in turn.question.parts
        if not (ImagePart in kinds and part in later_frames)
    )
    return msgspec.structs.replace(turn, question=msgspec.structs.replace(turn.question, parts=parts))


def _placeholder(part: Part) -> str:
    if isinstance(part, DocumentPart):
        return DOCUMENT_LEFT_OUT.format(part.name) + "\n"
    frame = part.frame if isinstance(part, ImagePart) else None
    return (CLIP_LEFT_OUT.format(frame.clip) if frame is not None else PICTURE_LEFT_OUT) + "\n"


def preset_source(report: LoadReport | None) -> presets.PresetSource:
    """Return where the numbers of the loaded model's presets are from; "card" if no model is loaded."""
    if report is None:
        return "card"
    return presets.preset_source(_family(report), report.recommended_sampling, is_new=_is_new(report))


def other_sampling(settings: ChatSettings, report: LoadReport | None, *, thinking: bool) -> tuple[OtherSampling, ...]:
    """Return what others publish instead of the chat's preset; () for a preset of the user."""
    if report is None or settings.preset_name or _is_new(report):
        return ()
    return presets.other_sampling(_family(report), style_of(settings), thinking=thinking and report.can_think)


def _family(report: LoadReport) -> str:
    template = report.template
    traits = ChatTraits(
        report.can_think,
        can_switch_thinking=template.enable_thinking,
        keeps_thinking=template.preserve_thinking,
        has_efforts=bool(template.reasoning_efforts),
        calls_in_xml=template.call_dialect == "xml",
    )
    # A built-in template tells nothing about the model.
    own = traits if template.source != "builtin" else None
    return family_of(report.architecture, *_names(report), traits=own)


def _is_new(report: LoadReport) -> bool:
    """Return whether the model is of a Qwen that QwenDesk doesn't know, and at most like a family that it knows."""
    return is_new_qwen(report.architecture, *_names(report))


def _names(report: LoadReport) -> tuple[str, str]:
    return report.name, Path(report.options.model).name


# Upper limit for the average of any text: prose and code have 3 to 6, tables padded with spaces up to 20.
MAX_CHARACTERS_PER_TOKEN = 32
_USUAL_CHARACTERS_PER_TOKEN = 4


class TokenCount(msgspec.Struct, frozen=True):
    """Tokens of a request, and of the context it must fit into."""

    tokens: int
    n_ctx: int
    is_estimate: bool = False
    """Estimated from the length of the text, which is certainly too large."""
    question_tokens: int = 0
    """Those of the new question; 0 if they were not counted apart."""

    @property
    def is_too_large(self) -> bool:
        """Whether no token would be left for an answer."""
        return self.tokens >= self.n_ctx > 0

    @property
    def is_question_too_large(self) -> bool:
        """Whether the question wouldn't fit in an empty chat either."""
        return self.question_tokens >= self.n_ctx > 0


def estimate_if_too_large(messages: Sequence[Message], n_ctx: int) -> TokenCount | None:
    """Return an estimate of a request whose text cannot fit into the context; None if only the engine can tell.

    Uses only the lengths of the texts. `n_ctx` is 0 if no model is loaded; then nothing is too large.
    """
    parts = [part for message in messages for part in message.parts]
    n_chars = sum(len(part.text) for part in parts if isinstance(part, TextPart | DocumentPart))
    if n_ctx <= 0 or n_chars <= MAX_CHARACTERS_PER_TOKEN * n_ctx:
        return None
    return TokenCount(n_chars // _USUAL_CHARACTERS_PER_TOKEN, n_ctx, is_estimate=True)


def too_large_sentence(count: TokenCount, report: LoadReport | None) -> str:
    """Return that a message is too large for the loaded model, and what to do about it."""
    shown = show_count(count.tokens), show_count(count.n_ctx)
    if count.is_estimate:
        size = tr("This takes about {0} tokens, but the context holds only {1}.", *shown)
    else:
        size = tr("This takes {0} tokens, but the context holds only {1}.", *shown)
    if report is None or report.can_lengthen:
        advice = tr("Shorten it, attach less, start a new chat, or reload the model with a longer context.")
    else:
        advice = tr("Shorten it, attach less, or start a new chat.")
    return join_sentences(size, advice)


# Limit of all images that one request contains as bytes. Encoded as text they must fit into a line of 64 MiB.
MAX_BYTES_IN_REQUEST = 40 * MIB


async def messages_to_send(
    messages: Sequence[Message], in_memory: IncognitoImages | None = None
) -> tuple[Message, ...]:
    """Return the messages as they are sent to the engine: documents as text, every image in the size chosen for it.

    The order of messages and parts doesn't change. Raises BadRequest.
    """
    messages = tuple(message.for_engine() for message in messages)
    images = [image for message in messages for image in message.images]
    if not images or (in_memory is None and not any(image.longest_side for image in images)):
        return messages
    # Imported only now: most chats have no pictures, and these need the decoder.
    from qwendesk.chat.image_parts import scaled  # noqa: PLC0415

    def with_scaled_images(message: Message) -> Message:
        parts = tuple(scaled(part, in_memory) if isinstance(part, ImagePart) else part for part in message.parts)
        return msgspec.structs.replace(message, parts=parts)

    sent = await asyncio.to_thread(lambda: tuple(map(with_scaled_images, messages)))
    total = sum(len(image.data) for message in sent for image in message.images)
    if total > MAX_BYTES_IN_REQUEST:
        raise BadRequest(
            tr("Pictures too large"),
            tr(
                "The pictures of this chat take {0}, but an incognito chat can send at most {1}. Choose a smaller size "
                "for them, or skip older pictures.",
                show_bytes(total),
                show_bytes(MAX_BYTES_IN_REQUEST),
            ),
        )
    return sent
