"""The rows of the chat list, pinned chats, folders, then the others by day, as a Qt model."""

import math
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any

import msgspec
from PySide6.QtCore import QAbstractListModel, QMimeData, QModelIndex, QObject, QPersistentModelIndex, Qt

from qwendesk.core.chats import ChatSummary, Folder
from qwendesk.core.translation import tr, tr_n


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
    """Return all rows. `now` is in local time; `collapsed` are the ids of folders whose chats are hidden.

    Chats from tomorrow or later were written while the clock was wrong. They come last, or they would be first for as
    long as the clock was ahead.
    """
    days = _Days(now)
    listed = sorted(
        (each for each in chats if each.archived == archived),
        key=lambda each: (each.changed_s >= days.tomorrow_s, -each.changed_s),
    )
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
    for name, group in groupby(unfiled, key=days.name):
        rows += [Heading(name), *group]
    return tuple(rows)


class _Days:
    """Names the periods before `now`, computed once for all chats."""

    def __init__(self, now: datetime) -> None:
        midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
        self.tomorrow_s = (midnight + timedelta(days=1)).timestamp()
        """When the day ends, in seconds since 1970."""
        self._borders = (
            (self.tomorrow_s, tr("Date in the future")),
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


ROW_ROLE = Qt.ItemDataRole.UserRole
Index = QModelIndex | QPersistentModelIndex
# MIME type of dragged chats: their ids, separated by spaces.
CHATS_DRAGGED = "application/x-qwendesk-chats"
_ROOT = QModelIndex()


class ChatModel(QAbstractListModel):
    """The headings and chats of the list.

    `rename` and `rename_folder` are called with id and text after a title was edited, `move` with the ids of chats and
    the id of the folder that they were dragged into ("" for no folder).
    """

    def __init__(
        self,
        rename: Callable[[str, str], None],
        rename_folder: Callable[[str, str], None],
        move: Callable[[tuple[str, ...], str], None] = lambda _chats, _folder: None,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._rename = rename
        self._rename_folder = rename_folder
        self._move = move
        self._rows: tuple[Row, ...] = ()

    @property
    def rows(self) -> tuple[Row, ...]:
        return self._rows

    def show_rows(self, rows: tuple[Row, ...]) -> bool:
        """Replace all rows. Return True if rows were added, removed or moved, which loses the selection."""
        is_same = len(rows) == len(self._rows) and all(map(_is_same_row, rows, self._rows))
        if is_same:
            self._rows = rows
            self.dataChanged.emit(self.index(0), self.index(len(rows) - 1))
            return False
        self.beginResetModel()
        self._rows = rows
        self.endResetModel()
        return True

    def index_of(self, chat_id: str) -> QModelIndex:
        """Return the index of a chat; an invalid index if it is not in the list."""
        for number, row in enumerate(self._rows):
            if isinstance(row, ChatSummary) and row.id == chat_id:
                return self.index(number)
        return QModelIndex()

    def index_of_folder(self, folder_id: str) -> QModelIndex:
        """Return the index of a folder's heading; an invalid index if it is not in the list."""
        for number, row in enumerate(self._rows):
            if isinstance(row, Heading) and folder_id and row.folder_id == folder_id:
                return self.index(number)
        return QModelIndex()

    def rowCount(self, parent: Index = _ROOT) -> int:
        return 0 if parent.isValid() else len(self._rows)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid():
            return None
        row = self._rows[index.row()]
        match role:
            case Qt.ItemDataRole.UserRole:
                return row
            case Qt.ItemDataRole.DisplayRole | Qt.ItemDataRole.EditRole:
                return row.text if isinstance(row, Heading) else (row.title or tr("Untitled"))
            case Qt.ItemDataRole.ToolTipRole:
                return None if isinstance(row, Heading) else row.title
            case Qt.ItemDataRole.AccessibleTextRole:
                return _accessible_text(row)
        return None

    def flags(self, index: Index) -> Qt.ItemFlag:
        if not index.isValid():
            return Qt.ItemFlag.NoItemFlags
        row = self._rows[index.row()]
        flags = Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemNeverHasChildren
        chosen = flags | Qt.ItemFlag.ItemIsSelectable | Qt.ItemFlag.ItemIsEditable
        if isinstance(row, Heading):
            return (chosen if row.folder_id else flags) | Qt.ItemFlag.ItemIsDropEnabled
        return chosen | Qt.ItemFlag.ItemIsDragEnabled

    def mimeTypes(self) -> list[str]:
        return [CHATS_DRAGGED]

    def mimeData(self, indexes: Sequence[QModelIndex]) -> QMimeData:
        """Return the ids of the chats among these rows."""
        rows = [self._rows[index.row()] for index in indexes]
        ids = " ".join(row.id for row in rows if isinstance(row, ChatSummary))
        data = QMimeData()
        data.setData(CHATS_DRAGGED, ids.encode())
        return data

    def supportedDropActions(self) -> Qt.DropAction:
        return Qt.DropAction.MoveAction

    def dropMimeData(self, data: QMimeData, action: Qt.DropAction, row: int, column: int, parent: Index) -> bool:
        """Move chats into the folder they are dropped on. On another heading, move them out of their folder."""
        onto = self._rows[parent.row()] if parent.isValid() else None
        ids = tuple(bytes(data.data(CHATS_DRAGGED).data()).decode().split())
        if isinstance(onto, Heading) and ids:
            self._move(ids, onto.folder_id)
        # If this returned True, the view would remove the rows itself.
        return False

    def setData(self, index: Index, value: Any, role: int = Qt.ItemDataRole.EditRole) -> bool:
        if role != Qt.ItemDataRole.EditRole or not index.isValid():
            return False
        row = self._rows[index.row()]
        if isinstance(row, Heading):
            self._rename_folder(row.folder_id, str(value))
        else:
            self._rename(row.id, str(value))
        return True


def _is_same_row(one: Row, other: Row) -> bool:
    if isinstance(one, Heading):
        return isinstance(other, Heading) and (one.folder_id, one.text) == (other.folder_id, other.text)
    return isinstance(other, ChatSummary) and one.id == other.id


def _accessible_text(row: Row) -> str:
    if isinstance(row, Heading):
        return tr_n("Folder {1}, {0} chat", "Folder {1}, {0} chats", row.count, row.text) if row.folder_id else row.text
    return tr("{0}, pinned", row.title) if row.pinned else row.title
