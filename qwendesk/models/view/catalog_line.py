"""The line with the catalog's date, and the button that checks its files for updates."""

import datetime

from PySide6.QtCore import Qt
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget

from qwendesk.core.translation import tr
from qwendesk.models.catalog_service import CatalogService, CatalogState
from qwendesk.models.view.catalog_texts import date_text, result_text
from qwendesk.widgets.bind import bind
from qwendesk.widgets.buttons import TextButton, describe
from qwendesk.widgets.layouts import ResponsivePairLayout

_LEAST_TEXT = 240
"""Least width in pixels of the text next to the button."""


class CatalogLine(QWidget):
    """Hidden while there is no catalog."""

    def __init__(self, service: CatalogService) -> None:
        super().__init__()
        self._service = service
        self._text = QLabel()
        self._text.setObjectName("models.catalog")
        self._text.setProperty("kind", "dim")
        self._text.setTextFormat(Qt.TextFormat.PlainText)
        self._text.setWordWrap(True)
        self._button = TextButton()
        self._button.clicked.connect(self._on_click)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addLayout(ResponsivePairLayout(self._text, self._button, least=_LEAST_TEXT))
        bind(self, service.state, self._show)

    def showEvent(self, event: QShowEvent) -> None:
        """Tell the days anew: the page may have been hidden overnight."""
        super().showEvent(event)
        self._show(self._service.state.value)

    def _show(self, state: CatalogState) -> None:
        self.setVisible(state.catalog is not None)
        if state.catalog is None:
            return
        date = date_text(state.catalog.date, state.last, datetime.datetime.now().astimezone().date())
        self._text.setText(f"{date} {result_text(state)}".strip())
        if state.progress is None:
            text, tip = (
                tr("Check for updates"),
                tr("Ask Hugging Face which of these files are new, replaced or removed"),
            )
        else:
            text, tip = tr("Cancel"), tr("Stop checking. What was found is kept.")
        self._button.setText(text)
        describe(self._button, "models.catalog.look_up", text, tip)
        self._button.setEnabled(state.progress is not None or not state.is_offline)

    def _on_click(self) -> None:
        if self._service.state.value.progress is None:
            self._service.look_up()
        else:
            self._service.cancel()
