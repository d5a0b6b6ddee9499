"""Makes an engine pack from the archives of a llama.cpp release, if the headers of its tag fit the worker's calls.

An archive has llama.cpp's programs too. Of its libraries, those of other backends are left out. On Linux and macOS it
has links for a library's other names; an engine folder has a file for each name that something asks for.
"""

import hashlib
import re
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

import msgspec

from qwendesk.core.engine_abi import AbiReport, EngineAbi, check_against_all, encode_abi, known_abis
from qwendesk.core.engine_manifest import ABI_TABLE_NAME, MANIFEST_NAME, Backend, EngineFile, EngineManifest
from qwendesk.core.files import write_whole
from qwendesk.core.input_files import open_regular
from qwendesk.core.permissions import create_own
from qwendesk.core.translation import tr
from qwendesk.core.units import GIB, MIB
from qwendesk.engines.c_headers import HEADER_NAMES, read_headers
from qwendesk.engines.c_tokens import CannotRead
from qwendesk.engines.llama_releases import ARCHITECTURES_NAME, known_architectures, number_of_types
from qwendesk.engines.pack_file import BadPack, PackStopped, Stopped

# Larger files are refused: the largest expected library, cublasLt, has 0.7 GB.
_MOST_MEMBER_BYTES = 4 * GIB
_MOST_HEADER_BYTES = 4 * MIB
_MOST_MEMBERS = 50_000
_CHUNK_BYTES = MIB
# What is opened by its name, and what other libraries ask for by the name with the number of the interface.
_OPENED = re.compile(r"lib(llama|mtmd)\.(so|dylib)")
_ASKED_FOR = re.compile(r"lib[\w-]+(\.so\.\d+|\.\d+\.dylib)")
_BACKEND = re.compile(r"(?:lib)?ggml-([a-z]+)[\w-]*\.(?:so|dll)")
_UNREADABLE = (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, RuntimeError, ValueError)
_IN_GGML: Mapping[Backend, str] = {"rocm": "hip"}


class ReleaseFiles(msgspec.Struct, frozen=True, kw_only=True):
    """What was downloaded of a release, or is in a folder of the user's."""

    tag: str
    backend: Backend
    archives: tuple[Path, ...]
    sources: Mapping[str, str]
    """The texts of the headers, and of the file that names the architectures, by name."""


def check_headers(files: ReleaseFiles) -> tuple[EngineAbi, AbiReport]:
    """Return what the worker uses in the headers, and whether it fits. Raises BadPack if they can't be read."""
    missing = [name for name in HEADER_NAMES if name not in files.sources]
    if missing:
        raise BadPack(
            tr("The source of {0} has no {1}, so it can't be checked whether it fits.", files.tag, missing[0])
        )
    known = known_abis()
    try:
        found = read_headers([files.sources[name] for name in HEADER_NAMES]).abi(files.tag, known[0])
    except CannotRead as error:
        raise BadPack(tr("The headers of {0} can't be read: {1}.", files.tag, error)) from error
    return found, check_against_all(known, found)


def make_pack(files: ReleaseFiles, folder: Path, replaces: str, stopped: Stopped = lambda: False) -> None:
    """Write the libraries of a release, their table of layouts and an `engine.json` into `folder`, which exists.

    `replaces` is the name of the engine in use. Raises BadPack if the headers don't fit or an archive is damaged,
    PackStopped, and OSError.
    """
    abi, report = check_headers(files)
    if not report.fits:
        raise BadPack(report.why_refused)
    written: dict[str, EngineFile] = {}
    for archive in files.archives:
        try:
            for name, content in _libraries(archive, files.backend):
                if stopped():
                    raise PackStopped
                written[name] = _write(folder / name, content, stopped)
        except _UNREADABLE as error:
            raise BadPack(tr("{0} is damaged: {1}. Download it again.", archive.name, error)) from error
    table = encode_abi(abi)
    write_whole(folder / ABI_TABLE_NAME, table)
    written[ABI_TABLE_NAME] = EngineFile(ABI_TABLE_NAME, len(table), hashlib.sha256(table).hexdigest())
    manifest = EngineManifest(
        name=f"{files.tag}-{files.backend}",
        package_version="",
        release=files.tag,
        replaces=replaces,
        backend=files.backend,
        architectures=known_architectures(files.sources.get(ARCHITECTURES_NAME, "")),
        n_types=number_of_types(files.sources.get("ggml.h", "")),
        files=tuple(written.values()),
    )
    write_whole(folder / MANIFEST_NAME, msgspec.json.format(msgspec.json.encode(manifest), indent=1))


def sources_in(archive: Path) -> dict[str, str]:
    """Return the texts in an archive of the source that the check needs, by name. Raises BadPack, or OSError."""
    texts: dict[str, tuple[int, str]] = {}
    try:
        with _opened(archive) as (members, read):
            for path in members:
                name, depth = PurePosixPath(path).name, path.count("/")
                if name not in (*HEADER_NAMES, ARCHITECTURES_NAME) or depth > texts.get(name, (99, ""))[0]:
                    continue
                with read(path) as stream:
                    content = stream.read(_MOST_HEADER_BYTES)
                if name not in texts or depth < texts[name][0]:
                    texts[name] = depth, content.decode("utf-8", "replace")
    except _UNREADABLE as error:
        raise BadPack(tr("{0} is damaged: {1}. Download it again.", archive.name, error)) from error
    return {name: text for name, (_, text) in texts.items()}


def kept_libraries(members: Mapping[str, bool], backend: Backend) -> dict[str, str]:
    """Return the members of an archive that belong into an engine, by the names that they get there.

    `members` tells of each path whether it is a file; the others are links.
    """
    own = _IN_GGML.get(backend, backend)
    kept = {}
    for path, is_file in members.items():
        name = PurePosixPath(path).name
        found = _BACKEND.fullmatch(name)
        is_backend = found is not None and is_file and (found[1] in ("cpu", own) or name == "ggml-base.dll")
        is_library = name.endswith(".dll") and found is None
        is_llama = _ASKED_FOR.fullmatch(name) and not re.match(r"lib(llama|mtmd)\.so\.", name)
        if is_backend or is_library or is_llama or _OPENED.fullmatch(name):
            kept[name] = path
    return kept


def _libraries(archive: Path, backend: Backend) -> Iterator[tuple[str, IO[bytes]]]:
    with _opened(archive) as (members, read):
        for name, path in kept_libraries(members, backend).items():
            with read(path) as content:
                yield name, content


@contextmanager
def _opened(archive: Path) -> Iterator[tuple[Mapping[str, bool], Callable[[str], IO[bytes]]]]:
    """Yield the paths in a zip or tar archive, each with whether it is a file, and a function that opens one.

    Opening a link opens the file of the archive to which it leads. Raises ValueError where it leads nowhere.
    """
    with open_regular(archive) as raw:
        if not archive.name.endswith((".tar.gz", ".tgz", ".tar")):
            with zipfile.ZipFile(raw) as packed:
                yield (
                    {each.filename: True for each in packed.infolist()[:_MOST_MEMBERS] if not each.is_dir()},
                    packed.open,
                )
            return
        with tarfile.open(fileobj=raw, mode="r:*") as tar:
            found = {}
            for each in tar:
                if each.isfile() or each.issym() or each.islnk():
                    found[each.name.removeprefix("./")] = each
                if len(found) > _MOST_MEMBERS:
                    raise ValueError(tr("it has too many files"))

            def read(path: str) -> IO[bytes]:
                for _ in range(8):
                    member = found[path]
                    if not member.issym() and not member.islnk():
                        stream = tar.extractfile(member)
                        assert stream is not None, "a regular file has a content"
                        return stream
                    parent = PurePosixPath(path).parent if member.issym() else PurePosixPath()
                    path = str(parent / member.linkname)
                    if path not in found:
                        break
                raise ValueError(tr("{0} leads to no file", path))

            yield {path: each.isfile() for path, each in found.items()}, read


def _write(target: Path, content: IO[bytes], stopped: Stopped) -> EngineFile:
    digest, n_bytes = hashlib.sha256(), 0
    with create_own(target) as file:
        while piece := content.read(_CHUNK_BYTES):
            if stopped():
                raise PackStopped
            n_bytes += len(piece)
            if n_bytes > _MOST_MEMBER_BYTES:
                raise ValueError(tr("{0} is too large", target.name))
            digest.update(piece)
            file.write(piece)
        file.flush()
    return EngineFile(target.name, n_bytes, digest.hexdigest())


def files_in(folder: Path, names: Sequence[str]) -> Iterator[Path]:
    """Yield the files in `folder` that match one of the patterns, the last one by name of each. Raises OSError."""
    for pattern in names:
        found = sorted(folder.glob(pattern))
        if found:
            yield found[-1]
