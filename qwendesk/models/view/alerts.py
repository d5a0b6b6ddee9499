"""The alerts above the tabs: files that are damaged or outdated, worst first."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from qwendesk.core.observed import Observed
from qwendesk.core.translation import tr, tr_n
from qwendesk.models.model_list import ModelEntry, ModelListState
from qwendesk.models.view.model_actions import ModelActions
from qwendesk.models.view.model_row import StateChip
from qwendesk.models.view.model_texts import button_text, fix_hint, owner_text, progress_text
from qwendesk.widgets.bind import bind_field
from qwendesk.widgets.buttons import IconButton, TextButton, describe, restyle
from qwendesk.widgets.kit import PAGE_WIDTH
from qwendesk.widgets.layouts import DensitySpacing, ResponsivePairLayout, horizontal_group
from qwendesk.widgets.navigation import Navigation
from qwendesk.widgets.text_layout import ElidedLabel

# Alerts shown at once; one on a short page.
_MAX_CARDS = 2
# Pixels. On a page that isn't higher than this, two alerts would leave too little of the tab below them.
_SHORT_PAGE = 640
# Least width of a file's name and sentence next to the buttons, in pixels.
_LEAST_WORDS = 340


class Alerts(QWidget):
    """A column of alerts, hidden while there are none. A dismissed alert reappears when its file's state changes."""

    def __init__(self, models: Observed[ModelListState], actions: ModelActions, navigation: Navigation) -> None:
        super().__init__()
        self._actions = actions
        self._alerts: tuple[ModelEntry, ...] = ()
        self._dismissed: dict[str, str] = {}
        """The dismissed sentences by path."""
        self._is_hidden = False
        self._most = _MAX_CARDS
        self.setObjectName("models.alerts")
        self._cards = [AlertCard(number) for number in range(1, _MAX_CARDS + 1)]
        column = QVBoxLayout()
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        DensitySpacing(column)
        for card in self._cards:
            card.fix_asked.connect(self._fix)
            card.dismissed.connect(self._dismiss)
            card.help_asked.connect(lambda: navigation.help_asked.emit("flagged-files", "what-the-states-mean"))
            column.addWidget(card)
        self._more = TextButton(kind="link")
        describe(self._more, "models.alerts.more", tr("Show all"), tr("Show all under My models"))
        self._more.clicked.connect(lambda: navigation.models_tab_asked.emit("mine"))
        self._notice = QLabel()
        self._notice.setObjectName("models.alerts.notice")
        self._notice.setProperty("kind", "notice")
        self._notice.setTextFormat(Qt.TextFormat.PlainText)
        self._notice.setWordWrap(True)
        self._notice.hide()
        column.addWidget(self._notice)
        column.addWidget(self._more, 0, Qt.AlignmentFlag.AlignLeft)
        holder = QWidget()
        holder.setMaximumWidth(PAGE_WIDTH)
        holder.setLayout(column)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.addStretch(1)
        row.addWidget(holder, 1000)
        row.addStretch(1)
        actions.noticed.connect(self._show_notice)
        bind_field(self, models, lambda state: state.alerts, self._show_alerts)

    def set_hidden(self, *, is_hidden: bool) -> None:
        """Hide the alerts while "My models" is shown, which has the same files on top."""
        self._is_hidden = is_hidden
        self._notice.hide()
        self._refresh()

    def set_page_height(self, height: int) -> None:
        """Show as many alerts as suit a page of this height."""
        most = _MAX_CARDS if height > _SHORT_PAGE else 1
        if most != self._most:
            self._most = most
            self._refresh()

    def _show_notice(self, sentence: str) -> None:
        self._notice.setText(sentence)
        self._notice.show()

    def _show_alerts(self, alerts: tuple[ModelEntry, ...]) -> None:
        self._alerts = alerts
        self._refresh()

    def _refresh(self) -> None:
        alerts = [each for each in self._alerts if self._dismissed.get(_key(each)) != each.state.sentence]
        for index, card in enumerate(self._cards):
            card.show_entry(alerts[index] if index < min(len(alerts), self._most) else None)
        left = len(alerts) - self._most
        text = tr_n("{0} more file needs attention", "{0} more files need attention", left)
        self._more.setText(text)
        self._more.setAccessibleName(text)
        self._more.setVisible(left > 0)
        self.setVisible(bool(alerts) and not self._is_hidden)

    def _fix(self, entry: ModelEntry) -> None:
        if entry.state.fix is not None:
            self._actions.fix(entry.model.path, entry.state.fix)
        else:
            self._actions.verify(entry.model.path)

    def _dismiss(self, entry: ModelEntry) -> None:
        self._dismissed[_key(entry)] = entry.state.sentence
        self._refresh()


class AlertCard(QFrame):
    """One file with its sentence and a button that fixes it."""

    fix_asked = Signal(object)
    dismissed = Signal(object)
    """Both carry the ModelEntry."""
    help_asked = Signal()

    def __init__(self, number: int) -> None:
        super().__init__()
        prefix = f"models.alert.{number}"
        self._entry: ModelEntry | None = None
        self.setObjectName(prefix)
        self.setProperty("kind", "alert")
        self._chip = StateChip(f"{prefix}.state")
        self._name = ElidedLabel(f"{prefix}.name", kind="heading")
        self._sentence = QLabel()
        self._sentence.setObjectName(f"{prefix}.sentence")
        self._sentence.setTextFormat(Qt.TextFormat.PlainText)
        self._sentence.setWordWrap(True)
        self._fix = TextButton()
        describe(self._fix, f"{prefix}.fix", tr("Fix"))
        self._fix.clicked.connect(lambda: self.fix_asked.emit(self._entry))
        close = IconButton("close", size=16, side=28)
        describe(close, f"{prefix}.dismiss", tr("Dismiss"))
        close.clicked.connect(lambda: self.dismissed.emit(self._entry))
        more = TextButton(tr("Help"), kind="link")
        describe(more, f"{prefix}.help", tr("Help"), tr("Learn what this means in the guide"))
        more.clicked.connect(self.help_asked)
        row = QHBoxLayout(self)
        row.setContentsMargins(16, 10, 8, 10)
        row.setSpacing(12)
        DensitySpacing(row)
        buttons = horizontal_group(more, self._fix, spacing=12)
        row.addLayout(ResponsivePairLayout(self._make_texts(), buttons, least=_LEAST_WORDS, spacing=12), 1)
        row.addWidget(close, 0, Qt.AlignmentFlag.AlignTop)
        self.hide()

    def _make_texts(self) -> QWidget:
        holder = QWidget()
        words = QVBoxLayout(holder)
        words.setContentsMargins(0, 0, 0, 0)
        words.setSpacing(6)
        DensitySpacing(words)
        words.addWidget(horizontal_group(self._chip, self._name, spacing=10))
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
        owner = owner_text(entry.model)
        self._name.setText(tr("{0} ({1})", entry.model.name, owner) if owner else entry.model.name)
        self._name.setToolTip(entry.model.path)
        self._sentence.setText(state.sentence)
        self._sentence.setToolTip(state.evidence)
        self._fix.setText(button_text(entry) if entry.progress is None else progress_text(entry.progress))
        self._fix.setAccessibleName(self._fix.text())
        self._fix.setEnabled(entry.progress is None)
        self._fix.setToolTip(fix_hint(state.fix) if state.fix is not None else tr("Check the whole file"))
        self.show()


def _key(entry: ModelEntry) -> str:
    return entry.model.path
