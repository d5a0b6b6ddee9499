"""Folders with models: the user's, and those of other apps on Windows, macOS and Linux.

The rules compute the paths of any system on any other, and access the disk only through `FileLookup`.
"""

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePath
from typing import Literal

import msgspec

from qwendesk.core.input_files import read_text_bounded
from qwendesk.core.json_decoding import decode_json
from qwendesk.core.translation import mark, tr
from qwendesk.core.units import MIB
from qwendesk.hub.model_folders import ModelFolders

_MAX_SETTINGS_BYTES = 16 * MIB
"""Limit for settings files of other apps, whose usual size is a few kilobytes."""

_ONEDRIVE = ("OneDrive", "OneDriveConsumer", "OneDriveCommercial")
"""Variables with OneDrive's folders, for a personal account and for one of a company."""

Origin = Literal["ours", "lmstudio", "jan", "ollama", "llama.cpp", "huggingface", "folder"]
System = Literal["win", "mac", "linux"]

ORIGIN_NAMES: Mapping[Origin, str] = {
    "ours": "QwenDesk",
    "lmstudio": "LM Studio",
    "jan": "Jan",
    "ollama": "Ollama",
    "llama.cpp": "llama.cpp",
    "huggingface": mark("Hugging Face cache"),
    "folder": mark("Added folder"),
}
"""Names to show; translate them with `tr`."""


class SearchFolder(msgspec.Struct, frozen=True):
    """One folder to search, and the app that owns it."""

    origin: Origin
    path: PurePath

    @property
    def app(self) -> str:
        """Name of the app that owns the folder."""
        return tr(ORIGIN_NAMES[self.origin])


class HostEnvironment(msgspec.Struct, frozen=True):
    """The facts about a PC that the rules need. `home` has the path class of `system`."""

    system: System
    home: PurePath
    variables: Mapping[str, str]


class FileLookup:
    """Looks up files on the disk."""

    def text(self, path: PurePath) -> str:
        """Return the content of a small text file; "" if it is missing or can't be read."""
        try:
            return read_text_bounded(Path(path), _MAX_SETTINGS_BYTES)
        except OSError:
            return ""

    def is_folder(self, path: PurePath) -> bool:
        return Path(path).is_dir()


def this_machine() -> HostEnvironment:
    systems: Mapping[str, System] = {"win32": "win", "darwin": "mac"}
    return HostEnvironment(systems.get(sys.platform, "linux"), Path.home(), dict(os.environ))


def all_places(folders: ModelFolders, machine: HostEnvironment, look: FileLookup) -> tuple[SearchFolder, ...]:
    """Return every folder to search. If two overlap, their common files belong to the first.

    Other apps come before the user's own folders: a file in LM Studio's folder stays LM Studio's even if the user adds
    that folder or one above it.
    """
    places = [*app_places(machine, look)] if folders.other_apps else []
    places += [SearchFolder("ours", Path(path)) for path in folders.models]
    places += [SearchFolder("folder", Path(path)) for path in folders.added]
    return tuple(places)


def sync_service(folder: PurePath, machine: HostEnvironment) -> str:
    """Return the name of the cloud service that uploads what is saved in `folder`; "" if none is known."""
    kind = type(machine.home)
    folder = kind(folder)
    if machine.system == "win":
        roots = [kind(root) for name in _ONEDRIVE if (root := machine.variables.get(name, "").strip())]
        return "OneDrive" if any(folder.is_relative_to(root) for root in roots) else ""
    if machine.system == "mac":
        library = machine.home / "Library"
        if folder.is_relative_to(library / "Mobile Documents"):
            return "iCloud Drive"
        if folder.is_relative_to(library / "CloudStorage") and folder != library / "CloudStorage":
            return folder.relative_to(library / "CloudStorage").parts[0].partition("-")[0]
    return ""


def app_places(machine: HostEnvironment, look: FileLookup) -> Iterator[SearchFolder]:
    """Yield the existing folders of other apps, each once."""
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
                yield SearchFolder(origin, path)


def _lm_studio(machine: HostEnvironment, look: FileLookup) -> Iterator[PurePath]:
    """Yield `models` in the home folders of old and new versions of LM Studio, and the folder set in its settings."""
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
        settings = decode_json(text)
    except msgspec.DecodeError:
        return ""
    value = settings.get(key) if isinstance(settings, dict) else None
    return value if isinstance(value, str) else ""


def _jan(machine: HostEnvironment) -> Iterator[PurePath]:
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


def _ollama(machine: HostEnvironment) -> Iterator[PurePath]:
    yield from _named(machine, "OLLAMA_MODELS")
    yield machine.home / ".ollama" / "models"
    if machine.system == "linux":
        yield type(machine.home)("/usr/share/ollama/.ollama/models")


def _llama_cpp(machine: HostEnvironment) -> Iterator[PurePath]:
    yield from _named(machine, "LLAMA_CACHE")
    home = machine.home
    yield {
        "win": _folder(machine, "LOCALAPPDATA", home / "AppData" / "Local") / "llama.cpp",
        "mac": home / "Library" / "Caches" / "llama.cpp",
        "linux": _folder(machine, "XDG_CACHE_HOME", home / ".cache") / "llama.cpp",
    }[machine.system]


def _hugging_face(machine: HostEnvironment) -> Iterator[PurePath]:
    """Yield all folders that may be the cache.

    The variables alone don't decide it: programs started from the desktop don't see those set in a shell.
    """
    yield from _named(machine, "HF_HUB_CACHE")
    yield from _named(machine, "HUGGINGFACE_HUB_CACHE")
    yield from (home / "hub" for home in _named(machine, "HF_HOME"))
    yield from (cache / "huggingface" / "hub" for cache in _named(machine, "XDG_CACHE_HOME"))
    yield machine.home / ".cache" / "huggingface" / "hub"


def _named(machine: HostEnvironment, variable: str) -> Iterator[PurePath]:
    """Yield the folder that an environment variable names, if it is set; "~" is the home folder."""
    value = machine.variables.get(variable, "").strip()
    if value == "~" or value.startswith(("~/", "~\\")):
        yield machine.home / value[2:]
    elif value:
        yield type(machine.home)(value)


def _folder(machine: HostEnvironment, variable: str, usual: PurePath) -> PurePath:
    return next(_named(machine, variable), usual)
