"""The base class of all option rows: label, help, editor, unit, a mark if changed, and a reset button."""

from typing import Any

import msgspec
from PySide6.QtCore import QMargins, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QFrame, QHBoxLayout, QLabel, QLayout, QSizePolicy, QVBoxLayout, QWidget

from qwendesk.core.flags import search_flag
from qwendesk.core.settings import Entry
from qwendesk.core.translation import tr
from qwendesk.widgets.buttons import IconButton, TextButton, describe, restyle
from qwendesk.widgets.kit import label as make_label
from qwendesk.widgets.layouts import DensitySpacing, laid_out_once
from qwendesk.widgets.rows.option_texts import found_by, help_text, search_words, section_slug, tooltip, value_text
from qwendesk.widgets.text_layout import WrappingLabel
from qwendesk.widgets.theme_keeper import current_theme

# Width in logical pixels that a row's texts need beside its editor. If there is less, the editor is below them.
_MIN_TEXT_WIDTH = 140
# Widths in logical pixels of the columns of a table of rows: the editor, and what Auto takes.
VALUE_WIDTH, AUTO_WIDTH = 168, 120
# Number of characters of label and flag together that fit on one line of a narrow row.
_LONGEST_TITLE = 28


class SettingRow(QFrame):
    """Shows and edits the value of one Entry. A subclass adds its editor with `put_editor` and shows values in `_show`.

    Object names start with `prefix`: if it is "settings", an editor is called "settings.network.proxy".
    """

    chosen = Signal(object)
    """The user entered a value of the entry's type. It may still be refused."""
    reset_requested = Signal()
    """The user wants the default value."""
    refusal_changed = Signal()
    """The row shows, or no longer shows, why the entered value was refused."""

    def __init__(self, entry: Entry, prefix: str) -> None:
        super().__init__()
        self.entry = entry
        self.name = f"{prefix}.{section_slug(entry)}.{entry.key}"
        self._value: Any = None
        self._controls: list[QWidget] = []
        self._unit = QLabel()
        self._words = search_words(entry)
        self.setObjectName(f"{self.name}.row")
        self.setProperty("kind", "settingrow")
        self._mark = QLabel("●")
        self._mark.setProperty("kind", "mark")
        self._mark.setObjectName(f"{self.name}.mark")
        self._mark.setToolTip(tr("Changed from the default"))
        self._mark.setAccessibleName(tr("Changed from the default"))
        self._label = make_label(tr(entry.setting.label), name=f"{self.name}.label", wraps=True)
        self._help = help_label = QLabel(help_text(entry))
        help_label.setObjectName(f"{self.name}.text")
        help_label.setProperty("kind", "small")
        help_label.setWordWrap(True)
        help_label.setTextFormat(Qt.TextFormat.PlainText)
        self._error = QLabel()
        self._error.setProperty("kind", "error")
        self._error.setWordWrap(True)
        self._error.setObjectName(f"{self.name}.error")
        self._error.hide()
        self._remark = QLabel()
        self._remark.setProperty("kind", "small")
        self._remark.setWordWrap(True)
        self._remark.setObjectName(f"{self.name}.remark")
        self._remark.hide()
        self._found = make_label(kind="small", name=f"{self.name}.found", wraps=True)
        self._found.hide()
        self._reset = IconButton("undo", size=14, side=28)
        describe(self._reset, f"{self.name}.reset", tr("Reset to default"), self._reset_tip())
        self._reset.clicked.connect(self.reset_requested)
        policy = self._reset.sizePolicy()
        policy.setRetainSizeWhenHidden(True)
        self._reset.setSizePolicy(policy)
        self._title = title = QHBoxLayout()
        title.setSpacing(8)
        title.addWidget(self._label)
        title.addWidget(self._mark)
        title.addStretch(1)
        self._texts = texts = QVBoxLayout()
        texts.setSpacing(2)
        texts.addLayout(title)
        if help_label.text():
            texts.addWidget(help_label)
        texts.addWidget(self._error)
        texts.addWidget(self._remark)
        texts.addWidget(self._found)
        self._editors = self._beside = QHBoxLayout()
        self._editors.setSpacing(6)
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(16, 10, 16, 10)
        self._row.setSpacing(12)
        self._spacings = (DensitySpacing(texts), DensitySpacing(self._row))
        self._row.addLayout(texts, 1)
        # Before the editor, so that the editors of all rows are aligned with the card's edge.
        self._row.addWidget(self._reset, 0, Qt.AlignmentFlag.AlignVCenter)
        self._row.addLayout(self._editors)
        self._is_for_panel = self._is_in_table = False
        # The row arranges itself for the width that there is; it must not ask for more.
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if not self._is_for_panel:
            self._arrange()

    def _arrange(self) -> None:
        """Place the editor beside the texts if there is room, otherwise below them."""
        margins, n_gaps = self._row.contentsMargins(), 2
        beside = self._beside.sizeHint().width() + self._reset.sizeHint().width() + n_gaps * self._row.spacing()
        left = self.width() - margins.left() - margins.right() - beside
        is_narrow = left < current_theme().px(_MIN_TEXT_WIDTH)
        direction = QBoxLayout.Direction.TopToBottom if is_narrow else QBoxLayout.Direction.LeftToRight
        if direction == self._row.direction():
            return
        self._row.setDirection(direction)
        if self._is_in_table:
            return
        if is_narrow:
            self._row.removeWidget(self._reset)
            self._title.addWidget(self._reset)
        else:
            self._title.removeWidget(self._reset)
            self._row.insertWidget(1, self._reset, 0, Qt.AlignmentFlag.AlignVCenter)

    def stack(self) -> None:
        """Arrange the row for a narrow panel: label and flag, below them the editor, and the help behind a "?"."""
        self._is_for_panel = True
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Preferred)
        self._row.setDirection(QBoxLayout.Direction.TopToBottom)
        self._spacings[1].set_base(QMargins(0, 8, 0, 8), 6)
        self._row.removeWidget(self._reset)
        if self.entry.setting.flag:
            flag = self._make_flag()
            fits_beside = len(self.entry.setting.label) + len(self.entry.setting.flag) <= _LONGEST_TITLE
            self._title.addWidget(flag) if fits_beside else self._texts.insertWidget(1, flag)
        self._editors.setSpacing(4)
        self._title.insertWidget(2, self._reset)
        self._editors.addStretch(1)
        for button in self.findChildren(TextButton):
            restyle(button, "compact", "true")
        for label in (self._help, self._error, self._remark):
            self._texts.removeWidget(label)
            self._row.addWidget(label)
        self._help.hide()
        if self._help.text():
            self._title.insertWidget(2, self._help_button())

    def tabulate(self) -> None:
        """Arrange the row for a table: the editor has the width of its column, and behind it is what Auto takes.

        The flag is below the label, hidden at first: see `show_flag`.
        """
        self._is_in_table = True
        self.setProperty("kind", "tablerow")
        self._spacings[1].set_base(QMargins(0, 8, 0, 8))
        self._row.removeWidget(self._reset)
        self._title.insertWidget(2, self._reset)
        self._flag = self._make_flag()
        self._flag.hide()
        self._texts.insertWidget(1, self._flag)
        self._row.removeItem(self._editors)
        self._editors.setParent(None)
        cell = QWidget()
        cell.setLayout(self._editors)
        self._editors.setContentsMargins(0, 0, 0, 0)
        cell.setFixedWidth(current_theme().px(VALUE_WIDTH))
        self._auto_note = WrappingLabel()
        self._auto_note.setObjectName(f"{self.name}.auto")
        self._auto_note.setProperty("kind", "dim")
        self._auto_note.setFixedWidth(current_theme().px(AUTO_WIDTH))
        self._beside = QHBoxLayout()
        self._beside.setSpacing(12)
        self._beside.addWidget(cell)
        self._beside.addWidget(self._auto_note)
        self._row.addLayout(self._beside)

    def _make_flag(self) -> QLabel:
        return make_label(self.entry.setting.flag, "flag", name=f"{self.name}.flag")

    def show_flag(self, is_shown: bool) -> None:
        """Show or hide llama.cpp's flag of a row in a table."""
        self._flag.setVisible(is_shown and bool(self._flag.text()))

    def _help_button(self) -> IconButton:
        button = IconButton("help", size=14, side=22)
        button.setCheckable(True)
        describe(button, f"{self.name}.help", tr("Help: {0}", tr(self.entry.setting.label)), help_text(self.entry))
        button.toggled.connect(self._help.setVisible)
        return button

    def emphasise(self) -> None:
        """Show the label as a heading."""
        restyle(self._label, "kind", "strong")

    def show_auto(self, text: str) -> None:
        """Show in a row of a table which value Auto takes, as in "0 of 40"."""
        self._auto_note.setText(text)

    def show_unavailable(self, reason: str) -> None:
        """Disable the editor and show why; "" enables it."""
        for control in self._controls:
            control.setEnabled(not reason)
        self.show_remark(reason)

    def show_remark(self, sentence: str) -> None:
        """Show a sentence about the option on this PC; "" removes it."""
        self._remark.setText(sentence)
        self._remark.setVisible(bool(sentence))

    def set_default(self, value: Any) -> None:
        """Set the value that counts as the default."""
        self.entry = msgspec.structs.replace(self.entry, default=value)
        self._reset.setToolTip(self._reset_tip())

    def put_editor(self, widget: QWidget, suffix: str = "", place: QLayout | None = None) -> None:
        """Name, describe and add a widget of the editor, to `place` if given."""
        name = f"{self.name}.{suffix}" if suffix else self.name
        text = tr(self.entry.setting.label)
        describe(widget, name, text, tooltip(self.entry))
        self._controls.append(widget)
        if place is not None:
            place.addWidget(widget)
        else:
            self._editors.addWidget(widget, 0, Qt.AlignmentFlag.AlignVCenter)

    def focus_editor(self) -> None:
        """Focus the first widget of the editor, as the Tab key does."""
        self._controls[0].setFocus(Qt.FocusReason.TabFocusReason)

    def put_unit(self) -> None:
        """Add the unit after the editor if the option has one."""
        if self.entry.setting.unit:
            self._unit.setText(tr(self.entry.setting.unit))
            self._unit.setProperty("kind", "dim")
            self._editors.addWidget(self._unit)

    @property
    def is_typed(self) -> bool:
        """Whether the editor contains a text that isn't applied: the user is typing, or the text was refused."""
        return False

    @property
    def is_refused(self) -> bool:
        return bool(self._error.text())

    def show_value(self, value: Any) -> None:
        """Show the current value. A text that isn't applied stays, with its refusal, until the value changes."""
        is_same, self._value = self._value is not None and value == self._value, value
        is_changed = value != self.entry.default
        with laid_out_once(self):
            self._mark.setVisible(is_changed)
            self._reset.setVisible(is_changed)
        if is_same and self.is_typed:
            return
        self.refuse("")
        self._show(value)

    def discard_typed(self) -> None:
        """Make the next `show_value` replace a text that isn't applied."""
        self._value = None

    def refuse(self, sentence: str) -> None:
        """Show why the entered value was refused; "" removes the message."""
        if sentence == self._error.text():
            return
        self._error.setText(sentence)
        self._error.setVisible(bool(sentence))
        restyle(self, "refused", "true" if sentence else "false")
        self.refusal_changed.emit()

    def matches(self, query: str) -> bool:
        """Return True if `query` is a flag for this option, or if every word of it occurs in the row's texts."""
        flag = search_flag(query)
        if flag is not None and (flag.is_only_a_flag or self.entry.key in flag.keys):
            return self.entry.key in flag.keys
        return all(word in self._words for word in query.lower().split())

    def show_found(self, query: str) -> None:
        """Say by which word a search found the row if its label, help and section don't show that; "" for none."""
        shown = f"{self._label.text()} {self._help.text()} {tr(self.entry.setting.section)}"
        note = found_by(query, self._words, shown)
        self._found.setText(note)
        self._found.setVisible(bool(note))

    def _show(self, value: Any) -> None:
        raise NotImplementedError

    def _reset_tip(self) -> str:
        return tr("Reset to default: {0}", value_text(self.entry, self.entry.default))
