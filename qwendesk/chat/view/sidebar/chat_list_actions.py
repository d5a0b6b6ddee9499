"""Actions on chats and folders in the sidebar, each with a message that offers to undo it."""

from collections.abc import Sequence

from qwendesk.chat.chat_list import ChatListService
from qwendesk.chat.view.sidebar.undo_toast import UndoToast
from qwendesk.core.chats import ChatSummary
from qwendesk.core.translation import tr, tr_n


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
