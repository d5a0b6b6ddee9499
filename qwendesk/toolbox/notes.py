"""NoteService and its tools: short notes about the user, which the model keeps with their consent and reads later.

Notes reach the model as the result of a tool, never in a system prompt: the prompt of a chat stays as it is, so its
memory holds, and a note is data that taints the chat, whoever's text it may repeat.
"""

import datetime
from collections.abc import Callable
from pathlib import Path

import msgspec

from qwendesk.core import paths
from qwendesk.core.errors import BadRequest
from qwendesk.core.files import is_utf8
from qwendesk.core.json_file import BackgroundWriter, JsonFile
from qwendesk.core.observed import Observed
from qwendesk.core.tool_context import CallContext
from qwendesk.core.translation import mark, tr
from qwendesk.toolbox.tool import Arguments, Tool, ToolError

# Characters.
LONGEST_NOTE = 300
# All of them are read at once: at most 30,000 characters.
MOST_NOTES = 100


class Note(msgspec.Struct, frozen=True):
    text: str
    written_on: str = ""
    """The day as in ISO 8601."""


class NotesState(msgspec.Struct, frozen=True):
    notes: tuple[Note, ...] = ()
    """The oldest first."""
    problem: str = ""
    """Reason why notes can't be read or saved, in a sentence; "" if they can."""


def notes_file() -> Path:
    return paths.data_folder() / "notes.json"


class NoteService:
    """Owns the notes. Methods are called on the event loop's thread.

    Methods that change notes raise BadRequest if that isn't possible. Changes apply at once and are written on another
    thread; disk errors are reported in `state`.
    """

    def __init__(self, file: Path | None = None, *, today: Callable[[], datetime.date] = datetime.date.today) -> None:
        json_file = JsonFile(file or notes_file(), tuple[Note, ...], tuple)
        self._writer = BackgroundWriter(json_file, self._on_write_failed)
        self._today = today
        stored = json_file.load()
        self._is_locked = stored.is_locked
        problem = ""
        if stored.renamed_to is not None:
            problem = tr("Your notes file was damaged. It was renamed to {0}.", stored.renamed_to.name)
        elif stored.problem:
            problem = tr("Your notes file can't be read: {0}.", stored.reason)
        self.state = Observed(NotesState(stored.value, problem))

    async def close(self) -> None:
        """Return when the last change is written or has failed."""
        await self._writer.close()

    @property
    def notes(self) -> tuple[Note, ...]:
        return self.state.value.notes

    def add(self, text: str) -> None:
        """Add a note. One with the same text stays as it is."""
        text = valid_note(text)
        if any(note.text == text for note in self.notes):
            return
        if len(self.notes) >= MOST_NOTES:
            raise BadRequest(tr("Too many notes"), tr("There are {0} notes. Delete some first.", MOST_NOTES))
        self._replace((*self.notes, Note(text, self._today().isoformat())))

    def change(self, note: Note, text: str) -> None:
        """Give a note another text. Nothing happens if the note is gone."""
        changed = Note(valid_note(text), note.written_on)
        self._replace(tuple(changed if each == note else each for each in self.notes))

    def delete(self, note: Note) -> None:
        self._replace(tuple(each for each in self.notes if each != note))

    def delete_all(self) -> None:
        self._replace(())

    def _replace(self, notes: tuple[Note, ...]) -> None:
        if self._is_locked:
            raise BadRequest(tr("Notes can't be changed"), self.state.value.problem)
        if notes != self.notes:
            self.state.set(NotesState(notes))
            self._writer.write(notes)

    def _on_write_failed(self, error: OSError) -> None:
        sentence = tr("Your notes couldn't be saved: {0}. They apply until QwenDesk closes.", error.strerror or error)
        self.state.update(problem=sentence)


def valid_note(text: str) -> str:
    """Return a note on one line. Raise BadRequest if it is empty, too long or no text."""
    text = " ".join(text.split())
    if not text or len(text) > LONGEST_NOTE or not is_utf8(text):
        raise BadRequest(tr("Note can't be saved"), tr("Write a note of 1 to {0} characters.", LONGEST_NOTE))
    return text


_GROUP = mark("Notes")
_PROMISE = mark("Remembers across chats what you allow it to. Not in incognito chats.")
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
