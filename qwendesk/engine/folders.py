"""Engine folders on disk: found, read, checked, and named to the worker that shall load one."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from qwendesk.core.engines import MANIFEST_FORMAT, MANIFEST_NAME, BrokenEngine, EngineFolder, EngineManifest
from qwendesk.core.files import decode_json

LIBRARY_VARIABLES = ("LLAMA_CPP_LIB_PATH", "MTMD_CPP_LIB")
"""What llama-cpp-python reads to find libllama and libmtmd; both are folders."""

_CHUNK_BYTES = 1024 * 1024


def find_engines(places: Sequence[Path]) -> tuple[EngineFolder | BrokenEngine, ...]:
    """Every engine folder directly in `places`, by name; of two with one name, that of the earlier place."""
    found: dict[str, EngineFolder | BrokenEngine] = {}
    for folder in _folders(places):
        found.setdefault(folder.name, read_engine(folder))
    return tuple(found[name] for name in sorted(found))


def read_engine(folder: Path) -> EngineFolder | BrokenEngine:
    """Reads the manifest and looks at the files' names and sizes; contents are for `wrong_files`."""

    def broken(sentence: str) -> BrokenEngine:
        return BrokenEngine(str(folder), folder.name, sentence)

    try:
        manifest = decode_json((folder / MANIFEST_NAME).read_bytes(), EngineManifest)
    except OSError as error:
        return broken(f"Its {MANIFEST_NAME} cannot be read: {error.strerror or error}.")
    except msgspec.DecodeError as error:
        return broken(f"Its {MANIFEST_NAME} is damaged: {error}.")
    if manifest.format > MANIFEST_FORMAT:
        return broken("It was made for a newer QwenDesk.")
    if manifest.name != folder.name:
        return broken(f'Its folder was renamed: it calls itself "{manifest.name}".')
    for file in manifest.files:
        path = folder / file.name
        if Path(file.name).name != file.name:
            return broken(f'Its manifest names a file outside the folder: "{file.name}".')
        try:
            n_bytes = path.stat().st_size
        except OSError:
            return broken(f"{file.name} is missing.")
        if n_bytes != file.n_bytes:
            return broken(f"{file.name} has {n_bytes} bytes instead of {file.n_bytes}.")
    return EngineFolder(str(folder), manifest)


def wrong_files(engine: EngineFolder) -> tuple[str, ...]:
    """Names of the files whose content is not what the manifest says. Reads everything: seconds for a GPU engine."""
    return tuple(file.name for file in engine.manifest.files if _sha256(Path(engine.path, file.name)) != file.sha256)


def library_environment(engine: EngineFolder | None) -> Mapping[str, str]:
    """What a worker's environment needs to load this engine; None is the one installed with the package."""
    return dict.fromkeys(LIBRARY_VARIABLES, engine.path) if engine is not None else {}


def _folders(places: Sequence[Path]) -> Iterator[Path]:
    for place in places:
        try:
            yield from sorted(each for each in place.iterdir() if (each / MANIFEST_NAME).exists())
        except OSError:
            continue  # a place that is not there has no engines


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK_BYTES):
                digest.update(chunk)
    except OSError:
        return ""
    return digest.hexdigest()
