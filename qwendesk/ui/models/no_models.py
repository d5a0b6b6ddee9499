"""The list of models while there is nothing in it: what to do first."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout, QWidget

from qwendesk.ui.kit.buttons import TextButton, describe
from qwendesk.ui.kit.flow import FlowLayout
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.theme_keeper import ThemeKeeper


class NoModels(QWidget):
    """`folder_asked` and `offers_asked` are its two ways on."""

    folder_asked = Signal()
    offers_asked = Signal()

    def __init__(self, keeper: ThemeKeeper) -> None:
        super().__init__()
        self.setObjectName("models.my.empty")
        self._title = QLabel()
        self._title.setProperty("kind", "heading")
        self._title.setObjectName("models.my.empty.title")
        self._text = QLabel(
            tr(
                "Files of LM Studio, Jan, Ollama, llama.cpp and the Hugging Face cache are found by themselves and "
                "used where they are. Models elsewhere: add their folder."
            )
        )
        self._text.setProperty("kind", "lead")
        self._text.setWordWrap(True)
        offers = TextButton(keeper, tr("Show what fits this PC"), kind="primary")
        describe(offers, "models.my.empty.offers", tr("Show what fits this PC"))
        offers.clicked.connect(self.offers_asked)
        folder = TextButton(keeper, " " + tr("Add folder…"), icon_name="folder")
        describe(folder, "models.my.empty.folder", tr("Add folder…"), tr("Use the models of a folder where they are"))
        folder.clicked.connect(self.folder_asked)
        buttons = FlowLayout()
        buttons.addWidget(offers)
        buttons.addWidget(folder)
        column = QVBoxLayout()
        column.setSpacing(12)
        column.addStretch(2)
        column.addWidget(self._title)
        column.addWidget(self._text)
        column.addLayout(buttons)
        column.addStretch(5)
        holder = QWidget()
        holder.setMaximumWidth(560)
        holder.setLayout(column)
        row = QHBoxLayout(self)
        row.addStretch(1)
        row.addWidget(holder, 1000)
        row.addStretch(1)
        self._ways_on = (self._text, offers, folder)

    def show_looking(self, *, is_looking: bool) -> None:
        self._title.setText(tr("Looking for models…") if is_looking else tr("No models on this PC yet"))
        for each in self._ways_on:
            each.setVisible(not is_looking)
