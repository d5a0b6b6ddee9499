"""What a request to the engine consists of: a chat's messages, its settings, and what it leaves out. Pure."""

import datetime
from collections.abc import Iterable
from pathlib import Path
from typing import cast, get_args

import msgspec

from qwendesk.core import presets
from qwendesk.core.chats import ChatSettings
from qwendesk.core.conversation import Answer, Conversation, Turn
from qwendesk.core.errors import BadRequest, QwenDeskError
from qwendesk.core.messages import DocumentPart, ImagePart, Message, Part, TextPart
from qwendesk.core.options import GenerationOptions
from qwendesk.core.settings import apply_assignments
from qwendesk.engine.protocol import LoadReport
from qwendesk.services.chat.grammar_check import check_grammar
from qwendesk.services.chat.schema_check import check_schema
from qwendesk.services.chat.variables import fill

PICTURE_LEFT_OUT = "[A picture was here.]"
"""What the model reads in place of an older picture that is left out, so that its own words about it make sense."""
DOCUMENT_LEFT_OUT = "[The document {0} was here.]"


def style_of(settings: ChatSettings) -> presets.Style:
    """The chat's style; "general" for none or one that a newer version knows."""
    return cast(presets.Style, settings.preset) if settings.preset in get_args(presets.Style) else "general"


def model_name(report: LoadReport | None) -> str:
    """A model's name as people know it; "" while none is loaded."""
    return "" if report is None else report.name or Path(report.options.model).stem


def request_options(settings: ChatSettings, report: LoadReport | None, *, thinking: bool) -> GenerationOptions:
    """The preset of the model's family or the chat's own one, then what was set by hand. For `checked` settings."""
    thinks = thinking and (report is None or report.can_think)
    family = "other" if report is None else _family(report)
    options = presets.preset(GenerationOptions(), family, style_of(settings), thinking=thinks)
    options = apply_assignments(options, {**settings.preset_values, **settings.overrides})
    if settings.json_schema.strip():
        options = msgspec.structs.replace(options, json_schema=settings.json_schema)
    if settings.leave_out_thoughts:
        options = msgspec.structs.replace(options, preserve_thinking=False)
    return options


def checked(settings: ChatSettings) -> ChatSettings:
    """The same settings. Raises BadOption and BadRequest for what no request could be made of."""
    options = apply_assignments(GenerationOptions(), {**settings.preset_values, **settings.overrides})
    schema = settings.json_schema.strip() or options.json_schema.strip()
    check_schema(schema)
    check_grammar(options.grammar)
    if schema and options.grammar.strip():
        sentence = "Answers follow either a JSON schema or a grammar, and both are set. Take one of them away first."
        raise BadRequest("Two grammars", sentence)
    return settings


def usable(settings: ChatSettings) -> ChatSettings:
    """`settings` without what cannot be used here: a newer version or a hand may have written them."""
    try:
        return checked(settings)
    except QwenDeskError:
        pass
    for name in ("overrides", "preset_values"):
        given = getattr(settings, name).items()
        kept = {key: text for key, text in given if _is_fine(ChatSettings(overrides={key: text}))}
        settings = msgspec.structs.replace(settings, **{name: kept})
    if not _is_fine(msgspec.structs.replace(settings, overrides={}, preset_values={})):
        settings = msgspec.structs.replace(settings, json_schema="")
    if not _is_fine(settings):
        rest = {key: text for key, text in settings.overrides.items() if key != "grammar"}
        settings = msgspec.structs.replace(settings, overrides=rest, preset_values={})
    return settings


def _is_fine(settings: ChatSettings) -> bool:
    try:
        checked(settings)
    except QwenDeskError:
        return False
    return True


def request_messages(
    conversation: Conversation, settings: ChatSettings, *, today: datetime.date, model: str, documents: bool = True
) -> tuple[Message, ...]:
    """What the engine gets of a conversation whose last question is to be answered; to count, without documents."""
    turns = conversation.turns[_n_left_out(conversation, settings) :]
    older = (_trimmed(turn, settings) for turn in turns[:-1])
    turns = (*older, *turns[-1:])
    if not documents:
        turns = tuple(_without_documents(turn) for turn in turns)
    system = fill(conversation.system_prompt, today=today, model=model)
    return tuple(message.for_engine() for message in Conversation(turns, system).messages())


def with_open_end(conversation: Conversation) -> Conversation:
    """`conversation` without what its last answer said so far: that is sent beside the messages."""
    return conversation.with_turn(msgspec.structs.replace(conversation.turns[-1], answer=Answer()))


def question(text: str, images: Iterable[ImagePart], documents: Iterable[DocumentPart] = ()) -> Message:
    """A question: its pictures first, then its documents, then its text, if it has one."""
    return Message(role="user", parts=(*images, *documents, *((TextPart(text),) if text else ())))


def _n_left_out(conversation: Conversation, settings: ChatSettings) -> int:
    return max(0, min(settings.left_out_turns, len(conversation.turns) - 1))


def _trimmed(turn: Turn, settings: ChatSettings) -> Turn:
    """An older turn without the files that are left out; a sentence stands where each was."""
    kinds: tuple[type, ...] = (
        *((ImagePart,) if settings.leave_out_old_pictures else ()),
        *((DocumentPart,) if settings.leave_out_old_documents else ()),
    )
    if not kinds or not any(isinstance(part, kinds) for part in turn.question.parts):
        return turn
    parts = tuple(TextPart(_stand_in(part)) if isinstance(part, kinds) else part for part in turn.question.parts)
    return msgspec.structs.replace(turn, question=msgspec.structs.replace(turn.question, parts=parts))


def _without_documents(turn: Turn) -> Turn:
    parts = tuple(part for part in turn.question.parts if not isinstance(part, DocumentPart))
    return msgspec.structs.replace(turn, question=msgspec.structs.replace(turn.question, parts=parts))


def _stand_in(part: Part) -> str:
    return DOCUMENT_LEFT_OUT.format(part.name) + "\n" if isinstance(part, DocumentPart) else PICTURE_LEFT_OUT + "\n"


def _family(report: LoadReport) -> presets.Family:
    return presets.family_of(report.architecture, report.name, Path(report.options.model).name)
