"""Actions on chats and folders in the sidebar: their menus, and the message that offers to undo the last."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, QTimer, QUrl, Signal
from PySide6.QtGui import QAction, QDesktopServices
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QWidget

from qwendesk.chat.chat_list import ChatListService
from qwendesk.chat.view.sidebar.chat_model import Heading
from qwendesk.core.chats import ChatSummary
from qwendesk.core.translation import tr, tr_n
from qwendesk.widgets.actions import keys_text
from qwendesk.widgets.buttons import IconButton, TextButton, describe
from qwendesk.widgets.kit import STRETCH, column
from qwendesk.widgets.kit import row as row_of
from qwendesk.widgets.popups import Menu

if TYPE_CHECKING:
    from qwendesk.chat.exchange.values import ExportFormat

_SHOWN_MS = 12_000


class UndoToast(QFrame):
    """The message. It disappears after a while."""

    undone = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("chats.toast")
        self.setProperty("kind", "toast")
        self._label = QLabel()
        self._label.setTextFormat(Qt.TextFormat.PlainText)
        self._label.setProperty("kind", "small")
        self._label.setMinimumWidth(1)
        self._label.setWordWrap(True)
        self._undo_button = undo = TextButton(tr("Undo"), kind="link")
        describe(undo, "chats.undo", tr("Undo"), tr("Undo the last action"))
        undo.clicked.connect(self._undo)
        self._folder, self._folder_button = "", TextButton(tr("Show in folder"), kind="link")
        describe(self._folder_button, "chats.toast.folder", tr("Show in folder"), tr("Open the folder with the file"))
        self._folder_button.clicked.connect(lambda: QDesktopServices.openUrl(QUrl.fromLocalFile(self._folder)))
        close = IconButton("close", size=14, side=24)
        describe(close, "chats.toast.close", tr("Close"), tr("Dismiss this message"))
        close.clicked.connect(self.hide)
        row = QHBoxLayout(self)
        row.setContentsMargins(12, 6, 6, 6)
        row.setSpacing(6)
        texts = column(self._label, row_of(self._folder_button, STRETCH), spacing=2)
        row.addLayout(texts, 1)
        row.addWidget(undo)
        row.addWidget(close)
        self._timer = QTimer(self, singleShot=True, interval=_SHOWN_MS)
        self._timer.timeout.connect(self.hide)
        self.hide()

    @property
    def text(self) -> str:
        return self._label.text()

    def show_message(self, text: str, *, can_undo: bool, folder: str = "") -> None:
        """Show `text`, with a button for Undo if `can_undo`, and one that opens `folder`; "" hides the message."""
        self._folder = folder
        self._folder_button.setVisible(bool(folder))
        self._undo_button.setVisible(can_undo)
        self._label.setText(text)
        if not text:
            self.hide()
            return
        self._label.setToolTip(text)
        self.show()
        self._timer.start()

    def _undo(self) -> None:
        self.hide()
        self.undone.emit()


class ChatListActions:
    """Performs actions that `ListedChats.undo` can undo."""

    def __init__(self, chat_list: ChatListService, toast: UndoToast) -> None:
        self._chat_list, self._toast = chat_list, toast

    def archive(self, chat_ids: Sequence[str], *, archived: bool) -> None:
        """Archive the chats, or move them back to the list if `archived` is False."""
        self._chat_list.chats.archive(chat_ids, archived=archived)
        if archived:
            self._offer_undo(tr_n("Archived {0} chat", "Archived {0} chats", len(chat_ids)))
        else:
            self._offer_undo(tr_n("Unarchived {0} chat", "Unarchived {0} chats", len(chat_ids)))

    def move(self, chat_ids: Sequence[str], folder_id: str) -> None:
        """Move the chats into a folder, or out of any folder if `folder_id` is empty."""
        self._chat_list.chats.move(chat_ids, folder_id)
        name = self._folder_name(folder_id)
        if name:
            self._offer_undo(tr_n("Moved {0} chat to “{1}”", "Moved {0} chats to “{1}”", len(chat_ids), name))
        else:
            self._offer_undo(
                tr_n("Removed {0} chat from its folder", "Removed {0} chats from their folders", len(chat_ids))
            )

    def move_to_new_folder(self, chat_ids: Sequence[str]) -> str:
        """Move the chats into a new folder, which the user may then rename, and return its id."""
        folder = self._chat_list.folders.add(tr("New folder"))
        self.move(chat_ids, folder.id)
        return folder.id

    def delete(self, chats: Sequence[ChatSummary]) -> None:
        if not chats:
            return
        self._chat_list.delete([chat.id for chat in chats])
        if len(chats) == 1:
            self._offer_undo(tr("Deleted “{0}”", chats[0].title))
        else:
            self._offer_undo(tr_n("Deleted {0} chat", "Deleted {0} chats", len(chats)))

    def delete_folder(self, folder_id: str) -> None:
        name = self._folder_name(folder_id)
        self._chat_list.chats.delete_folder(folder_id)
        self._offer_undo(tr("Removed the folder “{0}” and kept its chats", name))

    def _folder_name(self, folder_id: str) -> str:
        return next((folder.name for folder in self._chat_list.folders.folders if folder.id == folder_id), "")

    def _offer_undo(self, text: str) -> None:
        self._toast.show_message(text, can_undo=True)


def export_formats() -> "tuple[tuple[ExportFormat, str], ...]":
    """Return each format with its label."""
    return (
        ("markdown", tr("Markdown")),
        ("markdown_thoughts", tr("Markdown with thinking")),
        ("html", tr("Web page (HTML)")),
        ("json", tr("JSON (complete, for importing)")),
    )


def chats_menu(
    parent: QWidget,
    chat_list: ChatListService,
    actions: ChatListActions,
    chats: Sequence[ChatSummary],
    rename: Callable[[], object],
    name_folder: Callable[[str], None],
    delete: Callable[[], None],
    export: "Callable[[ExportFormat, tuple[str, ...]], None]",
    show_calls: Callable[[str], None],
) -> Menu:
    """Return the context menu of one or several chats. `name_folder` lets the user name the new folder with an id."""
    menu = Menu(parent)
    menu.setObjectName("chats.menu")
    ids = tuple(chat.id for chat in chats)
    if len(chats) == 1:
        _add(menu, "rename", tr("Rename"), rename, "F2")
    pinned = all(chat.pinned for chat in chats)
    _add(menu, "pin", tr("Unpin") if pinned else tr("Pin"), lambda: chat_list.chats.pin(ids, pinned=not pinned))
    _add_folders(menu, chat_list, actions, chats, name_folder)
    archived = all(chat.archived for chat in chats)
    text = tr("Unarchive") if archived else tr("Archive")
    _add(menu, "archive", text, lambda: actions.archive(ids, archived=not archived))
    menu.addMenu(export_menu(menu, tr("Export"), lambda kind: export(kind, ids)))
    if len(chats) == 1:
        _add(menu, "calls", tr("Tool calls…"), lambda: show_calls(chats[0].id))
    menu.addSeparator()
    count = len(chats)
    _add(
        menu,
        "delete",
        tr("Delete") if count == 1 else tr_n("Delete {0} chat", "Delete {0} chats", count),
        delete,
        "Del",
    )
    return menu


def folder_menu(parent: QWidget, actions: ChatListActions, folder: Heading, rename: Callable[[], object]) -> Menu:
    """Return the context menu of a folder."""
    menu = Menu(parent)
    menu.setObjectName("chats.folder_menu")
    _add(menu, "rename_folder", tr("Rename"), rename, "F2")
    _add(menu, "delete_folder", tr("Remove folder (chats are kept)"), lambda: actions.delete_folder(folder.folder_id))
    return menu


def export_menu(parent: QWidget, title: str, chosen: "Callable[[ExportFormat], None]") -> Menu:
    menu = Menu(parent, title)
    menu.setObjectName("chats.menu.export")
    for kind, text in export_formats():
        _add(menu, f"export.{kind}", text, partial(chosen, kind))
    return menu


def _add_folders(
    menu: Menu,
    chat_list: ChatListService,
    actions: ChatListActions,
    chats: Sequence[ChatSummary],
    name_folder: Callable[[str], None],
) -> None:
    ids = tuple(chat.id for chat in chats)
    inner = menu.add_submenu(tr("Move to folder"), "chats.menu.folders")
    folders = chat_list.folders.folders
    for folder in folders:
        action = _add(inner, f"folder.{folder.id}", folder.name, partial(actions.move, ids, folder.id))
        action.setCheckable(True)
        action.setChecked(all(chat.folder_id == folder.id for chat in chats))
    if folders:
        inner.addSeparator()
    if any(chat.folder_id for chat in chats):
        _add(inner, "folder.none", tr("No folder"), lambda: actions.move(ids, ""))
    _add(
        inner,
        "folder.new",
        tr("New folder…"),
        lambda: name_folder(actions.move_to_new_folder(ids)),
    )


def _add(menu: Menu, name: str, text: str, run: Callable[[], object], shortcut: str = "") -> QAction:
    # A single "&" would underline the letter after it.
    action = menu.addAction(text.replace("&", "&&") + (f"\t{keys_text(shortcut)}" if shortcut else ""))
    action.setObjectName(f"chats.menu.{name}")
    action.triggered.connect(lambda _checked=False: run())
    return action
