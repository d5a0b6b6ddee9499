"""Searches the Hub, and lists the files of one repository with whether they fit this PC."""

import asyncio
from collections.abc import Sequence
from typing import Literal

import msgspec

from qwendesk.core.errors import BadModelFile, QwenDeskError
from qwendesk.core.file_names import billions_in, draft_mark, model_name
from qwendesk.core.model_facts import ModelFacts
from qwendesk.core.observed import Observed
from qwendesk.hub.catalog_schema import CatalogModel, Licence, Repository
from qwendesk.hub.catalog_updates import CatalogStore
from qwendesk.hub.gguf_types import program_for_quant
from qwendesk.hub.remote import FoundRepo, RemoteFile, Sort
from qwendesk.models.fit import Pc, estimate_fit
from qwendesk.models.network import NetworkService
from qwendesk.models.offers import Offers
from qwendesk.models.repo_files import RepoFile, repo_files, set_facts, with_fit
from qwendesk.models.uploaders import preferred_repository

# Size of the smallest quants (UD-IQ2_XXS of 35B-A3B: 0.30). A model that doesn't fit at this size never fits.
_MIN_BYTES_PER_PARAM = 0.3
MAX_RESULTS = 40


class HubSearchHit(msgspec.Struct, frozen=True, kw_only=True):
    """One repository found by a search."""

    found: FoundRepo
    params_b: float | None = None
    """Billions of parameters, from the name; None if it doesn't say."""
    may_fit: bool | None = None
    """True if its smallest quants could fit in memory; None if unknown."""
    model: CatalogModel | None = None
    """The model if the hit is from the catalog, which has no counts of downloads and likes."""


class OpenedRepo(msgspec.Struct, frozen=True, kw_only=True):
    """The repository that is shown."""

    repo: str
    state: Literal["looking", "ready", "failed"] = "looking"
    problem: str = ""
    """Reason why the files can't be listed, and what to do."""
    items: tuple[RepoFile, ...] = ()
    """The files that the catalog knows, if `state` is "failed"."""
    facts: ModelFacts | None = None
    """From the header of one of its files, without the tensors."""
    facts_problem: str = ""
    """Reason why the header could not be read. The files can be downloaded nevertheless."""
    model: str = ""
    """The model's id in the catalog, if it is there."""
    licence: Licence | None = None
    """None if the catalog doesn't say."""


class SearchState(msgspec.Struct, frozen=True, kw_only=True):
    """What the Hugging Face tab shows."""

    query: str = ""
    sort: Sort = "downloads"
    state: Literal["idle", "searching", "done", "failed"] = "idle"
    """State of the search; if "idle", `hits` are the models of the catalog, and if "failed" those that match."""
    problem: str = ""
    hits: tuple[HubSearchHit, ...] = ()
    opened: OpenedRepo | None = None


class ModelSearch:
    """Owns the search. Call its methods on the event loop's thread; it asks the Hub on others.

    The answer to an earlier search or repository is dropped when a newer one has been asked for.
    """

    def __init__(self, network: NetworkService, offers: Observed[Offers], catalog: CatalogStore) -> None:
        self._network, self._offers, self._catalog = network, offers, catalog
        self.state = Observed(SearchState())
        self._searches = self._opens = 0

    async def show_catalog(self) -> None:
        """Show the models of the catalog, which needs no network."""
        self._searches += 1
        ticket = self._searches
        hits = await asyncio.to_thread(self._catalog_hits)
        if ticket == self._searches:
            self.state.update(query="", state="idle", problem="", hits=hits)

    async def search(self, query: str, sort: Sort) -> None:
        """Search for repositories with GGUF files. An error becomes the state's `problem`."""
        self._searches += 1
        ticket = self._searches
        self.state.update(query=query, sort=sort, state="searching", problem="")
        try:
            found = await asyncio.to_thread(lambda: self._network.hub().search(query, sort=sort, limit=MAX_RESULTS))
        except QwenDeskError as error:
            known = await asyncio.to_thread(self._catalog_hits)
            hits = tuple(hit for hit in known if _matches(hit, query))
            if ticket == self._searches:
                self.state.update(state="failed", problem=error.sentence, hits=hits)
            return
        if ticket == self._searches:
            hits = tuple(_make_hit(each, self._offers.value.pc) for each in found if not draft_mark(each.repo))
            self.state.update(state="done", hits=hits)

    async def open(self, repo: str) -> None:
        """List the files of `repo`, then read the header of one of them by range requests."""
        self._opens += 1
        ticket = self._opens
        self.state.update(opened=OpenedRepo(repo=repo))
        try:
            files, opened = await asyncio.to_thread(self._list_files, repo)
        except QwenDeskError as error:
            items, licence = await asyncio.to_thread(lambda: (self._catalog_files(repo), self._licence(repo)))
            if ticket == self._opens:
                failed = OpenedRepo(repo=repo, state="failed", problem=error.sentence, items=items, licence=licence)
                self.state.update(opened=failed)
            return
        if ticket != self._opens:
            return
        self.state.update(opened=opened)
        if opened.items and opened.items[0].fit is None:
            read = await asyncio.to_thread(self._read_header, files, opened)
            if ticket == self._opens:
                self.state.update(opened=read)

    def close_repo(self) -> None:
        """Show the search results again."""
        self._opens += 1
        self.state.update(opened=None)

    def _catalog_hits(self) -> tuple[HubSearchHit, ...]:
        """Return the preferred repository of each model of the catalog."""
        catalog, pc = self._catalog.catalog, self._offers.value.pc
        repositories = (preferred_repository(catalog, model) for model in catalog.models)
        return tuple(
            msgspec.structs.replace(_make_hit(_found(each), pc), model=catalog.model(each.model))
            for each in repositories
            if each is not None
        )

    def _catalog_files(self, repo: str) -> tuple[RepoFile, ...]:
        """Return the files of `repo` in the catalog, smallest first; none if it isn't there."""
        catalog, pc = self._catalog.catalog, self._offers.value.pc
        repository = catalog.repository(repo)
        model = catalog.model(repository.model) if repository is not None else None
        if repository is None or model is None:
            return ()
        found = catalog.find_file(repository.mmproj_repo, repository.mmproj_path)
        mmproj_bytes = found.file.n_bytes if found is not None else 0
        items = (
            RepoFile(
                path=file.path,
                name=model_name(file.path),
                quant=file.quant,
                n_bytes=file.n_bytes,
                n_shards=max(len(file.parts), 1),
                date=file.seen or repository.seen,
                mmproj_bytes=mmproj_bytes,
                fit=estimate_fit(model, file.n_bytes, mmproj_bytes, pc)[0],
                program=program_for_quant(file.quant),
            )
            for file in repository.files
            if file.kind == "model"
        )
        return tuple(sorted(items, key=lambda each: (each.n_bytes, each.name)))

    def _list_files(self, repo: str) -> tuple[tuple[RemoteFile, ...], OpenedRepo]:
        files = self._network.hub().files(repo)
        catalog, pc = self._catalog.catalog, self._offers.value.pc
        known = catalog.repository(repo)
        model = catalog.model(known.model) if known is not None else None
        items = repo_files(files)
        if model is not None:
            items = tuple(
                msgspec.structs.replace(each, fit=estimate_fit(model, each.n_bytes, each.mmproj_bytes, pc)[0])
                for each in items
            )
        name = model.id if model is not None else ""
        return files, OpenedRepo(repo=repo, state="ready", items=items, model=name, licence=self._licence(repo))

    def _licence(self, repo: str) -> Licence | None:
        return self._catalog.catalog.licence_of(repo)

    def _read_header(self, files: Sequence[RemoteFile], opened: OpenedRepo) -> OpenedRepo:
        """Read the header of the smallest file, which has the layers and experts of all quants. Blocks."""
        smallest = min(opened.items, key=lambda each: each.n_bytes)
        try:
            facts = set_facts(self._network.hub(), files, smallest.path)
        except (QwenDeskError, BadModelFile) as error:
            return msgspec.structs.replace(opened, facts_problem=error.sentence)
        pc = self._offers.value.pc
        items = tuple(with_fit(each, facts, pc) for each in opened.items)
        return msgspec.structs.replace(opened, items=items, facts=msgspec.structs.replace(facts, tensors=()))


def params_from_name(repo: str) -> float | None:
    """Return the billions of parameters in a repository's name: 35 for "Qwen3.5-35B-A3B"; None if it has none."""
    return billions_in(repo.rpartition("/")[2])


def _matches(hit: HubSearchHit, query: str) -> bool:
    text = f"{hit.found.repo} {hit.model.id if hit.model is not None else ''}".lower()
    return all(word in text for word in query.lower().split())


def _found(repository: Repository) -> FoundRepo:
    return FoundRepo(repository.repo, 0, 0, repository.seen, gated=False, marks=())


def _make_hit(found: FoundRepo, pc: Pc) -> HubSearchHit:
    params = params_from_name(found.repo)
    room = pc.room_bytes
    may_fit = None if params is None or not room else params * 1e9 * _MIN_BYTES_PER_PARAM <= room
    return HubSearchHit(found=found, params_b=params, may_fit=may_fit)
