"""The chat: asks the engine, collects its answer, keeps every version, and tells who listens as it grows."""

import asyncio
import datetime
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from qwendesk.core import presets
from qwendesk.core.chat_tree import ChatNode, ChatTree
from qwendesk.core.chats import ChatSettings
from qwendesk.core.conversation import Conversation, Turn, answer_of
from qwendesk.core.errors import BadRequest
from qwendesk.core.messages import DocumentPart, ImagePart, Message
from qwendesk.core.options import GenerationOptions
from qwendesk.core.subscribers import Subscribers
from qwendesk.engine.contract import EngineClient
from qwendesk.engine.protocol import PictureCost
from qwendesk.services.chat import sending
from qwendesk.services.chat.answering import Answering
from qwendesk.services.chat.branching import copied_path, edited_answer, last_id, new_answer, new_id, new_question
from qwendesk.services.chat.chat import OpenChat, Part, settings_for_new
from qwendesk.services.chat.counting import Room, Uncounted, count_document, count_picture, count_request
from qwendesk.services.chat.draft import Draft
from qwendesk.services.chat.held import HeldPictures
from qwendesk.services.chat.keeping import ChatKeeper, NothingKept
from qwendesk.services.chat.news import (
    ChatNews,
    ConversationReplaced,
    Deleted,
    PromptRead,
    SettingsChanged,
    TurnEnded,
    TurnsReplaced,
    TurnStarted,
    Wrote,
)
from qwendesk.services.chat.pictures import image_part
from qwendesk.services.engine.service import EngineService

__all__ = [
    "ChatNews", "ChatService", "ConversationReplaced", "Deleted", "PromptRead", "SettingsChanged", "TurnEnded",
    "TurnStarted", "TurnsReplaced", "Wrote",
]  # fmt: skip


class ChatService:
    """Owns the open chat and how its next answer is made. All methods are called on the event loop's thread.

    Methods on a turn raise BadRequest when it is not shown any more, and while an answer is being made.
    """

    def __init__(self, client: EngineClient, engine: EngineService, keeper: ChatKeeper | None = None) -> None:
        """Without a `keeper` nothing is written to a disk."""
        self._client = client
        self._engine = engine
        self._keeper = keeper or NothingKept()
        self._subscribers = Subscribers[ChatNews]()
        self._numbers: dict[str, int] = {}
        self._chat = OpenChat(self._keeper, self._numbers)
        self._answering: Answering | None = None
        self.held = HeldPictures()
        """The pictures of an incognito chat that came as bytes; forgotten with it."""

    @property
    def is_incognito(self) -> bool:
        """Whether nothing of the open chat may be written to a disk."""
        return self._keeper.is_left_out(self._chat.id)

    @property
    def held_only(self) -> HeldPictures | None:
        """`held` while no picture may become a file, else None."""
        return self.held if self.is_incognito else None

    @property
    def chat_id(self) -> str:
        """Of the open chat; a new one has its id before its first message."""
        return self._chat.id

    @property
    def tree(self) -> ChatTree:
        """All versions; an answer that is being made stands in it as it was when it began."""
        return self._chat.tree

    @property
    def settings(self) -> ChatSettings:
        return self._chat.settings

    @property
    def conversation(self) -> Conversation:
        """All turns that are shown, the one that streams included as far as it got."""
        conversation, answering = self._chat.conversation, self._answering
        if answering is None or not conversation.turns:
            return conversation
        turn = msgspec.structs.replace(conversation.turns[-1], answer=answer_of(answering.draft.node()))
        return conversation.with_turn(turn)

    @property
    def thinking(self) -> bool:
        """Whether thinking is asked for; a model that cannot think answers without."""
        return self._chat.settings.thinking is not False

    def set_thinking(self, thinking: bool) -> None:
        self._change(thinking=thinking)

    @property
    def style(self) -> presets.Style:
        return sending.style_of(self._chat.settings)

    def set_overrides(self, assignments: Mapping[str, str]) -> None:
        """Options that win over the presets, as `--set` takes them. Raises BadOption or BadRequest."""
        sending.checked(msgspec.structs.replace(self._chat.settings, overrides=dict(assignments)))
        self._change(overrides=dict(assignments))

    def set_system_prompt(self, text: str) -> None:
        self._change(system_prompt=text)

    def change_settings(self, settings: ChatSettings) -> None:
        """All that the chat has of its own. Raises BadOption or BadRequest for what cannot be used."""
        sending.checked(settings)
        if settings != self._chat.settings:
            self._chat.change(settings)
            self._subscribers.notify(SettingsChanged())

    @property
    def busy(self) -> bool:
        """True from a question until its answer ended."""
        return self._answering is not None

    @property
    def can_undo(self) -> bool:
        """Whether there is a deletion to undo."""
        return self._chat.can_undo

    def preset_options(self) -> GenerationOptions:
        """How it would be made without anything set by hand."""
        settings = msgspec.structs.replace(self._chat.settings, overrides={}, json_schema="")
        return sending.request_options(settings, self._engine.state.report, thinking=self.thinking)

    def options(self) -> GenerationOptions:
        """How the next answer is made: the preset of the loaded model's family, then the overrides."""
        return sending.request_options(self._chat.settings, self._engine.state.report, thinking=self.thinking)

    def subscribe(self, callback: Callable[[ChatNews], None]) -> Callable[[], None]:
        """Call `callback` with each piece of news. Returns what ends it."""
        return self._subscribers.add(callback)

    async def send(
        self, text: str, pictures: Sequence[Path | ImagePart] = (), documents: Sequence[DocumentPart] = ()
    ) -> Turn:
        """Ask, and return the turn when its answer ended; a failure is in the answer's `error`.

        A picture as ImagePart needs no hash. Waits for a model that is being loaded. Raises BadRequest when there is
        nothing to ask, or while another answer is being made.
        """
        images = [ImagePart(path=str(each), sha256="") if isinstance(each, Path) else each for each in pictures]
        return await self._ask(last_id(self._chat.tree), sending.question(text, images, documents))

    async def edit_question(
        self,
        turn_id: int,
        text: str,
        pictures: Sequence[ImagePart] | None = None,
        documents: Sequence[DocumentPart] | None = None,
    ) -> Turn:
        """Ask it in other words, as a version of its own; what is attached to it stays unless other is given."""
        index, turn = self._find(turn_id)
        images = turn.question.images if pictures is None else pictures
        kept = turn.question.documents if documents is None else documents
        parent_id = self._chat.node_of(turn, "question").parent_id
        return await self._ask(parent_id, sending.question(text, images, kept), kept=index)

    def edit_answer(self, turn_id: int, *, text: str, reasoning: str) -> None:
        """Put another version beside the answer, written by hand; thought and answer each stay what they are."""
        index, turn = self._find(turn_id)
        if not text.strip() and not reasoning.strip():
            raise BadRequest("Nothing written", "An answer cannot be empty. Delete it instead.")
        self._chat.put(edited_answer(self._chat.node_of(turn, "answer"), text=text, reasoning=reasoning))
        self._subscribers.notify(TurnsReplaced(index))

    async def regenerate(self, turn_id: int) -> Turn:
        """Answer the question again, as another version. One without a word is replaced."""
        index, turn = self._find(turn_id)
        question = self._chat.node_of(turn, "question")
        old = self._chat.tree.nodes.get(turn.answer_id)
        node = new_answer(question.id)
        if old is not None and turn.answer.is_empty and not self._chat.tree.children(old.id):
            node = msgspec.structs.replace(node, id=old.id, created_s=old.created_s)
        return await self._answer(question, node, kept=index)

    async def resume(self, turn_id: int) -> Turn:
        """Go on with the last answer where it was stopped or cut, inside its thought too."""
        index, turn = self._find(turn_id)
        if index != len(self._chat.conversation.turns) - 1:
            raise BadRequest("Not the last answer", "Only the last answer can go on. Branch here to go on from it.")
        question = self._chat.node_of(turn, "question")
        return await self._answer(question, self._chat.node_of(turn, "answer"), kept=index)

    def show_version(self, turn_id: int, part: Part, step: Literal[-1, 1]) -> None:
        """Show the version before (-1) or after (1) this one; at either end nothing happens."""
        index, turn = self._find(turn_id)
        versions = self._chat.tree.versions(self._chat.node_of(turn, part).id)
        place = versions.index(self._chat.node_of(turn, part).id) + step
        if 0 <= place < len(versions):
            self._chat.show(versions[place])
            self._subscribers.notify(TurnsReplaced(index))

    def delete(self, turn_id: int, part: Part) -> None:
        """Take this version of the message away, with what follows it, until `undo_delete`."""
        index, turn = self._find(turn_id)
        n_gone = self._chat.delete(self._chat.node_of(turn, part).id)
        self._subscribers.notify(TurnsReplaced(index))
        self._subscribers.notify(Deleted(n_gone))

    def undo_delete(self) -> None:
        """Bring back what was deleted last from this chat."""
        self._refuse_while_busy()
        before = self._chat.conversation.turns
        self._chat.undo_delete()
        pairs = zip(before, self._chat.conversation.turns, strict=False)
        kept = next((index for index, (old, new) in enumerate(pairs) if old != new), len(before))
        self._subscribers.notify(TurnsReplaced(kept))

    def branch(self, turn_id: int) -> str:
        """Open a new chat with a copy of all turns up to this one; the old one stays as it is. Returns its id."""
        _, turn = self._find(turn_id)
        tree = copied_path(self._chat.tree, turn.answer_id or turn.question_id)
        branched = OpenChat(self._keeper, self._numbers, tree, self._chat.settings)
        if self.is_incognito:
            self._keeper.leave_out(branched.id)
        self._replace(branched)
        self._chat.save_all()
        return self._chat.id

    def open(self, chat_id: str, tree: ChatTree, settings: ChatSettings) -> None:
        """Show a chat that was kept. An answer that is being made in another ends there, with what it said."""
        self._replace(OpenChat(self._keeper, self._numbers, tree, sending.usable(settings), chat_id))
        self.held.forget()

    def begin_with(self, settings: ChatSettings) -> None:
        """For the chat the app begins with: what was chosen before it ended, unless something was chosen since."""
        if self._chat.settings == ChatSettings() and not self._chat.tree.nodes:
            self.change_settings(sending.usable(settings))

    def new_chat(self, chat_id: str = "") -> None:
        """Begin an empty chat; an answer that is being made ends. Style and thinking stay, the system prompt not."""
        settings = settings_for_new(self._chat.settings)
        self._replace(OpenChat(self._keeper, self._numbers, settings=settings, chat_id=chat_id or new_id()))
        self.held.forget()

    async def stop(self) -> None:
        """End the answer that is being made; what it said so far stays."""
        if self._answering is not None:
            await self._answering.stop()

    async def answer_now(self) -> None:
        """End the thought that is being made; the answer follows."""
        if self._answering is not None:
            await self._answering.answer_now()

    async def picture_cost(self, path: Path, longest_side: int = 0) -> PictureCost | Uncounted:
        """What a picture would fill of the context. Raises BadRequest when its file cannot be read."""
        return await count_picture(self._client, path, longest_side, self.options(), self.held_only)

    async def document_cost(self, document: DocumentPart) -> Room | Uncounted:
        """What a document would add to a question."""
        return await count_document(self._client, document, self.options())

    async def question_cost(
        self, text: str, pictures: Sequence[ImagePart] = (), documents: Sequence[DocumentPart] = ()
    ) -> Room | Uncounted:
        """What the whole next request would fill, with all that is sent again of this chat. Raises BadRequest."""
        chat = self._chat.conversation
        images = await asyncio.to_thread(lambda: [_read(part, self.held) for part in pictures])
        question = sending.question(text, images, documents)
        asked = Conversation((*chat.turns, Turn(0, question)), chat.system_prompt)
        name = sending.model_name(self._engine.state.report)
        messages = sending.request_messages(asked, self._chat.settings, today=datetime.date.today(), model=name)
        return await count_request(self._client, messages, self.options(), self.held_only)

    async def _ask(self, parent_id: str, message: Message, kept: int | None = None) -> Turn:
        self._refuse_while_busy()
        if not message.text.strip() and not message.images and not message.documents:
            raise BadRequest("Nothing to send", "Write a question, or attach a picture or a document.")
        question = new_question(parent_id, message)
        return await self._answer(question, new_answer(question.id), kept=kept)

    async def _answer(self, question: ChatNode, node: ChatNode, kept: int | None) -> Turn:
        """Let `node`, as far as it got, be written; `kept` turns stay as they are, None for all."""
        chat = self._chat
        report = self._engine.state.report
        if report is not None:
            chat.settings = msgspec.structs.replace(chat.settings, model=report.options.model)
        chat.put(question, save=False)
        chat.put(node, save=False)
        draft = Draft(chat.id, chat.turn_id(question.id), node)
        answering = self._answering = Answering(
            draft, self._client, self._engine, self._keeper, self._subscribers.notify, self.held_only
        )
        thinking = self.thinking if draft.begun.is_empty else bool(draft.begun.reasoning)
        task = answering.start(lambda: self._prepare(chat, question, node), chat.settings, thinking=thinking)
        if kept is not None:
            self._subscribers.notify(TurnsReplaced(kept))
        self._subscribers.notify(TurnStarted(draft.turn_id))
        final: ChatNode | None = None
        try:
            final = await task
        except asyncio.CancelledError:
            if _cancelled_from_outside():
                raise
        finally:
            final = final or draft.node(stop_reason="cancelled")
            chat.make_sure_of(question.id)
            chat.put(final)
            if self._answering is answering:
                self._answering = None
                self._subscribers.notify(TurnEnded(draft.turn_id))
        found = next((turn for turn in chat.conversation.turns if turn.id == draft.turn_id), None)
        return found or Turn(draft.turn_id, question.message, answer_of(final))

    async def _prepare(self, chat: OpenChat, question: ChatNode, node: ChatNode) -> Conversation:
        """Names the question's pictures by their bytes and saves it."""
        message = question.message
        if any(not part.sha256 for part in message.images):
            read = await asyncio.to_thread(lambda: [_read(part, self.held) for part in message.images])
            read_message = sending.question(message.text, read, message.documents)
            question = msgspec.structs.replace(question, message=read_message)
        chat.put(question)
        chat.put(node, save=False)
        return sending.with_open_end(chat.conversation)

    def _find(self, turn_id: int) -> tuple[int, Turn]:
        self._refuse_while_busy()
        return self._chat.find(turn_id)

    def _refuse_while_busy(self) -> None:
        if self.busy:
            raise BadRequest("Still answering", "Wait for the answer or stop it, then ask again.")

    def _replace(self, chat: OpenChat) -> None:
        answering, self._answering = self._answering, None
        self._chat = chat
        if answering is not None:
            answering.drop()
        self._subscribers.notify(ConversationReplaced())

    def _change(self, **changes: Any) -> None:
        self._chat.change(msgspec.structs.replace(self._chat.settings, **changes))
        self._subscribers.notify(SettingsChanged())


def _read(part: ImagePart, held: HeldPictures) -> ImagePart:
    return part if part.sha256 else image_part(Path(part.path), part.longest_side, held)


def _cancelled_from_outside() -> bool:
    """Whether the running task itself is being cancelled, rather than the work it waited for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
