"""Texts of the first start. No widgets here."""

from qwendesk.core.translation import tr
from qwendesk.core.units import show_bytes
from qwendesk.models.first_start import FirstStartState
from qwendesk.models.ranking import Offer
from qwendesk.models.view.offer_texts import welcome_pc_text


def pc_line(start: FirstStartState) -> str:
    """Return what this PC has, or why nothing can be recommended for it."""
    offers = start.offers
    if offers.state == "looking":
        return tr("Checking this PC…")
    if offers.state == "failed":
        return offers.problem
    text = welcome_pc_text(offers.pc)
    if offers.hero is None:
        text = tr("{0} No model in the catalog fits in its memory. The demo still runs.", text)
    if offers.pc.problem:
        text = tr("{0} Estimates assume CPU only ({1})", text, offers.pc.problem)
    return text


def problem_text(start: FirstStartState, missing: int) -> str:
    """Return why the download can't or shouldn't start and what to do, or "".

    `missing` is how many bytes of free space it lacks.
    """
    if missing:
        return tr("Not enough space: {0} more needed. Choose another folder or free up space.", show_bytes(missing))
    if start.is_offline:
        return tr("QwenDesk is offline. You can use models you have, or the demo.")
    if start.problem:
        return tr("{0} You can use models you have, or the demo.", start.problem)
    if start.synced_by:
        return tr("{0} syncs this folder and would upload the model. Choose another folder.", start.synced_by)
    return ""


def metered_text(start: FirstStartState, n_bytes: int) -> str:
    """Return what a download of `n_bytes` means on a metered connection; "" on any other."""
    if not start.is_metered:
        return ""
    return tr("This connection is metered: the download uses {0} of your data plan.", show_bytes(n_bytes))


def button_text(start: FirstStartState, hero: Offer) -> str:
    """Return what the main button does: it starts, pauses or resumes the download."""
    item = start.download_of(hero.recommended) if hero.recommended is not None else None
    if item is None:
        return tr("Download and start")
    if item.saved.state == "failed":
        return tr("Try again")
    return tr("Resume") if item.saved.state == "paused" else tr("Pause")
