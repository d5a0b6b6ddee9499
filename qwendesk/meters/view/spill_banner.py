"""The banner over all pages while a model spills: the problem, its effect on speed, and a button for each remedy."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QFrame, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from qwendesk.core.translation import tr
from qwendesk.meters.view.spill_text import BannerButton, SpillStory
from qwendesk.widgets.buttons import IconButton, TextButton, describe, restyle


class SpillBanner(QWidget):
    """Shows a SpillStory, or nothing. Once dismissed, it is shown again only when the story's key changes."""

    chosen = Signal(str)
    """Emitted with the id of a remedy, "load_again" or "stop_waiting"."""
    help_asked = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._story: SpillStory | None = None
        self._dismissed = ""
        self.setObjectName("spill")
        self._card = QFrame()
        self._card.setProperty("kind", "banner")
        self._title = QLabel()
        self._title.setProperty("kind", "heading")
        self._title.setObjectName("spill.title")
        self._sentence = QLabel()
        self._sentence.setWordWrap(True)
        self._sentence.setObjectName("spill.sentence")
        self._sentence.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._note = QLabel()
        self._note.setWordWrap(True)
        self._note.setObjectName("spill.note")
        self._note.setProperty("kind", "small")
        self._row = QHBoxLayout()
        self._row.setSpacing(8)
        self._row.addStretch(1)
        self._buttons: dict[BannerButton, TextButton] = {}
        around = QVBoxLayout(self)
        around.setContentsMargins(24, 14, 24, 12)
        around.addWidget(self._card)
        column = QVBoxLayout(self._card)
        column.setContentsMargins(16, 10, 10, 12)
        column.setSpacing(6)
        column.addLayout(self._first_row())
        column.addWidget(self._sentence)
        column.addLayout(self._row)
        column.addWidget(self._note)
        self.hide()

    @property
    def story(self) -> SpillStory | None:
        """The current story, even if it was dismissed."""
        return self._story

    def show_story(self, story: SpillStory | None) -> None:
        if story is None or story.key != self._dismissed:
            self._dismissed = ""
        if story != self._story and story is not None:
            self._fill(story)
        self._story = story
        self.setVisible(story is not None and not self._dismissed)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange_buttons()

    def _arrange_buttons(self) -> None:
        """Lay out the buttons in a row if they fit, else in a column."""
        wanted = sum(button.sizeHint().width() + self._row.spacing() for button in self._buttons.values())
        beside = wanted <= self.width() - 80
        way = QBoxLayout.Direction.LeftToRight if beside else QBoxLayout.Direction.TopToBottom
        if self._row.direction() is not way:
            self._row.setDirection(way)

    def _fill(self, story: SpillStory) -> None:
        restyle(self._card, "tone", story.tone)
        self._title.setText(story.title)
        self._sentence.setText(story.sentence)
        self._note.setText(story.note)
        self._note.setVisible(bool(story.note))
        wanted = [choice.id for choice in story.choices]
        for gone in [each for each in self._buttons if each not in wanted]:
            button = self._buttons.pop(gone)
            self._row.removeWidget(button)
            button.deleteLater()
            button.setObjectName("")
            button.hide()
        for place, choice in enumerate(story.choices):
            button = self._buttons.get(choice.id) or self._make(choice.id, place)
            button.setText(choice.text)
            describe(button, f"spill.{choice.id}", choice.text, choice.tooltip)
            button.setEnabled(not story.busy)
            restyle(button, "kind", "primary" if place == 0 else "")
        self._arrange_buttons()

    def _make(self, choice: BannerButton, place: int) -> TextButton:
        button = TextButton()
        button.clicked.connect(lambda _checked=False: self.chosen.emit(choice))
        self._buttons[choice] = button
        self._row.insertWidget(place, button)
        return button

    def _first_row(self) -> QHBoxLayout:
        close = IconButton("close", size=16, side=28)
        describe(close, "spill.dismiss", tr("Dismiss"), tr("Hide this until the state changes"))
        close.clicked.connect(self._dismiss)
        more = TextButton(tr("Help"), kind="link")
        describe(more, "spill.help", tr("Help"), tr("Read about spilled memory in the guide"))
        more.clicked.connect(self.help_asked)
        row = QHBoxLayout()
        row.addWidget(self._title, 1)
        row.addWidget(more)
        row.addWidget(close)
        return row

    def _dismiss(self) -> None:
        if self._story is not None:
            self._dismissed = self._story.key
            self.hide()
