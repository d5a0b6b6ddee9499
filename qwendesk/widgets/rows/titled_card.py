"""A card of rows with a title, as on the settings page."""

from collections.abc import Sequence

from PySide6.QtWidgets import QFrame, QLabel, QVBoxLayout, QWidget


class TitledCard(QWidget):
    """A title above a card of rows. It is hidden when none of its rows is shown."""

    def __init__(self, name: str, title: str, words: str = "") -> None:
        """`words` are words with which a search finds the whole card."""
        super().__init__()
        self._words = words
        self.setObjectName(name)
        self._heading = QLabel(title)
        self._heading.setProperty("kind", "heading")
        self._card = QFrame()
        self._card.setProperty("kind", "modelcard")
        self._rows = QVBoxLayout(self._card)
        self._rows.setContentsMargins(0, 4, 0, 4)
        self._rows.setSpacing(0)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        column.addWidget(self._heading)
        column.addWidget(self._card)

    @property
    def title(self) -> str:
        return self._heading.text()

    def matches(self, query: str) -> bool:
        return all(word in self._words for word in query.lower().split())

    def add(self, row: QWidget) -> None:
        self._rows.addWidget(row)

    def show_rows(self, rows: Sequence[tuple[QWidget, bool]]) -> None:
        """Show or hide rows; hide the card if none is shown."""
        for row, is_wanted in rows:
            row.setVisible(is_wanted)
        self.setVisible(any(is_wanted for _, is_wanted in rows))
