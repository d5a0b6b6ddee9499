"""A row for an option whose value is text of several lines."""

from typing import Any, cast

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent
from PySide6.QtWidgets import QPlainTextEdit

from qwendesk.core.errors import BadOption
from qwendesk.core.settings import Entry, accepted_values, parse
from qwendesk.core.translation import tr
from qwendesk.widgets.rows.option_texts import edit_text
from qwendesk.widgets.rows.setting_row import SettingRow
from qwendesk.widgets.theme_keeper import current_theme

_HEIGHT = 92
_ENTER = (Qt.Key.Key_Return, Qt.Key.Key_Enter)


class _Block(QPlainTextEdit):
    """A text field that is committed by Ctrl+Enter or by leaving it. Esc discards the changes."""

    entered = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.shown = ""
        self.setTabChangesFocus(True)

    def event(self, event: QEvent) -> bool:
        # Both keys are also shortcuts of the window. While there is an unsaved change, this field has precedence.
        is_asked = isinstance(event, QKeyEvent) and event.type() is QEvent.Type.ShortcutOverride
        if is_asked and self.is_typed and cast(QKeyEvent, event).key() in (Qt.Key.Key_Escape, *_ENTER):
            event.accept()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape and self.is_typed:
            self.setPlainText(self.shown)
        elif event.key() in _ENTER and event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self.entered.emit()
        else:
            super().keyPressEvent(event)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        if event.reason() is not Qt.FocusReason.PopupFocusReason:
            self.entered.emit()

    @property
    def is_typed(self) -> bool:
        return self.toPlainText() != self.shown


class BlockRow(SettingRow):
    """A row for multi-line text, which is used literally, with its line breaks."""

    def __init__(self, entry: Entry, prefix: str) -> None:
        super().__init__(entry, prefix)
        self.field = _Block()
        self.field.setProperty("kind", "details")
        self.field.setFixedHeight(current_theme().px(_HEIGHT))
        self.field.entered.connect(self._on_entered)
        self.put_editor(self.field)
        self.field.setToolTip(f"{self.field.toolTip()}\n{tr('Press Ctrl+Enter or leave the field to apply')}")

    @property
    def is_typed(self) -> bool:
        return self.field.is_typed

    def _on_entered(self) -> None:
        if not self.field.is_typed:
            return
        try:
            value = parse(self.entry, self.field.toPlainText())
        except BadOption:
            self.refuse(tr("Use {0}.", accepted_values(self.entry)))
            return
        self.chosen.emit(value)

    def _show(self, value: Any) -> None:
        self.field.shown = edit_text(value)
        self.field.setPlainText(self.field.shown)
