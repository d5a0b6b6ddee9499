"""NameField: a title that can be edited in its place."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QLineEdit, QStackedWidget

from qwendesk.core.translation import tr
from qwendesk.widgets.buttons import describe
from qwendesk.widgets.text_labels import ElidedLabel

_LONGEST = 60


class NameField(QStackedWidget):
    """Shows a title. While it is edited, Enter or leaving it takes the new name, and Esc the old one."""

    named = Signal(str)
    """The new name, which may be empty."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._title, self._field = ElidedLabel(f"{name}.title", kind="strong"), QLineEdit()
        self._field.setMaxLength(_LONGEST)
        describe(self._field, f"{name}.name", tr("Name"), tr("What you call this server. Empty: its own name."))
        self._field.editingFinished.connect(self._end)
        self._name = ""
        self.addWidget(self._title)
        self.addWidget(self._field)

    def show_name(self, title: str, name: str) -> None:
        """Show the title; `name` is what the user has called it before, or ""."""
        self._title.setText(title)
        self._name = name

    def begin(self) -> None:
        """Let the user edit the name."""
        self._field.setText(self._name)
        self._field.setPlaceholderText(self._title.text())
        self.setCurrentWidget(self._field)
        self._field.setFocus()
        self._field.selectAll()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Take the old name on Esc, which the field passes on."""
        if event.key() == Qt.Key.Key_Escape and self.currentWidget() is self._field:
            self._field.setText(self._name)
            self._end()
        else:
            super().keyPressEvent(event)

    def _end(self) -> None:
        if self.currentWidget() is not self._field:
            return
        name = self._field.text().strip()
        self.setCurrentWidget(self._title)
        if name != self._name:
            self.named.emit(name)
