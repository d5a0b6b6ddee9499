"""The services of the chat feature, connected so that all of them have the same chat open."""

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from qwendesk.chat.browser_pages import BrowserPages
from qwendesk.chat.chat_list import ChatListEvent, ChatListService, ChatOpened
from qwendesk.chat.chat_saver import StoreChatSaver
from qwendesk.chat.chat_state import ChatEvent, ChatState, ConversationReplaced
from qwendesk.chat.context_fill import ContextGauge
from qwendesk.chat.drafts import Drafts
from qwendesk.chat.presets import PresetsService
from qwendesk.chat.prompt_library import PromptLibrary
from qwendesk.chat.reopen_guard import MayReopen, always
from qwendesk.chat.service import ChatService
from qwendesk.chat.state_files import StateFiles
from qwendesk.chat.tool_rounds import ChatTools
from qwendesk.chat.warmer import Warmer
from qwendesk.core import paths
from qwendesk.core.app_options import AppOptions
from qwendesk.core.observed import Observed
from qwendesk.engine.contract import EngineClient
from qwendesk.engines.engine_service import EngineService
from qwendesk.toolbox.edit_history import EditHistory

if TYPE_CHECKING:
    from qwendesk.chat.exchange.service import ExchangeService


class ChatServices:
    """The services of the chat feature.

    Build this before anything else subscribes to them, because it must be the first to be told of another open chat.
    """

    def __init__(
        self,
        client: EngineClient,
        models: EngineService,
        app: Observed[AppOptions],
        *,
        states: StateFiles | None = None,
        tools: ChatTools | None = None,
        edits: EditHistory | None = None,
    ) -> None:
        """`states` are those that the engine saves before it unloads. `edits` keeps what tools changed in files."""
        saver = StoreChatSaver()
        self.states = states or StateFiles(client, app)
        self._edits = edits
        self.chat = ChatService(client, models, saver, states=self.states, tools=tools, app=app)
        self.chat_list = ChatListService(saver, Drafts(), self.chat.chat_id, on_deleted=self.states.forget)
        self.presets = PresetsService(self.chat)
        self.prompts = PromptLibrary()
        self.pages = BrowserPages()
        self.context = ContextGauge(client, models, self.chat, tools)
        self.warmer = Warmer(client, models, self.chat, self.states, app, tools=tools)
        self.options = Observed(self.chat.options())
        """The options of the next answer in the open chat."""
        self.before_switch: Callable[[], None] = lambda: None
        """Called before another chat is shown, while views still show the previous one."""
        self._unsubscribe = (
            self.chat.subscribe(self._on_chat),
            self.chat.state.subscribe(self._on_chat_state),
            self.chat_list.subscribe(self._on_chat_list),
            models.observed.subscribe_field(lambda state: state.report, lambda _report: self._update_options()),
        )

    @cached_property
    def transfer(self) -> "ExchangeService":
        """Import and export. Imported when it is first needed, because most sessions do neither."""
        from qwendesk.chat.exchange.service import ExchangeService  # noqa: PLC0415

        return ExchangeService(self.chat_list)

    async def start(self, folder: Path | None = None, may_reopen: MayReopen = always) -> None:
        """Open the stored chats and, if `may_reopen` allows it, the chat that was open last."""
        await self.states.tidy()
        await self.pages.delete_all()
        await self.chat_list.start(folder or paths.data_folder(), may_reopen)

    async def close(self) -> None:
        """Write everything that is unsaved and close the store."""
        for unsubscribe in self._unsubscribe:
            unsubscribe()
        await self.warmer.close()
        await self.pages.delete_all()
        await self.states.close()
        await self.presets.close()
        await self.prompts.close()
        await self.chat_list.close()
        if self._edits is not None and self.chat_list.state.value.is_loaded:
            await self._edits.keep_only(self.chat_list.state.value.summaries)

    def _on_chat(self, event: ChatEvent) -> None:
        if isinstance(event, ConversationReplaced):
            self.before_switch()
            self.chat_list.follow(self.chat.chat_id)

    def _update_options(self) -> None:
        self.options.set(self.chat.options())

    def _on_chat_state(self, state: ChatState) -> None:
        self._update_options()
        if state.chat_id == self.chat_list.current_id:
            self.chat_list.remember_settings(state.settings)

    def _on_chat_list(self, event: ChatListEvent) -> None:
        if not isinstance(event, ChatOpened):
            return
        if event.chat_id == self.chat.chat_id and not event.tree.nodes:
            self.chat.begin_with(event.settings)
        elif not event.tree.nodes:
            self.chat.new_chat(event.chat_id)
        elif event.chat_id != self.chat.chat_id or (event.node_id and not self._shows(event.node_id)):
            self.chat.open(event.chat_id, event.tree, event.settings)

    def _shows(self, node_id: str) -> bool:
        """Return True if the message is shown. Opening its chat again would cancel a running answer."""
        return any(node_id in (turn.question_id, turn.answer_id) for turn in self.chat.conversation.turns)
