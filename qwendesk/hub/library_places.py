"""Folders with models, the user's and those of other apps, and the model files in them. Writes nothing.

The rules compute the paths of any system on any other, and access the disk only through `FileLookup`.
"""

import logging
import os
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePath
from typing import Literal

import msgspec

from qwendesk.core.input_files import read_bounded, read_text_bounded
from qwendesk.core.json_decoding import decode_json
from qwendesk.core.links import real_path
from qwendesk.core.model_titles import ollama_title
from qwendesk.core.translation import mark, tr
from qwendesk.core.units import MIB
from qwendesk.hub.file_origin import origin_of
from qwendesk.hub.model_folders import ModelFolders, is_hidden, repo_of

# Limit for settings files of other apps, whose usual size is a few kilobytes.
_MAX_SETTINGS_BYTES = 16 * MIB

# Variables with OneDrive's folders, for a personal account and for one of a company.
_ONEDRIVE = ("OneDrive", "OneDriveConsumer", "OneDriveCommercial")

Origin = Literal["ours", "lmstudio", "jan", "ollama", "llama.cpp", "huggingface", "folder"]
System = Literal["win", "mac", "linux"]

# Names to show; translate them with `tr`.
ORIGIN_NAMES: Mapping[Origin, str] = {
    "ours": "QwenDesk",
    "lmstudio": "LM Studio",
    "jan": "Jan",
    "ollama": "Ollama",
    "llama.cpp": "llama.cpp",
    "huggingface": mark("Hugging Face cache"),
    "folder": mark("Added folder"),
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


_logger = logging.getLogger(__name__)

# Maximum levels of folders below the searched one; the deepest layout in use has four.
_MAX_DEPTH = 8
# Limit for manifests and references, whose usual size is a few hundred bytes.
_MAX_SMALL_FILE_BYTES = 1024**2
_SHA256 = re.compile(r"[0-9a-f]{64}")
_OLLAMA_HOST, _OLLAMA_LIBRARY = "registry.ollama.ai", "library"
_HUGGING_FACE_HOSTS = ("hf.co", "huggingface.co")
_OLLAMA_MODEL = "application/vnd.ollama.image.model"
_OLLAMA_PROJECTOR = "application/vnd.ollama.image.projector"


class FoundModelFile(msgspec.Struct, frozen=True, kw_only=True):
    """One model file on disk, with facts from its folder and name; unknown ones are ""."""

    path: str
    """The path in its app's layout, which may be a link."""
    real_path: str
    n_bytes: int
    mtime_ns: int
    origin: Origin
    place: str
    title: str = ""
    """The owning app's name for the model, if the file name isn't one."""
    repo: str = ""
    repo_path: str = ""
    mmproj: str = ""
    """Path of the mmproj that the owning app pairs with it."""
    from_ollamas_library: bool = False


class _Layer(msgspec.Struct, rename="camel"):
    media_type: str = ""
    digest: str = ""


class _Manifest(msgspec.Struct):
    layers: list[_Layer] = []


class VisitedFolders(msgspec.Struct):
    """The folders that were visited: those that were read, and those that couldn't be read."""

    read: list[str] = []
    unreadable: list[str] = []


def walk(place: SearchFolder, folders: VisitedFolders, depth: int = _MAX_DEPTH) -> Iterator[FoundModelFile]:
    """Yield the model files in `place`, at most `depth` levels down; none if there is no such folder.

    The visited folders are added to `folders`.
    """
    root = Path(place.path)
    if root.is_dir():
        yield from _Walk(place, root, folders).folder(root, depth)


class _Walk:
    """One walk through one place."""

    def __init__(self, place: SearchFolder, root: Path, folders: VisitedFolders) -> None:
        self._place = place
        self._root = root
        self._folders = folders
        self._entered: set[str] = set()

    def folder(self, folder: Path, depth: int) -> Iterator[FoundModelFile]:
        """Yield everything below `folder`. Links are followed, but no folder is entered twice."""
        real = str(real_path(folder))
        if real in self._entered:
            return
        self._entered.add(real)
        folders, files = self._entries(folder)
        names = {each.name for each in folders}
        if {"manifests", "blobs"} <= names:
            yield from self._ollama(folder)
        elif folder.name.startswith("models--") and "snapshots" in names:
            yield from self._hub_repo(folder)
        else:
            yield from (found for path in files if (found := self._plain(path)) is not None)
            if depth > 0:
                for each in folders:
                    yield from self.folder(each, depth - 1)

    def _entries(self, folder: Path) -> tuple[list[Path], list[Path]]:
        """Return the folders and the .gguf files in a folder, sorted by name, without hidden ones."""
        folders: list[Path] = []
        files: list[Path] = []
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if is_hidden(entry.name):
                        continue
                    if entry.name.lower().endswith(".gguf"):
                        files.append(folder / entry.name)
                    elif entry.is_dir():
                        folders.append(folder / entry.name)
            self._folders.read.append(str(folder))
        except OSError as error:
            _logger.info("%s cannot be read: %s", folder, error)
            self._folders.unreadable.append(str(folder))
        return sorted(folders), sorted(files)

    def _plain(self, path: Path) -> FoundModelFile | None:
        found = self._found(path)
        if found is None:
            return None
        if self._place.origin in ("ours", "lmstudio") and (known := repo_of(self._root, path)):
            return msgspec.structs.replace(found, repo=known[0], repo_path=known[1])
        return _with_origin(found)

    def _found(self, path: Path) -> FoundModelFile | None:
        """Return the file at `path`; None if it is gone, not a file, or a broken link of an unfinished download."""
        try:
            status = path.stat()
        except OSError:
            return None
        if not path.is_file():
            return None
        return FoundModelFile(
            path=str(path),
            real_path=str(real_path(path)),
            n_bytes=status.st_size,
            mtime_ns=status.st_mtime_ns,
            origin=self._place.origin,
            place=str(self._root),
        )

    def _hub_repo(self, folder: Path) -> Iterator[FoundModelFile]:
        """Yield the files of `models--owner--name/snapshots/<commit>/...`, the current commit first."""
        current = self._small_text(folder / "refs" / "main").decode("ascii", errors="replace").strip()
        snapshots, _ = self._entries(folder / "snapshots")
        for snapshot in sorted(snapshots, key=lambda each: (each.name != current, each.name)):
            for path in self._files_below(snapshot, _MAX_DEPTH):
                found = self._found(path)
                if found is not None:
                    yield _with_origin(found)

    def _files_below(self, folder: Path, depth: int) -> Iterator[Path]:
        folders, files = self._entries(folder)
        yield from files
        if depth > 0:
            for each in folders:
                yield from self._files_below(each, depth - 1)

    def _ollama(self, root: Path) -> Iterator[FoundModelFile]:
        """Yield the blobs that `manifests/<host>/<namespace>/<model>/<tag>` name by hash."""
        manifests = root / "manifests"
        self._folders.read.append(str(manifests))
        for pattern in ("*", "*/*", "*/*/*"):
            self._folders.read += sorted(str(path) for path in manifests.glob(pattern) if path.is_dir())
        for manifest in sorted(manifests.glob("*/*/*/*")):
            try:
                layers = decode_json(self._small_text(manifest), _Manifest).layers
            except msgspec.DecodeError as error:
                _logger.info("%s is no manifest: %s", manifest, error)
                continue
            blobs = {layer.media_type: _blob(root, layer.digest) for layer in reversed(layers)}
            model, projector = blobs.get(_OLLAMA_MODEL), blobs.get(_OLLAMA_PROJECTOR)
            found = self._found(model) if model is not None else None
            if model is None or found is None:
                continue
            host, namespace, name, _ = manifest.parts[-4:]
            named = msgspec.structs.replace(
                found,
                title=ollama_title(manifest),
                repo=f"{namespace}/{name}" if host in _HUGGING_FACE_HOSTS else "",
            )
            mmproj = self._found(projector) if projector is not None else None
            if mmproj is not None:
                yield msgspec.structs.replace(mmproj, title=tr("{0} (vision file)", named.title), repo=named.repo)
                named = msgspec.structs.replace(named, mmproj=mmproj.path)
            in_library = (host, namespace) == (_OLLAMA_HOST, _OLLAMA_LIBRARY)
            yield msgspec.structs.replace(named, from_ollamas_library=in_library)

    def _small_text(self, path: Path) -> bytes:
        """Return the bytes of a small file; none if it is missing or too large."""
        try:
            return read_bounded(path, _MAX_SMALL_FILE_BYTES)
        except OSError:
            return b""


def _with_origin(found: FoundModelFile) -> FoundModelFile:
    known = origin_of(Path(found.path))
    return msgspec.structs.replace(found, repo=known.repo, repo_path=known.path)


def _blob(root: Path, digest: str) -> Path | None:
    """Return the path of a blob; None for a text that isn't a digest, because it could lead to another folder."""
    kind, _, number = digest.partition(":")
    return root / "blobs" / f"sha256-{number}" if kind == "sha256" and _SHA256.fullmatch(number) else None
