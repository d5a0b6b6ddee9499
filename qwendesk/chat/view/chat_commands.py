"""The commands of the chat page, with the dialogs for exporting and importing chats."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from PySide6.QtCore import QObject, Signal

from qwendesk.chat.chat_services import ChatServices
from qwendesk.chat.service import ChatService
from qwendesk.chat.view.chat_area import ChatArea
from qwendesk.chat.view.chat_page import ChatPage
from qwendesk.chat.view.sidebar.sidebar import Sidebar
from qwendesk.core.conversation import Turn
from qwendesk.core.errors import QwenDeskError
from qwendesk.core.translation import mark, tr, tr_n
from qwendesk.widgets.actions import ActionId
from qwendesk.widgets.file_dialogs import ask_for_files, ask_where_to_save
from qwendesk.widgets.tasks import window_tasks

if TYPE_CHECKING:
    from qwendesk.chat.exchange.values import ExportFormat, ImportReport


class ChatTransfer(QObject):
    """Exports and imports chats for the sidebar and the commands."""

    failed = Signal(str, str)
    """Title and sentence."""
    recovered = Signal(str, str)
    """Title and sentence of the last failure, after which something succeeded."""

    def __init__(self, services: ChatServices, sidebar: Sidebar) -> None:
        super().__init__(sidebar)
        self._services, self._sidebar, self._tasks = services, sidebar, window_tasks()
        self._failure = "", ""
        sidebar.export_asked.connect(self.ask_export)
        sidebar.import_asked.connect(self.ask_import)

    def ask_export(self, kind: str, chat_ids: tuple[str, ...]) -> None:
        """Ask for a file, then write these chats to it. If there are no ids, export all chats."""
        wanted = cast("ExportFormat", kind)
        name = self._services.transfer.file_name(wanted, chat_ids)

        def export(path: str) -> None:
            self._tasks.start(self._export(Path(path), wanted, chat_ids), self._sidebar)

        title = tr("Export chat") if len(chat_ids) == 1 else tr("Export chats")
        ask_where_to_save(self._sidebar.window(), "chats.export_dialog", title, name, export)

    def ask_import(self) -> None:
        filters = [tr("Chats of QwenDesk, ChatGPT, Open WebUI, LM Studio (*.json *.zip)"), tr("All files (*)")]

        def import_from(paths: Sequence[str]) -> None:
            self._tasks.start(self._import(list(map(Path, paths))), self._sidebar)

        ask_for_files(self._sidebar.window(), "chats.import_dialog", tr("Import chats"), filters, import_from)

    async def _export(self, path: Path, kind: "ExportFormat", chat_ids: tuple[str, ...]) -> None:
        try:
            count = await self._services.transfer.export(path, kind, chat_ids)
        except QwenDeskError as error:
            self._fail(error)
        else:
            folder = path.parent.name or str(path.parent)
            sentence = tr_n(
                "Exported {0} chat to {1} in {2}", "Exported {0} chats to {1} in {2}", count, path.name, folder
            )
            self._sidebar.show_message(sentence, str(path.parent))
            self.recovered.emit(*self._failure)

    async def _import(self, paths: Sequence[Path]) -> None:
        """Import the chats of these files, up to the first one that can't be imported."""
        reports: list[ImportReport] = []
        try:
            for path in paths:
                self._sidebar.show_message(tr("Importing {0}…", path.name))
                reports.append(await self._services.transfer.import_from(path))
        except QwenDeskError as error:
            self._fail(error)
        else:
            self.recovered.emit(*self._failure)
        self._sidebar.show_message(sum(reports[1:], reports[0]).sentence if reports else "")

    def _fail(self, error: QwenDeskError) -> None:
        self._failure = error.title, error.sentence
        self.failed.emit(*self._failure)


_NO_ANSWER = mark("This chat has no answer yet.")


class ChatCommands:
    """Performs the commands of the chat page, and says why one can't be performed.

    Commands that change the last answer do nothing while an answer is being generated.
    """

    def __init__(
        self,
        page: ChatPage,
        chat: ChatService,
        area: ChatArea,
        sidebar: Sidebar,
        transfer: ChatTransfer,
        show_page: Callable[[], None],
    ) -> None:
        """`show_page` brings the chat page to the front of the window."""
        self._page, self._chat, self._area, self._sidebar = page, chat, area, sidebar
        self._transfer, self._show_page, self._tasks = transfer, show_page, window_tasks()

    def handlers(self) -> Mapping[ActionId, Callable[[], None]]:
        page, thread = self._page, self._page.thread_view
        return {
            "new_chat": self._shown(page.new_chat),
            "thinking": self._toggle_thinking,
            "attach": self._shown(page.attachments.choose_files),
            "ask_folder": self._shown(page.tool_picker.ask_for_folder),
            "stop": self._close_panel_or_stop,
            "answer_now": self._answer_now,
            "regenerate": self._shown(self.regenerate),
            "continue_answer": self._shown(self.continue_answer),
            "copy_answer": self._shown(self.copy_answer),
            "latest": self._shown(thread.follow),
            "find": self._find,
            "turn_before": self._shown(lambda: thread.step_turn(-1)),
            "turn_after": self._shown(lambda: thread.step_turn(1)),
            "sidebar": self.toggle_sidebar,
            "inspector": self._toggle_inspector,
            "search_chats": self._search,
            "new_incognito": self._new_incognito,
            "archive": self._show_archive,
            "rename_chat": self._rename,
            "import_chats": self._shown(self._transfer.ask_import),
            "export_chats": self._shown(lambda: self._transfer.ask_export("json", ())),
        }

    def _shown(self, run: Callable[[], None]) -> Callable[[], None]:
        """Return a command that shows the chat page before it runs, so that the user sees what it does."""

        def show_and_run() -> None:
            self._show_page()
            run()

        return show_and_run

    def copy_answer(self) -> None:
        """Copy the last answer as Markdown, without its thinking, and say so."""
        turns = [turn for turn in self._chat.conversation.turns if turn.answer.text]
        if turns:
            from qwendesk.chat.view.answer.clipboard_text import copy_markdown  # noqa: PLC0415 - needs the parser

            copy_markdown(turns[-1].answer.text)
        self._page.composer.show_remark(tr("The last answer was copied.") if turns else tr(_NO_ANSWER))

    def regenerate(self) -> None:
        turn = self._last_turn()
        if turn is not None:
            self._page.begin_answer(lambda: self._tasks.start(self._chat.regenerate(turn.id)))
        elif not self._chat.busy:
            self._page.composer.show_remark(tr(_NO_ANSWER))

    def continue_answer(self) -> None:
        """Continue an answer that was stopped or cut off."""
        turn = self._last_turn()
        if turn is None:
            reason = "" if self._chat.busy else tr(_NO_ANSWER)
        else:
            is_whole = not turn.answer.can_continue
            reason = tr("The last answer is complete.") if is_whole else self._page.continue_reason
        if reason:
            self._page.composer.show_remark(reason)
        elif turn is not None:
            self._page.begin_answer(lambda: self._tasks.start(self._chat.resume(turn.id)))

    def _toggle_thinking(self) -> None:
        """Turn thinking on or off, and say so. Does nothing on the first start, which has no message field."""
        if not self._page.composer.isHidden():
            self._show_page()
            self._page.toggle_thinking()
            self._page.say_thinking()

    def _find(self) -> None:
        """Open the find bar, unless there is nothing to search."""
        self._show_page()
        if self._chat.conversation.turns:
            self._page.thread_view.find_bar.open()
        else:
            self._page.composer.show_remark(tr("This chat has no messages yet."))

    def toggle_sidebar(self) -> None:
        self._show_page()
        self._area.toggle_sidebar()

    def _toggle_inspector(self) -> None:
        self._show_page()
        self._area.toggle_inspector()

    def _close_panel_or_stop(self) -> None:
        """Handle Esc: close the panel that covers the page; if there is none, stop the answer."""
        if not self._area.uncover_page() and self._chat.busy:
            self._show_page()
            self._page.stop()

    def _answer_now(self) -> None:
        if self._chat.busy:
            self._show_page()
            self._page.answer_now()

    def _search(self) -> None:
        self._show_page()
        self._area.show_sidebar()
        self._sidebar.focus_search()

    def _show_archive(self) -> None:
        self._search()
        self._sidebar.show_archive(on=True)

    def _rename(self) -> None:
        """Let the user edit the name of the open chat, or of the current one while the list has the focus."""
        self._show_page()
        self._area.show_sidebar()
        if not self._sidebar.rename():
            self._page.composer.show_remark(tr("This chat isn't in the list yet, so it has no name."))

    def _new_incognito(self) -> None:
        self._show_page()
        self._sidebar.new_incognito()
        self._page.composer.setFocus()

    def _last_turn(self) -> Turn | None:
        turns = self._chat.conversation.turns
        return turns[-1] if turns and not self._chat.busy else None
