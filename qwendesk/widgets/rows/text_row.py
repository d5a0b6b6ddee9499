"""Rows for options that are typed: texts of one or more lines, numbers with units, and lists."""

from typing import Any, cast

from PySide6.QtCore import QEvent, QMimeData, Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent
from PySide6.QtWidgets import QLineEdit, QPlainTextEdit

from qwendesk.core.errors import BadOption
from qwendesk.core.number_format import show_count
from qwendesk.core.settings import Entry, accepted_values, parse
from qwendesk.core.translation import tr
from qwendesk.widgets.buttons import ENTER_KEYS, TextButton
from qwendesk.widgets.rows.option_texts import choice_text, edit_text, is_special
from qwendesk.widgets.rows.setting_row import SettingRow
from qwendesk.widgets.theme_keeper import current_theme

# The widest that Qt has.
_ANY_WIDTH = 16_777_215
_TEXT_WIDTH, _NUMBER_WIDTH, _STACKED_WIDTH, _WORD_WIDTH = 280, 96, 76, 130


class _SettingLineEdit(QLineEdit):
    """A line edit that Esc resets. The arrow keys step the value if `step` is set."""

    reverted = Signal()
    """Esc restored the text."""
    step = 0.0

    def event(self, event: QEvent) -> bool:
        # Esc is also a shortcut of the window. While there is an unsaved change, this field has precedence.
        is_asked = isinstance(event, QKeyEvent) and event.type() is QEvent.Type.ShortcutOverride
        if is_asked and self.is_typed and cast(QKeyEvent, event).key() == Qt.Key.Key_Escape:
            event.accept()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = event.key()
        if key == Qt.Key.Key_Escape and self.is_typed:
            self.revert()
            self.reverted.emit()
        elif self.step and key in (Qt.Key.Key_Up, Qt.Key.Key_Down):
            self._move(self.step if key == Qt.Key.Key_Up else -self.step)
        else:
            super().keyPressEvent(event)

    @property
    def is_typed(self) -> bool:
        return self.text() != str(self.property("shown") or "")

    def revert(self) -> None:
        """Restore the text that was shown before typing."""
        self.setText(str(self.property("shown") or ""))

    def show_text(self, text: str) -> None:
        self.setProperty("shown", text)
        self.setText(text)
        self.setCursorPosition(0)

    def _move(self, by: float) -> None:
        try:
            value = float(self.text())
        except ValueError:
            return
        self.setText(edit_text(round(value + by, 6)))
        self.setModified(True)
        self.editingFinished.emit()


class TextRow(SettingRow):
    """A row for text. Enter, or leaving the field, commits the text, which core.settings.parse reads."""

    width_px = _TEXT_WIDTH

    def __init__(self, entry: Entry, prefix: str) -> None:
        super().__init__(entry, prefix)
        self._put_before()
        self.field = _SettingLineEdit()
        self.field.setFixedWidth(self.width_px)
        self.field.editingFinished.connect(self._on_typed)
        self.field.reverted.connect(lambda: self.refuse(""))
        self.put_editor(self.field)
        self.put_unit()

    @property
    def is_typed(self) -> bool:
        return self.field.is_typed

    def stack(self) -> None:
        super().stack()
        if self.width_px == _TEXT_WIDTH:
            self.field.setMinimumWidth(0)
            self.field.setMaximumWidth(_TEXT_WIDTH)

    def tabulate(self) -> None:
        super().tabulate()
        self.field.setMinimumWidth(0)
        self.field.setMaximumWidth(_ANY_WIDTH)

    def _put_before(self) -> None:
        """Add widgets of the editor in front of the field."""

    def _on_typed(self) -> None:
        if not self.field.isModified():
            return
        self.field.setModified(False)
        try:
            value = self._parse(self.field.text())
        except BadOption:
            self.refuse(tr("Accepted: {0}.", accepted_values(self.entry)))
            return
        self._choose(value)

    def _parse(self, text: str) -> Any:
        return parse(self.entry, text)

    def _choose(self, value: Any) -> None:
        """Report a value. It replaces what was typed, even if it is the current one."""
        self.discard_typed()
        self.chosen.emit(value)

    def _show(self, value: Any) -> None:
        self.field.show_text(edit_text(value))


class ListRow(TextRow):
    """A row for several values, separated by semicolons."""

    def __init__(self, entry: Entry, prefix: str) -> None:
        super().__init__(entry, prefix)
        self.field.setPlaceholderText(entry.setting.placeholder or tr("one; two; three"))


class NumberRow(TextRow):
    """A row for a number with its unit. Accepted words, such as "auto", are buttons in front of the field.

    The word for -1, such as "Unlimited", is the placeholder of the empty field; in a table, so are the other words.
    """

    width_px = _NUMBER_WIDTH
    auto: float | None = None
    """The number with which QwenDesk chooses, which is shown as "Auto"; None if there is none."""

    def __init__(self, entry: Entry, prefix: str) -> None:
        super().__init__(entry, prefix)
        self.field.setAlignment(Qt.AlignmentFlag.AlignRight)
        self.field.setPlaceholderText(tr(entry.setting.minus_one))
        high = entry.setting.high
        self.field.step = 0.05 if high is not None and high <= 1 else 0.1 if isinstance(entry.default, float) else 1.0

    def _put_before(self) -> None:
        self._word_buttons: dict[Any, TextButton] = {}
        for choice in self.entry.choices:
            button = TextButton(choice_text(choice), kind="tab")
            button.setCheckable(True)
            self.put_editor(button, str(choice))
            button.clicked.connect(lambda _checked=False, choice=choice: self._choose(choice))
            self._word_buttons[choice] = button

    def stack(self) -> None:
        super().stack()
        self.field.setFixedWidth(_STACKED_WIDTH if not self.entry.setting.minus_one else _WORD_WIDTH)

    def tabulate(self) -> None:
        super().tabulate()
        self.field.setAlignment(Qt.AlignmentFlag.AlignLeft)
        for button in self._word_buttons.values():
            self._editors.removeWidget(button)
            self._controls.remove(button)
            button.deleteLater()
        self._word_buttons = {}

    def _show(self, value: Any) -> None:
        word = self._word_for(value)
        for choice, button in self._word_buttons.items():
            button.setChecked(choice == value)
        self.field.show_text("" if word else edit_text(value))
        if word and not self._word_buttons:
            self.field.setPlaceholderText(word)
        self._unit.setVisible(bool(self.entry.setting.unit) and not (word and not self._word_buttons))

    def _word_for(self, value: Any) -> str:
        """Return the word that stands for a value; "" if it is shown as a number."""
        if is_special(self.entry, value):
            return tr(self.entry.setting.minus_one)
        if self.auto is not None and value == self.auto:
            return choice_text("auto")
        return choice_text(value) if value in self.entry.choices else ""

    def _parse(self, text: str) -> Any:
        if self.auto is not None and text.strip().lower() in ("", "auto"):
            return self.auto
        if not text.strip():
            text = "-1" if self.entry.setting.minus_one else "auto" if "auto" in self.entry.choices else text
        return super()._parse(text)


_HEIGHT = 92


class LimitedTextEdit(QPlainTextEdit):
    """A text field that refuses to be pasted full: laying out and checking 5 MB keeps the window busy for seconds."""

    MOST_CHARACTERS = 250_000
    paste_refused = Signal(str)
    """The text is a sentence."""

    def insertFromMimeData(self, source: QMimeData) -> None:
        if self.document().characterCount() + len(source.text()) > self.MOST_CHARACTERS:
            most = show_count(self.MOST_CHARACTERS)
            self.paste_refused.emit(tr("The text is too long: this field takes up to {0} characters.", most))
        else:
            super().insertFromMimeData(source)


class _Block(LimitedTextEdit):
    """A text field that is committed by Ctrl+Enter or by leaving it. Esc discards the changes."""

    entered = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.shown = ""
        self.setTabChangesFocus(True)

    def event(self, event: QEvent) -> bool:
        # Both keys are also shortcuts of the window. While there is an unsaved change, this field has precedence.
        is_asked = isinstance(event, QKeyEvent) and event.type() is QEvent.Type.ShortcutOverride
        if is_asked and self.is_typed and cast(QKeyEvent, event).key() in (Qt.Key.Key_Escape, *ENTER_KEYS):
            event.accept()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape and self.is_typed:
            self.setPlainText(self.shown)
        elif event.key() in ENTER_KEYS and event.modifiers() & Qt.KeyboardModifier.ControlModifier:
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
        self.field.paste_refused.connect(self.refuse)
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
            self.refuse(tr("Accepted: {0}.", accepted_values(self.entry)))
            return
        self.chosen.emit(value)

    def _show(self, value: Any) -> None:
        self.field.shown = edit_text(value)
        self.field.setPlainText(self.field.shown)
