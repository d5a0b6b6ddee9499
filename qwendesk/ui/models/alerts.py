"""Above the tabs: files on disk that are wrong or were repaired since, the worst first."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from qwendesk.ui.bridges.models import ModelEntry, ModelsBridge
from qwendesk.ui.kit.beside import BesideOrBelow, in_a_row
from qwendesk.ui.kit.buttons import IconButton, TextButton, describe, restyle
from qwendesk.ui.kit.density import Airy
from qwendesk.ui.kit.shortened_label import ShortenedLabel
from qwendesk.ui.kit.text import tr, tr_n
from qwendesk.ui.kit.theme_keeper import ThemeKeeper
from qwendesk.ui.models.model_texts import button_text, fix_hint, place, work_text
from qwendesk.ui.models.state_chip import StateChip

_MOST = 2
"""Cards at once; the others are one click away."""
_WIDEST = 1136
"""As wide as the tabs below."""
_LEAST_WORDS = 340
"""Pixels that a file's name and sentence have beside the buttons."""


class Alerts(QWidget):
    """Hides while there is nothing to say. A dismissed alert comes back when its file's state is another."""

    list_asked = Signal()
    """The whole list."""
    help_asked = Signal()

    def __init__(self, keeper: ThemeKeeper, bridge: ModelsBridge) -> None:
        super().__init__()
        self._bridge = bridge
        self._dismissed: dict[str, str] = {}
        """Path: the sentence that was put away."""
        self._is_quiet = False
        self.setObjectName("models.alerts")
        self._cards = [AlertCard(keeper, number) for number in range(1, _MOST + 1)]
        column = QVBoxLayout()
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        Airy(keeper, column)
        for card in self._cards:
            card.fix_asked.connect(self._fix)
            card.dismissed.connect(self._dismiss)
            card.help_asked.connect(self.help_asked)
            column.addWidget(card)
        self._more = TextButton(keeper, kind="link")
        describe(self._more, "models.alerts.more", tr("Show all"), tr("Show all of them under My models"))
        self._more.clicked.connect(self.list_asked)
        self._notice = QLabel()
        self._notice.setObjectName("models.alerts.notice")
        self._notice.setProperty("kind", "notice")
        self._notice.setTextFormat(Qt.TextFormat.PlainText)
        self._notice.setWordWrap(True)
        self._notice.hide()
        column.addWidget(self._notice)
        column.addWidget(self._more, 0, Qt.AlignmentFlag.AlignLeft)
        holder = QWidget()
        holder.setMaximumWidth(_WIDEST)
        holder.setLayout(column)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.addStretch(1)
        row.addWidget(holder, 1000)
        row.addStretch(1)
        bridge.changed.connect(self._refresh)
        bridge.noticed.connect(self._show_notice)
        self._refresh()

    def be_quiet(self, *, wanted: bool) -> None:
        """Say nothing while the whole list is shown, which has the same files on top."""
        self._is_quiet = wanted
        self._notice.hide()
        self._refresh()

    def _show_notice(self, sentence: str) -> None:
        """What came of a fix, where it was asked for."""
        self._notice.setText(sentence)
        self._notice.show()

    def _refresh(self) -> None:
        alerts = [each for each in self._bridge.alerts if self._dismissed.get(_key(each)) != each.state.sentence]
        for index, card in enumerate(self._cards):
            card.show_entry(alerts[index] if index < len(alerts) else None)
        left = len(alerts) - _MOST
        text = tr_n("{0} more file needs attention", "{0} more files need attention", left)
        self._more.setText(text)
        self._more.setAccessibleName(text)
        self._more.setVisible(left > 0)
        self.setVisible(bool(alerts) and not self._is_quiet)

    def _fix(self, entry: ModelEntry) -> None:
        if entry.state.fix is not None:
            self._bridge.fix(entry.model.path, entry.state.fix)
        else:
            self._bridge.verify(entry.model.path)

    def _dismiss(self, entry: ModelEntry) -> None:
        self._dismissed[_key(entry)] = entry.state.sentence
        self._refresh()


class AlertCard(QFrame):
    """One file, in two lines, with the button that helps: beside them, or below where the window is narrow."""

    fix_asked = Signal(object)
    dismissed = Signal(object)
    """Both carry the ModelEntry."""
    help_asked = Signal()

    def __init__(self, keeper: ThemeKeeper, number: int) -> None:
        super().__init__()
        prefix = f"models.alert.{number}"
        self._keeper = keeper
        self._entry: ModelEntry | None = None
        self.setObjectName(prefix)
        self.setProperty("kind", "alert")
        self._chip = StateChip(f"{prefix}.state")
        self._name = ShortenedLabel(f"{prefix}.name", kind="heading")
        self._sentence = QLabel()
        self._sentence.setObjectName(f"{prefix}.sentence")
        self._sentence.setTextFormat(Qt.TextFormat.PlainText)
        self._sentence.setWordWrap(True)
        self._fix = TextButton(keeper)
        describe(self._fix, f"{prefix}.fix", tr("Put it right"))
        self._fix.clicked.connect(lambda: self.fix_asked.emit(self._entry))
        close = IconButton(keeper, "close", size=16, side=28)
        describe(close, f"{prefix}.dismiss", tr("Dismiss"))
        close.clicked.connect(lambda: self.dismissed.emit(self._entry))
        more = TextButton(keeper, tr("Help"), kind="link")
        describe(more, f"{prefix}.help", tr("Help"), tr("What the states of files mean, in the guide"))
        more.clicked.connect(self.help_asked)
        row = QHBoxLayout(self)
        row.setContentsMargins(16, 10, 8, 10)
        row.setSpacing(12)
        Airy(keeper, row)
        buttons = in_a_row(more, self._fix, spacing=12)
        row.addLayout(BesideOrBelow(self._words(), buttons, least=_LEAST_WORDS, spacing=12), 1)
        row.addWidget(close, 0, Qt.AlignmentFlag.AlignTop)
        self.hide()

    def _words(self) -> QWidget:
        holder = QWidget()
        words = QVBoxLayout(holder)
        words.setContentsMargins(0, 0, 0, 0)
        words.setSpacing(6)
        Airy(self._keeper, words)
        words.addWidget(in_a_row(self._chip, self._name, spacing=10))
        words.addWidget(self._sentence)
        return holder

    def show_entry(self, entry: ModelEntry | None) -> None:
        self._entry = entry
        if entry is None:
            self.hide()
            return
        state = entry.state
        restyle(self, "tone", "bad" if state.tone == "bad" else "warn")
        self._chip.show_state(state)
        owner = place(entry.model)
        self._name.setText(tr("{0} ({1})", entry.model.name, owner) if owner else entry.model.name)
        self._name.setToolTip(entry.model.path)
        self._sentence.setText(state.sentence)
        self._sentence.setToolTip(state.evidence)
        self._fix.setText(button_text(entry) if entry.work is None else work_text(entry.work))
        self._fix.setAccessibleName(self._fix.text())
        self._fix.setEnabled(entry.work is None)
        self._fix.setToolTip(fix_hint(state.fix) if state.fix is not None else tr("Read every byte"))
        self.show()


def _key(entry: ModelEntry) -> str:
    return entry.model.path
