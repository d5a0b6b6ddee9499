"""ButtonWords: shortens and leaves out words of buttons whose icons say the same, while a row has no room for them."""

from PySide6.QtWidgets import QHBoxLayout, QPushButton

_LEVELS = 3


class ButtonWords:
    """The texts of some buttons of a row, from the longest to the shortest. All buttons show the same level."""

    def __init__(self, row: QHBoxLayout) -> None:
        self._row = row
        self._texts: dict[QPushButton, tuple[str, ...]] = {}
        self._level = 0

    def set(self, button: QPushButton, *texts: str) -> None:
        """Set the three texts of a button of the row."""
        self._texts[button] = texts
        button.setText(texts[self._level])

    def fit(self) -> None:
        """Show the longest texts that fit beside all else that the row shows now. Call this after it was laid out."""
        room = self._row.geometry().width() - self._row.sizeHint().width() + self._width(self._level)
        level = next((each for each in range(_LEVELS) if self._width(each) <= room), _LEVELS - 1)
        if level != self._level:
            self._level = level
            for button, texts in self._texts.items():
                button.setText(texts[level])

    def _width(self, level: int) -> int:
        """Return how wide the texts of a level are together, in logical pixels."""
        shown = (button for button in self._texts if not button.isHidden())
        return sum(button.fontMetrics().horizontalAdvance(self._texts[button][level]) for button in shown)
