"""Opens the last chat at startup, unless the app froze or crashed the last time it opened that chat."""

import asyncio
import time
from collections.abc import Callable

from PySide6.QtCore import QObject, Signal

from qwendesk.chat.chat_list import ChatListEvent, ChatListService, ChatOpened
from qwendesk.chat.reopen_guard import ReopenGuard
from qwendesk.core.translation import tr
from qwendesk.widgets.bind import follow
from qwendesk.widgets.notice import Notice, NoticeAction
from qwendesk.widgets.tasks import window_tasks

_CALM_BEATS = 5
_BEAT_S = 1.0
# If a timer is this late, the window isn't responding.
_LATE_S = 1.0


class LastChatOpener(QObject):
    """Decides at startup whether the last chat may open. If not, offers it in a notice."""

    notice_asked = Signal(object)
    """A Notice for the window."""

    def __init__(
        self,
        chat_list: ChatListService,
        guard: ReopenGuard,
        *,
        beat_s: float = _BEAT_S,
        now: Callable[[], float] = time.monotonic,
        parent: QObject,
    ) -> None:
        super().__init__(parent)
        self._chat_list, self._tasks, self._guard = chat_list, window_tasks(), guard
        self._beat_s, self._now = beat_s, now
        follow(self, chat_list.subscribe, self._on_list_event)

    async def may_reopen(self, chat_id: str) -> bool:
        """Return whether the chat may open at startup. If not, offer to open it."""
        if await self._guard.has_failed(chat_id):
            self._offer(chat_id)
            return False
        await self._guard.begin(chat_id)
        return True

    def _offer(self, chat_id: str) -> None:
        def open_anyway() -> None:
            self._tasks.start(self._open(chat_id))

        action = NoticeAction(
            "open",
            tr("Open the chat anyway"),
            tr("Open the chat that was open last"),
            open_anyway,
        )
        sentence = tr(
            "Last time, QwenDesk closed unexpectedly right after it opened this chat, so it started with an empty one. "
            "Your chat is still in the list."
        )
        self.notice_asked.emit(Notice("reopen", tr("Your last chat wasn't opened"), sentence, (action,)))

    async def _open(self, chat_id: str) -> None:
        await self._guard.begin(chat_id)
        await self._chat_list.open(chat_id)

    def _on_list_event(self, event: ChatListEvent) -> None:
        if isinstance(event, ChatOpened):
            self._tasks.start(self._watch(event.chat_id))

    async def _watch(self, chat_id: str) -> None:
        """Tell the guard that the chat is harmless once the window has responded for a while since it was opened."""
        calm = 0
        while calm < _CALM_BEATS:
            due = self._now() + self._beat_s
            await asyncio.sleep(self._beat_s)
            calm = calm + 1 if self._now() - due < _LATE_S else 0
        await self._guard.finish(chat_id)
