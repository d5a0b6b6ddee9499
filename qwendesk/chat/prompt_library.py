"""System prompts saved for any chat: some are included in the app, the others are the user's own."""

from pathlib import Path

import msgspec

from qwendesk.core import paths
from qwendesk.core.errors import BadRequest
from qwendesk.core.json_file import BackgroundWriter, JsonFile
from qwendesk.core.observed import Observed
from qwendesk.core.translation import name_order, tr

_MAX_NAME_LENGTH = 80


class SavedPrompt(msgspec.Struct, frozen=True, kw_only=True):
    """A system prompt under a unique name."""

    name: str
    text: str
    preset: str = ""
    """The style that is set with it; "" keeps the chat's style."""
    is_foreign: bool = False
    """True if others may have written it, because it is of a chat with their text."""
    built_in: bool = False
    """Included in the app: can be copied, but not changed."""


BUILT_IN = (
    SavedPrompt(
        name="Short answers",
        text="Answer in as few words as the question needs. No introduction, no summary.",
        built_in=True,
    ),
    SavedPrompt(
        name="Code review",
        text="You review code. Name real faults first, each with its location and a fix; then say what could be "
        "simpler. Say so when you are not sure.",
        preset="precise",
        built_in=True,
    ),
    SavedPrompt(
        name="Patient teacher",
        text="You explain things to a beginner, one step at a time, with an example for each step. End with a question "
        "that shows whether it was understood.",
        built_in=True,
    ),
    SavedPrompt(
        name="Translator",
        text="Translate what you are given into English; English into German. Keep meaning, tone and layout. Give the "
        "translation alone.",
        built_in=True,
    ),
    SavedPrompt(
        name="What day it is",
        text="You are {model}, running on the user's own computer without internet. Today is {date}.",
        built_in=True,
    ),
)


class PromptLibraryState(msgspec.Struct, frozen=True):
    prompts: tuple[SavedPrompt, ...] = BUILT_IN
    """The user's own by name, then the built-in ones."""
    problem: str = ""
    """Problem with the file, in a sentence; "" if there is none."""


def prompts_file() -> Path:
    return paths.config_folder() / "prompts.json"


class PromptLibrary:
    """Owns the saved prompts; a view observes `state`. Methods are called on the event loop's thread.

    Methods that change prompts raise BadRequest if that isn't possible. Changes apply at once and are written on
    another thread; disk errors are reported in `state`.
    """

    def __init__(self, file: Path | None = None) -> None:
        json_file = JsonFile(file or prompts_file(), tuple[SavedPrompt, ...], tuple)
        self._writer = BackgroundWriter(json_file, self._on_write_failed)
        stored = json_file.load()
        problem = ""
        if stored.renamed_to is not None:
            problem = tr("Your prompts file was damaged. It was renamed to {0}.", stored.renamed_to.name)
        elif stored.problem:
            problem = tr("Your prompts file can't be read: {0}.", stored.reason)
        self._own = stored.value
        self.state = Observed(PromptLibraryState(self._all, problem))

    async def close(self) -> None:
        """Return when the last change is written."""
        await self._writer.close()

    @property
    def prompts(self) -> tuple[SavedPrompt, ...]:
        """The user's own by name, then the built-in ones."""
        return self.state.value.prompts

    def add(self, name: str, text: str, preset: str = "", *, is_foreign: bool = False) -> None:
        """Save a prompt. Replaces the user's own prompt with this name, if there is one."""
        prompt = SavedPrompt(name=_valid_name(name), text=text.strip(), preset=preset, is_foreign=is_foreign)
        if not prompt.text:
            raise BadRequest(tr("Nothing to save"), tr("Write a system prompt first."))
        self._replace((*(each for each in self._own if each.name != prompt.name), prompt))

    def rename(self, name: str, new_name: str) -> None:
        prompt = self._find(name)
        new_name = _valid_name(new_name)
        if new_name != name and any(each.name == new_name for each in self._own):
            raise BadRequest(tr("Name in use"), tr("There's already a prompt called “{0}”.", new_name))
        renamed = msgspec.structs.replace(prompt, name=new_name)
        self._replace(tuple(renamed if each.name == name else each for each in self._own))

    def delete(self, name: str) -> None:
        self._find(name)
        self._replace(tuple(each for each in self._own if each.name != name))

    @property
    def _all(self) -> tuple[SavedPrompt, ...]:
        return (*sorted(self._own, key=lambda prompt: name_order(prompt.name)), *BUILT_IN)

    def _find(self, name: str) -> SavedPrompt:
        found = next((prompt for prompt in self._own if prompt.name == name), None)
        if found is None:
            sentence = tr("“{0}” is built in or was deleted. Save a copy instead.", name)
            raise BadRequest(tr("Prompt can't be changed"), sentence)
        return found

    def _replace(self, own: tuple[SavedPrompt, ...]) -> None:
        self._own = own
        self.state.set(PromptLibraryState(self._all))
        self._writer.write(own)

    def _on_write_failed(self, error: OSError) -> None:
        sentence = tr("Your prompts couldn't be saved: {0}. They apply until QwenDesk closes.", error.strerror or error)
        self.state.update(problem=sentence)


def _valid_name(name: str) -> str:
    name = " ".join(name.split())
    if not name or len(name) > _MAX_NAME_LENGTH:
        raise BadRequest(tr("Name can't be used"), tr("Use 1 to {0} characters.", _MAX_NAME_LENGTH))
    if any(prompt.name == name for prompt in BUILT_IN):
        raise BadRequest(tr("Name in use"), tr("“{0}” is built in. Choose another name.", name))
    return name
