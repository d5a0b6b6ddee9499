"""Cards of the settings page: one with a title and rows, and one for a secret such as a token, which is never shown."""

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QLabel, QLineEdit, QWidget

from qwendesk.core.translation import tr
from qwendesk.widgets.buttons import TextButton, describe, restyle
from qwendesk.widgets.kit import LIST_PADDING, button, card, column, label, paragraph, row
from qwendesk.widgets.layouts import widget_with
from qwendesk.widgets.rows.option_texts import found_by


class TitledCard(QWidget):
    """A title above a card of rows. It is hidden when none of its rows is shown."""

    def __init__(self, name: str, title: str, words: str = "") -> None:
        """`words` are words with which a search finds the whole card."""
        super().__init__()
        self._words = words
        self.setObjectName(name)
        self._rows = column(spacing=0)
        framed = card(self._rows)
        self._rows.setContentsMargins(0, 4, 0, 4)
        self._found_by = label(kind="small", name=f"{name}.found", wraps=True)
        self._found_by.hide()
        self.setLayout(column(label(title, "heading"), self._found_by, framed))

    def matches(self, query: str) -> bool:
        """Return True if every word of `query` is in what the card shows or among its hidden words."""
        text = f"{self._words} {self._shown_text()}".lower()
        return all(word in text for word in query.lower().split())

    def show_found(self, query: str) -> None:
        """Say by which of its hidden words a search found the card, if nothing that it shows has them; "" for none."""
        note = found_by(query, self._words, self._shown_text())
        self._found_by.setText(note)
        self._found_by.setVisible(bool(note))

    def _shown_text(self) -> str:
        shown = (each for each in self.findChildren(QLabel) if each is not self._found_by and each.isVisibleTo(self))
        return " ".join(each.text() for each in shown)

    def add(self, row: QWidget) -> None:
        self._rows.addWidget(row)

    def show_rows(self, rows: Sequence[tuple[QWidget, bool]]) -> None:
        """Show or hide rows; hide the card if none is shown."""
        for each, is_wanted in rows:
            each.setVisible(is_wanted)
        self.setVisible(any(is_wanted for _, is_wanted in rows))


class SecretCard(TitledCard):
    saved = Signal(str)
    """The user has entered this secret."""
    deleted = Signal()

    def __init__(self, name: str, title: str, words: str, *, placeholder: str, tip: str) -> None:
        """`words` are what the search of the settings finds it by; `tip` says where the secret comes from."""
        super().__init__(name, title, words)
        self._name = name
        self._place, self._result = (paragraph(kind="small", name=f"{name}.{part}") for part in ("place", "result"))
        self._result.hide()
        self._field = QLineEdit()
        self._field.setEchoMode(QLineEdit.EchoMode.Password)
        self._field.setPlaceholderText(placeholder)
        describe(self._field, f"{name}.field", title, tip)
        self.setFocusProxy(self._field)  # so that users who are sent to this card can type at once
        self._row = row()
        self._row.addWidget(self._field, 1)
        margins = (LIST_PADDING, 8, LIST_PADDING, 8)
        self.add(widget_with(column(self._place, self._row, self._result, margins=margins)))
        self._save = self.add_button("save", tr("Save"), tr("Save what you entered"))
        self._save.setEnabled(False)
        self._delete = self.add_button("delete", tr("Delete"), tr("Delete what is saved"))
        self._field.textChanged.connect(lambda text: self._save.setEnabled(bool(text.strip())))
        self._field.returnPressed.connect(self._on_save)
        self._save.clicked.connect(self._on_save)
        self._delete.clicked.connect(self.deleted)

    def add_button(self, name: str, text: str, tip: str) -> TextButton:
        """Add a button at the end of the row."""
        made = button(text, f"{self._name}.{name}", tip=tip)
        self._row.addWidget(made)
        return made

    def show_place(self, sentence: str, *, can_delete: bool) -> None:
        """Say where the secret is saved."""
        self._place.setText(sentence)
        self._delete.setEnabled(can_delete)

    def show_result(self, sentence: str, *, is_good: bool = False) -> None:
        """Say what came of the last action; "" hides it."""
        self._result.setVisible(bool(sentence))
        self._result.setText(sentence)
        restyle(self._result, "kind", "good" if is_good else "error")

    def _on_save(self) -> None:
        secret = self._field.text().strip()
        if secret:
            self._field.clear()
            self.saved.emit(secret)
