"""The tools with which the model keeps notes about the user, and reads them in later chats.

Notes reach the model as the result of a tool, never in a system prompt: the prompt of a chat stays as it is, so its
memory holds, and a note is data that taints the chat, whoever's text it may repeat.
"""

from qwendesk.core.errors import BadRequest
from qwendesk.core.tool_context import CallContext
from qwendesk.core.translation import mark
from qwendesk.toolbox.notes import LONGEST_NOTE, MOST_NOTES, NoteService, valid_note
from qwendesk.toolbox.tool import Arguments, Tool, ToolError

_GROUP = mark("Notes")
_PROMISE = mark(
    "Keeps short notes about you for later chats, each after you have seen it. They are in the settings. Not in "
    "incognito chats."
)
_INCOGNITO = "This chat is incognito: notes are neither kept nor read in it."


def note_tools(notes: NoteService) -> tuple[Tool, ...]:
    """Return both tools, which are on or off together."""

    async def preview(arguments: Arguments, context: CallContext) -> str:
        return _checked(arguments, context)

    async def remember(arguments: Arguments, context: CallContext) -> str:
        text = _checked(arguments, context)
        if any(note.text == text for note in notes.notes):
            return "That is noted already."
        try:
            notes.add(text)
        except BadRequest as error:
            raise ToolError(error.sentence) from None
        await notes.close()
        if notes.state.value.problem:
            raise ToolError(notes.state.value.problem)
        return "Noted."

    async def recall(_arguments: Arguments, context: CallContext) -> str:
        if context.is_incognito:
            raise ToolError(_INCOGNITO)
        return "\n".join(f"{note.written_on}: {note.text}" for note in notes.notes) or "There are no notes yet."

    return (
        Tool(
            name="remember",
            title=mark("Remember"),
            promise=_PROMISE,
            description=(
                f"Keep a note about the user for later chats, such as a preference or a fact about them: one or two "
                f"sentences of at most {LONGEST_NOTE} characters. The user sees the note and may refuse it."
            ),
            parameters={
                "type": "object",
                "properties": {"note": {"type": "string", "description": "The note, understandable by itself"}},
                "required": ["note"],
            },
            effect="writes",
            run=remember,
            preview=preview,
            icon="note",
            is_trusted=True,
            group=_GROUP,
            asks_each_time=True,
        ),
        Tool(
            name="recall_notes",
            title=mark("Read notes"),
            promise=_PROMISE,
            description=(
                f"Read the notes about the user that were kept in earlier chats, at most {MOST_NOTES}, the oldest "
                "first. Call this first when an answer may depend on who the user is, what they like or what they "
                "asked you to remember."
            ),
            parameters={"type": "object", "properties": {}},
            effect="nothing",
            run=recall,
            icon="note",
            group=_GROUP,
        ),
    )


def _checked(arguments: Arguments, context: CallContext) -> str:
    """Return the note as it would be kept. Raise ToolError."""
    if context.is_incognito:
        raise ToolError(_INCOGNITO)
    try:
        return valid_note(str(arguments["note"]))
    except BadRequest as error:
        raise ToolError(error.sentence) from None
