"""What "My models" shows while there are no models: what to do, and the folders that were searched."""

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout, QWidget

from qwendesk.core.translation import tr
from qwendesk.hub.library_places import SearchFolder
from qwendesk.widgets.buttons import TextButton, describe
from qwendesk.widgets.layouts import FlowLayout
from qwendesk.widgets.text_labels import ElidedLabel


class NoModels(QWidget):
    """Shown instead of the list while there are no models."""

    folder_asked = Signal()
    offers_asked = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("models.my.empty")
        self._title = QLabel()
        self._title.setProperty("kind", "heading")
        self._title.setObjectName("models.my.empty.title")
        self._text = QLabel(
            tr(
                "Models from LM Studio, Jan and others are found automatically and used in place. If you keep models "
                "elsewhere, add their folder."
            )
        )
        self._text.setProperty("kind", "lead")
        self._text.setWordWrap(True)
        offers = TextButton(tr("Show what fits this PC"))
        describe(offers, "models.my.empty.offers", tr("Show what fits this PC"))
        offers.clicked.connect(self.offers_asked)
        folder = TextButton(tr("Add folder…"), kind="primary")
        describe(
            folder, "models.my.empty.folder", tr("Add folder…"), tr("Use the models in a folder without copying them")
        )
        folder.clicked.connect(self.folder_asked)
        buttons = FlowLayout()
        buttons.addWidget(folder)
        buttons.addWidget(offers)
        searched = QWidget()
        searched.setObjectName("models.my.empty.searched")
        self._searched = QVBoxLayout(searched)
        self._searched.setContentsMargins(0, 12, 0, 0)
        self._searched.setSpacing(4)
        heading = QLabel(tr("Searched folders"))
        heading.setProperty("kind", "small")
        self._searched.addWidget(heading)
        self._places: list[ElidedLabel] = []
        column = QVBoxLayout()
        column.setSpacing(12)
        column.addStretch(2)
        column.addWidget(self._title)
        column.addWidget(self._text)
        column.addLayout(buttons)
        column.addWidget(searched)
        column.addStretch(5)
        holder = QWidget()
        holder.setMaximumWidth(560)
        holder.setLayout(column)
        row = QHBoxLayout(self)
        row.addStretch(1)
        row.addWidget(holder, 1000)
        row.addStretch(1)
        self._actions_shown = (self._text, offers, folder, searched)

    def show_looking(self, *, is_looking: bool) -> None:
        self._title.setText(tr("Searching for models…") if is_looking else tr("No models on this PC yet"))
        for each in self._actions_shown:
            each.setVisible(not is_looking)

    def show_searched(self, places: Sequence[SearchFolder]) -> None:
        """Show the folders in which no model was found."""
        for label in self._places:
            self._searched.removeWidget(label)
            label.deleteLater()
        self._places = [ElidedLabel(f"models.my.empty.place.{number}", kind="dim") for number in range(len(places))]
        for label, place in zip(self._places, places, strict=True):
            label.setText(tr("{0} ({1})", place.path, place.app))
            label.setToolTip(label.text())
            self._searched.addWidget(label)
