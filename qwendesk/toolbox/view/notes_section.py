"""The notes about the user on the settings page: each can be changed and deleted, and new ones added."""

from collections.abc import Callable

from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QLineEdit, QVBoxLayout, QWidget

from qwendesk.core.errors import BadRequest
from qwendesk.core.translation import tr
from qwendesk.toolbox.notes import LONGEST_NOTE, Note, NoteService, NotesState
from qwendesk.widgets.bind import bind
from qwendesk.widgets.buttons import IconButton, TextButton, describe
from qwendesk.widgets.question_dialog import DialogButton, QuestionDialog
from qwendesk.widgets.rows.titled_card import TitledCard

_WORDS = "notes remember memory memories facts about me tools delete personal"
_NAME = "settings.notes"


class NotesSection(TitledCard):
    """Shows and changes the notes."""

    def __init__(self, service: NoteService) -> None:
        super().__init__(_NAME, tr("Notes"), _WORDS)
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
        self._problem.setObjectName(f"{_NAME}.problem")
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
        self._lines = [self._line(f"{_NAME}.{place}", note) for place, note in enumerate(state.notes, 1)]
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
        describe(self._field, f"{_NAME}.field", tr("A note of your own"), tr("What the model should know about you"))
        add = TextButton(tr("Add"))
        describe(add, f"{_NAME}.add", tr("Add"), tr("Add this note"))
        add.setEnabled(False)
        self._delete_all = TextButton(tr("Delete all notes…"))
        describe(self._delete_all, f"{_NAME}.deleteall", tr("Delete all notes…"), tr("Asks before it deletes them"))
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
        QuestionDialog(self.window(), f"{_NAME}.question", question, consequence, answers, default="no").open()

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
