"""Where model files lie: the user's folders, and those of other apps on Windows, macOS and Linux.

The rules are pure: paths of any system can be computed on any other, and the little that must be looked up on the disk
comes through `Look`.
"""

import json
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePath
from typing import Literal, Protocol

import msgspec

from qwendesk.hub.folders import ModelFolders

Origin = Literal["ours", "lmstudio", "jan", "ollama", "llama.cpp", "huggingface", "folder"]
System = Literal["win", "mac", "linux"]

ORIGIN_NAMES: Mapping[Origin, str] = {
    "ours": "QwenDesk",
    "lmstudio": "LM Studio",
    "jan": "Jan",
    "ollama": "Ollama",
    "llama.cpp": "llama.cpp",
    "huggingface": "Hugging Face cache",
    "folder": "Added folder",
}
"""What people call them."""


class Place(msgspec.Struct, frozen=True):
    """One folder to look in, and whose it is."""

    origin: Origin
    path: PurePath

    @property
    def app(self) -> str:
        """Whose it is, for people."""
        return ORIGIN_NAMES[self.origin]

    @property
    def of_other_app(self) -> bool:
        """Nothing is ever written, repaired or deleted here."""
        return self.origin not in ("ours", "folder")


class Machine(msgspec.Struct, frozen=True):
    """What the rules need to know of a computer. `home` has the flavour of `system`'s paths."""

    system: System
    home: PurePath
    variables: Mapping[str, str]


class Look(Protocol):
    """A glance at the disk."""

    def text(self, path: PurePath) -> str:
        """The small text file at `path`; "" when there is none or it cannot be read."""

    def is_folder(self, path: PurePath) -> bool: ...


class DiskLook:
    """The real disk."""

    def text(self, path: PurePath) -> str:
        try:
            return Path(path).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""

    def is_folder(self, path: PurePath) -> bool:
        return Path(path).is_dir()


def this_machine() -> Machine:
    systems: Mapping[str, System] = {"win32": "win", "darwin": "mac"}
    return Machine(systems.get(sys.platform, "linux"), Path.home(), dict(os.environ))


def all_places(folders: ModelFolders, machine: Machine, look: Look) -> tuple[Place, ...]:
    """Every place to look in; of two that overlap, the first one owns what lies in both.

    Other apps come before the user's own folders: a file in LM Studio's folder stays LM Studio's, also when the user
    added that folder or a folder around it.
    """
    places = [*app_places(machine, look)] if folders.other_apps else []
    places += [Place("ours", Path(path)) for path in folders.models]
    places += [Place("folder", Path(path)) for path in folders.added]
    return tuple(places)


def app_places(machine: Machine, look: Look) -> Iterator[Place]:
    """The folders of other apps that exist on `machine`, each once."""
    rules: tuple[tuple[Origin, Iterator[PurePath]], ...] = (
        ("lmstudio", _lm_studio(machine, look)),
        ("jan", _jan(machine)),
        ("ollama", _ollama(machine)),
        ("llama.cpp", _llama_cpp(machine)),
        ("huggingface", _hugging_face(machine)),
    )
    seen: set[PurePath] = set()
    for origin, candidates in rules:
        for path in candidates:
            if path not in seen and look.is_folder(path):
                seen.add(path)
                yield Place(origin, path)


def _lm_studio(machine: Machine, look: Look) -> Iterator[PurePath]:
    """`models` of LM Studio's home, which moved over time and can be moved; its settings may name another folder."""
    pointed = look.text(machine.home / ".lmstudio-home-pointer").strip()
    homes = [machine.home / ".cache" / "lm-studio", machine.home / ".lmstudio"]
    if pointed:
        homes.insert(0, type(machine.home)(pointed))
    for home in homes:
        chosen = _setting(look.text(home / "settings.json"), "downloadsFolder")
        if chosen:
            yield type(machine.home)(chosen)
        yield home / "models"


def _setting(text: str, key: str) -> str:
    try:
        settings = json.loads(text)
    except ValueError:
        return ""
    value = settings.get(key) if isinstance(settings, dict) else None
    return value if isinstance(value, str) else ""


def _jan(machine: Machine) -> Iterator[PurePath]:
    home = machine.home
    data = {
        "win": [_folder(machine, "APPDATA", home / "AppData" / "Roaming") / "Jan" / "data"],
        "mac": [home / "Library" / "Application Support" / "Jan" / "data"],
        "linux": [
            _folder(machine, "XDG_DATA_HOME", home / ".local" / "share") / "Jan" / "data",
            _folder(machine, "XDG_CONFIG_HOME", home / ".config") / "Jan" / "data",
        ],
    }[machine.system]
    yield from (folder / "llamacpp" / "models" for folder in data)
    yield home / "jan" / "models"


def _ollama(machine: Machine) -> Iterator[PurePath]:
    yield from _named(machine, "OLLAMA_MODELS")
    yield machine.home / ".ollama" / "models"
    if machine.system == "linux":
        yield type(machine.home)("/usr/share/ollama/.ollama/models")


def _llama_cpp(machine: Machine) -> Iterator[PurePath]:
    yield from _named(machine, "LLAMA_CACHE")
    home = machine.home
    yield {
        "win": _folder(machine, "LOCALAPPDATA", home / "AppData" / "Local") / "llama.cpp",
        "mac": home / "Library" / "Caches" / "llama.cpp",
        "linux": _folder(machine, "XDG_CACHE_HOME", home / ".cache") / "llama.cpp",
    }[machine.system]


def _hugging_face(machine: Machine) -> Iterator[PurePath]:
    """All that may be in use: a variable set in a shell is not seen by programs started from the desktop."""
    yield from _named(machine, "HF_HUB_CACHE")
    yield from _named(machine, "HUGGINGFACE_HUB_CACHE")
    yield from (home / "hub" for home in _named(machine, "HF_HOME"))
    yield from (cache / "huggingface" / "hub" for cache in _named(machine, "XDG_CACHE_HOME"))
    yield machine.home / ".cache" / "huggingface" / "hub"


def _named(machine: Machine, variable: str) -> Iterator[PurePath]:
    """The folder an environment variable names, if it is set; "~" is the home folder."""
    value = machine.variables.get(variable, "").strip()
    if value == "~" or value.startswith(("~/", "~\\")):
        yield machine.home / value[2:]
    elif value:
        yield type(machine.home)(value)


def _folder(machine: Machine, variable: str, usual: PurePath) -> PurePath:
    return next(_named(machine, variable), usual)
