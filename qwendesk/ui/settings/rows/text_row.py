"""Settings that are typed: texts, numbers with their unit, lists."""

from typing import Any, cast

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QLineEdit

from qwendesk.core.errors import BadOption
from qwendesk.core.settings import Entry, parse
from qwendesk.ui.kit.buttons import TextButton
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.theme_keeper import ThemeKeeper
from qwendesk.ui.settings.rows.row import SettingRow
from qwendesk.ui.settings.rows.words import choice_text, edit_text

_TEXT_WIDTH, _NUMBER_WIDTH, _STACKED_WIDTH = 280, 96, 76


class _Field(QLineEdit):
    """A line that gives up with Esc, and steps with the arrow keys where `step` is set."""

    step = 0.0

    def event(self, event: QEvent) -> bool:
        # Esc is a shortcut of the window too; the one who typed something here means this field.
        is_asked = isinstance(event, QKeyEvent) and event.type() is QEvent.Type.ShortcutOverride
        if is_asked and self._is_typed() and cast(QKeyEvent, event).key() == Qt.Key.Key_Escape:
            event.accept()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = event.key()
        if key == Qt.Key.Key_Escape and self._is_typed():
            self.undo_all()
        elif self.step and key in (Qt.Key.Key_Up, Qt.Key.Key_Down):
            self._move(self.step if key == Qt.Key.Key_Up else -self.step)
        else:
            super().keyPressEvent(event)

    def _is_typed(self) -> bool:
        return self.text() != str(self.property("shown"))

    def undo_all(self) -> None:
        """Back to what was shown before typing."""
        self.setText(str(self.property("shown")))

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
    """What is typed holds once Enter is pressed or the field is left; it is read by core.settings.parse."""

    width_px = _TEXT_WIDTH

    def __init__(self, keeper: ThemeKeeper, entry: Entry, prefix: str) -> None:
        super().__init__(keeper, entry, prefix)
        self._put_before()
        self.field = _Field()
        self.field.setFixedWidth(self.width_px)
        self.field.editingFinished.connect(self._on_typed)
        self.put_editor(self.field)
        self.put_unit()

    def stack(self) -> None:
        super().stack()
        if self.width_px == _TEXT_WIDTH:
            self.field.setMinimumWidth(0)
            self.field.setMaximumWidth(_TEXT_WIDTH)

    def _put_before(self) -> None:
        """Parts of the editor that stand before the field."""

    def _on_typed(self) -> None:
        if not self.field.isModified():
            return
        self.field.setModified(False)
        try:
            value = parse(self.entry, self.field.text())
        except BadOption as error:
            self.refuse(error.sentence)
            return
        self.chosen.emit(value)

    def _show(self, value: Any) -> None:
        self.field.show_text(edit_text(value))


class ListRow(TextRow):
    """Several values, separated by semicolons."""

    def __init__(self, keeper: ThemeKeeper, entry: Entry, prefix: str) -> None:
        super().__init__(keeper, entry, prefix)
        self.field.setPlaceholderText(tr("one; two; three"))


class NumberRow(TextRow):
    """A number with its unit; words it may be instead ("auto") are buttons before it."""

    width_px = _NUMBER_WIDTH

    def __init__(self, keeper: ThemeKeeper, entry: Entry, prefix: str) -> None:
        super().__init__(keeper, entry, prefix)
        self.field.setAlignment(Qt.AlignmentFlag.AlignRight)
        high = entry.setting.high
        self.field.step = 0.05 if high is not None and high <= 1 else 0.1 if isinstance(entry.default, float) else 1.0

    def _put_before(self) -> None:
        self._word_buttons: dict[Any, TextButton] = {}
        for choice in self.entry.choices:
            button = TextButton(self.keeper, choice_text(choice), kind="tab")
            button.setCheckable(True)
            self.put_editor(button, str(choice))
            button.clicked.connect(lambda _checked=False, choice=choice: self.chosen.emit(choice))
            self._word_buttons[choice] = button

    def stack(self) -> None:
        super().stack()
        self.field.setFixedWidth(_STACKED_WIDTH)

    def show_auto(self, text: str) -> None:
        if "auto" in self._word_buttons:
            self._word_buttons["auto"].setText(text or choice_text("auto"))
        else:
            super().show_auto(text)

    def _show(self, value: Any) -> None:
        is_word = value in self.entry.choices
        for choice, button in self._word_buttons.items():
            button.setChecked(choice == value)
        self.field.show_text("" if is_word else edit_text(value))
