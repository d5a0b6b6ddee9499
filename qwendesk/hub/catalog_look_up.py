"""Asks the Hub about all repositories of the catalog, one after the other."""

import logging
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from qwendesk.hub.catalog_updates import Updates, update_of

if TYPE_CHECKING:  # importing the Hub's library takes long
    from qwendesk.hub.remote import Hub

_logger = logging.getLogger(__name__)
_BAD_ANSWERS_IN_A_ROW = 2
"""So many mean that something else answers in place of the Hub, such as the login page of a Wi-Fi."""


class LookUp(msgspec.Struct, frozen=True):
    """What the Hub answered."""

    answers: Updates
    problem: str = ""
    """Why the rest of the repositories wasn't asked, or why there is no answer at all, in a sentence."""


def look_up(
    repos: Sequence[str],
    known: Updates,
    hub: "Hub",
    day: str,
    stop: threading.Event,
    *,
    gap_s: float,
    on_progress: Callable[[int], None],
) -> LookUp:
    """Ask for the files of each repository; of one whose commit is `known`, only whether it is still the newest.

    Blocks until the last answer or until `stop` is set. Waits `gap_s` between two repositories, and stops at the first
    sign that the Hub can't be reached. A repository with an unexpected answer is skipped; the second one in a row is
    such a sign. `day` is the ISO date of the answers. `on_progress` is called with the number of repositories that were
    asked. Network errors are not raised.
    """
    from qwendesk.hub.network import UNREACHABLE, HubError  # noqa: PLC0415  (imports the Hub's library)

    answers: Updates = {}
    refused, n_bad = "", 0
    for number, repo in enumerate(repos):
        if stop.is_set() or (number and stop.wait(gap_s)):
            break
        before = known.get(repo)
        try:
            files = hub.files_since(repo, before.revision if before is not None else "")
        except HubError as error:
            n_bad = n_bad + 1 if error.kind == "bad_answer" else 0
            if n_bad == _BAD_ANSWERS_IN_A_ROW or (error.kind in UNREACHABLE and not n_bad):
                return LookUp(answers, error.sentence)
            _logger.info("%s was not looked up: %s", repo, error.sentence)
            refused = refused or error.sentence
        else:
            n_bad = 0
            if files is not None:
                answers[repo] = update_of(files, day)
            elif before is not None:
                answers[repo] = msgspec.structs.replace(before, day=day)
        on_progress(number + 1)
    return LookUp(answers, "" if answers else refused)
