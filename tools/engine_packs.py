"""`python -m tools.engine_packs ENTRY.json ...`: puts engine packs into resources/engine_packs.json.

An entry is what `tools.bundle.pack` writes, or the same written by hand for archives of others, with "sha256": "" and
"n_bytes": 0 where nobody knows them yet. Every archive is downloaded and unpacked as the app does it, so that nothing
comes into the list that the app could not fetch. Whether the engine runs is for a person with such a card to say.
"""

import argparse
import asyncio
import hashlib
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import httpx2
import msgspec

from qwendesk.core.engine_manifest import EnginePack, PackArchive
from qwendesk.engines.packs import PackList, PacksService, PackState
from qwendesk.hub.network import Network
from tools.setup.project import ROOT, SetupError

LIST = ROOT / "resources" / "engine_packs.json"


def add(entries: Sequence[Path], list_file: Path = LIST) -> PackList:
    """The list with these packs, written and returned; one of the same name for the same system is replaced.

    Raises SetupError when an archive cannot be had, is not what its entry says, or holds no engine.
    """
    known = msgspec.json.decode(list_file.read_bytes(), type=PackList)
    packs = {(pack.platform, pack.name): pack for pack in known.packs}
    for entry in entries:
        try:
            pack = msgspec.json.decode(entry.read_bytes(), type=EnginePack)
        except (OSError, msgspec.DecodeError) as error:
            raise SetupError(f"{entry} is no entry of a pack: {error}") from error
        packs[pack.platform, pack.name] = _tried(msgspec.structs.replace(pack, archives=_pinned(pack)))
    changed = msgspec.structs.replace(known, packs=tuple(packs[key] for key in sorted(packs)))
    list_file.write_bytes(msgspec.json.format(msgspec.json.encode(changed), indent=1) + b"\n")
    return changed


def _pinned(pack: EnginePack) -> tuple[PackArchive, ...]:
    """Each with its size and hash; what an entry gives already is kept, and checked by the fetch."""
    return tuple(each if each.sha256 and each.n_bytes else _measured(each) for each in pack.archives)


def _measured(archive: PackArchive) -> PackArchive:
    digest, n_bytes = hashlib.sha256(), 0
    try:
        with httpx2.stream(
            "GET", archive.url, follow_redirects=True, headers={"Accept-Encoding": "identity"}
        ) as answer:
            answer.raise_for_status()
            for piece in answer.iter_raw():
                digest.update(piece)
                n_bytes += len(piece)
    except httpx2.HTTPError as error:
        raise SetupError(f"{archive.url} cannot be had: {error}") from error
    if archive.sha256 not in ("", digest.hexdigest()):
        raise SetupError(f"{archive.url} has another SHA-256 than its entry says: {digest.hexdigest()}")
    return msgspec.structs.replace(archive, n_bytes=n_bytes, sha256=digest.hexdigest())


def _tried(pack: EnginePack) -> EnginePack:
    """The pack, once the app's own code made an engine folder of it."""
    with tempfile.TemporaryDirectory(prefix="qwendesk-pack-") as folder:
        place = Path(folder) / "engines"
        state = asyncio.run(_fetched(pack, place))
        if not state.is_installed:
            raise SetupError(f"{pack.title} cannot be fetched: {state.problem}")
        names = [path.name for path in (place / pack.name).iterdir()]
        for library in ("llama", "mtmd"):
            if not any(name.removeprefix("lib").startswith(f"{library}.") for name in names):
                raise SetupError(f"{pack.title} has no library {library}; its archives hold {', '.join(sorted(names))}")
    return pack


async def _fetched(pack: EnginePack, place: Path) -> PackState:
    service = PacksService((pack,), pack.package_version, Network, folder=place, on_platform=pack.platform)
    return await service.install(pack.name)


def main(arguments: Sequence[str]) -> int:
    """Returns 0, or 1 with a sentence of what is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tools.engine_packs", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("entries", nargs="+", type=Path, metavar="ENTRY.json")
    options = parser.parse_args(arguments)
    try:
        for pack in add(options.entries).packs:
            print(f"{pack.platform}  {pack.name}  {pack.title}  {pack.n_bytes / 2**20:.0f} MB")
    except SetupError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
