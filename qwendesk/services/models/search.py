"""Searching the Hub, and looking into one repository: files as people choose them, and whether they fit this PC."""

import asyncio
import re
from collections.abc import Callable, Sequence
from pathlib import PurePosixPath
from typing import Literal

import msgspec

from qwendesk.core.errors import BadModelFile, QwenDeskError
from qwendesk.core.model_facts import ModelFacts, TensorFacts
from qwendesk.core.subscribers import Subscribers
from qwendesk.hub.catalog import Catalog, load_catalog
from qwendesk.hub.download_plan import is_mmproj, mmproj_for
from qwendesk.hub.remote import FoundRepo, RemoteFile, Sort
from qwendesk.hub.remote_header import remote_facts
from qwendesk.services.models.fitting import FitLabel, Pc, estimated_mmproj
from qwendesk.services.models.network import NetworkService
from qwendesk.services.models.planned import fit_of, planned

_PART = re.compile(r"-(\d{5})-of-(\d{5})\.gguf$", re.IGNORECASE)
_QUANT = re.compile(
    r"(?:UD-)?(?:I?Q\d(?:_[A-Z0-9]{1,3})*|TQ\d_\d|MXFP4(?:_MOE)?|NVFP4|BF16|F16|F32)(?=$|[-.])", re.IGNORECASE
)
_SIZE = re.compile(r"(?<![A-Za-z0-9.])(\d+(?:\.\d+)?)B(?![A-Za-z0-9])", re.IGNORECASE)
_LEAST_BYTES_PER_PARAM = 0.3
"""What the smallest quants take (UD-IQ2_XXS of 35B-A3B is at 0.30): what is too large at that is too large."""
_COMPANIONS = ("mtp-", "dflash-", "imatrix")
RESULTS = 40


class Hit(msgspec.Struct, frozen=True, kw_only=True):
    """One repository that a search found."""

    found: FoundRepo
    params_b: float | None = None
    """Billions of parameters, by the name."""
    may_fit: bool | None = None
    """Whether at least its smallest quants fit into the memory there is; None when the name does not tell."""


class RepoItem(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to download: a file, or all parts of a split set."""

    path: str
    """Of the first part."""
    name: str
    quant: str
    n_bytes: int
    """Of all parts."""
    n_parts: int
    date: str = ""
    mmproj_bytes: int = 0
    """Of the picture file that would come with it."""
    fit: FitLabel | None = None


class Opened(msgspec.Struct, frozen=True, kw_only=True):
    """One repository, looked into."""

    repo: str
    state: Literal["looking", "ready", "failed"] = "looking"
    problem: str = ""
    """Why it cannot be looked into, with what to do."""
    items: tuple[RepoItem, ...] = ()
    facts: ModelFacts | None = None
    """By the header of one of its files, without the tensors."""
    facts_problem: str = ""
    """Why the header could not be read; the files can be downloaded all the same."""
    model: str = ""
    """The catalog's name of the model, if it knows it."""


class SearchState(msgspec.Struct, frozen=True, kw_only=True):
    """What the Hugging Face tab shows."""

    query: str = ""
    sort: Sort = "downloads"
    state: Literal["idle", "searching", "done", "failed"] = "idle"
    problem: str = ""
    hits: tuple[Hit, ...] = ()
    opened: Opened | None = None


class SearchService:
    """Owns the search. Methods are called on the event loop's thread; the Hub is asked on others.

    A newer search, or another repository, makes the answer to an older one unheard.
    """

    def __init__(
        self, network: NetworkService, pc: Callable[[], Pc], *, catalog: Callable[[], Catalog] = load_catalog
    ) -> None:
        self._network, self._pc, self._catalog = network, pc, catalog
        self._state = SearchState()
        self._subscribers = Subscribers[SearchState]()
        self._searches = self._looks = 0

    @property
    def state(self) -> SearchState:
        return self._state

    def subscribe(self, callback: Callable[[SearchState], None]) -> Callable[[], None]:
        """Call `callback` with each new state. Returns what ends it."""
        return self._subscribers.add(callback)

    async def search(self, query: str, sort: Sort) -> None:
        """Look for repositories with GGUF files; what goes wrong becomes the state's `problem`."""
        self._searches += 1
        ticket = self._searches
        self._change(query=query, sort=sort, state="searching", problem="")
        try:
            found = await asyncio.to_thread(lambda: self._network.hub().search(query, sort=sort, limit=RESULTS))
        except QwenDeskError as error:
            if ticket == self._searches:
                self._change(state="failed", problem=error.sentence, hits=())
            return
        if ticket == self._searches:
            hits = tuple(_hit(each, self._pc()) for each in found)
            self._change(state="done", hits=hits)

    async def open(self, repo: str) -> None:
        """Look into `repo`: first its files, then one header, by range requests."""
        self._looks += 1
        ticket = self._looks
        self._change(opened=Opened(repo=repo))
        try:
            files, opened = await asyncio.to_thread(self._look, repo)
        except QwenDeskError as error:
            if ticket == self._looks:
                self._change(opened=Opened(repo=repo, state="failed", problem=error.sentence))
            return
        if ticket != self._looks:
            return
        self._change(opened=opened)
        if opened.items and opened.items[0].fit is None:
            read = await asyncio.to_thread(self._read_header, files, opened)
            if ticket == self._looks:
                self._change(opened=read)

    def close_repo(self) -> None:
        """Back to the results."""
        self._looks += 1
        self._change(opened=None)

    def _look(self, repo: str) -> tuple[tuple[RemoteFile, ...], Opened]:
        files = self._network.hub().files(repo)
        catalog, pc = self._catalog(), self._pc()
        known = catalog.repository(repo)
        model = catalog.model(known.model) if known is not None else None
        items = items_of(files)
        if model is not None:
            items = tuple(
                msgspec.structs.replace(each, fit=planned(model, each.n_bytes, each.mmproj_bytes, pc)[0])
                for each in items
            )
        return files, Opened(repo=repo, state="ready", items=items, model=model.id if model is not None else "")

    def _read_header(self, files: Sequence[RemoteFile], opened: Opened) -> Opened:
        """The header of the smallest file tells layers and experts of all; blocks."""
        smallest = min(opened.items, key=lambda each: each.n_bytes)
        file = next(each for each in files if each.path == smallest.path)
        try:
            facts = remote_facts(self._network.hub(), file)
        except (QwenDeskError, BadModelFile) as error:
            return msgspec.structs.replace(opened, facts_problem=error.sentence)
        pc = self._pc()
        items = tuple(_with_fit(each, scaled(facts, each.n_bytes), pc) for each in opened.items)
        return msgspec.structs.replace(opened, items=items, facts=msgspec.structs.replace(facts, tensors=()))

    def _change(self, **changes: object) -> None:
        state = msgspec.structs.replace(self._state, **changes)
        if state != self._state:
            self._state = state
            self._subscribers.notify(state)


def items_of(files: Sequence[RemoteFile]) -> tuple[RepoItem, ...]:
    """What can be chosen in a repository: models, all parts as one, smallest first; not picture or draft files."""
    items = []
    for file in files:
        name = PurePosixPath(file.path).name
        part = _PART.search(file.path)
        if is_mmproj(file) or name.lower().startswith(_COMPANIONS) or (part is not None and int(part[1]) != 1):
            continue
        parts = [file] if part is None else [each for each in files if _is_part_of(each.path, file.path)]
        pictures = mmproj_for(file, files)
        stem = _PART.sub("", name) if part is not None else name.removesuffix(".gguf")
        found = _QUANT.findall(stem)
        items.append(
            RepoItem(
                path=file.path,
                name=stem,
                quant=found[-1] if found else "",
                n_bytes=sum(each.n_bytes for each in parts),
                n_parts=len(parts),
                date=(file.date or "")[:10],
                mmproj_bytes=pictures.n_bytes if pictures is not None else 0,
            )
        )
    return tuple(sorted(items, key=lambda each: (each.n_bytes, each.name)))


def scaled(facts: ModelFacts, n_bytes: int) -> ModelFacts:
    """`facts` as if the file had `n_bytes`: another quant of the same model, spread alike over the layers.

    The first part of a split set may hold no tensors; then every layer counts the same.
    """
    total = sum(tensor.n_bytes for tensor in facts.tensors)
    blocks = max(facts.block_count, 1)
    if total < facts.file_bytes // 2 or not total:
        tensors = tuple(TensorFacts(f"blk.{index}.attn.weight", "", (), n_bytes // blocks) for index in range(blocks))
    else:
        tensors = tuple(
            msgspec.structs.replace(tensor, n_bytes=tensor.n_bytes * n_bytes // total) for tensor in facts.tensors
        )
    return msgspec.structs.replace(facts, file_bytes=n_bytes, tensors=tensors)


def params_of(repo: str) -> float | None:
    """Billions of parameters that a repository's name tells: 35 for "Qwen3.5-35B-A3B"."""
    found = _SIZE.findall(repo.rpartition("/")[2])
    return float(found[0]) if found else None


def _hit(found: FoundRepo, pc: Pc) -> Hit:
    params = params_of(found.repo)
    room = pc.vram_room_bytes + pc.ram_room_bytes
    may_fit = None if params is None or not room else params * 1e9 * _LEAST_BYTES_PER_PARAM <= room
    return Hit(found=found, params_b=params, may_fit=may_fit)


def _with_fit(item: RepoItem, facts: ModelFacts, pc: Pc) -> RepoItem:
    pictures = estimated_mmproj(item.mmproj_bytes) if item.mmproj_bytes else None
    return msgspec.structs.replace(item, fit=fit_of(facts, pictures, pc)[0])


def _is_part_of(path: str, first: str) -> bool:
    return _PART.sub("", path) == _PART.sub("", first) and _PART.search(path) is not None
