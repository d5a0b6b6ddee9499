"""System prompts kept for use in any chat: some come with the app, the others are the person's own."""

import logging
from collections.abc import Callable
from pathlib import Path

import msgspec

from qwendesk.core import paths
from qwendesk.core.errors import BadRequest, QwenDeskError
from qwendesk.core.files import decode_json, set_aside, write_whole
from qwendesk.core.subscribers import Subscribers

_logger = logging.getLogger(__name__)
_LONGEST_NAME = 80


class SavedPrompt(msgspec.Struct, frozen=True, kw_only=True):
    """A system prompt with what goes with it. Its name is unique among all."""

    name: str
    text: str
    preset: str = ""
    """Style of sampling that suits it; "" leaves the chat's."""
    built_in: bool = False
    """Comes with the app: can be copied, not changed."""


BUILT_IN = (
    SavedPrompt(
        name="Short answers",
        text="Answer in as few words as the question needs. No introduction, no summary.",
        built_in=True,
    ),
    SavedPrompt(
        name="Code review",
        text="You review code. Name real faults first, each with its place and a fix; then what could be simpler. "
        "Say so when you are not sure.",
        preset="precise",
        built_in=True,
    ),
    SavedPrompt(
        name="Patient teacher",
        text="You explain to somebody who is new to the subject. One step at a time, with an example for each, and a "
        "question at the end that shows whether it was understood.",
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
        text="You are {model}, running on the person's own computer without internet. Today is {date}.",
        built_in=True,
    ),
)


def library_file() -> Path:
    return paths.config_folder() / "prompts.json"


class PromptLibrary:
    """Owns the kept prompts. Methods are called on the event loop's thread; the file is small enough to write there.

    Changes raise BadRequest for a name that cannot be used, and QwenDeskError when the file cannot be written: the
    change holds until the app ends.
    """

    def __init__(self, file: Path | None = None) -> None:
        self._file = file or library_file()
        self._own, self.problem = _read(self._file)
        """What is kept, and what was wrong with the file, in a sentence; "" when nothing was."""
        self._subscribers = Subscribers[tuple[SavedPrompt, ...]]()

    @property
    def prompts(self) -> tuple[SavedPrompt, ...]:
        """The person's own by name, then those of the app."""
        return (*sorted(self._own, key=lambda prompt: prompt.name.casefold()), *BUILT_IN)

    def subscribe(self, callback: Callable[[tuple[SavedPrompt, ...]], None]) -> Callable[[], None]:
        """Call `callback` with all prompts each time one changed. Returns what ends it."""
        return self._subscribers.add(callback)

    def add(self, name: str, text: str, preset: str = "") -> None:
        """Keep a prompt; one of the person's own with this name is replaced."""
        prompt = SavedPrompt(name=_checked(name), text=text.strip(), preset=preset)
        if not prompt.text:
            raise BadRequest("Nothing to keep", "Write a system prompt first.")
        self._keep((*(each for each in self._own if each.name != prompt.name), prompt))

    def rename(self, name: str, new_name: str) -> None:
        prompt = self._find(name)
        checked = _checked(new_name)
        if checked != name and any(each.name == checked for each in self._own):
            raise BadRequest("Name in use", f'There is already a prompt called "{checked}".')
        renamed = msgspec.structs.replace(prompt, name=checked)
        self._keep(tuple(renamed if each.name == name else each for each in self._own))

    def delete(self, name: str) -> None:
        self._find(name)
        self._keep(tuple(each for each in self._own if each.name != name))

    def _find(self, name: str) -> SavedPrompt:
        found = next((prompt for prompt in self._own if prompt.name == name), None)
        if found is None:
            raise BadRequest("Not yours to change", f'"{name}" comes with the app or is gone. Keep a copy instead.')
        return found

    def _keep(self, own: tuple[SavedPrompt, ...]) -> None:
        self._own, self.problem = own, ""
        self._subscribers.notify(self.prompts)
        try:
            write_whole(self._file, msgspec.json.format(msgspec.json.encode(own), indent=2))
        except OSError as error:
            sentence = f"Your prompts could not be saved: {error.strerror or error}. They hold until the app ends."
            raise QwenDeskError("Prompts not saved", sentence) from error


def _checked(name: str) -> str:
    name = " ".join(name.split())
    if not name or len(name) > _LONGEST_NAME:
        raise BadRequest("Bad name", f"Give it a name of 1 to {_LONGEST_NAME} characters.")
    if any(prompt.name == name for prompt in BUILT_IN):
        raise BadRequest("Name in use", f'"{name}" comes with the app. Choose another name.')
    return name


def _read(file: Path) -> tuple[tuple[SavedPrompt, ...], str]:
    """What is kept there, and what is wrong. A file that cannot be used is set aside under another name, and logged."""
    try:
        return decode_json(file.read_bytes(), tuple[SavedPrompt, ...]), ""
    except FileNotFoundError:
        return (), ""
    except (OSError, msgspec.DecodeError) as error:
        _logger.warning("%s cannot be used: %s", file, error)
    try:
        aside = set_aside(file)
    except OSError as second:
        _logger.warning("%s could not be set aside: %s", file, second)
        return (), f"The file of your prompts cannot be used: {second.strerror or second}."
    return (), f"The file of your prompts was damaged. It lies beside the others as {aside.name}."
