"""Saves a chat to the store in the background: no code waits for a write, and a disk error stops no answer."""

import asyncio
import logging
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from qwendesk.core.chats import ChatSettings
from qwendesk.core.conversation import ChatNode
from qwendesk.core.errors import StoreFailure
from qwendesk.core.messages import ImagePart
from qwendesk.core.observed import Subscribers
from qwendesk.core.translation import tr

if TYPE_CHECKING:
    from qwendesk.store.chats import ChatStore
    from qwendesk.store.opening import Store

# How often a partial answer is saved: together with the duration of a write, a crash loses less than 1 s of text.
PARTIAL_ANSWER_EVERY_S = 0.5
# When the app closes, it waits for the copies of attached files unless their disk hasn't responded for this long.
STALLED_S = 5.0
_POLL_S = 0.2
_FILE = "file"
_logger = logging.getLogger(__name__)


class ChatSaved(msgspec.Struct, frozen=True):
    """A change of this chat was written that its row in the chat list may show."""

    chat_id: str


class SavingFailed(msgspec.Struct, frozen=True):
    """Writing failed. Reported once until saving works again; all unsaved changes are saved then."""

    title: str
    sentence: str


class SavingWorksAgain(msgspec.Struct, frozen=True):
    """All changes that could not be saved before are saved now."""


SaverEvent = ChatSaved | SavingFailed | SavingWorksAgain


# Chat id, kind of write, and id of the message or file. A later write replaces a failed one with the same key.
_Key = tuple[str, str, str]


_Write = Callable[[], Future[Any]]


class _PartialAnswer(msgspec.Struct):
    chat_id: str
    current: Callable[[], ChatNode]
    write: Future[None] | None = None


class StoreChatSaver:
    """Saves chats to the store, except for excluded ones. Writes wait until the store is open."""

    def __init__(self, store: "Store | None" = None, *, partial_every_s: float = PARTIAL_ANSWER_EVERY_S) -> None:
        self._open_store = store
        self._has_given_up = False
        self._partial_every_s = partial_every_s
        self._excluded: set[str] = set()
        self._settings: dict[str, ChatSettings] = {}
        self._partial_answers: dict[str, _PartialAnswer] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._pending_writes: set[asyncio.Future[Any]] = set()
        self._pending_copies: set[asyncio.Future[Any]] = set()
        """Copies of attached files in progress, which may never end if a disk doesn't respond."""
        self._unsaved: dict[_Key, _Write] = {}
        self._is_working = True
        self._written_to: set[str] = set()
        self._subscribers = Subscribers[SaverEvent]()

    def attach(self, store: "Store") -> None:
        """Write to this store from now on."""
        self._open_store = store
        self._retry()

    def give_up(self) -> None:
        """Save nothing in this run, because there is no store."""
        self._has_given_up = True
        self._unsaved.clear()
        self.close()

    @property
    def _store(self) -> "ChatStore":
        return self._require_store().chats

    def subscribe(self, callback: Callable[[SaverEvent], None]) -> Callable[[], None]:
        """Call `callback` with each event until the returned function is called."""
        return self._subscribers.add(callback)

    def exclude(self, chat_id: str) -> None:
        """Write nothing of this chat from now on (incognito)."""
        self._excluded.add(chat_id)
        self._partial_answers = {
            name: answer for name, answer in self._partial_answers.items() if answer.chat_id != chat_id
        }
        self._unsaved = {key: write for key, write in self._unsaved.items() if key[0] != chat_id}

    def is_excluded(self, chat_id: str) -> bool:
        return chat_id in self._excluded

    def has_written(self, chat_id: str) -> bool:
        """Return whether a write of this chat was requested since the app started."""
        return chat_id in self._written_to

    def save(self, chat_id: str, node: ChatNode) -> None:
        self._partial_answers.pop(node.id, None)
        for image in node.message.all_images:
            self._write((chat_id, _FILE, image.sha256), partial(self._copy_file, image))
        self._write((chat_id, "node", node.id), lambda: self._store.save_node(chat_id, node))
        if not node.parent_id and chat_id in self._settings:
            # They may have been chosen before the chat had a message and was added to the store.
            self.save_settings(chat_id, self._settings[chat_id])

    def save_partial(self, chat_id: str, node_id: str, current: Callable[[], ChatNode]) -> None:
        if self._has_given_up or chat_id in self._excluded or node_id in self._partial_answers:
            return
        self._partial_answers[node_id] = _PartialAnswer(chat_id, current)
        self._save_partial_answers()

    def show(self, chat_id: str, parent_id: str, node_id: str) -> None:
        self._write((chat_id, "shown", parent_id), lambda: self._store.set_shown(chat_id, parent_id, node_id))

    def delete(self, chat_id: str, node_id: str) -> None:
        self._partial_answers.pop(node_id, None)
        self._write((chat_id, "delete", node_id), lambda: self._store.delete_node(chat_id, node_id))

    def save_settings(self, chat_id: str, settings: ChatSettings) -> None:
        self._settings[chat_id] = settings
        self._write((chat_id, "settings", ""), lambda: self._store.save_settings(chat_id, settings))

    def copy_files(self, images: Iterable[ImagePart]) -> None:
        """Copy the attached files of messages that are already saved."""
        for image in images:
            self._submit(("", _FILE, image.sha256), partial(self._copy_file, image))

    async def wait_for_writes(self) -> None:
        """Return when all requested writes have ended or failed. Attached files may still be copied."""
        self._retry()
        while self._pending_writes:
            await asyncio.wait(self._pending_writes)

    async def wait_for_copies(self) -> None:
        """Return when every attached file is copied, or the disks of the remaining files don't respond."""
        while self._pending_copies and self._open_store is not None and self._open_store.attachments.idle_s < STALLED_S:
            await asyncio.wait(self._pending_copies, timeout=_POLL_S)
        if self._pending_copies:
            _logger.warning(
                "%d attached files could not be copied: their disk does not answer", len(self._pending_copies)
            )

    def close(self) -> None:
        """Stop saving partial answers. Call `wait_for_writes` afterwards."""
        self._partial_answers.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _save_partial_answers(self) -> None:
        """Save the answers whose last write has ended, and check again later as long as there are any."""
        self._timer = None
        for node_id, answer in tuple(self._partial_answers.items()):
            if answer.write is None or answer.write.done():
                self._save_partial_answer(node_id, answer)
        if self._partial_answers:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._partial_every_s, self._save_partial_answers)

    def _save_partial_answer(self, node_id: str, answer: _PartialAnswer) -> None:
        node = answer.current()

        def write() -> Future[None]:
            answer.write = self._store.save_node(answer.chat_id, node, growing=True)
            return answer.write

        self._write((answer.chat_id, "node", node_id), write)

    def _write(self, key: _Key, write: _Write) -> None:
        if self._has_given_up or key[0] in self._excluded:
            return
        self._written_to.add(key[0])
        self._retry()
        self._submit(key, write)

    def _copy_file(self, image: ImagePart) -> Future[Path | None]:
        return self._require_store().attachments.save_copy(image)

    def _require_store(self) -> "Store":
        if self._open_store is None:
            raise StoreFailure(tr("Chats not saved"), tr("Your chats file isn't open."))
        return self._open_store

    def _retry(self) -> None:
        """Repeat the failed writes in their order, because later writes may depend on earlier ones."""
        unsaved, self._unsaved = self._unsaved, {}
        for key, write in unsaved.items():
            self._submit(key, write)

    def _submit(self, key: _Key, write: _Write) -> None:
        if self._open_store is None:
            self._unsaved[key] = write
            return
        try:
            pending = asyncio.wrap_future(write())
        except StoreFailure as failure:
            self._on_failed(key, write, failure)
            return
        (self._pending_copies if key[1] == _FILE else self._pending_writes).add(pending)
        pending.add_done_callback(lambda done: self._on_done(key, write, done))

    def _on_done(self, key: _Key, write: _Write, done: asyncio.Future[Any]) -> None:
        self._pending_writes.discard(done)
        self._pending_copies.discard(done)
        if done.cancelled():
            return
        failure = done.exception()
        if isinstance(failure, StoreFailure):
            self._on_failed(key, write, failure)
        elif failure is not None:
            raise failure
        else:
            if not self._is_working and not self._unsaved:
                self._is_working = True
                self._subscribers.notify(SavingWorksAgain())
            self._subscribers.notify(ChatSaved(key[0]))

    def _on_failed(self, key: _Key, write: _Write, failure: StoreFailure) -> None:
        self._unsaved[key] = write
        if self._is_working:
            self._is_working = False
            self._subscribers.notify(SavingFailed(failure.title, failure.sentence))
