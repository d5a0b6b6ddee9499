"""The model files of one repository on the Hub, and facts of all of them from the header of one."""

import functools
from collections.abc import Callable, Sequence

import msgspec

from qwendesk.core.file_names import Shard, is_helper_name, model_name, quant_in_name
from qwendesk.core.model_facts import LAZY_TABLE, ModelFacts, TensorFacts
from qwendesk.core.plan import SpeedEstimate
from qwendesk.hub.download_plan import mmproj_for
from qwendesk.hub.gguf import MAX_BLOCKS, join_shards
from qwendesk.hub.gguf_types import program_for_quant
from qwendesk.hub.remote import Hub, RemoteFile
from qwendesk.hub.remote_header import remote_facts
from qwendesk.models.fit import FitLabel, Pc, estimate_mmproj, plan_fit

# Shards whose headers are read. The tensors of a set are in all of them, but few sets have more.
_MAX_SHARDS_READ = 8


class RepoFile(msgspec.Struct, frozen=True, kw_only=True):
    """One model that can be downloaded: a file, or all shards of a split model."""

    path: str
    """Path of the first shard."""
    name: str
    quant: str
    n_bytes: int
    """Of all shards."""
    n_shards: int
    date: str = ""
    mmproj_bytes: int = 0
    """Size of the vision projector that is downloaded with it."""
    fit: FitLabel | None = None
    program: str = ""
    """The program that it was made for, with its address, if the name of its quant says that it's not llama.cpp."""


def repo_files(files: Sequence[RemoteFile]) -> tuple[RepoFile, ...]:
    """Return the models among `files`, smallest first, without the files that only help models."""
    items = []
    for file in files:
        shard = Shard.parse(file.path)
        if is_helper_name(file.path) or (shard is not None and not shard.is_first):
            continue
        shards = [file] if shard is None else [each for each in files if each.path in shard.siblings]
        projector = mmproj_for(file, files)
        quant = quant_in_name(file.path)
        items.append(
            RepoFile(
                path=file.path,
                name=model_name(file.path),
                quant=quant,
                program=program_for_quant(quant),
                n_bytes=sum(each.n_bytes for each in shards),
                n_shards=len(shards),
                date=(file.date or "")[:10],
                mmproj_bytes=projector.n_bytes if projector is not None else 0,
            )
        )
    return tuple(sorted(items, key=lambda each: (each.n_bytes, each.name)))


def set_facts(
    hub: Hub, files: Sequence[RemoteFile], path: str, is_stopped: Callable[[], bool] = lambda: False
) -> ModelFacts:
    """Return the facts of the model at `path`, from the headers of all its shards. Blocks.

    Raises BadModelFile and HubError as `remote_facts` does.
    """
    shard = Shard.parse(path)
    paths = (path,) if shard is None else shard.siblings[:_MAX_SHARDS_READ]
    there = {each.path: each for each in files}
    return join_shards([remote_facts(hub, there[each], is_stopped) for each in paths if each in there])


def scale_facts(facts: ModelFacts, n_bytes: int) -> ModelFacts:
    """Return the facts of another quant of the same model that has `n_bytes`.

    The bytes are spread over the layers as in `facts`, or evenly if its first shard holds no tensors. A table that is
    read row by row has the same size in all quants, as in those of Qwen3.8-Flash-Next.
    """
    table = sum(tensor.n_bytes for tensor in facts.tensors if tensor.name == LAZY_TABLE)
    total = sum(tensor.n_bytes for tensor in facts.tensors) - table
    blocks = min(max(facts.block_count, 1), MAX_BLOCKS)
    rest = max(n_bytes - table, 0)
    if total + table < facts.file_bytes // 2 or not total:
        tensors = tuple(TensorFacts(f"blk.{index}.attn.weight", "", (), n_bytes // blocks) for index in range(blocks))
    else:
        tensors = tuple(
            tensor
            if tensor.name == LAZY_TABLE
            else msgspec.structs.replace(tensor, n_bytes=tensor.n_bytes * rest // total)
            for tensor in facts.tensors
        )
    return msgspec.structs.replace(facts, file_bytes=n_bytes, tensors=tensors)


def with_fit(item: RepoFile, facts: ModelFacts, pc: Pc) -> RepoFile:
    """Return `item` with how it would run on `pc`. `facts` are those of any file of its model. Results are cached."""
    return msgspec.structs.replace(item, fit=fit_of(facts, item.n_bytes, item.mmproj_bytes, pc)[0])


@functools.lru_cache(maxsize=512)
def fit_of(facts: ModelFacts, n_bytes: int, mmproj_bytes: int, pc: Pc) -> tuple[FitLabel, SpeedEstimate | None]:
    """Return `plan_fit` of a file of `n_bytes` of the model that `facts` are of. Results are cached."""
    mmproj = estimate_mmproj(mmproj_bytes) if mmproj_bytes else None
    return plan_fit(scale_facts(facts, n_bytes), mmproj, pc)
