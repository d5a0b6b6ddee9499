"""Opens HTML and SVG of an answer in the system's browser, after a sentence about it the first time."""

from functools import partial

from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QWidget

from qwendesk.chat.browser_pages import BrowserPages
from qwendesk.chat.service import ChatService
from qwendesk.core.translation import join_sentences, tr
from qwendesk.widgets.question_dialog import DialogButton, QuestionDialog
from qwendesk.widgets.tasks import window_tasks


class PageOpener:
    def __init__(self, pages: BrowserPages, chat: ChatService, parent: QWidget) -> None:
        self._pages, self._chat, self._parent, self._tasks = pages, chat, parent, window_tasks()

    def ask(self, text: str, language: str) -> None:
        """Open the page at once if the user knows what that means. In an incognito chat they are asked each time."""
        self._tasks.start(self._ask(text, language), self._parent)

    async def _ask(self, text: str, language: str) -> None:
        is_incognito = self._chat.is_incognito
        if not is_incognito and await self._pages.is_explained():
            await self._open(text, language)
            return
        sentences = [
            tr(
                "Your browser shows this page from a file on this PC. Scripts don't run, and nothing is loaded from "
                "the internet, so some pages look different than they should. The file is deleted when QwenDesk closes."
            )
        ]
        if is_incognito:
            sentences.append(tr("This chat is incognito, but your browser may remember the page."))
        open_it = DialogButton("open", tr("Open"), partial(self._open_explained, text, language))
        answers = (open_it, DialogButton("cancel", tr("Cancel")))
        question = tr("Open this page in your browser?")
        QuestionDialog(
            self._parent.window(), "browserpage", question, join_sentences(*sentences), answers, "open"
        ).open()

    def _open_explained(self, text: str, language: str) -> None:
        self._tasks.start(self._explained(text, language), self._parent)

    async def _explained(self, text: str, language: str) -> None:
        if not self._chat.is_incognito:
            await self._pages.note_explained()
        await self._open(text, language)

    async def _open(self, text: str, language: str) -> None:
        path = await self._pages.write(text, language)
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(path)))
