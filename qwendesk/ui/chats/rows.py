"""What stands in the list of chats, from top to bottom: pinned, folders, then by day. Pure functions."""

import math
from collections.abc import Iterable
from datetime import datetime, timedelta
from itertools import groupby

import msgspec

from qwendesk.core.chats import ChatSummary, Folder
from qwendesk.ui.kit.text import tr


class Heading(msgspec.Struct, frozen=True):
    """A line above chats. A folder's can be folded; `folder_id` is "" for others."""

    text: str
    folder_id: str = ""
    is_open: bool = True
    count: int = 0


Row = Heading | ChatSummary


def rows_of(
    chats: Iterable[ChatSummary],
    folders: Iterable[Folder],
    now: datetime,
    *,
    archived: bool = False,
    folded: frozenset[str] = frozenset(),
) -> tuple[Row, ...]:
    """All rows. `now` is local time; `folded` are the ids of folders whose chats are not shown."""
    listed = sorted((each for each in chats if each.archived == archived), key=lambda each: -each.changed_s)
    rows: list[Row] = []
    pinned = [each for each in listed if each.pinned]
    if pinned:
        rows += [Heading(tr("Pinned")), *pinned]
    known = {folder.id: folder for folder in folders}
    for folder in known.values():
        inside = [each for each in listed if each.folder_id == folder.id and not each.pinned]
        is_open = folder.id not in folded
        if inside or not archived:
            rows.append(Heading(folder.name, folder.id, is_open, len(inside)))
        rows += inside if is_open else []
    loose = [each for each in listed if not each.pinned and each.folder_id not in known]
    days = _Days(now)
    for name, group in groupby(loose, key=days.name):
        rows += [Heading(name), *group]
    return tuple(rows)


class _Days:
    """Names of days as seen from `now`; borders and names are worked out once for all chats."""

    def __init__(self, now: datetime) -> None:
        midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
        self._borders = (
            (midnight.timestamp(), tr("Today")),
            ((midnight - timedelta(days=1)).timestamp(), tr("Yesterday")),
            ((midnight - timedelta(days=7)).timestamp(), tr("Last 7 days")),
            ((midnight - timedelta(days=30)).timestamp(), tr("Last 30 days")),
            (-math.inf, tr("Earlier")),
        )

    def name(self, chat: ChatSummary) -> str:
        for begin_s, name in self._borders:
            if chat.changed_s >= begin_s:
                return name
        return ""
