"""Texts about the catalog's date and its look-ups. No widgets here."""

import datetime

from qwendesk.core.number_format import show_date
from qwendesk.core.translation import tr, tr_n
from qwendesk.hub.catalog_updates import LastLookUp
from qwendesk.models.catalog_service import CatalogState


def date_text(catalog_date: str, last: LastLookUp, today: datetime.date) -> str:
    """Return the catalog's date, and when its files were last checked for updates.

    A look-up from before the catalog isn't mentioned, because the catalog doesn't use its answers.
    """
    looked_up = last.done.astimezone().date() if last.done is not None else None
    if looked_up is None or looked_up < datetime.date.fromisoformat(catalog_date):
        return tr("Catalog of {0}.", show_date(catalog_date))
    days = max((today - looked_up).days, 0)
    if days == 0:
        return tr("Catalog of {0}. Checked today.", show_date(catalog_date))
    return tr_n(
        "Catalog of {1}. Checked {0} day ago.",
        "Catalog of {1}. Checked {0} days ago.",
        days,
        show_date(catalog_date),
    )


def result_text(state: CatalogState) -> str:
    """Return how the look-up goes on or ended, or why there can be none; "" if there is nothing to tell."""
    progress, last, changes = state.progress, state.last, state.changes
    if progress is not None and progress.n_repositories:
        return tr("Checking for updates: {0} of {1} repositories…", progress.n_done, progress.n_repositories)
    if progress is not None:
        return tr("Checking for updates…")
    if state.is_offline:
        return tr("QwenDesk is offline, so it can't check for updates.")
    if last.problem and last.tried is not None:
        day = show_date(last.tried.astimezone().date())
        return tr("The check of {0} failed. {1}", day, last.problem)
    if changes is None:
        return ""
    parts = [
        tr_n("{0} file is new.", "{0} files are new.", changes.n_new) if changes.n_new else "",
        tr_n("{0} file was replaced.", "{0} files were replaced.", changes.n_replaced) if changes.n_replaced else "",
        tr_n("{0} file was removed.", "{0} files were removed.", changes.n_removed) if changes.n_removed else "",
    ]
    return " ".join(part for part in parts if part) or tr("Nothing has changed.")
