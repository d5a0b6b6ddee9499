"""What the first start says: pure rules over its state, without widgets."""

from typing import Literal

from qwendesk.core.everyday_units import SLOW_LEVEL, pages_text, reading_text, speed_level, speed_word
from qwendesk.core.translation import join_list, join_sentences, tr, tr_n
from qwendesk.core.units import show_bytes, show_rate, show_tokens
from qwendesk.hub.download_queue import DownloadItem
from qwendesk.models.first_start import FirstStartState
from qwendesk.models.view.offer_texts import short_pc_text

# What the page shows: it looks at the PC, offers a model, downloads it, a download was stopped by a failure or can't
# start, or nothing fits.
Screen = Literal["looking", "offer", "busy", "stopped", "nothing"]

# Contexts in tokens from which chats are long and very long.
LONG, VERY_LONG = 32_768, 131_072


def screen_of(start: FirstStartState) -> Screen:
    """Return which of its screens the page shows."""
    if start.offers.state == "looking":
        return "looking"
    if start.offers.hero is None:
        return "nothing"
    item = hero_download(start)
    if item is not None:
        return "stopped" if item.saved.state == "failed" else "busy"
    return "stopped" if start.is_offline or start.problem else "offer"


def hero_download(start: FirstStartState) -> DownloadItem | None:
    """Return the unfinished download of the recommended model, if there is one."""
    hero = start.offers.hero
    return start.download_of(hero.recommended) if hero is not None and hero.recommended is not None else None


def pc_text(start: FirstStartState) -> str:
    """Return what this PC has."""
    return tr("Looking at your PC…") if start.offers.state == "looking" else short_pc_text(start.offers.pc)


def nothing_text(start: FirstStartState) -> str:
    """Return why nothing is recommended."""
    if start.offers.state == "failed":
        return start.offers.problem
    return tr("No model in the catalog fits in this PC's memory. The demo still runs.")


def doing_text(item: DownloadItem | None) -> str:
    """Return what a download does and what it leads to; "" while there is none."""
    if item is None or item.saved.state == "failed":
        return ""
    if item.saved.state == "paused":
        return tr("Paused. Nothing is lost: Resume continues the download.")
    if item.phase == "checking":
        return tr("Checking the download. Your first chat opens when it's done.")
    return tr("Downloading. Your first chat opens when it's done.")


def button_text(item: DownloadItem | None) -> str:
    """Return what the main button does: it starts, pauses or resumes the download."""
    if item is None:
        return tr("Download and start")
    if item.saved.state == "failed":
        return tr("Try again")
    return tr("Resume") if item.saved.state == "paused" else tr("Pause")


def note_of(screen: Screen, start: FirstStartState, item: DownloadItem | None, missing: int) -> tuple[str, str, str]:
    """Return the sentence beside the main button, its icon ("" for none) and the icon's role in the theme.

    `missing` is how many bytes of free space the download lacks.
    """
    if screen == "looking":
        return looking_text(), "clock", "text_dim"
    if screen == "busy":
        return tr("You can use the rest of the app meanwhile."), "", ""
    problem = _problem(start, item, missing)
    if problem:
        return problem, "warning", "text_warn"
    return (_metered_text(start), "info", "text_info") if screen == "offer" and start.is_metered else ("", "", "")


def looking_text() -> str:
    return tr("Looking at your graphics card and memory… about 5 seconds")


def found_text(start: FirstStartState) -> str:
    """Return the largest model on this PC, how many there are beside it, and the programs that left them."""
    found, apps = start.found, [app.app for app in start.apps if app.app]
    if not found:
        text = tr("Nothing that loads here")
    else:
        text = join_list((found[0].name, show_bytes(found[0].n_bytes)))
        if len(found) > 1:
            text = tr_n("{1} and {0} more", "{1} and {0} more", len(found) - 1, text)
    return " · ".join((text, *apps))


def _problem(start: FirstStartState, item: DownloadItem | None, missing: int) -> str:
    """Return why the download can't or shouldn't start and what to do, or ""."""
    if item is not None and item.saved.state == "failed":
        kept = tr("The first {0} are kept.", show_bytes(item.n_done)) if item.n_done else ""
        return join_sentences(item.saved.sentence, kept)
    if missing and not start.problem:
        return tr("Not enough space: {0} more needed. Choose another folder or free up space.", show_bytes(missing))
    if start.problem:
        return start.problem
    if start.is_offline:
        return tr("QwenDesk is offline. You can use models you have, or the demo.")
    if start.synced_by:
        return tr("{0} syncs this folder and would upload the model. Choose another folder.", start.synced_by)
    return ""


def _metered_text(start: FirstStartState) -> str:
    hero = start.offers.hero
    quant = hero.recommended if hero is not None else None
    n_bytes = quant.total_bytes if quant is not None else 0
    return tr("Metered connection: this uses {0} of your data plan.", show_bytes(n_bytes))


def speed_fact(tok_s: float) -> tuple[str, str]:
    """Return a word for the speed on this PC, 0 if unknown, and what it means with its figure."""
    if not tok_s:
        return tr("Speed"), tr("not known before a try")
    if speed_level(tok_s) == SLOW_LEVEL:  # as fast as one reads, but an answer may think for 2,000 tokens before
        return speed_word(tok_s), tr("{0} tok/s, thinking takes minutes", show_rate(tok_s))
    return speed_word(tok_s), tr("{0} tok/s, {1}", show_rate(tok_s), reading_text(tok_s))


def length_fact(n_ctx: int) -> tuple[str, str]:
    """Return how long chats may be, in words and in pages."""
    lengths = (VERY_LONG, tr("Very long chats")), (LONG, tr("Long chats")), (0, tr("Short chats"))
    word = next(word for least, word in lengths if n_ctx >= least)
    return word, tr("remembers about {0} ({1})", pages_text(n_ctx), show_tokens(n_ctx))


def pictures_fact(*, sees: bool) -> tuple[str, str]:
    """Return whether the model sees pictures, and which."""
    if sees:
        return tr("Sees pictures"), tr("photos and screenshots")
    return tr("Text only"), tr("can't see pictures")
