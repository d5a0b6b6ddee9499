"""Parts of the first start: a fact about a model, another way to begin, the engine's troubles, and a placeholder."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QRect, QRectF, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QFrame, QGridLayout, QLabel, QSizePolicy, QVBoxLayout, QWidget

from qwendesk.core.translation import tr
from qwendesk.widgets.buttons import TextButton, describe
from qwendesk.widgets.kit import CHOICE, LIST_PADDING, STRETCH, IconLabel, button, card, column, label, paragraph, row
from qwendesk.widgets.layouts import WrappingLayout
from qwendesk.widgets.navigation import GRAPHICS_HELP, Navigation
from qwendesk.widgets.theme_keeper import app_theme, current_theme

if TYPE_CHECKING:
    from qwendesk.engines.view.engines_presenter import EnginesPresenter

_CHOICE_ICON, _CHOICE_BOX = 18, 36
# Bars of the placeholder: left edge and width as shares of the card, top and height in pixels at 100% text size.
_BARS = (
    (0.0, 0.30, 2, 24), (0.0, 0.74, 34, 16),
    *((place / 4, 0.15, 74, 16) for place in range(4)),
    *((place / 4, 0.20, 98, 14) for place in range(4)),
    *((place / 4, 0.11, 118, 14) for place in range(4)),
)  # fmt: skip
_LEAST_TITLE, _LEAST_VALUE, _LEAST_BUTTON = 80, 60, 92


class Fact(QWidget):
    """An icon, a fact in a word or two, and what it means below."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._icon = IconLabel(role="accent")
        self._word = label(kind="strong", name=f"start.{name}.fact", wraps=True)
        self._note = paragraph(kind="dim", name=f"start.{name}.note")
        self._note.setAlignment(Qt.AlignmentFlag.AlignTop)
        words = column(self._word, self._note, STRETCH, spacing=2)
        layout = row(column(1, self._icon, STRETCH, spacing=0), words)
        layout.setStretch(1, 1)
        self.setLayout(layout)

    def show_fact(self, icon_name: str, word: str, note: str) -> None:
        self._icon.show_icon(icon_name)
        self._word.setText(word)
        self._note.setText(note)


class StartChoice(QFrame):
    """Another way to begin: an icon, a title with a sentence below, and a button."""

    def __init__(self, name: str, icon_name: str, title: str) -> None:
        super().__init__()
        self._name = name
        self.setProperty("kind", "modelcard")
        icon = IconLabel(icon_name, size=_CHOICE_ICON)
        icon.setFixedSize(_CHOICE_BOX, _CHOICE_BOX)
        icon.setAlignment(Qt.AlignmentFlag.AlignCenter)
        box = card(column(icon, spacing=0), "iconbox", padding=0)
        self.title = paragraph(title, "strong")
        self._words = paragraph(kind="dim", name=f"start.{name}.words")
        self.button = button("", f"start.{name}")
        self._buttons: QVBoxLayout = column(self.button)
        words = column(self.title, self._words, STRETCH, spacing=2)
        layout = row(column(box, STRETCH), words, self._buttons, spacing=12, margins=(16, 12, 16, 12))
        layout.setStretch(1, 1)
        layout.setAlignment(self._buttons, Qt.AlignmentFlag.AlignVCenter)
        self.setLayout(layout)
        app_theme().follow(self, self._fit)
        self._fit()

    def add_button(self, text: str, name: str) -> TextButton:
        """Add a button above the other one."""
        added = button(text, name)
        self._buttons.insertWidget(0, added)
        return added

    def show_words(self, words: str, text: str, tip: str) -> None:
        """Show a sentence, and on the button `text` with a tooltip."""
        self._words.setText(words)
        self.button.setText(text)
        describe(self.button, f"start.{self._name}", tip, tip)

    def _fit(self) -> None:
        theme = current_theme()
        self.setMinimumHeight(theme.px(CHOICE))
        self.button.setMinimumWidth(theme.px(_LEAST_BUTTON))


class LookingBars(QWidget):
    """Grey bars in place of the text of an offer."""

    def __init__(self) -> None:
        super().__init__()
        app_theme().changed.connect(self.update)

    def paintEvent(self, _event: QPaintEvent) -> None:
        theme = current_theme()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.color("card"))
        for left, width, top, height in _BARS:
            place = QRectF(left * self.width(), theme.px(top), width * self.width(), theme.px(height))
            painter.drawRoundedRect(place, 6, 6)
        painter.end()


class EngineTrouble(QFrame):
    """Tells that the engine didn't start, or can't use a GPU of this PC, and what to do. Hidden otherwise."""

    def __init__(self, find_engines: "Callable[[], EnginesPresenter | None]", navigation: Navigation) -> None:
        super().__init__()
        self._find_engines = find_engines
        self._engines: EnginesPresenter | None = None
        self._has_offer, self._offer_trouble = False, ""
        self._problem, self._gpus = "", ""
        self.setProperty("kind", "modelcard")
        self._words = paragraph(name="start.gpu")
        tip = tr("Open the guide page about engines")
        self._help = button(tr("Show me how"), "start.gpu.help", kind="link", tip=tip)
        self._help.clicked.connect(lambda: navigation.help_asked.emit(*GRAPHICS_HELP))
        line = row(self._words, self._help)
        line.setStretch(0, 1)
        self._column = column(line, margins=(LIST_PADDING,) * 4)
        self.setLayout(self._column)
        self.hide()

    def show_trouble(self, problem: str, gpus: str) -> None:
        """Show why the engine didn't start, or which GPUs it can't use; "" if it can."""
        self._problem, self._gpus = problem, gpus
        if gpus and self._engines is None:
            self._add_engine_offer()
        self._refresh()

    def _add_engine_offer(self) -> None:
        engines = self._engines = self._find_engines()
        if engines is not None:
            self._column.addWidget(engines.offer_row)
            engines.offer_changed.connect(self._on_offer)
            self._has_offer, self._offer_trouble = engines.offer

    def _on_offer(self, is_shown: bool, trouble: str) -> None:
        """Show or hide the offer; `trouble` is why an installed engine can't use the GPU."""
        self._has_offer, self._offer_trouble = is_shown, trouble
        self._refresh()

    def _refresh(self) -> None:
        self.setVisible(bool(self._problem or self._gpus))
        self._help.setVisible(not self._has_offer)
        if self._engines is not None:
            self._engines.offer_row.setVisible(self._has_offer)
        if self._has_offer:
            text = tr("{0} needs a separate engine. Until it's installed, estimates assume CPU only.", self._gpus)
        elif self._gpus:
            text = tr(
                "This PC has {0}, but the installed engine can't use it. Everything works, but slower. The estimates "
                "are without it.",
                self._gpus,
            )
            text = tr("{0} {1}", text, self._offer_trouble) if self._offer_trouble else text
        else:
            text = tr("{0} Estimates assume CPU only.", self._problem)
        self._words.setText(text)


class ActionLayout(WrappingLayout):
    """Buttons at the left and a link at the right, with a sentence between them, or below them if there is no room."""

    def __init__(self, buttons: QWidget, sentence: QWidget, link: QWidget, *, least: int) -> None:
        """`least` is the least width in pixels of the sentence between the others."""
        super().__init__(spacing=LIST_PADDING)
        self._least = least
        for widget in (buttons, sentence, link):
            self.addWidget(widget)

    def expandingDirections(self) -> Qt.Orientation:
        return Qt.Orientation.Horizontal

    def setGeometry(self, rect: QRect) -> None:
        super().setGeometry(rect)
        for item, place in zip(self._items, self._places(rect), strict=True):
            item.setGeometry(self._mirrored(place, rect))

    def _height_for(self, width: int) -> int:
        return max(place.bottom() + 1 for place in self._places(QRect(0, 0, width, 0)))

    def _places(self, rect: QRect) -> list[QRect]:
        buttons, sentence, link = self._items
        left, right, gap = buttons.sizeHint(), link.sizeHint(), self.spacing()
        between = rect.width() - left.width() - right.width() - 2 * gap
        is_below = between < self._least
        width = rect.width() if is_below else between
        height = sentence.heightForWidth(width) if sentence.hasHeightForWidth() else sentence.sizeHint().height()
        line = max(left.height(), right.height(), 0 if is_below else height)
        tops = [rect.y() + (line - each) // 2 for each in (left.height(), height, right.height())]
        middle = QRect(rect.x() + left.width() + gap, tops[1], width, height)
        if is_below:
            middle = QRect(rect.x(), rect.y() + line + gap // 2, width, height)
        end = rect.x() + rect.width() - right.width()
        return [
            QRect(rect.x(), tops[0], min(left.width(), rect.width()), left.height()),
            middle,
            QRect(end, tops[2], right.width(), right.height()),
        ]


def details_grid() -> QGridLayout:
    """Return a grid for titles and values, whose second column takes the free space."""
    grid = QGridLayout()
    grid.setContentsMargins(0, 0, 0, 0)
    grid.setHorizontalSpacing(12)
    grid.setVerticalSpacing(10)
    grid.setColumnMinimumWidth(0, _LEAST_TITLE)
    grid.setColumnStretch(1, 1)
    return grid


def value_label(name: str) -> QLabel:
    """Return a label for a value in a grid of details."""
    value = paragraph(name=f"start.{name}")
    value.setMinimumWidth(_LEAST_VALUE)
    value.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Preferred)
    return value
