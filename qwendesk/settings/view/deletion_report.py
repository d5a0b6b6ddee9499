"""Carries out "Delete everything" when the app quits, and reports what could not be deleted, also at the next start."""

import logging
from collections.abc import Callable, Sequence

from PySide6.QtWidgets import QMessageBox

from qwendesk.core.translation import tr
from qwendesk.settings.deletion import DeletionLeftover
from qwendesk.settings.privacy_service import PrivacyService
from qwendesk.widgets.notice import Notice, NoticeAction

# How many paths are listed.
_SHOWN = 8


def carry_out_deletion(privacy: PrivacyService, host: str) -> None:
    """Delete everything, as the user asked. Call this when no other part of the app is running."""
    logging.shutdown()
    logging.getLogger().handlers.clear()
    leftovers = privacy.carry_out(host)
    if leftovers:
        QMessageBox.warning(None, tr("Not everything could be deleted"), _lines(leftovers))


def leftover_notice(leftovers: Sequence[DeletionLeftover], open_privacy: Callable[[], None]) -> Notice:
    """Return the notice to show at the next start after an incomplete deletion."""
    again = NoticeAction("again", tr("Delete everything…"), tr("Open the privacy settings to try again"), open_privacy)
    sentence = tr("These were still there. Close other programs that use them, then try again.")
    return Notice("left_over", tr("Not everything could be deleted"), f"{sentence}\n{_lines(leftovers)}", (again,))


def _lines(leftovers: Sequence[DeletionLeftover]) -> str:
    lines = [f"{each.what}: {each.reason}" if each.reason else each.what for each in leftovers[:_SHOWN]]
    if len(leftovers) > _SHOWN:
        lines.append(tr("and {0} more", len(leftovers) - _SHOWN))
    return "\n".join(lines)
