"""AddressLine: one value with its title, and what can be done with it."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from qwendesk.widgets.buttons import TextButton, describe
from qwendesk.widgets.text_labels import ElidedLabel

_TITLE_WIDTH = 84


class AddressLine(QWidget):
    """A line above a rule. It is hidden while its value is empty."""

    def __init__(self, name: str, title: str) -> None:
        super().__init__()
        self._name, self.value = name, ""
        self.setObjectName(f"{name}.line")
        heading = QLabel(title)
        heading.setProperty("kind", "dim")
        heading.setMinimumWidth(_TITLE_WIDTH)
        self._shown = ElidedLabel(name, kind="address")
        self._shown.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._row = QHBoxLayout()
        self._row.setContentsMargins(0, 0, 0, 0)
        self._row.setSpacing(6)
        self._row.addWidget(heading)
        self._row.addWidget(self._shown, 1)
        rule = QFrame()
        rule.setProperty("kind", "rule")
        rule.setFixedHeight(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(2)
        column.addLayout(self._row)
        column.addWidget(rule)
        self._title = title

    def add_button(self, name: str, text: str, tip: str) -> TextButton:
        """Add a button at the end."""
        button = TextButton(text, kind="link")
        describe(button, f"{self._name}.{name}", text, tip)
        self._row.addWidget(button)
        return button

    def show_value(self, value: str, shown: str = "") -> None:
        """Show a value, or `shown` in its place."""
        self.value = value
        self._shown.setText(shown or value)
        self._shown.setToolTip(shown or value)
        self._shown.setAccessibleName(f"{self._title}: {shown or value}")
        self.setVisible(bool(value))
