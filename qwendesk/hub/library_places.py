"""Folders with models: the user's and those of other apps. Writes nothing.

The rules compute the paths of any system on any other, and access the disk only through `FileLookup`. They are those of
the apps' own sources in November 2026: store.go of Ollama's window and the FAQ for its service on Linux, commands.rs
and the llamacpp extension of janhq/jan, huggingface.ts of open-webui/desktop.
"""

import logging
import os
import re
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path, PurePath
from typing import Literal

import msgspec

from qwendesk.core.input_files import read_text_bounded
from qwendesk.core.json_decoding import decode_json
from qwendesk.core.translation import mark, tr
from qwendesk.core.units import MIB
from qwendesk.hub.model_folders import ModelFolders

_logger = logging.getLogger(__name__)

# Limit for settings files of other apps, whose usual size is a few kilobytes.
_MAX_SETTINGS_BYTES = 16 * MIB

# Variables with OneDrive's folders, for a personal account and for one of a company.
_ONEDRIVE = ("OneDrive", "OneDriveConsumer", "OneDriveCommercial")

Origin = Literal["ours", "lmstudio", "jan", "ollama", "openwebui", "llama.cpp", "huggingface", "folder", "opened"]
System = Literal["win", "mac", "linux"]

# Names to show; translate them with `tr`.
ORIGIN_NAMES: Mapping[Origin, str] = {
    "ours": "QwenDesk",
    "lmstudio": "LM Studio",
    "jan": "Jan",
    "ollama": "Ollama",
    "openwebui": "Open WebUI",
    "llama.cpp": "llama.cpp",
    "huggingface": mark("Hugging Face cache"),
    "folder": mark("Added folder"),
    "opened": mark("Opened file"),
}


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
        """Return whether there is such a folder. One that the user may not look into counts, so that it is named."""
        try:
            return stat.S_ISDIR(Path(path).stat().st_mode)
        except PermissionError:
            return True
        except (OSError, ValueError):
            return False

    def setting_in_database(self, path: PurePath, column: str) -> str:
        """Return a column of the only row of the table `settings` in an SQLite file; "" if that can't be read.

        The file is opened as one that nobody changes: SQLite writes nothing beside it then, and may miss a late change.
        """
        if not Path(path).is_file():
            return ""
        import sqlite3  # noqa: PLC0415 - few PCs have such a file

        try:
            with closing(sqlite3.connect(f"{Path(path).as_uri()}?mode=ro&immutable=1", uri=True)) as database:
                row = database.execute(f'SELECT settings."{column}" FROM settings').fetchone()
        except sqlite3.Error as error:
            _logger.info("%s can't be read: %s", path, error)
            return ""
        return row[0] if row and isinstance(row[0], str) else ""


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
        ("jan", _jan(machine, look)),
        ("ollama", _ollama(machine, look)),
        ("openwebui", _open_webui(machine, look)),
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


def _jan(machine: HostEnvironment, look: FileLookup) -> Iterator[PurePath]:
    """Yield the models of Jan's data folder: the one that the user chose, the usual ones, and that of old versions."""
    home = machine.home
    apps = {
        "win": [_folder(machine, "APPDATA", home / "AppData" / "Roaming") / "Jan"],
        "mac": [home / "Library" / "Application Support" / "Jan"],
        "linux": [
            _folder(machine, "XDG_DATA_HOME", home / ".local" / "share") / "Jan",
            _folder(machine, "XDG_CONFIG_HOME", home / ".config") / "Jan",
        ],
    }[machine.system]
    chosen = (_setting(look.text(app / "settings.json"), "data_folder") for app in apps)
    data = [*_named(machine, "JAN_DATA_FOLDER"), *(type(home)(folder) for folder in chosen if folder)]
    for folder in (*data, *(app / "data" for app in apps)):
        # Models of MLX are here to be named: they are in another format.
        yield from (folder / engine / "models" for engine in ("llamacpp", "mlx"))
    yield home / "jan" / "models"


# Units of Ollama's service: of the user's changes, of its installer, and of a distribution.
_OLLAMA_UNITS = (
    "/etc/systemd/system/ollama.service.d/override.conf",
    "/etc/systemd/system/ollama.service",
    "/usr/lib/systemd/system/ollama.service",
)
_OLLAMA_UNIT_FOLDER = re.compile(r'^\s*Environment=\s*"?OLLAMA_MODELS=([^"\r\n]+)', re.MULTILINE)


def _ollama(machine: HostEnvironment, look: FileLookup) -> Iterator[PurePath]:
    """Yield the folders that the variable, the settings of Ollama's window and its service on Linux name."""
    kind, home = type(machine.home), machine.home
    yield from _named(machine, "OLLAMA_MODELS")
    settings = {
        "win": _folder(machine, "LOCALAPPDATA", home / "AppData" / "Local") / "Ollama",
        "mac": home / "Library" / "Application Support" / "Ollama",
        "linux": home / ".ollama",
    }[machine.system]
    chosen = look.setting_in_database(settings / "db.sqlite", "models")
    if chosen:
        yield kind(chosen)
    yield home / ".ollama" / "models"
    if machine.system == "linux":
        for unit in _OLLAMA_UNITS:
            yield from (kind(found.strip()) for found in _OLLAMA_UNIT_FOLDER.findall(look.text(kind(unit))))
        yield kind("/usr/share/ollama/.ollama/models")


def _open_webui(machine: HostEnvironment, look: FileLookup) -> Iterator[PurePath]:
    """Yield the models of Open WebUI's desktop app. Elsewhere it has none of its own: it shows those of Ollama."""
    home = machine.home
    app = {
        "win": _folder(machine, "APPDATA", home / "AppData" / "Roaming"),
        "mac": home / "Library" / "Application Support",
        "linux": _folder(machine, "XDG_CONFIG_HOME", home / ".config"),
    }[machine.system] / "open-webui"
    chosen = _setting(look.text(app / "config.json"), "installDir")
    if chosen:
        yield type(home)(chosen) / "models"
    yield app / "models"


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
