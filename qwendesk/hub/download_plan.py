"""Plans a download: all shards of a split model, and the mmproj that belongs to it."""

from collections.abc import Sequence
from pathlib import PurePosixPath

import msgspec

from qwendesk.core.file_names import Shard, is_mmproj_name, model_name, quant_in_name, sizes_in
from qwendesk.core.translation import join_list, tr
from qwendesk.hub.companion_pairing import QUANT_ORDER
from qwendesk.hub.network import HubError
from qwendesk.hub.remote import Hub, RemoteFile


class DownloadPlan(msgspec.Struct, frozen=True):
    """The files of one download, the model's first shard first."""

    files: tuple[RemoteFile, ...]

    @property
    def name(self) -> str:
        return PurePosixPath(self.files[0].path).name

    @property
    def n_bytes(self) -> int:
        return sum(file.n_bytes for file in self.files)


def plan_download(hub: Hub, repo: str, path: str, *, with_mmproj: bool) -> DownloadPlan:
    """Return the files to download for `path` of `repo` at its newest commit. Raises HubError."""
    files = hub.files(repo)
    wanted = next((file for file in files if file.path == path), None)
    if wanted is None:
        names = join_list(file.path for file in files)
        sentence = (
            tr("{0} has no {1}. It has: {2}.", repo, path, names) if names else tr("{0} has no GGUF files.", repo)
        )
        raise HubError("not_found", tr("File not found"), sentence)
    shards = _shards(wanted, files)
    mmproj = mmproj_for(wanted, files) if with_mmproj else None
    return DownloadPlan((*shards, *((mmproj,) if mmproj is not None else ())))


def mmproj_for(model: RemoteFile, files: Sequence[RemoteFile]) -> RemoteFile | None:
    """Return the best mmproj of the repository for `model`; None if there is none.

    F16 is preferred. Files whose names contain another model size are ignored.
    """
    if is_mmproj_name(model.path):
        return None
    sizes = sizes_in(model_name(model.path)) or sizes_in(model.repo)
    named = {file: sizes_in(model_name(file.path)) for file in files if is_mmproj_name(file.path)}
    fitting = [file for file, its_sizes in named.items() if not sizes or not its_sizes or sizes & its_sizes]
    return min(fitting, key=lambda file: (_quant_rank(file), file.path), default=None)


def _shards(wanted: RemoteFile, files: Sequence[RemoteFile]) -> tuple[RemoteFile, ...]:
    shard = Shard.parse(wanted.path)
    if shard is None:
        return (wanted,)
    by_path = {file.path: file for file in files}
    missing = [name for name in shard.siblings if name not in by_path]
    if missing:
        raise HubError(
            "not_found", tr("A shard of the model is missing"), tr("{0} has no {1}.", wanted.repo, missing[0])
        )
    return tuple(by_path[name] for name in shard.siblings)


def _quant_rank(file: RemoteFile) -> int:
    quant = quant_in_name(file.path)
    return QUANT_ORDER.index(quant) if quant in QUANT_ORDER else len(QUANT_ORDER)
