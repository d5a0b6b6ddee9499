"""Find, read and check engine folders on disk, and select the one that a worker loads."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from qwendesk.core.engine_manifest import MANIFEST_FORMAT, MANIFEST_NAME, BrokenEngine, EngineFolder, EngineManifest
from qwendesk.core.json_decoding import decode_json
from qwendesk.core.translation import tr

# Environment variables of llama-cpp-python for the folders of libllama and libmtmd.
LIBRARY_VARIABLES = ("LLAMA_CPP_LIB_PATH", "MTMD_CPP_LIB")

_CHUNK_BYTES = 1024 * 1024


def find_engines(places: Sequence[Path]) -> tuple[EngineFolder | BrokenEngine, ...]:
    """Return the engine folders directly in `places`, sorted by name. For the same name, the first place wins."""
    found: dict[str, EngineFolder | BrokenEngine] = {}
    for folder in _folders(places):
        found.setdefault(folder.name, read_engine(folder))
    return tuple(found[name] for name in sorted(found))


def read_engine(folder: Path) -> EngineFolder | BrokenEngine:
    """Read the manifest, and check the names and sizes of the files. `wrong_files` checks their contents."""

    def broken(sentence: str) -> BrokenEngine:
        return BrokenEngine(str(folder), folder.name, sentence)

    try:
        manifest = decode_json((folder / MANIFEST_NAME).read_bytes(), EngineManifest)
    except OSError as error:
        return broken(tr("Its file {0} can't be read: {1}.", MANIFEST_NAME, error.strerror or error))
    except msgspec.DecodeError as error:
        return broken(tr("Its file {0} is damaged: {1}.", MANIFEST_NAME, error))
    if manifest.format > MANIFEST_FORMAT:
        return broken(tr("It was made for a newer QwenDesk."))
    if manifest.name != folder.name:
        return broken(tr('Its folder was renamed: its own name is "{0}".', manifest.name))
    for file in manifest.files:
        path = folder / file.name
        if Path(file.name).name != file.name:
            return broken(tr('Its file list names a file outside the folder: "{0}".', file.name))
        try:
            n_bytes = path.stat().st_size
        except OSError:
            return broken(tr("{0} is missing. An antivirus program may have removed it.", file.name))
        if n_bytes != file.n_bytes:
            return broken(tr("{0} has {1} bytes instead of {2}.", file.name, n_bytes, file.n_bytes))
    return EngineFolder(str(folder), manifest)


def wrong_files(engine: EngineFolder) -> tuple[str, ...]:
    """Return the names of files whose content does not match the manifest.

    This reads every byte, which takes seconds for a GPU engine.
    """
    return tuple(file.name for file in engine.manifest.files if _sha256(Path(engine.path, file.name)) != file.sha256)


def library_environment(engine: EngineFolder | None) -> Mapping[str, str]:
    """Return the environment variables with which a worker loads this engine.

    None is the engine that is installed with llama-cpp-python; it needs no variables.
    """
    return dict.fromkeys(LIBRARY_VARIABLES, engine.path) if engine is not None else {}


def _folders(places: Sequence[Path]) -> Iterator[Path]:
    for place in places:
        try:
            yield from sorted(each for each in place.iterdir() if (each / MANIFEST_NAME).exists())
        except OSError:
            continue  # a missing folder has no engines


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK_BYTES):
                digest.update(chunk)
    except OSError:
        return ""
    return digest.hexdigest()
