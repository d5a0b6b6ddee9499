"""New models on the Hub: what the catalog's uploaders and Qwen have added since the catalog was made.

Names, sizes, tags and headers are what strangers wrote. They are bounded here, and shown as plain text.
"""

import datetime
import logging
import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import msgspec

from qwendesk import __version__
from qwendesk.core.architectures import OTHER
from qwendesk.core.engine_knowledge import NO_OTHERS, EngineKnowledge, read_knowledge
from qwendesk.core.file_names import Shard, draft_mark
from qwendesk.core.json_file import JsonFile
from qwendesk.core.model_facts import ModelFacts
from qwendesk.core.model_titles import gguf_words, model_title
from qwendesk.core.presets import family_of_file
from qwendesk.core.translation import join_list, join_sentences, tr, tr_n
from qwendesk.hardware.plan_text import like_family_text
from qwendesk.hub.catalog import Catalog
from qwendesk.hub.catalog_schema import Licence
from qwendesk.hub.evidence import HeaderError
from qwendesk.hub.finding_texts import FINDINGS, fill
from qwendesk.hub.gguf_source import BadHeader
from qwendesk.hub.gguf_types import DRAFT_ARCHITECTURES, SUPPORTED_ARCHITECTURES
from qwendesk.hub.network import UNREACHABLE, HubError
from qwendesk.models.fit import Pc
from qwendesk.models.ranking import BEST_FIRST, QuantOffer, choose_quant
from qwendesk.models.repo_files import RepoFile, fit_of, repo_files, set_facts, with_fit
from qwendesk.models.uploaders import UPLOADERS

if TYPE_CHECKING:  # importing the Hub's library takes long
    from qwendesk.hub.remote import FoundRepo, Hub, RemoteFile

_logger = logging.getLogger(__name__)

# Models that are kept and shown, and repositories whose files and headers are read in one look-up: a header of Qwen has
# about 12 MB. Those that are left come with the next look-up.
MAX_MODELS, MAX_READ = 8, 6
# Repositories in one list, the newest first. bartowski adds several a day, but not several of Qwen.
_MAX_LISTED = 100
_MAX_OWNERS = 16
_MAX_ITEMS = 40
# Files of one repository whose headers are read, if those of the smaller ones are of no use.
_MAX_HEADERS = 3
_MAX_TEMPLATE = 64 * 1024
# Cases of a finding that a newer engine mends.
_NEWER_TYPE_CASES = ("tensor-type", "newer-type")
# A repository may be made some time before it's shown to everybody.
_HIDDEN_DAYS = 90
_QWEN = "Qwen"
_REPO = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}", re.ASCII)
_LICENCE = re.compile(r"[\w.+-]{1,40}", re.ASCII)
_NOT_FOR_CHAT = re.compile(r"(?<![a-z])(base|embedding|reranker|tts|asr|guard|image)(?![a-z])", re.IGNORECASE)
_MTP = re.compile(r"[-_.]MTP(?=[-_.]|$)", re.IGNORECASE)


class NewModel(msgspec.Struct, frozen=True, kw_only=True):
    """A model, or another upload of one, that isn't in the catalog."""

    name: str
    repo: str
    others: tuple[str, ...] = ()
    """Repositories of the same model by other uploaders."""
    created: str
    """Day on which the repository was made (ISO 8601)."""
    changed: str
    """When it was last changed."""
    licence: str = ""
    """As its card names it; "" if it doesn't."""
    base: str = ""
    """The repository of Qwen that it was made from; "" if its card names none."""
    is_gated: bool = False
    items: tuple[RepoFile, ...] = ()
    """The smallest first, without their fit."""
    facts: ModelFacts | None = None
    """Of one of its files; None if no header could be read."""
    errors: dict[str, HeaderError] = {}
    """Why the engine can't use a file, by the path of the file."""
    read_by: str = ""
    """The version of QwenDesk that read the headers. Another one may know more of them."""

    @property
    def card(self) -> str:
        """The repository with the model's card."""
        return self.base or self.repo


class NewOffer(msgspec.Struct, frozen=True, kw_only=True):
    """A new model for this PC."""

    model: NewModel
    item: RepoFile | None = None
    """The file to take, with its fit; one that doesn't fit if none does; None if the engine can't load the model."""
    is_too_large: bool = False
    """Its smallest file alone is larger than what models may use of this PC's memory."""
    known: str = ""
    """The model in the catalog that these are other files of; "" if the model is new."""
    like: str = ""
    """How it's treated as a model of a newer Qwen, in a sentence; "" if it isn't one."""
    licence: Licence | None = None
    """The licence of the catalog's model, if that holds for this one."""
    why_not: str = ""
    """Why no engine here can load it, and which program or release can, in sentences; "" if one can."""
    needs_engine: bool = False
    """Whether another release of llama.cpp may load it, which the Engine page gets."""


class NewLookUp(msgspec.Struct, frozen=True):
    """What the Hub answered."""

    models: tuple[NewModel, ...]
    problem: str = ""
    """Reason why not all were asked, in a sentence."""


def new_models_file(folder: Path) -> JsonFile[tuple[NewModel, ...]]:
    """Return the file in which look-ups save what they found."""
    return JsonFile(folder / "catalog-new-models.json", tuple[NewModel, ...], tuple, keep_unusable=False)


def owners_of(catalog: Catalog) -> Mapping[str, str]:
    """Return the uploaders to ask, the preferred first, each with a word in the names of its Qwen models.

    The word is "" for an uploader that gives them names of its own.
    """
    names: dict[str, list[str]] = {owner: [] for owner in UPLOADERS}
    for each in catalog.repositories:
        names.setdefault(each.uploader, []).append(each.repo.partition("/")[2].lower())
    owners = {
        owner: _QWEN.lower() if all(_QWEN.lower() in name for name in known) else "" for owner, known in names.items()
    }
    return dict([*owners.items()][: _MAX_OWNERS - 1]) | {_QWEN: ""}


def look_up_new(
    catalog: Catalog,
    known: Sequence[NewModel],
    hub: "Hub",
    stop: threading.Event,
    *,
    gap_s: float,
    on_progress: Callable[[int], None] = lambda _n_owners: None,
) -> NewLookUp:
    """Ask for the newest repositories of each uploader, and read a header of those that are new or have changed.

    Blocks until the last answer or until `stop` is set, and waits `gap_s` between two repositories. What is `known` and
    still there is kept, also after a failure. `on_progress` is called with the number of uploaders that were asked.
    Network errors are not raised.
    """
    listed: list[FoundRepo] = []
    gone_from: set[str] = set()
    for number, (owner, words) in enumerate(owners_of(catalog).items()):
        if stop.is_set() or (number and stop.wait(gap_s)):
            return NewLookUp(tuple(known))
        try:
            found = hub.newest(owner, words, limit=_MAX_LISTED)
        except HubError as error:
            if error.kind in UNREACHABLE and error.kind != "bad_answer":
                return NewLookUp(tuple(known), error.sentence)
            _logger.info("The repositories of %s were not listed: %s", owner, error.sentence)
        else:
            listed += [each for each in found if _is_of(each.repo, owner)]
            if len(found) < _MAX_LISTED:
                gone_from.add(owner)
        on_progress(number + 1)
    there = {each.repo for each in listed}
    kept = [model for model in known if model.repo in there or _owner(model.repo) not in gone_from]
    return _read_new(catalog, kept, [each for each in listed if _is_new(catalog, each)], hub, stop, gap_s)


def _is_of(repo: str, owner: str) -> bool:
    return _REPO.fullmatch(repo) is not None and _owner(repo) == owner


def _owner(repo: str) -> str:
    return repo.partition("/")[0]


def _is_new(catalog: Catalog, found: "FoundRepo") -> bool:
    """Return whether this is a chat model of Qwen that came after the catalog. Models made from others' aren't."""
    name = found.repo.partition("/")[2]
    # A card that names no base may be of a model of the uploader's own, so the name decides.
    named = found.bases or ((f"{_QWEN}/",) if _QWEN.lower() in found.repo.lower() else ())
    is_qwens = any(each.startswith(f"{_QWEN}/") for each in named)
    if not is_qwens or found.marks or draft_mark(name) or _NOT_FOR_CHAT.search(name):
        return False
    since = datetime.date.fromisoformat(catalog.date)
    earliest = (since - datetime.timedelta(days=_HIDDEN_DAYS)).isoformat()
    is_late = (found.created or "")[:10] >= earliest and (found.date or "")[:10] >= catalog.date
    return is_late and catalog.repository(found.repo) is None


def _read_new(
    catalog: Catalog,
    known: Sequence[NewModel],
    listed: Sequence["FoundRepo"],
    hub: "Hub",
    stop: threading.Event,
    gap_s: float,
) -> NewLookUp:
    groups: dict[str, list[FoundRepo]] = {}
    for each in sorted(listed, key=lambda each: _MTP.search(each.repo) is not None):
        groups.setdefault(_model_name(each.repo).lower(), []).append(each)
    before = {_model_name(model.repo).lower(): model for model in known}
    engines = read_knowledge() if any(model.errors for model in known) else NO_OTHERS

    def place(key: str) -> tuple[bool, str]:
        """Models that the catalog doesn't know come first, then the newest."""
        return catalog.model_of(key) is None, max(each.created or "" for each in groups[key])

    models: dict[str, NewModel] = {}
    n_read, problem = 0, ""
    for key in sorted(groups, key=place, reverse=True)[:MAX_MODELS]:
        group, had = groups[key], before.get(key)
        if had is not None and any(_is_unchanged(had, each, engines) for each in group):
            models[key] = msgspec.structs.replace(had, others=_others(group, had.repo))
            continue
        if had is not None:
            models[key] = had
        for each in group:
            if problem or n_read == MAX_READ or stop.is_set() or stop.wait(gap_s):
                break
            n_read += 1
            try:
                model = _read_model(hub, each, group, stop)
            except HubError as error:
                if error.kind != "not_found":
                    problem = "" if error.kind == "stopped" else error.sentence
                    break
                models.pop(key, None)
            else:
                if model is not None:
                    models[key] = model
                    break
    kept = {key: model for key, model in before.items() if key not in groups}
    return NewLookUp(tuple((models | kept).values())[:MAX_MODELS], problem)


def _is_unchanged(model: NewModel, found: "FoundRepo", engines: EngineKnowledge) -> bool:
    """Return whether reading the headers again would tell nothing new."""
    newer = _newer_type_of(model)
    is_read = model.facts is not None or (bool(model.errors) and not (newer and engines.knows_type(newer)))
    return is_read and (model.repo, model.changed, model.read_by) == (found.repo, found.date, __version__)


def _model_name(repo: str) -> str:
    return _MTP.sub("", model_title(gguf_words(repo)))


def _others(group: Iterable["FoundRepo"], repo: str) -> tuple[str, ...]:
    return tuple(each.repo for each in group if _owner(each.repo) != _owner(repo))


def _read_model(hub: "Hub", found: "FoundRepo", group: Sequence["FoundRepo"], stop: threading.Event) -> NewModel | None:
    """Return the model in a repository; None if it has no complete one yet. Raises HubError if the Hub isn't there."""
    files = hub.files(found.repo)
    items = tuple(each for each in repo_files(files) if each.path.isprintable() and _is_complete(each))[:_MAX_ITEMS]
    if not items:
        return None
    facts, errors, is_refused = _read_headers(hub, files, items, stop)
    return NewModel(
        name=_model_name(found.repo),
        repo=found.repo,
        others=_others(group, found.repo),
        created=(found.created or "")[:10],
        changed=found.date or "",
        licence=found.licence if _LICENCE.fullmatch(found.licence) else "",
        base=next((each for each in found.bases if _is_of(each, _QWEN)), ""),
        is_gated=found.gated or is_refused,
        items=items,
        facts=facts,
        errors=errors,
        read_by=__version__,
    )


def _is_complete(item: RepoFile) -> bool:
    """Return whether all shards are there: an upload may still be running."""
    shard = Shard.parse(item.path)
    return item.n_shards == (shard.count if shard is not None else 1)


def _read_headers(
    hub: "Hub", files: Sequence["RemoteFile"], items: Sequence[RepoFile], stop: threading.Event
) -> tuple[ModelFacts | None, dict[str, HeaderError], bool]:
    """Read the header of the smallest file for llama.cpp, or the next one's if it's of no use.

    Return the facts, the reasons against files, and whether the Hub asks for the acceptance of terms first.
    """
    errors: dict[str, HeaderError] = {}
    for item in sorted(items, key=lambda item: bool(item.program))[:_MAX_HEADERS]:
        try:
            return _bounded(set_facts(hub, files, item.path, stop.is_set)), errors, False
        except BadHeader as error:
            values = {**error.finding_values, "name": PurePosixPath(item.path).name}
            words = {key: shown(value) if isinstance(value, str) else value for key, value in values.items()}
            errors[item.path] = HeaderError(error.title, error.code, error.case, words)
        except HubError as error:
            if error.kind in ("gated", "denied"):
                return None, errors, True
            if error.kind in ("stopped", "offline"):
                raise
            # The files may be on another server than the lists, which a network may block.
            _logger.info("No header of %s was read: %s", item.path, error.sentence)
            break
    return None, errors, False


def _bounded(facts: ModelFacts) -> ModelFacts:
    """Return the facts with texts that are short enough to be saved and shown. A real template has about 10 KB."""
    texts = ("architecture", "name", "basename", "tokenizer_model", "tokenizer_pre", "imatrix_file", "quantized_by")
    return msgspec.structs.replace(
        facts,
        chat_template=facts.chat_template[:_MAX_TEMPLATE],
        **{field: shown(getattr(facts, field)) for field in texts},
    )


def still_new(models: Iterable[NewModel], catalog: Catalog) -> tuple[NewModel, ...]:
    """Return the models that the catalog, which may be newer than the look-up, still doesn't have."""
    return tuple(
        each
        for each in models
        if catalog.repository(each.repo) is None and each.changed[:10] >= catalog.date and _REPO.fullmatch(each.repo)
    )[:MAX_MODELS]


def make_new_offers(
    models: Iterable[NewModel],
    catalog: Catalog,
    pc: Pc,
    *,
    with_pictures: bool = True,
    engines: EngineKnowledge = NO_OTHERS,
) -> tuple[NewOffer, ...]:
    """Return each new model with the file to take on `pc`, with or without its vision projector.

    `engines` tells what other releases of llama.cpp can load.
    """
    offers = []
    for model in still_new(models, catalog):
        why_not = why_not_loaded(model, engines)
        known = catalog.model_of(model.name)
        offer = NewOffer(
            model=model,
            item=_file_to_take(model, pc, with_pictures=with_pictures) if not why_not else None,
            is_too_large=min((each.n_bytes for each in model.items), default=0) > pc.room_bytes > 0,
            known=known.id if known is not None else "",
            like=_like_text(model),
            licence=catalog.licence_of(model.repo),
            why_not=why_not,
            needs_engine=_needs_engine(model, engines),
        )
        offers.append(offer)
    return tuple(offers)


def why_not_loaded(model: NewModel, engines: EngineKnowledge = NO_OTHERS) -> str:
    """Return why no engine here can load the model, and which program or release can, in sentences; "" if one can."""
    facts = model.facts
    if facts is None:
        if model.is_gated:
            return tr("Its uploader asks you to accept terms first, so QwenDesk can't read its header.")
        error = next(iter(model.errors.values()), None)
        if error is None:
            return tr("Its header couldn't be read. QwenDesk tries again with the next check.")
        return _newer_type_text(error, engines) or fill(FINDINGS[error.code, error.case].message, error.values)
    if facts.kind != "model" or facts.architecture in DRAFT_ARCHITECTURES:
        return tr("Its files are no models to chat with.")
    if _needs_engine(model, engines):
        unknown = tr("The engine doesn't know its architecture, {0}.", shown(facts.architecture))
        return join_sentences(unknown, engines.advice(facts.architecture))
    return ""


def _needs_engine(model: NewModel, engines: EngineKnowledge) -> bool:
    """Return whether no engine here knows the model's architecture or its tensors, but another release may."""
    newer, facts = _newer_type_of(model), model.facts
    if facts is None:
        return newer > 0 and not engines.knows_type(newer)
    is_chat_model = facts.kind == "model" and facts.architecture not in DRAFT_ARCHITECTURES
    is_known = facts.architecture in SUPPORTED_ARCHITECTURES or bool(engines.engine_for(facts.architecture))
    return is_chat_model and not is_known


def _newer_type_of(model: NewModel) -> int:
    """Return the number of the tensor type for which no header could be read; 0 if that isn't why."""
    numbers = (_newer_type(error) for error in model.errors.values())
    return next(filter(None, numbers), 0) if model.facts is None else 0


def _newer_type(error: HeaderError) -> int:
    number = error.values.get("tensor_type")
    return number if error.case in _NEWER_TYPE_CASES and isinstance(number, int) else 0


def _newer_type_text(error: HeaderError, engines: EngineKnowledge) -> str:
    """Return which engine knows the tensor type that stopped the reader, as far as is known now; "" if none stopped it.

    Since the header was read, engines may have come.
    """
    number, newest = _newer_type(error), engines.newest
    if not number:
        return ""
    if engines.knows_type(number):
        return tr("An engine on this PC knows its tensor type {0}: check for updates to see whether it fits.", number)
    has_it = newest is not None and number < newest.n_types
    case = "newer-type" if has_it else "tensor-type"
    engine = newest.tag if newest is not None else ""
    return fill(FINDINGS["unsupported-arch", case].message, {**error.values, "engine": engine})


def _like_text(model: NewModel) -> str:
    """Return what it means for its use that a model is newer than QwenDesk; "" if it's none of a newer Qwen."""
    family, is_new = family_of_file(model.facts) if model.facts is not None else (OTHER, False)
    if not is_new:
        return ""
    if family != OTHER:
        return like_family_text(family)
    return tr(
        "Its chat template is like that of no Qwen that QwenDesk knows, so it starts with the sampling values that its "
        "file recommends, or else with llama.cpp's."
    )


def files_note(model: NewModel) -> str:
    """Return a note on the files of a model that the engine can't use, if it can use others; "" if there are none."""
    n_unusable = sum(bool(each.program) or each.path in model.errors for each in model.items)
    if not n_unusable or model.facts is None:
        return ""
    programs = dict.fromkeys(each.program for each in model.items if each.program)
    if programs:
        return tr_n(
            "{0} of its files is made for {1}.", "{0} of its files are made for {1}.", n_unusable, join_list(programs)
        )
    return tr_n("{0} of its files can't be used here.", "{0} of its files can't be used here.", n_unusable)


def shown(text: str) -> str:
    """Return what a stranger wrote as one short line without control characters, and without tags for tooltips."""
    return " ".join("".join(each if each.isprintable() and each != "<" else " " for each in text[:200]).split())[:60]


def _file_to_take(model: NewModel, pc: Pc, *, with_pictures: bool) -> RepoFile | None:
    """Return the file that the rules for the catalog's models recommend, or else the best that fits or may fit."""
    facts = model.facts
    usable = [each for each in model.items if not each.program and each.path not in model.errors]
    if facts is None or not usable:
        return None
    if not with_pictures:
        usable = [msgspec.structs.replace(each, mmproj_bytes=0) for each in usable]
    usual = [each for each in usable if each.quant in BEST_FIRST]
    quants = tuple(_quant_offer(model.repo, each, facts, pc) for each in usual)
    chosen, _ = choose_quant(quants)
    if chosen is not None:
        return next(with_fit(each, facts, pc) for each in usual if each.path == chosen.path)
    planned = [with_fit(each, facts, pc) for each in usable]
    fitting = [each for each in planned if each.fit is not None and each.fit.fits]
    if not fitting:
        return planned[0]
    return min(fitting, key=lambda each: (each.fit.rank if each.fit is not None else 0, -each.n_bytes))


def _quant_offer(repo: str, item: RepoFile, facts: ModelFacts, pc: Pc) -> QuantOffer:
    fit, speed = fit_of(facts, item.n_bytes, item.mmproj_bytes, pc)
    return QuantOffer(
        repo=repo, path=item.path, quant=item.quant, n_bytes=item.n_bytes, is_exact=True, fit=fit, speed=speed
    )
