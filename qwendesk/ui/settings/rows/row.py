"""What every row of a setting has: label, help, editor, unit, a mark and a way back when it was changed."""

from typing import Any

import msgspec
from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QBoxLayout, QFrame, QHBoxLayout, QLabel, QLayout, QSizePolicy, QVBoxLayout, QWidget

from qwendesk.core.settings import Entry
from qwendesk.ui.kit.buttons import IconButton, TextButton, describe, restyle
from qwendesk.ui.kit.density import Airy
from qwendesk.ui.kit.giving_label import GivingLabel
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.theme_keeper import ThemeKeeper
from qwendesk.ui.settings.rows.words import help_text, search_words, section_slug, tooltip, value_text

_LONGEST_TITLE = 28
"""Characters of label and flag together that a narrow row has room for in one line."""


class SettingRow(QFrame):
    """Shows one Entry with a value. A subclass adds the editor with `put_editor` and shows values in `_show`.

    `prefix` begins the names: the editor is "settings.network.proxy" for the prefix "settings".
    """

    chosen = Signal(object)
    """A value the person gave; it is of the entry's type, and may still be refused."""
    reset_asked = Signal()
    """The default is wanted again."""

    def __init__(self, keeper: ThemeKeeper, entry: Entry, prefix: str) -> None:
        super().__init__()
        self.keeper, self.entry = keeper, entry
        self.name = f"{prefix}.{section_slug(entry)}.{entry.key}"
        self._words = search_words(entry)
        self.setObjectName(f"{self.name}.row")
        self.setProperty("kind", "settingrow")
        self._mark = QLabel("●")
        self._mark.setProperty("kind", "mark")
        self._mark.setObjectName(f"{self.name}.mark")
        self._mark.setToolTip(tr("Changed from its default"))
        self._mark.setAccessibleName(tr("Changed from its default"))
        label = GivingLabel(tr(entry.setting.label))
        label.setObjectName(f"{self.name}.label")
        self._help = help_label = QLabel(help_text(entry))
        help_label.setProperty("kind", "small")
        help_label.setWordWrap(True)
        help_label.setTextFormat(Qt.TextFormat.PlainText)
        self._error = QLabel()
        self._error.setProperty("kind", "error")
        self._error.setWordWrap(True)
        self._error.setObjectName(f"{self.name}.error")
        self._error.hide()
        self._reset = IconButton(keeper, "again", size=14, side=28)
        describe(self._reset, f"{self.name}.reset", tr("Back to the default"), self._reset_tip())
        self._reset.clicked.connect(self.reset_asked)
        policy = self._reset.sizePolicy()
        policy.setRetainSizeWhenHidden(True)
        self._reset.setSizePolicy(policy)
        self._title = title = QHBoxLayout()
        title.setSpacing(8)
        title.addWidget(label)
        title.addWidget(self._mark)
        title.addStretch(1)
        self._texts = texts = QVBoxLayout()
        texts.setSpacing(2)
        texts.addLayout(title)
        if help_label.text():
            texts.addWidget(help_label)
        texts.addWidget(self._error)
        self._editors = QHBoxLayout()
        self._editors.setSpacing(6)
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(16, 10, 16, 10)
        self._row.setSpacing(12)
        self._airs = (Airy(keeper, texts), Airy(keeper, self._row))
        self._row.addLayout(texts, 1)
        # Before the editor: all editors end at the card's edge, changed or not.
        self._row.addWidget(self._reset, 0, Qt.AlignmentFlag.AlignVCenter)
        self._row.addLayout(self._editors)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Preferred)

    def stack(self) -> None:
        """For a narrow place: label and flag above, then the editor, then the help."""
        self._row.setDirection(QBoxLayout.Direction.TopToBottom)
        self._row.setContentsMargins(0, 8, 0, 8)
        self._row.setSpacing(6)
        self._airs[1].take()
        self._row.removeWidget(self._reset)
        if self.entry.setting.flag:
            flag = QLabel(self.entry.setting.flag)
            flag.setProperty("kind", "flag")
            flag.setObjectName(f"{self.name}.flag")
            fits_beside = len(self.entry.setting.label) + len(self.entry.setting.flag) <= _LONGEST_TITLE
            self._title.addWidget(flag) if fits_beside else self._texts.insertWidget(1, flag)
        self._editors.setSpacing(4)
        self._title.addWidget(self._reset)
        self._auto_note = QLabel()
        self._auto_note.setProperty("kind", "small")
        self._auto_note.setObjectName(f"{self.name}.chosen")
        self._auto_note.hide()
        self._editors.addWidget(self._auto_note)
        self._editors.addStretch(1)
        for button in self.findChildren(TextButton):
            restyle(button, "compact", "true")
        for label in (self._help, self._error):
            self._texts.removeWidget(label)
            self._row.addWidget(label)

    def show_auto(self, text: str) -> None:
        """ "Auto: 0 of 40" where the value is left to the app; "" where it is not, or nobody knows yet."""
        self._auto_note.setText(text)
        self._auto_note.setVisible(bool(text))

    def set_default(self, value: Any) -> None:
        """Another value counts as unchanged from now on."""
        self.entry = msgspec.structs.replace(self.entry, default=value)
        self._reset.setToolTip(self._reset_tip())

    def put_editor(self, widget: QWidget, suffix: str = "", place: QLayout | None = None) -> None:
        """Name, describe and place (one part of) the editor, in a layout of its own if there is one."""
        name = f"{self.name}.{suffix}" if suffix else self.name
        text = tr(self.entry.setting.label)
        describe(widget, name, text, tooltip(self.entry))
        if place is not None:
            place.addWidget(widget)
        else:
            self._editors.addWidget(widget, 0, Qt.AlignmentFlag.AlignVCenter)

    def put_unit(self) -> None:
        """The unit behind the editor, if it has one."""
        if self.entry.setting.unit:
            unit = QLabel(tr(self.entry.setting.unit))
            unit.setProperty("kind", "dim")
            self._editors.addWidget(unit)

    def show_value(self, value: Any) -> None:
        """The value that holds now."""
        is_changed = value != self.entry.default
        self._mark.setVisible(is_changed)
        self._reset.setVisible(is_changed)
        self.refuse("")
        self._show(value)

    def refuse(self, sentence: str) -> None:
        """Say why the value that was given does not hold; "" takes that away."""
        self._error.setText(sentence)
        self._error.setVisible(bool(sentence))
        restyle(self, "refused", "true" if sentence else "false")

    def matches(self, query: str) -> bool:
        """Whether every word of `query` is in what the row is about."""
        return all(word in self._words for word in query.lower().split())

    def _show(self, value: Any) -> None:
        raise NotImplementedError

    def _reset_tip(self) -> str:
        return tr("Back to the default: {0}", value_text(self.entry, self.entry.default))
