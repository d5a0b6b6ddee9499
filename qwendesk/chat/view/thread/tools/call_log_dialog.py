"""The dialog with all tool calls of the open chat, or of another one in the list."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QScrollArea, QVBoxLayout, QWidget

from qwendesk.chat.call_log import LoggedCall, consent_text, log_text, logged_calls, moment_text, write_log
from qwendesk.chat.chat_list import ChatListService
from qwendesk.chat.service import ChatService
from qwendesk.chat.view.chat_page import ChatPage
from qwendesk.chat.view.thread.tools.call_row import CallRow
from qwendesk.chat.view.thread.turn_intents import CallIntents
from qwendesk.core.translation import tr, tr_n
from qwendesk.widgets.buttons import TextButton, describe
from qwendesk.widgets.file_dialogs import ask_where_to_save
from qwendesk.widgets.question_dialog import Dialog
from qwendesk.widgets.tasks import window_tasks

# Rows that are shown; older calls are in the copy and in the export.
_MOST_ROWS = 200


class CallLogDialog(Dialog):
    """Shows each call as a row that opens, as in the chat, with when it ran and how it was allowed."""

    def __init__(self, title: str, calls: Sequence[LoggedCall], intents: CallIntents, parent: QWidget) -> None:
        """`title` is that of the chat; "" for one without a title."""
        super().__init__(parent)
        self._calls, self._intents, self._tasks = calls, intents, window_tasks()
        self.setObjectName("calllog")
        self.setWindowTitle(tr("Tool calls"))
        self.setModal(True)
        self.resize(min(820, parent.width() - 40), min(640, parent.height() - 40))
        count = tr_n("{0} call", "{0} calls", len(calls)) if calls else tr("No tools were called in this chat.")
        head = QLabel(f"{title} · {count}" if title and calls else count)
        head.setObjectName("calllog.head")
        head.setTextFormat(Qt.TextFormat.PlainText)
        head.setWordWrap(True)
        head.setProperty("kind", "dim")
        area = QScrollArea()
        area.setObjectName("calllog.area")
        area.setAccessibleName(tr("Tool calls"))
        area.setWidgetResizable(True)
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setWidget(self._rows())
        column = QVBoxLayout(self)
        column.setContentsMargins(20, 18, 20, 16)
        column.setSpacing(12)
        column.addWidget(head)
        column.addWidget(area, 1)
        column.addLayout(self._buttons())
        self.finished.connect(self.deleteLater)

    def _rows(self) -> QWidget:
        inner = QWidget()
        inner.setProperty("kind", "page")
        column = QVBoxLayout(inner)
        column.setContentsMargins(0, 0, 12, 0)
        column.setSpacing(4)
        n_older = max(0, len(self._calls) - _MOST_ROWS)
        if n_older:
            text = tr_n("{0} older call is in the export.", "{0} older calls are in the export.", n_older)
            column.addWidget(_small(text))
        for number, call in enumerate(self._calls[n_older:]):
            column.addWidget(_small(" · ".join(filter(None, (moment_text(call), consent_text(call.record))))))
            row = CallRow(0, number, self._intents)
            row.show_record(call.record)
            row.end(can_retry=False)
            column.addWidget(row)
            column.addSpacing(8)
        column.addStretch(1)
        return inner

    def _buttons(self) -> QHBoxLayout:
        copy = TextButton(tr("Copy all"))
        describe(copy, "calllog.copy", tr("Copy all"), tr("Copy all calls as text"))
        copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(log_text(self._calls, self._intents.looks)))
        export = TextButton(tr("Export…"))
        describe(export, "calllog.export", tr("Export…"), tr("Save all calls as JSON, or as text if you name it .txt"))
        export.clicked.connect(self._ask_where)
        for button in (copy, export):
            button.setEnabled(bool(self._calls))
        close = TextButton(tr("Close"), kind="primary")
        describe(close, "calllog.close", tr("Close"), shortcut="Esc")
        close.clicked.connect(self.reject)
        row = QHBoxLayout()
        row.setSpacing(8)
        row.addWidget(copy)
        row.addWidget(export)
        row.addStretch(1)
        row.addWidget(close)
        return row

    def _ask_where(self) -> None:
        def save(path: str) -> None:
            self._tasks.start(asyncio.to_thread(write_log, Path(path), self._calls, self._intents.looks))

        ask_where_to_save(self, "calllog.save", tr("Export tool calls"), "tool-calls.json", save)


def _small(text: str) -> QLabel:
    label = QLabel(text)
    label.setProperty("kind", "small")
    label.setTextFormat(Qt.TextFormat.PlainText)
    return label


def show_call_log(page: ChatPage, chat: ChatService, chat_list: ChatListService, chat_id: str = "") -> None:
    """Open the dialog for a chat; without an id for the open one, also while its answer is being generated."""

    def show(calls: tuple[LoggedCall, ...]) -> None:
        summary = chat_list.chats.summaries.get(chat_id or chat.chat_id)
        intents = page.thread_view.intents.calls
        CallLogDialog(summary.title if summary else "", calls, intents, page.window()).open()

    async def load() -> None:
        show(logged_calls(await chat_list.tree(chat_id)))

    if chat_id not in ("", chat.chat_id):
        window_tasks().start(load(), page)
        return
    turns = chat.conversation.turns
    show(logged_calls(chat.tree, turns[-1].answer.steps if chat.busy and turns else ()))
