"""ChatService: the open chat, its settings and the answers the engine generates for it."""

import asyncio
import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from qwendesk.chat import chat_settings, request, tree_edits
from qwendesk.chat.answer_generator import Adjust, AnswerGenerator, cancelled_from_outside
from qwendesk.chat.chat_state import (
    ChatEvent,
    ChatState,
    ConversationReplaced,
    IncognitoImages,
    MessagesDeleted,
    TurnEnded,
    TurnsReplaced,
    TurnStarted,
)
from qwendesk.chat.open_chat import ChatSaver, NoChatSaver, OpenChat, Part
from qwendesk.chat.partial_answer import PartialAnswer
from qwendesk.chat.tool_rounds import ChatTools
from qwendesk.core.app_options import AppOptions
from qwendesk.core.architectures import OtherSampling
from qwendesk.core.chats import ChatSettings
from qwendesk.core.conversation import ChatNode, ChatTree, Conversation, Turn, answer_of
from qwendesk.core.errors import BadRequest
from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.messages import DocumentPart, ImagePart, Message
from qwendesk.core.observed import Observed, Subscribers
from qwendesk.core.presets import PresetSource, Style
from qwendesk.core.translation import tr

if TYPE_CHECKING:  # the types alone, so that a question loads less
    from qwendesk.chat.state_files import StateFiles
    from qwendesk.engine.contract import EngineClient
    from qwendesk.engines.engine_service import EngineService


class ChatService:
    """Owns the open chat and generates its answers. All methods are called on the event loop's thread.

    A view observes two things. `state` is an `Observed[ChatState]`: which chat is open, its settings, and whether an
    answer is being generated. `subscribe` reports the `ChatEvent`s of the conversation, such as each piece of text; the
    view then reads `conversation`, which is up to date. `state` changes before the event that belongs to the change.

    Methods on a turn raise BadRequest if it isn't shown any more, and while an answer is being generated.
    """

    def __init__(
        self,
        client: "EngineClient",
        models: "EngineService",
        saver: ChatSaver | None = None,
        *,
        states: "StateFiles | None" = None,
        tools: ChatTools | None = None,
        app: Observed[AppOptions] | None = None,
    ) -> None:
        """Without a `saver` nothing is written to disk. Without `states` the engine keeps no state of a chat."""
        self._states, self._tools = states, tools
        self._client = client
        self._models = models
        self._app = app or Observed(AppOptions())
        self._saver = saver or NoChatSaver()
        self._subscribers = Subscribers[ChatEvent]()
        self._turn_ids: dict[str, int] = {}
        self._chat = OpenChat(self._saver, self._turn_ids, settings=self._settings_of_new_chat())
        self._generator: AnswerGenerator | None = None
        self.incognito_images = IncognitoImages()
        """Images of an incognito chat that exist in memory only; cleared when another chat opens."""
        self.state = Observed(self._current_state())

    @property
    def ffmpeg_folder(self) -> str:
        """Folder of the programs that open clips, if the user named one."""
        return self._app.value.ffmpeg_folder

    @property
    def is_incognito(self) -> bool:
        """Whether nothing of the open chat may be written to disk."""
        return self._saver.is_excluded(self._chat.id)

    @property
    def active_incognito_images(self) -> IncognitoImages | None:
        """`incognito_images` if the open chat is incognito, else None."""
        return self.incognito_images if self.is_incognito else None

    @property
    def chat_id(self) -> str:
        """Id of the open chat; a new chat has one before its first message."""
        return self._chat.id

    @property
    def tree(self) -> ChatTree:
        """All versions of all messages. An answer that is being generated is in it without its new text."""
        return self._chat.tree

    @property
    def settings(self) -> ChatSettings:
        return self._chat.settings

    @property
    def conversation(self) -> Conversation:
        """All turns that are shown, with the partial answer if one is being generated."""
        conversation, generator = self._chat.conversation, self._generator
        if generator is None or not conversation.turns:
            return conversation
        turn = msgspec.structs.replace(conversation.turns[-1], answer=answer_of(generator.partial.node()))
        return conversation.with_turn(turn)

    def turn(self, turn_id: int) -> Turn | None:
        """Return the current state of a turn; None if it isn't shown."""
        return next((turn for turn in self.conversation.turns if turn.id == turn_id), None)

    @property
    def thinking(self) -> bool:
        """Whether thinking is requested. A model that can't think answers without it."""
        return self._chat.settings.thinking is not False

    @property
    def style(self) -> Style:
        return chat_settings.style_of(self._chat.settings)

    @property
    def busy(self) -> bool:
        """True from a question until its answer has ended."""
        return self._generator is not None

    def set_thinking(self, thinking: bool) -> None:
        self._change_settings(thinking=thinking)

    def set_system_prompt(self, text: str) -> None:
        self._change_settings(system_prompt=text)

    def set_overrides(self, assignments: Mapping[str, str]) -> None:
        """Set the options that override the preset, in the form of `--set`. Raises BadOption or BadRequest."""
        self._change_settings(overrides=dict(assignments))

    def set_style(self, style: Style) -> None:
        """Use a built-in style, and drop sampling overrides."""
        self.change_settings(chat_settings.with_style(self._chat.settings, style))

    def set_sampling(self, values: Mapping[str, str]) -> None:
        """Override sampling values. `values` maps option names to texts. Raises BadOption."""
        self.change_settings(chat_settings.with_sampling(self._chat.settings, self.preset_options(), values))

    def set_thinking_budget(self, tokens: int) -> None:
        """Limit thinking to `tokens` tokens; -1 for no limit."""
        self.change_settings(chat_settings.with_thinking_budget(self._chat.settings, tokens))

    def set_reasoning_effort(self, effort: str) -> None:
        """Use one of the template's values; "auto" for its default."""
        self.change_settings(chat_settings.with_reasoning_effort(self._chat.settings, effort))

    def change_settings(self, settings: ChatSettings) -> None:
        """Replace the settings of the chat. Raises BadOption or BadRequest if they can't be used for a request."""
        chat_settings.check_settings(settings)
        if settings != self._chat.settings:
            self._chat.change(settings)
            self._update_state()

    def preset_options(self) -> GenerationOptions:
        """Return the options of the next answer without the chat's overrides."""
        settings = msgspec.structs.replace(self._chat.settings, overrides={}, json_schema="")
        return request.request_options(settings, self._models.state.report, thinking=self.thinking)

    @property
    def preset_source(self) -> PresetSource:
        return request.preset_source(self._models.state.report)

    @property
    def other_sampling(self) -> tuple[OtherSampling, ...]:
        """Values that others publish instead of those of the chat's preset."""
        return request.other_sampling(self._chat.settings, self._models.state.report, thinking=self.thinking)

    def options(self) -> GenerationOptions:
        """Return the options of the next answer: the preset for the loaded model's family, then the overrides."""
        return request.request_options(self._chat.settings, self._models.state.report, thinking=self.thinking)

    def subscribe(self, callback: Callable[[ChatEvent], None]) -> Callable[[], None]:
        """Call `callback` with each event of the conversation until the returned function is called."""
        return self._subscribers.add(callback)

    async def send(
        self, text: str, pictures: Sequence[Path | ImagePart] = (), documents: Sequence[DocumentPart] = ()
    ) -> Turn:
        """Send a question. Return the turn when its answer has ended; a failure is in the answer's `error`.

        If a model is being loaded, waits for it first. Raises BadRequest if there is nothing to send, or while another
        answer is generated.
        """
        images = [ImagePart(path=str(each), sha256="") if isinstance(each, Path) else each for each in pictures]
        message = request.question_message(text, images, documents)
        question = self._question(tree_edits.last_id(self._chat.tree), message)
        return await self._answer(question, tree_edits.new_answer(question.id))

    async def edit_question(self, turn_id: int, text: str) -> Turn:
        """Send another version of a question, with its attachments."""
        index, turn = self._find(turn_id)
        parent_id = self._chat.node_of(turn, "question").parent_id
        message = request.question_message(text, turn.question.images, turn.question.documents)
        question = self._question(parent_id, message)
        return await self._answer(question, tree_edits.new_answer(question.id), kept=index)

    def edit_answer(self, turn_id: int, *, text: str, reasoning: str) -> None:
        """Add another version of an answer, written by the user."""
        index, turn = self._find(turn_id)
        if not text.strip() and not reasoning.strip():
            raise BadRequest(tr("Answer not saved"), tr("An answer can't be empty. Delete it instead."))
        self._chat.put(tree_edits.edited_answer(self._chat.node_of(turn, "answer"), text=text, reasoning=reasoning))
        self._subscribers.notify(TurnsReplaced(index))

    async def regenerate(self, turn_id: int, *, varied: bool = False) -> Turn:
        """Generate another version of an answer, with more random sampling if `varied`. An empty one is replaced."""
        index, turn = self._find(turn_id)
        question = self._chat.node_of(turn, "question")
        node = tree_edits.another_answer(self._chat.tree, question.id, turn.answer_id)
        return await self._answer(question, node, kept=index, adjust=request.varied if varied else None)

    async def continue_thinking(self, turn_id: int) -> Turn:
        """Generate another version of an answer, from the end of its reasoning and without breaking loops."""
        index, turn = self._find(turn_id)
        question = self._chat.node_of(turn, "question")
        node = tree_edits.reasoning_alone(self._chat.node_of(turn, "answer"))
        return await self._answer(question, node, index, request.without_breaking_loops, keeps_thinking=True)

    async def call_again(self, turn_id: int, number: int) -> Turn:
        """Run a tool call of an answer, counted from 0, again. Generate another version of the answer from there."""
        index, turn = self._find(turn_id)
        node = tree_edits.up_to_call(self._chat.node_of(turn, "answer"), number)
        question = self._chat.node_of(turn, "question")
        return await self._answer(question, node, index, calls_again=True)

    async def resume(self, turn_id: int) -> Turn:
        """Continue the last answer where it was stopped or cut off, even inside its reasoning."""
        index, turn = self._find(turn_id)
        if index != len(self._chat.conversation.turns) - 1:
            sentence = tr("Only the last answer can be continued. Branch here to continue from this one.")
            raise BadRequest(tr("Can't continue"), sentence)
        question = self._chat.node_of(turn, "question")
        return await self._answer(question, self._chat.node_of(turn, "answer"), kept=index)

    def show_version(self, turn_id: int, part: Part, step: Literal[-1, 1]) -> None:
        """Show the previous (-1) or next (1) version of a message, if there is one."""
        index, turn = self._find(turn_id)
        versions = self._chat.tree.versions(self._chat.node_of(turn, part).id)
        position = versions.index(self._chat.node_of(turn, part).id) + step
        if 0 <= position < len(versions):
            self._chat.show(versions[position])
            self._subscribers.notify(TurnsReplaced(index))

    def delete(self, turn_id: int, part: Part) -> None:
        """Delete this version of a message and everything after it; `undo_delete` restores it."""
        index, turn = self._find(turn_id)
        n_deleted = self._chat.delete(self._chat.node_of(turn, part).id)
        if self._states is not None:
            self._states.forget((self._chat.id,))
        self._update_state()
        self._subscribers.notify(TurnsReplaced(index))
        self._subscribers.notify(MessagesDeleted(n_deleted))

    def undo_delete(self) -> None:
        """Restore the messages that were deleted last in this chat."""
        self._refuse_while_busy()
        kept = self._chat.undo_delete()
        self._update_state()
        self._subscribers.notify(TurnsReplaced(kept))

    def branch(self, turn_id: int) -> str:
        """Open a new chat with a copy of all turns up to this one. Return its id."""
        _, turn = self._find(turn_id)
        until_id = turn.answer_id or turn.question_id
        tree = tree_edits.copied_path(self._chat.tree, until_id)
        origin, message = ("", "") if self.is_incognito else (self._chat.id, until_id)
        settings = msgspec.structs.replace(self._chat.settings, branched_from=origin, branched_at=message)
        branched = OpenChat(self._saver, self._turn_ids, tree, settings)
        if self.is_incognito:
            self._saver.exclude(branched.id)
        self._replace(branched)
        self._chat.save_all()
        return self._chat.id

    def open(self, chat_id: str, tree: ChatTree, settings: ChatSettings) -> None:
        """Open a stored chat. An answer that is being generated in another chat is stopped and saved there."""
        self._replace(OpenChat(self._saver, self._turn_ids, tree, chat_settings.usable_settings(settings), chat_id))
        self.incognito_images.clear()

    def begin_with(self, settings: ChatSettings) -> None:
        """Use the settings of the last run in the chat that the app starts with, unless that chat was already used."""
        if self._chat.settings == self._settings_of_new_chat() and not self._chat.tree.nodes:
            self.change_settings(self._settings_of_new_chat(chat_settings.usable_settings(settings)))

    def new_chat(self, chat_id: str = "") -> None:
        """Open an empty chat with `inherited_settings`. An answer that is being generated is stopped."""
        settings = self._settings_of_new_chat(chat_settings.inherited_settings(self._chat.settings))
        self._replace(OpenChat(self._saver, self._turn_ids, settings=settings, chat_id=chat_id or tree_edits.new_id()))
        self.incognito_images.clear()

    async def stop(self) -> None:
        """Stop generating and keep the partial answer."""
        if self._generator is not None:
            await self._generator.stop()

    def stop_call(self, call_id: str) -> None:
        """Stop one tool call that runs; the answer goes on without its result."""
        if self._generator is not None:
            self._generator.stop_call(call_id)

    async def answer_now(self) -> None:
        """End the reasoning, so that the model begins its answer."""
        if self._generator is not None:
            await self._generator.answer_now()

    def _question(self, parent_id: str, message: Message) -> ChatNode:
        """Return a new question after the message `parent_id`. Raise BadRequest if it can't be asked."""
        self._refuse_while_busy()
        if not message.text.strip() and not message.images and not message.documents:
            raise BadRequest(tr("Nothing to send"), tr("Write a message, or attach a picture or a document."))
        return tree_edits.new_question(parent_id, message)

    async def _answer(
        self, question: ChatNode, node: ChatNode, kept: int | None = None, adjust: Adjust | None = None, *,
        keeps_thinking: bool = False, calls_again: bool = False,
    ) -> Turn:  # fmt: skip
        """Generate the answer `node`, or the rest of it.

        The turns after the first `kept` were replaced; None if no turn was.
        """
        chat = self._chat
        state = self._models.state  # a model for another program makes room for the window's
        chat.note_answer(state.report if state.idle_unloaded is None else None, self._tools)
        chat.put(question, save=False)
        chat.put(node, save=False)
        partial = PartialAnswer(
            chat.id, chat.turn_id(question.id), node, keeps_thinking=keeps_thinking, calls_again=calls_again
        )
        generator = self._generator = AnswerGenerator(
            partial, self._client, self._models, self._saver, self._subscribers.notify, self.active_incognito_images,
            None if self.is_incognito else self._states, self._tools,
        )  # fmt: skip
        self._update_state()
        thinking = self.thinking if partial.begun.is_empty else bool(partial.begun.reasoning)
        prepare = functools.partial(chat.prepare_answer, question, node)
        work = generator.run(prepare, lambda: chat.settings, thinking=thinking, adjust=adjust)
        task = generator.task = asyncio.create_task(work)
        if kept is not None:
            self._subscribers.notify(TurnsReplaced(kept))
        self._subscribers.notify(TurnStarted(partial.turn_id))
        final: ChatNode | None = None
        try:
            final = await task
        except asyncio.CancelledError:
            if cancelled_from_outside():
                raise
        finally:
            final = final or partial.node(stop_reason="cancelled")
            chat.ensure_saved(question.id)
            chat.put(final)
            if self._generator is generator:
                self._generator = None
                self._update_state()
                self._subscribers.notify(TurnEnded(partial.turn_id))
        found = next((turn for turn in chat.conversation.turns if turn.id == partial.turn_id), None)
        return found or Turn(partial.turn_id, question.message, answer_of(final))

    def _find(self, turn_id: int) -> tuple[int, Turn]:
        self._refuse_while_busy()
        return self._chat.find(turn_id)

    def _refuse_while_busy(self) -> None:
        if self.busy:
            raise BadRequest(tr("Still answering"), tr("Wait for the answer or stop it, then try again."))

    def _replace(self, chat: OpenChat) -> None:
        generator, self._generator = self._generator, None
        self._chat = chat
        if generator is not None:
            generator.drop()
        self._update_state()
        self._subscribers.notify(ConversationReplaced())

    def _settings_of_new_chat(self, inherited: ChatSettings | None = None) -> ChatSettings:
        return chat_settings.settings_of_new_chat(
            inherited or ChatSettings(), thinks=self._app.value.think_in_new_chats
        )

    def _change_settings(self, **changes: Any) -> None:
        self.change_settings(msgspec.structs.replace(self._chat.settings, **changes))

    def _update_state(self) -> None:
        self.state.set(self._current_state())

    def _current_state(self) -> ChatState:
        return ChatState(
            chat_id=self._chat.id,
            settings=self._chat.settings,
            busy=self.busy,
            can_undo_delete=self._chat.can_undo_delete,
            is_incognito=self.is_incognito,
        )
