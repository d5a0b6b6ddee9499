"""Makes speed reports of a pasted text, which count on this PC like those of the catalog."""

import re
from collections.abc import Sequence
from typing import Literal

import msgspec

from qwendesk.core.devices import short_card_name
from qwendesk.core.errors import QwenDeskError
from qwendesk.core.file_names import quant_in_name
from qwendesk.core.translation import tr
from qwendesk.core.units import GIB, MIB, show_bytes
from qwendesk.hardware.gpu_cards import find_card, ram_bandwidth
from qwendesk.hub.catalog import Catalog
from qwendesk.hub.catalog_schema import CatalogModel, SpeedBackend, SpeedReport
from qwendesk.hub.catalog_updates import CatalogStore
from qwendesk.models.new_models import shown
from qwendesk.models.pasted_table import BadPaste, MeasuredRow, NamedCard, cards_in, read_rows

# llama-bench counts the tensors, the catalog whole files: headers have up to this many bytes. Sizes are rounded, too.
_HEADER_BYTES, _ROUNDED = 16 * MIB, 0.006
# How far the printed number of weights may be from the catalog's: a draft head adds 2.5%, a rounded one 7%.
_LIKE_PARAMS = 0.08
Placement = Literal["vram", "experts", "layers", "cpu"]
_BACKENDS: dict[str, SpeedBackend] = {
    "CUDA": "cuda", "ROCM": "rocm", "HIP": "rocm", "VULKAN": "vulkan", "MTL": "metal", "METAL": "metal",
}  # fmt: skip
# Backends that compute nothing beside another one.
_BESIDE = frozenset({"CPU", "BLAS", "RPC", ""})
_RAM_KIND = re.compile(r"(?P<kind>DDR\d(?:-\d{4,5})?)(?: ?[x×] ?(?P<channels>\d{1,2}))?", re.IGNORECASE)
_FILE_TYPE = re.compile(r"(?P<quant>(?:I?Q|TQ)\d\w*|BF16|F16|F32|MXFP4(?= MoE)?)(?: ?- ?(?P<size>Small|Medium|Large))?")


class PastedReports(msgspec.Struct, frozen=True):
    """What a text has: reports, and why some of its speeds are none, in a sentence each."""

    reports: tuple[SpeedReport, ...]
    left_out: tuple[str, ...] = ()


# More than anybody pastes by hand.
_MOST_REPORTS = 500


def add_reports(text: str, store: CatalogStore, measured_on: str = "") -> PastedReports:
    """Add the reports in `text` to those of the user, and return them. See `read_reports`. Blocks.

    Raises BadPaste, BadCatalog, and QwenDeskError if they can't be saved.
    """
    found, known = read_reports(text, store.catalog, measured_on), store.read_reports()
    new = tuple(report for report in found.reports if report not in known)
    if not new:
        raise BadPaste(tr("These speeds were added before."))
    if len(known) + len(new) > _MOST_REPORTS:
        raise BadPaste(tr("There are {0} pasted speeds already. Remove some first.", len(known)))
    save_reports((*known, *new), store)
    return msgspec.structs.replace(found, reports=new)


def save_reports(reports: tuple[SpeedReport, ...], store: CatalogStore) -> None:
    """Replace the user's reports. Blocks. Raises BadCatalog, and QwenDeskError if they can't be saved."""
    try:
        store.save_reports(reports)
    except OSError as error:
        sentence = tr("The pasted speeds could not be written: {0}.", error.strerror or error)
        raise QwenDeskError(tr("Not saved"), sentence) from error


class _LeftOut(Exception):
    """A speed that can't be used on any PC; the message is a sentence."""


def read_reports(text: str, catalog: Catalog, measured_on: str = "") -> PastedReports:
    """Return the reports in `text`, which are marked as the user's. Raises BadPaste if there is none.

    `measured_on` names the cards, or the kind of the RAM for a CPU ("DDR5-5600"), where the text doesn't.
    """
    reports: list[SpeedReport] = []
    left_out: dict[str, None] = {}
    for row in read_rows(text):
        try:
            report = _report(row, catalog, measured_on)
        except _LeftOut as error:
            left_out[str(error)] = None
        else:
            reports += [report] if report not in reports else []
    if not reports:
        raise BadPaste(" ".join(left_out))
    return PastedReports(tuple(reports), tuple(left_out))


def _report(row: MeasuredRow, catalog: Catalog, measured_on: str) -> SpeedReport:
    backend = _backend(row)
    models = _models_of(row, catalog)
    model, quant, n_bytes = _file_of(row, models, catalog)
    placement, on_cpu = _placement(row, model, backend)
    is_unsure = len(models) > 1
    report = SpeedReport(
        model=model.id,
        backend=backend,
        quant=shown(quant),
        n_bytes=n_bytes,
        tok_s=row.tok_s,
        depth=row.depth,
        cache_type=shown(row.cache_type),
        placement=placement,
        on_cpu=on_cpu,
        date=row.date,
        source=shown(", ".join(filter(None, (row.program, row.build)))),
        remark=f"may be of another version: {', '.join(each.id for each in models)}" if is_unsure else "",
        is_pasted=True,
    )
    if backend == "cpu":
        kind, channels = _ram(measured_on)
        return msgspec.structs.replace(report, ram_kind=kind, ram_channels=channels)
    cards = _cards(row, measured_on, needs_size=placement != "vram")
    total_bytes = sum(card.gib for card in cards) * GIB
    if placement == "vram" and total_bytes and n_bytes > total_bytes:
        raise _LeftOut(
            tr(
                "A file of {0} doesn't fit in {1}, and the text doesn't say which layers were in RAM.",
                show_bytes(n_bytes),
                " + ".join(card.name for card in cards),
            )
        )
    return msgspec.structs.replace(
        report, gpus=tuple(shown(short_card_name(card.name)) for card in cards), gpu_gb=min(card.gib for card in cards)
    )


def _backend(row: MeasuredRow) -> SpeedBackend:
    names = [each for each in re.split(r"[, ]+", row.backends.upper()) if each not in _BESIDE]
    if not names or row.n_gpu_layers == 0 or row.devices == "none":
        return "cpu"
    if len(names) > 1 or names[0] not in _BACKENDS:
        raise _LeftOut(tr("QwenDesk has no engine for {0}, so this speed says nothing of it.", row.backends[:40]))
    return _BACKENDS[names[0]]


def _models_of(row: MeasuredRow, catalog: Catalog) -> tuple[CatalogModel, ...]:
    """Return the models of the catalog that the row may be of: one if a file is named, else versions of one size."""
    known = catalog.find_by_sha256(row.sha256) if row.sha256 else ()
    named = catalog.model(known[0].repository.model) if known else catalog.model_of(row.file)
    architecture = row.model.partition(" ")[0]
    alike = tuple(
        each
        for each in catalog.models
        if each.architecture == architecture and abs(row.params_b / each.params_b - 1) <= _LIKE_PARAMS
    )
    if named is not None and (not row.model or named in alike):
        return (named,)
    if not alike:
        raise _LeftOut(tr("{0} isn't a model of the catalog.", _shown(row)))
    return alike


def _file_of(row: MeasuredRow, models: Sequence[CatalogModel], catalog: Catalog) -> tuple[CatalogModel, str, int]:
    """Return the model, the quant and the size of the file: those of the catalog's file that is most alike."""
    known = catalog.find_by_sha256(row.sha256) if row.sha256 else ()
    if known:
        return models[0], known[0].file.quant, known[0].file.n_bytes
    quant = quant_in_name(row.file)
    printed = _FILE_TYPE.search(row.model)
    kind = (printed["quant"] + (f"_{printed['size'][0]}" if printed["size"] else "")) if printed else ""
    if not quant and not kind:
        raise _LeftOut(tr("The text doesn't say which quant {0} is.", _shown(row)))
    bits = next(iter(re.findall(r"\d", kind)), "")
    ids = {model.id: model for model in models}
    files = [
        (abs(file.n_bytes - row.n_bytes), repository.model, file.quant, file.n_bytes)
        for repository in catalog.repositories
        if repository.model in ids
        for file in repository.files
        if file.kind == "model"
        and abs(file.n_bytes - row.n_bytes) <= _HEADER_BYTES + _ROUNDED * row.n_bytes
        and (file.quant == quant if quant else bits in file.quant)
    ]
    if not files:
        return models[-1], quant or kind, row.n_bytes
    _, model, found, n_bytes = min(files)
    return ids[model], found, n_bytes


def _placement(row: MeasuredRow, model: CatalogModel, backend: str) -> tuple[Placement, int | None]:
    """Return the place of the weights, as in `SpeedReport`, and the number of layers in RAM."""
    layers = model.hyperparameters.block_count
    n_gpu_layers = layers if row.n_gpu_layers is None or row.n_gpu_layers < 0 else row.n_gpu_layers
    if backend == "cpu":
        return "cpu", None
    if row.overrides or row.has_kv_in_ram or (row.n_cpu_moe and n_gpu_layers < layers):
        raise _LeftOut(tr("A speed with its own placement of tensors says nothing of other PCs."))
    if row.n_cpu_moe and model.hyperparameters.expert_count:
        return "experts", min(row.n_cpu_moe, layers)
    return ("layers", layers - n_gpu_layers) if n_gpu_layers < layers else ("vram", None)


def _cards(row: MeasuredRow, measured_on: str, *, needs_size: bool) -> tuple[NamedCard, ...]:
    """Return the cards that the model was on, which QwenDesk knows."""
    cards = _used(row, row.cards or cards_in(measured_on))
    if not cards:
        raise _LeftOut(
            tr(
                "The text doesn't name the graphics card. Paste the lines above the table too, or name the card: RTX "
                "3090 24 GB."
            )
        )
    for card in cards:
        known = find_card(card.name, round(card.gib * GIB))
        if known is None:
            raise _LeftOut(tr("QwenDesk doesn't know the graphics card {0}.", card.name[:60]))
        if not card.gib and (needs_size or known.gb_s[0] != known.gb_s[1]) and not known.is_apple:
            raise _LeftOut(
                tr("Name the card with its memory, such as {0}: it was sold with several.", f"{card.name} 12 GB")
            )
    return cards


def _used(row: MeasuredRow, cards: tuple[NamedCard, ...]) -> tuple[NamedCard, ...]:
    """Return the cards that llama-bench was told to use, of all that it found."""
    numbers = [int(each) for each in re.findall(r"[A-Za-z](\d{1,3})", row.devices)]
    if not numbers and row.split_mode == "none":
        numbers = [row.main_gpu]
    return tuple(cards[each] for each in numbers if each < len(cards)) if numbers else cards


def _ram(measured_on: str) -> tuple[str, int]:
    found = _RAM_KIND.search(measured_on)
    kind, channels = (found["kind"].upper(), int(found["channels"] or 2)) if found else ("", 0)
    if not channels or ram_bandwidth(kind, channels) is None:
        raise _LeftOut(tr("The speed of a CPU depends on its RAM. Name its kind, such as DDR5-5600."))
    return kind, channels


def _shown(row: MeasuredRow) -> str:
    return (row.file or row.model)[:60] or tr("The model")
