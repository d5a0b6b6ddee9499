"""A titled card of rows on the settings page."""

from collections.abc import Sequence

from PySide6.QtWidgets import QFrame, QLabel, QVBoxLayout, QWidget


class Section(QWidget):
    """A heading over a card. `rows` are separated by lines, and the section hides with the last of them."""

    def __init__(self, name: str, title: str) -> None:
        super().__init__()
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

    def add(self, row: QWidget) -> None:
        self._rows.addWidget(row)

    def show_rows(self, rows: Sequence[tuple[QWidget, bool]]) -> None:
        """Each with whether it is wanted."""
        for row, is_wanted in rows:
            row.setVisible(is_wanted)
        self.setVisible(any(is_wanted for _, is_wanted in rows))
