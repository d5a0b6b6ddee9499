"""Texts about new models, for the window and the command line. No widgets here."""

from qwendesk.core.number_format import show_date
from qwendesk.core.translation import tr, tr_n
from qwendesk.core.units import show_bytes, show_tokens
from qwendesk.models.new_models import NewOffer, files_note, why_not_loaded
from qwendesk.models.view.offer_texts import licence_text, table_text


def new_facts_text(offer: NewOffer) -> str:
    """Return "72 layers · context 256K · by unsloth · 2026-11-20"."""
    model, facts = offer.model, offer.model.facts
    layers = facts.block_count - facts.nextn_layers if facts is not None else 0
    parts = [
        tr_n("{0} layer", "{0} layers", layers) if layers else "",
        tr_n("{0} expert", "{0} experts", facts.expert_count) if facts is not None and facts.expert_count else "",
        tr("context {0}", show_tokens(facts.context_length)) if facts is not None and facts.context_length else "",
        tr("by {0}", model.repo.partition("/")[0]),
        show_date(model.created),
    ]
    return " · ".join(part for part in parts if part)


def new_model_texts(offer: NewOffer) -> list[str]:
    """Return what to know of a new model before its download, in lines: the file, what it is like, the licence."""
    model, item = offer.model, offer.item
    lines = [
        why_not_loaded(model),
        _item_text(offer) if item is not None else "",
        _smallest_text(offer) if item is None else "",
        tr("Other files of {0}, which is in the catalog.", offer.known) if offer.known else "",
        offer.like if item is not None else "",
        files_note(model) if item is not None else "",
        tr("Accept its terms on its page, and enter your access token in the settings.") if model.is_gated else "",
        _licence_line(offer),
        tr("Also from {0}.", ", ".join(each.partition("/")[0] for each in model.others)) if model.others else "",
    ]
    return [line for line in lines if line]


def _smallest_text(offer: NewOffer) -> str:
    smallest = show_bytes(min((each.n_bytes for each in offer.model.items), default=0))
    if offer.is_too_large:
        return tr("Its smallest file has {0}, which is too large for this PC.", smallest)
    return tr("Its smallest file has {0}.", smallest)


def _item_text(offer: NewOffer) -> str:
    item = offer.item
    if item is None:
        return ""
    size = show_bytes(item.n_bytes + item.mmproj_bytes)
    words = tr("{0} with vision file", size) if item.mmproj_bytes else size
    name = item.quant or item.name
    table = table_text(item.fit) if item.fit is not None else ""
    return " ".join(each for each in (tr("For this PC: {0}, {1}.", name, words), table) if each)


def _licence_line(offer: NewOffer) -> str:
    if offer.licence is not None:
        return licence_text(offer.licence)
    if offer.model.licence and offer.model.licence != "other":
        return tr("Licence: {0}, as its card says.", offer.model.licence)
    return tr("Its licence is on its model card.")
