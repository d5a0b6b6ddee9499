"""What can be done with the chats that are selected, with a folder, and with all of them."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal

from PySide6.QtGui import QAction
from PySide6.QtWidgets import QInputDialog, QLineEdit, QMenu, QWidget

from qwendesk.core.chats import ChatSummary
from qwendesk.ui.bridges.chats import ChatsBridge
from qwendesk.ui.chats.rows import Heading
from qwendesk.ui.kit.text import tr, tr_n

ExportFormat = Literal["markdown", "markdown_thoughts", "json", "html"]


def export_formats() -> tuple[tuple[ExportFormat, str], ...]:
    """Each with what people call it."""
    return (
        ("markdown", tr("Markdown")),
        ("markdown_thoughts", tr("Markdown with thoughts")),
        ("html", tr("Web page (HTML)")),
        ("json", tr("JSON (complete, can be imported)")),
    )


def chats_menu(
    parent: QWidget,
    bridge: ChatsBridge,
    chats: Sequence[ChatSummary],
    rename: Callable[[], None],
    delete: Callable[[], None],
    export: Callable[[ExportFormat, tuple[str, ...]], None],
) -> QMenu:
    """The context menu of one or several chats."""
    menu = QMenu(parent)
    menu.setObjectName("chats.menu")
    ids = tuple(chat.id for chat in chats)
    if len(chats) == 1:
        _add(menu, "rename", tr("Rename"), rename, "F2")
    pinned = all(chat.pinned for chat in chats)
    _add(menu, "pin", tr("Unpin") if pinned else tr("Pin"), lambda: bridge.pin(ids, pinned=not pinned))
    _folders(menu, parent, bridge, chats, ids)
    archived = all(chat.archived for chat in chats)
    text = tr("Take out of the archive") if archived else tr("Archive")
    _add(menu, "archive", text, lambda: bridge.archive(ids, archived=not archived))
    menu.addMenu(export_menu(menu, tr("Export"), lambda kind: export(kind, ids)))
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


def folder_menu(parent: QWidget, bridge: ChatsBridge, folder: Heading, rename: Callable[[], None]) -> QMenu:
    """The context menu of a folder."""
    menu = QMenu(parent)
    menu.setObjectName("chats.folder_menu")
    _add(menu, "rename_folder", tr("Rename"), rename, "F2")
    _add(menu, "delete_folder", tr("Remove folder, keep its chats"), lambda: bridge.delete_folder(folder.folder_id))
    return menu


def export_menu(parent: QWidget, title: str, chosen: Callable[[ExportFormat], None]) -> QMenu:
    menu = QMenu(title, parent)
    menu.setObjectName("chats.menu.export")
    for kind, text in export_formats():
        _add(menu, f"export.{kind}", text, partial(chosen, kind))
    return menu


def ask_name(parent: QWidget, title: str, label: str, chosen: Callable[[str], None]) -> None:
    """A small dialog for a name; nothing happens when it is left empty."""
    dialog = QInputDialog(parent)
    dialog.setObjectName("chats.name_dialog")
    dialog.setWindowTitle(title)
    dialog.setLabelText(label)
    dialog.setInputMode(QInputDialog.InputMode.TextInput)
    dialog.setTextEchoMode(QLineEdit.EchoMode.Normal)
    dialog.textValueSelected.connect(lambda text: chosen(text) if text.strip() else None)
    dialog.finished.connect(dialog.deleteLater)
    dialog.open()


def _folders(
    menu: QMenu, parent: QWidget, bridge: ChatsBridge, chats: Sequence[ChatSummary], ids: tuple[str, ...]
) -> None:
    inner = menu.addMenu(tr("Move to folder"))
    inner.setObjectName("chats.menu.folders")
    for folder in bridge.folders:
        action = _add(inner, f"folder.{folder.id}", folder.name, partial(bridge.move, ids, folder.id))
        action.setCheckable(True)
        action.setChecked(all(chat.folder_id == folder.id for chat in chats))
    if bridge.folders:
        inner.addSeparator()
    if any(chat.folder_id for chat in chats):
        _add(inner, "folder.none", tr("No folder"), lambda: bridge.move(ids, ""))
    _add(
        inner,
        "folder.new",
        tr("New folder…"),
        lambda: ask_name(parent, tr("New folder"), tr("Name"), lambda name: bridge.move_to_new_folder(ids, name)),
    )


def _add(menu: QMenu, name: str, text: str, run: Callable[[], None], shortcut: str = "") -> QAction:
    # "&" would underline the letter after it.
    action = menu.addAction(text.replace("&", "&&") + (f"\t{shortcut}" if shortcut else ""))
    action.setObjectName(f"chats.menu.{name}")
    action.triggered.connect(lambda _checked=False: run())
    return action
