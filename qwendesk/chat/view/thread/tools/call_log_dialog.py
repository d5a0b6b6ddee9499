"""All tool calls of a chat in the order in which they ran, also those of hidden versions, and the dialog that shows
them.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QScrollArea, QVBoxLayout, QWidget

from qwendesk.chat.chat_list import ChatListService
from qwendesk.chat.service import ChatService
from qwendesk.chat.view.chat_page import ChatPage
from qwendesk.chat.view.thread.tools.call_row import CallRow
from qwendesk.chat.view.thread.turn_intents import CallIntents
from qwendesk.core.conversation import ChatTree
from qwendesk.core.errors import BadRequest
from qwendesk.core.files import reason_of, write_whole
from qwendesk.core.json_decoding import decode_json
from qwendesk.core.messages import CallRecord, ToolStep
from qwendesk.core.tool_context import ToolLook
from qwendesk.core.translation import tr, tr_n
from qwendesk.widgets.buttons import TextButton, copy_text, describe
from qwendesk.widgets.file_dialogs import ask_where_to_save
from qwendesk.widgets.question_dialog import Dialog
from qwendesk.widgets.tasks import window_tasks


class LoggedCall(msgspec.Struct, frozen=True):
    record: CallRecord
    time_s: float
    """Start of the call, in seconds since 1970; of one that never ran, the start of its answer. 0 if unknown."""


def logged_calls(tree: ChatTree, running: Sequence[ToolStep] = ()) -> tuple[LoggedCall, ...]:
    """Return each call once, although versions of an answer that were edited have the same calls.

    `running` are the steps of an answer that is being generated, whose calls the tree doesn't have yet.
    """
    calls: dict[object, LoggedCall] = {}
    for node in tree.nodes.values():
        for step in node.message.steps:
            for record in step.calls:
                key: object = record.id or (node.id, len(calls))
                calls.setdefault(key, LoggedCall(record, record.began_s or node.created_s))
    for record in (record for step in running for record in step.calls if record.id):
        calls.setdefault(record.id, LoggedCall(record, record.began_s))
    return tuple(sorted(calls.values(), key=lambda call: call.time_s))


def moment_text(call: LoggedCall) -> str:
    """Return when a call ran, in local time; "" if unknown."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(call.time_s)) if call.time_s else ""


def consent_text(record: CallRecord) -> str:
    """Return how it came that a call ran, or that it didn't; "" if unknown."""
    match record.consent:
        case "unasked":
            return tr("Ran without asking")
        case "once":
            return tr("Allowed once")
        case "chat":
            return tr("Allowed in this chat")
        case "always":
            return tr("Always allowed in this folder")
        case "refused":
            return tr("Refused")
        case "":
            return ""


def log_text(calls: Sequence[LoggedCall], looks: Mapping[str, ToolLook]) -> str:
    """Return the calls as text, each with all of its arguments and its result."""
    return "\n\n".join(_call_text(call, looks) for call in calls)


def log_json(calls: Sequence[LoggedCall]) -> bytes:
    """Return the calls as a JSON array."""
    return msgspec.json.format(msgspec.json.encode([_call_values(call) for call in calls]), indent=1)


def write_log(path: Path, calls: Sequence[LoggedCall], looks: Mapping[str, ToolLook]) -> None:
    """Write the calls to a file: as text if its name ends in .txt, else as JSON. Blocks. Raises BadRequest."""
    is_text = path.suffix.lower() == ".txt"
    content = f"{log_text(calls, looks)}\n".encode() if is_text else log_json(calls)
    try:
        write_whole(path, content)
    except OSError as error:
        sentence = tr("Couldn't save {0}: {1}. Choose another location.", path, reason_of(error, path))
        raise BadRequest(tr("Not saved"), sentence) from error


def _call_text(call: LoggedCall, looks: Mapping[str, ToolLook]) -> str:
    record = call.record
    look = looks.get(record.call.name)
    name = f"{look.title} ({record.call.name})" if look is not None else record.call.name or tr("Unreadable call")
    head = "   ".join(filter(None, (moment_text(call), name, consent_text(record), f"{record.elapsed_s:.1f} s")))
    outcome = tr("Error: {0}", record.error) if record.error else record.result
    return "\n".join((head, record.call.arguments_json, outcome if record.is_done else tr("Interrupted")))


def _call_values(call: LoggedCall) -> dict[str, object]:
    record = call.record
    try:
        arguments: object = decode_json(record.call.arguments_json)
    except msgspec.DecodeError:
        arguments = record.call.arguments_json
    return {
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(call.time_s)) if call.time_s else None,
        "tool": record.call.name,
        "arguments": arguments,
        "consent": record.consent or None,
        "is_done": record.is_done,
        "result": record.result,
        "error": record.error or None,
        "elapsed_s": record.elapsed_s,
    }


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
        copy.clicked.connect(lambda: copy_text(copy, log_text(self._calls, self._intents.looks)))
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


def show_call_log(page: ChatPage, chat: ChatService, chat_list: ChatListService, chat_id: str) -> None:
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
