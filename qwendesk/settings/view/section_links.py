"""SectionLinks: the names of the cards on the settings page, in the free margin beside them."""

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from qwendesk.core.translation import tr
from qwendesk.widgets.buttons import TextButton, describe
from qwendesk.widgets.rows.titled_card import TitledCard
from qwendesk.widgets.theme_keeper import current_theme

_WIDEST = 172
"""Logical pixels of a name; a longer one is elided."""


class SectionLinks(QWidget):
    """Leads to a card."""

    asked = Signal(object)
    """The TitledCard to go to."""

    def __init__(self, parent: QWidget, cards: Sequence[TitledCard]) -> None:
        super().__init__(parent)
        self._links: list[tuple[TitledCard, TextButton]] = []
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        for card in cards:
            link = TextButton(kind="tab")
            link.setProperty("compact", "true")
            link.setProperty("leading", "true")
            describe(link, f"{card.objectName()}.link", card.title, tr("Go to {0}", card.title))
            link.clicked.connect(lambda _checked=False, card=card: self.asked.emit(card))
            column.addWidget(link)
            self._links.append((card, link))

    def show_shown(self) -> None:
        """Show the links to the cards that are shown, in the text size of now."""
        widest = current_theme().px(_WIDEST)
        for card, link in self._links:
            link.setHidden(card.isHidden())
            link.setText(link.fontMetrics().elidedText(card.title, Qt.TextElideMode.ElideRight, widest))
