"""Settings that are texts of several lines."""

from typing import Any, cast

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent
from PySide6.QtWidgets import QPlainTextEdit

from qwendesk.core.errors import BadOption
from qwendesk.core.settings import Entry, parse
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.theme_keeper import ThemeKeeper
from qwendesk.ui.settings.rows.row import SettingRow
from qwendesk.ui.settings.rows.words import edit_text

_HEIGHT = 92
_ENTER = (Qt.Key.Key_Return, Qt.Key.Key_Enter)


class _Block(QPlainTextEdit):
    """Says when what was typed is meant: on leaving it, or by Ctrl+Enter. Esc gives it up."""

    entered = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.shown = ""
        self.setTabChangesFocus(True)

    def event(self, event: QEvent) -> bool:
        # Both keys are shortcuts of the window too; the one who typed something here means this field.
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
    """The text is taken as it stands, with its line ends."""

    def __init__(self, keeper: ThemeKeeper, entry: Entry, prefix: str) -> None:
        super().__init__(keeper, entry, prefix)
        self.field = _Block()
        self.field.setProperty("kind", "details")
        self.field.setFixedHeight(keeper.theme.px(_HEIGHT))
        self.field.document().setDefaultFont(keeper.theme.mono_font(12))
        self.field.entered.connect(self._on_entered)
        self.put_editor(self.field)
        self.field.setToolTip(f"{self.field.toolTip()}\n{tr('Ctrl+Enter, or leaving the field, takes it over')}")

    def _on_entered(self) -> None:
        if not self.field.is_typed:
            return
        try:
            value = parse(self.entry, self.field.toPlainText())
        except BadOption as error:
            self.refuse(error.sentence)
            return
        self.chosen.emit(value)

    def _show(self, value: Any) -> None:
        text = edit_text(value)
        # A refused text stays to be put right when another option of the same chat changes.
        if text != self.field.shown or not self.field.is_typed:
            self.field.shown = text
            self.field.setPlainText(text)
