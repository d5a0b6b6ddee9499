"""The context menus of chats and folders, and the menu of export formats."""

from collections.abc import Callable, Sequence
from functools import partial

from PySide6.QtGui import QAction
from PySide6.QtWidgets import QWidget

from qwendesk.chat.chat_list import ChatListService
from qwendesk.chat.exchange.values import ExportFormat
from qwendesk.chat.view.sidebar.chat_list_actions import ChatListActions
from qwendesk.chat.view.sidebar.rows import Heading
from qwendesk.core.chats import ChatSummary
from qwendesk.core.translation import tr, tr_n
from qwendesk.widgets.popups import Menu


def export_formats() -> tuple[tuple[ExportFormat, str], ...]:
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
    export: Callable[[ExportFormat, tuple[str, ...]], None],
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


def export_menu(parent: QWidget, title: str, chosen: Callable[[ExportFormat], None]) -> Menu:
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
    action = menu.addAction(text.replace("&", "&&") + (f"\t{shortcut}" if shortcut else ""))
    action.setObjectName(f"chats.menu.{name}")
    action.triggered.connect(lambda _checked=False: run())
    return action
