"""The toolbox on the settings page: notes about the user, lasting consents, and the key for Brave Search."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QLineEdit, QVBoxLayout, QWidget

from qwendesk.core.errors import BadRequest
from qwendesk.core.translation import mark, tr
from qwendesk.hub.access_tokens import TokenPlace
from qwendesk.toolbox.notes import LONGEST_NOTE, Note, NoteService, NotesState
from qwendesk.toolbox.search_key import SearchKeyService, SearchKeyState
from qwendesk.toolbox.service import Grant, ToolService
from qwendesk.widgets.bind import bind
from qwendesk.widgets.buttons import IconButton, TextButton, describe
from qwendesk.widgets.question_dialog import DialogButton, QuestionDialog
from qwendesk.widgets.rows.titled_card import SecretCard, TitledCard
from qwendesk.widgets.tasks import window_tasks
from qwendesk.widgets.text_layout import WrappingLabel

_NOTE_WORDS = "notes remember memory memories facts about me tools delete personal"
_NOTES = "settings.notes"


class NotesSection(TitledCard):
    """Shows and changes the notes."""

    def __init__(self, service: NoteService) -> None:
        super().__init__(_NOTES, tr("Notes"), _NOTE_WORDS)
        self._service = service
        self._shown: tuple[Note, ...] | None = None
        self._lines: list[QWidget] = []
        about = _small(
            tr(
                "What the model keeps about you in chats with the tool Notes, each note with your consent. It reads "
                "them in such chats only, and never in incognito chats."
            )
        )
        self._problem = _small("", kind="error")
        self._problem.setObjectName(f"{_NOTES}.problem")
        self._list = QVBoxLayout()
        self._list.setSpacing(0)
        self._list.setContentsMargins(0, 0, 0, 0)
        box = QWidget()
        box.setLayout(self._list)
        for row in (about, self._problem, box, self._make_adding()):
            self.add(row)
        bind(self, service.state, self._show)

    def _show(self, state: NotesState) -> None:
        self._show_problem(state.problem)
        self._delete_all.setVisible(bool(state.notes))
        if state.notes == self._shown:
            return
        self._shown = state.notes
        for line in self._lines:
            self._list.removeWidget(line)
            line.hide()
            line.deleteLater()
        self._lines = [self._line(f"{_NOTES}.{place}", note) for place, note in enumerate(state.notes, 1)]
        for line in self._lines:
            self._list.addWidget(line)

    def _line(self, name: str, note: Note) -> QWidget:
        line = QFrame()
        line.setObjectName(name)
        field = QLineEdit(note.text)
        field.setMaxLength(LONGEST_NOTE)
        field.setCursorPosition(0)
        written = tr("Written on {0}.", note.written_on) if note.written_on else ""
        describe(field, f"{name}.text", tr("Note"), f"{note.text}\n{written}".rstrip())
        field.editingFinished.connect(lambda: self._change(field, note))
        remove = IconButton("close", size=16, side=28)
        describe(remove, f"{name}.delete", tr("Delete this note"), tr("Delete this note"))
        remove.clicked.connect(lambda: self._try(lambda: self._service.delete(note)))
        row = QHBoxLayout(line)
        row.setContentsMargins(16, 4, 8, 4)
        row.setSpacing(8)
        row.addWidget(field, 1)
        row.addWidget(remove)
        return line

    def _make_adding(self) -> QWidget:
        self._field = QLineEdit()
        self._field.setMaxLength(LONGEST_NOTE)
        self._field.setPlaceholderText(tr("A note of your own"))
        describe(self._field, f"{_NOTES}.field", tr("A note of your own"), tr("What the model should know about you"))
        add = TextButton(tr("Add"))
        describe(add, f"{_NOTES}.add", tr("Add"), tr("Add this note"))
        add.setEnabled(False)
        self._delete_all = TextButton(tr("Delete all notes…"))
        describe(self._delete_all, f"{_NOTES}.deleteall", tr("Delete all notes…"), tr("Asks before it deletes them"))
        self._field.textChanged.connect(lambda text: add.setEnabled(bool(text.strip())))
        self._field.returnPressed.connect(self._add_typed)
        add.clicked.connect(self._add_typed)
        self._delete_all.clicked.connect(self._ask_to_delete_all)
        box = QWidget()
        row = QHBoxLayout(box)
        row.setContentsMargins(16, 6, 16, 8)
        row.setSpacing(8)
        row.addWidget(self._field, 1)
        row.addWidget(add)
        row.addWidget(self._delete_all)
        return box

    def _add_typed(self) -> None:
        text = self._field.text()
        if text.strip() and self._try(lambda: self._service.add(text)):
            self._field.clear()

    def _change(self, field: QLineEdit, note: Note) -> None:
        """Save what was typed; a note without text stays as it was."""
        if field.text() != note.text and not self._try(lambda: self._service.change(note, field.text())):
            field.setText(note.text)

    def _ask_to_delete_all(self) -> None:
        answers = (
            DialogButton("yes", tr("Delete all notes"), self._delete_everything),
            DialogButton("no", tr("Cancel")),
        )
        question, consequence = tr("Delete all notes?"), tr("The model forgets them. This can't be undone.")
        QuestionDialog(self.window(), f"{_NOTES}.question", question, consequence, answers, default="no").open()

    def _delete_everything(self) -> None:
        self._try(self._service.delete_all)

    def _try(self, change: Callable[[], None]) -> bool:
        """Make a change; show why if it isn't possible, and return whether it was."""
        try:
            change()
        except BadRequest as error:
            self._show_problem(error.sentence)
            return False
        return True

    def _show_problem(self, sentence: str) -> None:
        self._problem.setText(sentence)
        self._problem.setVisible(bool(sentence))


def _small(text: str, kind: str = "small") -> QLabel:
    label = QLabel(text)
    label.setProperty("kind", kind)
    label.setWordWrap(True)
    label.setContentsMargins(16, 8, 16, 4)
    return label


_CONSENTS = "settings.consents"
_CONSENT_WORDS = "tools allowed always consent permission take back revoke folder chat edit files mcp"


class ConsentsSection(TitledCard):
    def __init__(self, service: ToolService, chat_title: Callable[[str], str]) -> None:
        """`chat_title` returns the title of a chat by its id; "" if it has none."""
        super().__init__(_CONSENTS, tr("What tools may do without asking"), _CONSENT_WORDS)
        self._service, self._chat_title, self._tasks = service, chat_title, window_tasks()
        self._lines: list[QWidget] = []
        self._nothing = QLabel()
        self._nothing.setObjectName(f"{_CONSENTS}.nothing")
        self._nothing.setText(tr("Nothing so far. Every call that changes something asks you."))
        self._nothing.setWordWrap(True)
        self._nothing.setProperty("kind", "small")
        self._nothing.setContentsMargins(16, 8, 16, 8)
        box = QWidget()
        self._list = QVBoxLayout(box)
        self._list.setContentsMargins(0, 0, 0, 0)
        self._list.setSpacing(0)
        self.add(self._nothing)
        self.add(box)
        bind(self, service.grants, self._show)

    def _show(self, grants: tuple[Grant, ...]) -> None:
        for line in self._lines:
            line.hide()
            line.deleteLater()
        self._lines = [self._line(f"{_CONSENTS}.{place}", grant) for place, grant in enumerate(grants, 1)]
        for line in self._lines:
            self._list.addWidget(line)
        self._nothing.setVisible(not grants)

    def _line(self, name: str, grant: Grant) -> QWidget:
        line = QWidget()
        line.setObjectName(name)
        text = WrappingLabel(self._text(grant))
        text.setObjectName(f"{name}.text")
        text.setTextFormat(Qt.TextFormat.PlainText)  # the title of a chat may be anything
        text.setToolTip(grant.folder)
        button = TextButton(tr("Take back"))
        describe(button, f"{name}.remove", tr("Take back"), tr("Ask again before the next call"))
        button.clicked.connect(lambda: self._tasks.start(self._service.take_back(grant)))
        row = QHBoxLayout(line)
        row.setContentsMargins(16, 6, 12, 6)
        row.setSpacing(12)
        row.addWidget(text, 1)
        row.addWidget(button)
        return line

    def _text(self, grant: Grant) -> str:
        look = self._service.looks.get(grant.name)
        tool = look.title if look is not None else grant.name or tr("A tool")
        if grant.chat_id:
            title = self._chat_title(grant.chat_id) or tr("New chat")
            return tr("{0}, in the chat “{1}” until QwenDesk closes", tool, title)
        return tr("{0}, always in the folder {1}", tool, Path(grant.folder).name or grant.folder)


_KEY_WORDS = "search key brave api web search internet keyring token tools"
_NO_KEY = mark("No key. Only Brave Search needs one.")
_PLACES: Final[dict[TokenPlace, str]] = {
    "keyring": mark("A key for Brave Search is saved in your system's keyring."),
    "file": mark(
        "A key for Brave Search is saved in a file that only you can read, because your system has no usable keyring."
    ),
}


class SearchKeySection(SecretCard):
    """Shows where the key is saved, and changes it."""

    def __init__(self, service: SearchKeyService) -> None:
        super().__init__(
            "settings.searchkey",
            tr("Search key"),
            _KEY_WORDS,
            placeholder=tr("Paste your key for Brave Search"),
            tip=tr("Create a key at api-dashboard.search.brave.com"),
        )
        self._service, self._tasks = service, window_tasks()
        self.saved.connect(lambda key: self._tasks.start(service.save(key)))
        self.deleted.connect(lambda: self._tasks.start(service.delete()))
        bind(self, service.state, self._show)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if self._tasks.can_start:
            self._tasks.start(self._service.update())

    def _show(self, state: SearchKeyState) -> None:
        self.show_place(tr(_PLACES.get(state.place, _NO_KEY)), can_delete=state.place in _PLACES)
        self.show_result(state.problem)
