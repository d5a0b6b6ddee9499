"""`qwendesk models new`: the models that came after the catalog, as the Hub lists them now, and what this PC can do."""

import argparse
import asyncio
import threading
from typing import TYPE_CHECKING, Any

from qwendesk.cli.made_up_pc import add_made_up_pc_options
from qwendesk.cli.models_hub import connected_hub
from qwendesk.cli.terminal import Interrupts, Terminal
from qwendesk.core.translation import tr
from qwendesk.hub.catalog_updates import CatalogStore

if TYPE_CHECKING:
    from qwendesk.models.new_models import NewLookUp, NewOffer

    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

_EXIT_NOT_ASKED = 1


def add_new(commands: "Commands") -> None:
    parser = commands.add_parser(
        "new",
        help="look for new models on Hugging Face",
        description="Ask the uploaders of the catalog's models for new Qwen models, read a header of each, and say "
        "whether it can be loaded and fits this PC, or the described one. The window shows them too.",
        epilog="Exit status: 0 asked, 1 not all were asked (what is known is printed), 2 bad usage.",
    )
    add_made_up_pc_options(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")
    parser.set_defaults(run=show_new)


async def show_new(options: argparse.Namespace, terminal: Terminal, interrupts: Interrupts) -> int:
    """Ask, save and print what is new, and return the exit status. Ctrl+C ends the questions."""
    from qwendesk.cli.recommend import pc_of
    from qwendesk.models.new_models import make_new_offers

    stop = threading.Event()
    interrupts.on_request(stop.set)
    pc, store = await pc_of(options, terminal), CatalogStore()
    found = await asyncio.to_thread(_look_up, store, stop)
    offers = await asyncio.to_thread(lambda: make_new_offers(found.models, store.catalog, pc))
    if options.json:
        terminal.write_json({"models": [_as_json(each) for each in offers], "problem": found.problem or None})
    else:
        endpoint = connected_hub().network.endpoint
        lines = [line for offer in offers for line in _lines(offer, endpoint)]
        terminal.write("\n".join(lines or [tr("No new models.")]) + "\n")
        if found.problem:
            terminal.note(found.problem)
    return _EXIT_NOT_ASKED if found.problem else 0


def _look_up(store: CatalogStore, stop: threading.Event) -> "NewLookUp":
    from qwendesk.models.catalog_service import GAP_S
    from qwendesk.models.new_models import look_up_new, new_models_file, still_new

    file = new_models_file(store.folder)
    known = still_new(file.read(), store.catalog)
    found = look_up_new(store.catalog, known, connected_hub(), stop, gap_s=GAP_S)
    file.try_write(found.models)
    return found


def _as_json(offer: "NewOffer") -> dict[str, Any]:
    from qwendesk.models.new_models import why_not_loaded

    model, item = offer.model, offer.item
    return {
        "name": model.name,
        "repo": model.repo,
        "also_from": list(model.others),
        "created": model.created,
        "licence": model.licence or None,
        "card": model.card,
        "architecture": model.facts.architecture if model.facts is not None else None,
        "known_model": offer.known or None,
        "why_not_loaded": why_not_loaded(model) or None,
        "file": {"path": item.path, "quant": item.quant, "n_bytes": item.n_bytes} if item is not None else None,
        "fit": item.fit.kind if item is not None and item.fit is not None else None,
        "n_ctx": item.fit.n_ctx if item is not None and item.fit is not None else None,
    }


def _lines(offer: "NewOffer", endpoint: str) -> list[str]:
    from qwendesk.models.view.new_model_texts import new_facts_text, new_model_texts
    from qwendesk.models.view.offer_texts import fit_text

    item = offer.item
    fit = item.fit if item is not None else None
    text = fit_text(fit)[0] if fit is not None else tr("Can't be loaded here")
    texts = (f"{text}.", *new_model_texts(offer), f"{endpoint}/{offer.model.card}")
    command = f"qwendesk models get {offer.model.repo}/{item.path}" if item is not None and fit and fit.fits else ""
    return [
        f"{offer.model.name}  ({new_facts_text(offer)})",
        *(f"  {text}" for text in (*texts, command) if text),
        "",
    ]
