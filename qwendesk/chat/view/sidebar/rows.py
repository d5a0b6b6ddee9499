"""The rows of the chat list from top to bottom: pinned chats, folders, then the others by day. Pure functions."""

import math
from collections.abc import Iterable
from datetime import datetime, timedelta
from itertools import groupby

import msgspec

from qwendesk.core.chats import ChatSummary, Folder
from qwendesk.core.translation import tr


class Heading(msgspec.Struct, frozen=True):
    """A heading above chats. The heading of a folder can be collapsed; `folder_id` is "" for other headings."""

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
    collapsed: frozenset[str] = frozenset(),
) -> tuple[Row, ...]:
    """Return all rows. `now` is in local time; `collapsed` are the ids of folders whose chats are hidden."""
    listed = sorted((each for each in chats if each.archived == archived), key=lambda each: -each.changed_s)
    rows: list[Row] = []
    pinned = [each for each in listed if each.pinned]
    if pinned:
        rows += [Heading(tr("Pinned")), *pinned]
    known = {folder.id: folder for folder in folders}
    for folder in known.values():
        inside = [each for each in listed if each.folder_id == folder.id and not each.pinned]
        is_open = folder.id not in collapsed
        if inside or not archived:
            rows.append(Heading(folder.name, folder.id, is_open, len(inside)))
        rows += inside if is_open else []
    unfiled = [each for each in listed if not each.pinned and each.folder_id not in known]
    days = _Days(now)
    for name, group in groupby(unfiled, key=days.name):
        rows += [Heading(name), *group]
    return tuple(rows)


class _Days:
    """Names the periods before `now`, computed once for all chats."""

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
