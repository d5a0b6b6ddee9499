"""The Downloads tab: the total, what could not be begun, and a row for each download."""

from PySide6.QtCore import QUrl, Signal
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QProgressBar, QVBoxLayout, QWidget

from qwendesk.ui.bridges.downloads import DownloadsBridge, Refusal
from qwendesk.ui.kit.buttons import IconButton, TextButton, describe
from qwendesk.ui.kit.density import Airy
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.theme_keeper import ThemeKeeper
from qwendesk.ui.models.download_row import DownloadRow, folder_of
from qwendesk.ui.models.download_texts import NextStep, next_steps, step_text, total_text

_STEPS = 1000


class DownloadsTab(QWidget):
    """Follows a DownloadsBridge."""

    load_asked = Signal(str)
    """Path of a finished model."""
    settings_asked = Signal(str)
    """Name of a part of the settings: "token" or "folders"."""
    online_asked = Signal()
    offers_asked = Signal()
    """What fits this PC is to be shown."""

    def __init__(self, keeper: ThemeKeeper, downloads: DownloadsBridge) -> None:
        super().__init__()
        self._keeper, self._downloads = keeper, downloads
        self._rows: list[DownloadRow] = []
        self._refusal: Refusal | None = None
        self._total = self._make_total()
        self._offline = self._make_offline()
        self._refused = self._make_refused()
        self._empty = self._make_empty()
        self._list = QVBoxLayout()
        self._list.setSpacing(8)
        Airy(keeper, self._list)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(12)
        for widget in (self._refused, self._offline, self._total):
            column.addWidget(widget)
        column.addLayout(self._list)
        column.addWidget(self._empty, 1)
        column.addStretch(0)
        downloads.changed.connect(self._show)
        downloads.refused.connect(self._on_refused)
        self._show()

    def _show(self) -> None:
        state = self._downloads.state
        rows = {row.identity: row for row in self._rows}
        for identity in rows.keys() - {item.kept.id for item in state.items}:
            row = rows.pop(identity)
            self._list.removeWidget(row)
            row.hide()
            row.deleteLater()
        self._rows = []
        for place, item in enumerate(state.items):
            row = rows.get(item.kept.id) or self._new_row()
            row.show_item(item, is_offline=state.is_offline)
            row.set_place(place + 1, len(state.items))
            if self._list.indexOf(row) != place:
                self._list.insertWidget(place, row)
            self._rows.append(row)
        self._show_total()
        self._offline.setVisible(state.is_offline and bool(state.unfinished))
        self._empty.setVisible(not state.items)

    def _show_total(self) -> None:
        state = self._downloads.state
        self._total.setVisible(bool(state.items))
        self._total_text.setText(total_text(state))
        self._total_bar.setValue(round(_STEPS * state.total.n_done / max(state.total.n_bytes, 1)))
        self._total_bar.setVisible(bool(state.unfinished))
        states = [item.kept.state for item in state.items]
        self._pause_all.setVisible("running" in states or "queued" in states)
        self._resume_all.setVisible("paused" in states)
        self._clear.setVisible("done" in states)

    def _new_row(self) -> DownloadRow:
        row = DownloadRow(self._keeper)
        row.asked.connect(lambda what: self._on_asked(row, what))
        return row

    def _on_asked(self, row: DownloadRow, what: str) -> None:
        item = self._downloads.state.item(row.identity)
        if item is None:
            return
        first = item.kept.files[0]
        match what:
            case "pause":
                self._downloads.pause(row.identity)
            case "resume" | "retry":
                self._downloads.resume(row.identity)
            case "cancel":
                self._downloads.cancel(row.identity)
            case "up" | "down":
                self._downloads.move(row.identity, -1 if what == "up" else 1)
            case "load":
                self.load_asked.emit(first.target)
            case "folder":
                QDesktopServices.openUrl(QUrl.fromLocalFile(folder_of(item)))
            case _:
                self._take_step(what, self._downloads.page_of(first.file.repo))

    def _take_step(self, step: str, page: str) -> None:
        match step:
            case "page":
                QDesktopServices.openUrl(QUrl(page))
            case "online":
                self.online_asked.emit()
            case "token" | "folders":
                self.settings_asked.emit(step)

    def _on_refused(self, refusal: Refusal) -> None:
        self._refusal = refusal
        self._refused_title.setText(tr("{0}: {1}", refusal.name, refusal.title) if refusal.name else refusal.title)
        self._refused_text.setText(refusal.sentence)
        wanted = next_steps(refusal.trouble)
        for step, button in self._refused_steps.items():
            button.setVisible(step in wanted)
        self._refused.show()

    def _make_refused(self) -> QFrame:
        card = _card("failure", "downloads.refused")
        self._refused_title = _label("heading", "downloads.refused.title")
        self._refused_text = _label("", "downloads.refused.sentence")
        self._refused_text.setWordWrap(True)
        close = IconButton(self._keeper, "close", size=16, side=28)
        describe(close, "downloads.refused.dismiss", tr("Dismiss"))
        close.clicked.connect(card.hide)
        head = QHBoxLayout()
        head.addWidget(self._refused_title, 1)
        head.addWidget(close)
        steps: tuple[NextStep, ...] = ("online", "page", "token", "folders")
        buttons = QHBoxLayout()
        buttons.setSpacing(8)
        self._refused_steps: dict[NextStep, TextButton] = {}
        for step in steps:
            text, tip = step_text(step)
            button = TextButton(self._keeper, text)
            describe(button, f"downloads.refused.{step}", text, tip)
            button.clicked.connect(lambda _checked=False, step=step: self._on_refused_step(step))
            self._refused_steps[step] = button
            buttons.addWidget(button)
        buttons.addStretch(1)
        column = QVBoxLayout(card)
        column.setContentsMargins(16, 12, 10, 12)
        column.addLayout(head)
        column.addWidget(self._refused_text)
        column.addLayout(buttons)
        card.hide()
        return card

    def _on_refused_step(self, step: NextStep) -> None:
        self._take_step(step, self._refusal.page if self._refusal is not None else "")
        self._refused.hide()

    def _make_offline(self) -> QFrame:
        card = _card("banner", "downloads.offline")
        card.setProperty("tone", "warn")
        text = _label("", "downloads.offline.text")
        text.setText(tr("QwenDesk is set to offline. Downloads wait, and go on where they were."))
        text.setWordWrap(True)
        button = TextButton(self._keeper, tr("Go online"))
        describe(button, "downloads.offline.online", tr("Go online"), tr("Allow connections again"))
        button.clicked.connect(self.online_asked)
        row = QHBoxLayout(card)
        row.setContentsMargins(16, 12, 12, 12)
        row.addWidget(text, 1)
        row.addWidget(button)
        card.hide()
        return card

    def _make_total(self) -> QWidget:
        box = QWidget()
        box.setObjectName("downloads.total")
        self._total_text = _label("", "downloads.total.text")
        self._total_bar = QProgressBar()
        self._total_bar.setObjectName("downloads.total.bar")
        self._total_bar.setAccessibleName(tr("Progress of all downloads"))
        self._total_bar.setRange(0, _STEPS)
        self._total_bar.setTextVisible(False)
        self._total_bar.setFixedHeight(6)
        self._pause_all = self._command("pause_all", tr("Pause all"), tr("Pause; what is there stays"))
        self._pause_all.clicked.connect(self._downloads.pause_all)
        self._resume_all = self._command("resume_all", tr("Resume all"), tr("Go on with all that are paused"))
        self._resume_all.clicked.connect(self._downloads.resume_all)
        self._clear = self._command("clear", tr("Clear finished"), tr("Take finished ones off the list; files stay"))
        self._clear.clicked.connect(self._downloads.clear_done)
        row = QHBoxLayout()
        row.setSpacing(8)
        row.addWidget(self._total_text, 1)
        for button in (self._pause_all, self._resume_all, self._clear):
            row.addWidget(button)
        column = QVBoxLayout(box)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        column.addLayout(row)
        column.addWidget(self._total_bar)
        return box

    def _make_empty(self) -> QWidget:
        box = QWidget()
        box.setObjectName("downloads.empty")
        title = _label("heading", "downloads.empty.title")
        title.setText(tr("No downloads"))
        text = _label("lead", "downloads.empty.text")
        text.setText(
            tr(
                "What you download shows up here, with its picture file. Downloads go on where they were after a "
                "pause, a lost connection or a restart, and a file gets its name only when its content is right."
            )
        )
        text.setWordWrap(True)
        offers = TextButton(self._keeper, tr("Show what fits this PC"), kind="primary")
        describe(offers, "downloads.empty.offers", tr("Show what fits this PC"))
        offers.clicked.connect(self.offers_asked)
        column = QVBoxLayout()
        column.setSpacing(12)
        column.addSpacing(96)
        column.addWidget(title)
        column.addWidget(text)
        row = QHBoxLayout()
        row.addWidget(offers)
        row.addStretch(1)
        column.addLayout(row)
        column.addStretch(1)
        holder = QWidget()
        holder.setMaximumWidth(560)
        holder.setLayout(column)
        outer = QHBoxLayout(box)
        outer.addStretch(1)
        outer.addWidget(holder, 10)
        outer.addStretch(1)
        return box

    def _command(self, name: str, text: str, tip: str) -> TextButton:
        button = TextButton(self._keeper, text, kind="quiet")
        describe(button, f"downloads.{name}", text, tip)
        return button


def _card(kind: str, name: str) -> QFrame:
    card = QFrame()
    card.setObjectName(name)
    card.setProperty("kind", kind)
    return card


def _label(kind: str, name: str) -> QLabel:
    label = QLabel()
    label.setObjectName(name)
    if kind:
        label.setProperty("kind", kind)
    return label
