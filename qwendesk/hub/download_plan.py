"""Which files one download is: all parts of a split model, and the picture file (mmproj) that belongs to it."""

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

import msgspec

from qwendesk.hub.network import HubTrouble
from qwendesk.hub.pairing import QUANT_ORDER
from qwendesk.hub.remote import Hub, RemoteFile

_PART = re.compile(r"(?P<stem>.+)-(?P<part>\d{5})-of-(?P<parts>\d{5})\.gguf", re.IGNORECASE)
_SIZE = re.compile(r"(?<![A-Za-z0-9.])\d+(?:\.\d+)?B(?:-A\d+(?:\.\d+)?B)?(?![A-Za-z0-9])", re.IGNORECASE)


class DownloadPlan(msgspec.Struct, frozen=True):
    """The files of one download, the model's first part first."""

    files: tuple[RemoteFile, ...]

    @property
    def name(self) -> str:
        return PurePosixPath(self.files[0].path).name

    @property
    def n_bytes(self) -> int:
        return sum(file.n_bytes for file in self.files)


def plan_download(hub: Hub, repo: str, path: str, *, with_mmproj: bool) -> DownloadPlan:
    """What to fetch for `path` of `repo`, pinned to its newest commit. Raises HubTrouble when it cannot be had."""
    files = hub.files(repo)
    wanted = next((file for file in files if file.path == path), None)
    if wanted is None:
        names = ", ".join(file.path for file in files) or "no GGUF file"
        raise HubTrouble("not_found", "File not found", f"{repo} has no {path}. It has: {names}.")
    parts = _parts(wanted, files)
    mmproj = mmproj_for(wanted, files) if with_mmproj else None
    return DownloadPlan((*parts, *((mmproj,) if mmproj is not None else ())))


def mmproj_for(model: RemoteFile, files: Sequence[RemoteFile]) -> RemoteFile | None:
    """The best picture file of the repository for `model`: not one that names another size, F16 before others."""
    if is_mmproj(model):
        return None
    sizes = _sizes(PurePosixPath(model.path).name) or _sizes(model.repo)
    named = {file: _sizes(PurePosixPath(file.path).name) for file in files if is_mmproj(file)}
    fitting = [file for file, its_sizes in named.items() if not sizes or not its_sizes or sizes & its_sizes]
    return min(fitting, key=lambda file: (_quant_rank(file), file.path), default=None)


def is_mmproj(file: RemoteFile) -> bool:
    return "mmproj" in PurePosixPath(file.path).name.lower()


def _parts(wanted: RemoteFile, files: Sequence[RemoteFile]) -> tuple[RemoteFile, ...]:
    found = _PART.fullmatch(wanted.path)
    if found is None:
        return (wanted,)
    names = [f"{found['stem']}-{part:05}-of-{found['parts']}.gguf" for part in range(1, int(found["parts"]) + 1)]
    by_path = {file.path: file for file in files}
    missing = [name for name in names if name not in by_path]
    if missing:
        raise HubTrouble("not_found", "Part of the model is missing", f"{wanted.repo} has no {missing[0]}.")
    return tuple(by_path[name] for name in names)


def _quant_rank(file: RemoteFile) -> int:
    words = re.split(r"[-.]", PurePosixPath(file.path).name.upper())
    return next((rank for rank, quant in enumerate(QUANT_ORDER) if quant in words), len(QUANT_ORDER))


def _sizes(name: str) -> set[str]:
    return {found.upper() for found in _SIZE.findall(name)}
