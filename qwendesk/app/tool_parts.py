"""Connects the tools with the chat: what is offered, how calls look, undoing changes, citations and folders."""

from qwendesk.chat.chat_state import ChatState
from qwendesk.chat.view.wiring import ChatView
from qwendesk.core.citations import SEARCH
from qwendesk.services import App
from qwendesk.toolbox.knowledge.search import read_page, read_source
from qwendesk.toolbox.view.consents_section import ConsentsSection
from qwendesk.widgets.bind import bind, bind_field
from qwendesk.widgets.tasks import Tasks


def join_tools(chats: ChatView, services: App, tasks: Tasks) -> None:
    """Offer the tools in the chat; those that may be impossible on this PC are tried when that must be known."""
    toolbox, picker, actions = services.toolbox, chats.page.tool_picker, chats.page.call_actions
    picker.obstacles_asked.connect(lambda: tasks.start(toolbox.find_obstacles()))
    actions.set_edits(services.edits)
    chats.sources.set_reader(read_source, read_page)
    chats.page.ask_for_consent(toolbox.waiting, toolbox.decide)
    chats.page.show_progress(toolbox.progress)

    def show_tools() -> None:
        picker.show_choices(toolbox.choices)
        actions.show_tools(toolbox.looks)

    _read_folders(chats, services)
    bind(picker, toolbox.obstacles, lambda _obstacles: show_tools())
    bind(picker, toolbox.added, lambda _tools: show_tools())


def _read_folders(chats: ChatView, services: App) -> None:
    """Read the folders of the open chat in the background while a tool that searches them is on."""
    chat, indexes = services.chat.chat, services.folder_indexes

    def folders() -> tuple[str, ...]:
        return chat.settings.tool_folders if SEARCH in chat.settings.tools else ()

    def read() -> None:
        indexes.attach(folders(), in_memory=chat.is_incognito)

    def read_again() -> None:
        indexes.read_again(folders(), in_memory=chat.is_incognito)

    def of_chat(state: ChatState) -> tuple[object, ...]:
        return state.chat_id, state.settings.tool_folders, SEARCH in state.settings.tools

    chats.page.folders.follow(indexes.states, read_again)
    bind_field(chats.page.folders, chat.state, of_chat, lambda _changed: read())


def make_consents_section(services: App) -> ConsentsSection:
    """Return the card of what tools may do without asking."""

    def title_of(chat_id: str) -> str:
        summary = services.chat.chat_list.chats.summaries.get(chat_id)
        return summary.title if summary is not None else ""

    return ConsentsSection(services.toolbox, title_of)
